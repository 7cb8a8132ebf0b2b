"""Data sets, held in memory as arrays."""

from __future__ import annotations

import functools
import gzip
import hashlib
import importlib.util
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ensize.checks import InputError, one_of, whole
from ensize.reading.formats import find_array
from ensize.stores import reported, true_classes
from ensize.train.cifar import LAYOUTS, outline_cifar, read_cifar
from ensize.train.networks import FAMILIES

if TYPE_CHECKING:
    import os

    from numpy.typing import NDArray

_ARRAYS = ("x_train", "y_train", "x_test", "y_test")
# Of the 1,797 digits so many are to train on: ten batches of 128, or so few that the
# others are enough, and hard enough, to tell good networks from better ones.
_TRAINED = {"digits": 1280, "few-digits": 128}
DATASETS = (*LAYOUTS, *_TRAINED)


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


def load_data(dataset: str, *, folder: str | os.PathLike[str] | None = None) -> Data:
    """Read a data set: by its name, or from a file of arrays.

    Parameters
    ----------
    dataset
        "cifar10", "cifar100", "digits" or "few-digits"; or the path of an .npz file
        with the arrays x_train, y_train, x_test and y_test.
    folder
        Where CIFAR's binary files are; without it they are downloaded once. A file
        of arrays is looked for there too.
    """
    place = None if folder is None else Path(folder)
    if str(dataset).lower().endswith(".npz"):
        path = Path(dataset)
        if place is not None and not path.exists() and (place / path).exists():
            path = place / path
        return _of_arrays(path)
    if one_of("dataset", dataset, DATASETS) in _TRAINED:
        return _digits(dataset)
    return Data(dataset, **read_cifar(dataset, place))


def outline(dataset: str, *, folder: str | os.PathLike[str] | None = None) -> Data:
    """Tell how many objects of which shape a data set has; CIFAR need not be there."""
    if dataset in LAYOUTS and folder is None:
        return Data(dataset, **outline_cifar(dataset))
    return load_data(dataset, folder=folder)


def normalization(
    data: Data, family: str
) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    """Say by what inputs are shifted and scaled: x becomes (x − mean) / deviation.

    Of pictures these are one number a color, with colors from 0 to 255; of other
    objects one number for each entry.
    """
    declared = FAMILIES[family]
    if data.pictures:
        if len(declared.mean) == data.shape[0]:
            mean, deviation = np.array(declared.mean), np.array(declared.deviation)
        else:
            counts = [
                np.bincount(data.x_train[:, i].reshape(-1), minlength=256)
                for i in range(data.shape[0])
            ]
            levels = np.arange(256) / 255
            mean = np.array([np.average(levels, weights=each) for each in counts])
            square = [np.average(levels**2, weights=each) for each in counts]
            deviation = np.sqrt(np.maximum(np.array(square) - mean**2, 0))
        mean, deviation = 255 * mean, 255 * deviation
    else:
        mean = data.x_train.mean(axis=0, dtype=np.float64)
        deviation = data.x_train.std(axis=0, dtype=np.float64)
        # An entry that hardly varies says little, and would say it too loudly.
        deviation = np.maximum(deviation, 0.1 * deviation.max(initial=0))
    deviation = np.where(deviation > 0, deviation, 1)
    return mean.astype(np.float32), deviation.astype(np.float32)


def _digits(name: str) -> Data:
    """Read the digits that come with scikit-learn: its file, without importing it."""
    found = importlib.util.find_spec("sklearn")
    if found is None or found.origin is None:
        raise InputError(
            "digits come with scikit-learn, which is not installed; pip install"
            ' "ensize[train]"'
        )
    path = Path(found.origin).parent / "datasets" / "data" / "digits.csv.gz"
    with reported(path):
        table = np.loadtxt(
            gzip.decompress(path.read_bytes()).splitlines(), np.float32, delimiter=","
        )
    order = np.random.default_rng(0).permutation(len(table))
    trained, tested = np.split(table[order], [_TRAINED[name]])
    return Data(
        name,
        *(np.ascontiguousarray(trained[:, :-1]), trained[:, -1].astype(np.int64)),
        *(np.ascontiguousarray(tested[:, :-1]), tested[:, -1].astype(np.int64)),
        classes=10,
        shape=(64,),
    )


def _of_arrays(path: Path) -> Data:
    """Read anybody's arrays."""
    held: dict[str, Any] = {}
    for name in _ARRAYS:
        array, there = find_array(path, name)
        if array is None:
            raise InputError(
                f"{path} has no array {name}, but {', '.join(there) or 'none'}; write"
                " it with np.savez(path, x_train=…, y_train=…, x_test=…, y_test=…)"
            )
        label = f"{path}[{name}]"
        held[name] = (
            true_classes(label, array) if name[0] == "y" else _objects(label, array[:])
        )
    for part in ("train", "test"):
        x, y = held[f"x_{part}"], held[f"y_{part}"]
        if len(x) != len(y):
            raise InputError(
                f"{path} has {len(x)} objects in x_{part} and {len(y)} classes in"
                f" y_{part}; each object has one"
            )
    shape = held["x_train"].shape[1:]
    if (
        held["x_test"].shape[1:] != shape
        or held["x_test"].dtype != held["x_train"].dtype
    ):
        raise InputError(
            f"{path} trains on {held['x_train'].dtype} of shape {shape} and tests on"
            f" {held['x_test'].dtype} of shape {held['x_test'].shape[1:]}; make them"
            " alike"
        )
    classes = max(2, int(held["y_train"].max()) + 1)
    if held["y_test"].max() >= classes:
        raise InputError(
            f"{path} has the class {held['y_test'].max()} in y_test, and y_train ends"
            f" with {classes - 1}; classes count from 0, and each is to be learned"
        )
    return Data(path.stem, **held, classes=classes, shape=shape)


def _objects(name: str, array: NDArray[Any]) -> NDArray[Any]:
    """Take pictures as (objects, channels, height, width), others as float32."""
    if array.ndim < 2 or not array.size:
        raise InputError(
            f"{name} has shape {array.shape}; give one row of numbers, or one picture,"
            " for each object"
        )
    if array.dtype == np.uint8 and array.ndim == 3:
        return np.ascontiguousarray(array[:, None])
    if array.dtype == np.uint8 and array.ndim == 4:
        colors = (1, 3)
        if array.shape[3] in colors and array.shape[1] not in colors:
            array = array.transpose(0, 3, 1, 2)
        return np.ascontiguousarray(array)
    if array.dtype.kind not in "fiub":
        raise InputError(f"{name} holds {array.dtype}; give numbers")
    floats = np.ascontiguousarray(array, np.float32)
    if not np.isfinite(floats).all():
        first = int(np.argwhere(~np.isfinite(floats))[0, 0])
        raise InputError(
            f"{name} has a number that is not finite in float32 at object {first};"
            " leave that object out, or put a number in its place"
        )
    return floats
