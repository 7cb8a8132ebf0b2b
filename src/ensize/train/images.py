"""Data sets, held in memory as arrays; batches augmented all at once on the device."""

from __future__ import annotations

import functools
import hashlib
import importlib.resources
import tarfile
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch.nn import functional

from ensize.checks import InputError, one_of, whole
from ensize.stores import reported, true_classes
from ensize.train.networks import FAMILIES
from ensize.train.seeds import OFFSETS, PAD

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

_ARRAYS = ("x_train", "y_train", "x_test", "y_test")


@dataclass(frozen=True, eq=False)
class Data:
    """Objects to train on and objects to test on, with their true classes.

    Parameters
    ----------
    name
        What the data set is called.
    x_train, x_test
        Pictures as uint8, (objects, channels, height, width), or any numbers as
        float32, objects first.
    y_train, y_test
        True classes, int64.
    classes
        How many there are.
    shape
        Of one object.
    """

    name: str
    x_train: NDArray[Any]
    y_train: NDArray[np.int64]
    x_test: NDArray[Any]
    y_test: NDArray[np.int64]
    classes: int
    shape: tuple[int, ...]

    @property
    def pictures(self) -> bool:
        """Whether these are pictures, which can be cropped and mirrored."""
        return bool(self.x_train.dtype == np.uint8) and len(self.shape) == 3

    @functools.cached_property
    def fingerprint(self) -> str:
        """Tell this data set from others."""
        digest = hashlib.sha256(repr((self.shape, self.classes)).encode())
        for name in _ARRAYS:
            digest.update(np.ascontiguousarray(getattr(self, name)).data)
        return digest.hexdigest()

    def validation(self, objects: int = 5000, seed: int = 0) -> Data:
        """Test on some training objects, drawn by seed, and train on the others."""
        whole("objects", objects, 1, len(self.y_train) - 1)
        order = np.random.default_rng(whole("seed", seed)).permutation(
            len(self.y_train)
        )
        tested, trained = np.sort(order[:objects]), np.sort(order[objects:])
        return replace(
            self,
            name=f"{self.name}-validation",
            x_train=self.x_train[trained],
            y_train=self.y_train[trained],
            x_test=self.x_train[tested],
            y_test=self.y_train[tested],
        )


@dataclass(frozen=True)
class _Cifar:
    """The official binary files of a data set of 32×32 pictures in colors."""

    classes: int
    train: tuple[str, ...]
    test: str
    labels: int  # bytes before each picture, the last of which counts
    objects: int  # in each of the files to train on
    archive: str
    sha256: str


_CIFAR = {
    "cifar10": _Cifar(
        10,
        tuple(f"data_batch_{i}.bin" for i in range(1, 6)),
        "test_batch.bin",
        1,
        10_000,
        "cifar-10-binary.tar.gz",
        "md5:c32a1d4ab5d03f1284b67883e8d87530",
    ),
    "cifar100": _Cifar(
        100,
        ("train.bin",),
        "test.bin",
        2,
        50_000,
        "cifar-100-binary.tar.gz",
        "md5:03b5dce01913d631647c71ecec9e9cb8",
    ),
}
_PIXELS = 3 * 32 * 32
