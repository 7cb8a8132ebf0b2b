"""CIFAR-10 and CIFAR-100 in their official binary layout, from a folder or downloaded.

A file is a row of records: one or two bytes of labels, and 3 × 32 × 32 bytes of a
picture.
"""

from __future__ import annotations

import tarfile
import zlib
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ensize.checks import InputError
from ensize.stores.files import brief, publish, reported

if TYPE_CHECKING:
    from numpy.typing import NDArray

_SITE = "https://www.cs.toronto.edu/~kriz/"
_SHAPE = (3, 32, 32)
_PIXELS = 3 * 32 * 32


@dataclass(frozen=True)
class Layout:
    """The files of a data set.

    Parameters
    ----------
    classes
        How many there are.
    train, test
        The files, and how many objects each has.
    labels
        How many bytes stand before a picture; the last of them is its class.
    subfolder
        Which folder the archive becomes.
    archive, checksum
        What is downloaded.
    """

    classes: int
    train: dict[str, int]
    test: dict[str, int]
    labels: int
    subfolder: str
    archive: str
    checksum: str


LAYOUTS = {
    "cifar10": Layout(
        10,
        {f"data_batch_{i}.bin": 10_000 for i in range(1, 6)},
        {"test_batch.bin": 10_000},
        1,
        "cifar-10-batches-bin",
        "cifar-10-binary.tar.gz",
        "md5:c32a1d4ab5d03f1284b67883e8d87530",
    ),
    "cifar100": Layout(
        100,
        {"train.bin": 50_000},
        {"test.bin": 10_000},
        2,
        "cifar-100-binary",
        "cifar-100-binary.tar.gz",
        "md5:03b5dce01913d631647c71ecec9e9cb8",
    ),
}


def read_cifar(name: str, folder: Path | None) -> dict[str, Any]:
    """Read the arrays of `Data`; without a folder, download them first."""
    layout = LAYOUTS[name]
    found = _downloaded(name, layout) if folder is None else _located(layout, folder)
    x_train, y_train = _read(layout, found, layout.train)
    x_test, y_test = _read(layout, found, layout.test)
    arrays = {
        "x_train": x_train,
        "y_train": y_train,
        "x_test": x_test,
        "y_test": y_test,
    }
    return {**arrays, "classes": layout.classes, "shape": _SHAPE}


def outline_cifar(name: str) -> dict[str, Any]:
    """Make arrays of the same shapes as those of `read_cifar`, with nothing in them."""
    layout = LAYOUTS[name]
    arrays: dict[str, Any] = {"classes": layout.classes, "shape": _SHAPE}
    for part, files in (("train", layout.train), ("test", layout.test)):
        objects = sum(files.values())
        arrays[f"x_{part}"] = np.broadcast_to(np.uint8(0), (objects, *_SHAPE))
        arrays[f"y_{part}"] = np.broadcast_to(np.int64(0), objects)
    return arrays


def _located(layout: Layout, folder: Path) -> Path:
    """Find the folder itself, or the one in it that the archive becomes."""
    with reported(folder):
        if not folder.is_dir():
            raise InputError(
                f"{folder} is no folder; give the one with {next(iter(layout.train))},"
                " or none, and the data set is downloaded"
            )
        inner = folder / layout.subfolder
        return inner if inner.is_dir() else folder


def _read(
    layout: Layout, folder: Path, files: dict[str, int]
) -> tuple[NDArray[np.uint8], NDArray[np.int64]]:
    record = layout.labels + _PIXELS
    parts = []
    for name, objects in files.items():
        path = folder / name
        with reported(path):
            if not path.is_file():
                raise InputError(
                    f"{path} is missing; unpack {layout.archive} there, or give no"
                    " folder, and the data set is downloaded"
                )
            size = _size(path)
            held = np.fromfile(path, np.uint8, objects * record)
        if held.size != objects * record or size != held.size:
            raise InputError(
                f"{path} has {size} bytes, and {objects * record} are expected;"
                f" it is truncated or another file: unpack {layout.archive} again"
            )
        parts.append(held.reshape(objects, record))
    records = np.concatenate(parts)
    labels = records[:, layout.labels - 1].astype(np.int64)
    if labels.max() >= layout.classes:
        raise InputError(
            f"{folder / next(iter(files))} has the class {labels.max()}, and there are"
            f" {layout.classes}; it is another file: unpack {layout.archive} again"
        )
    pictures = records[:, layout.labels :].reshape(-1, *_SHAPE)
    return np.ascontiguousarray(pictures), labels


def _downloaded(name: str, layout: Layout) -> Path:
    """Download the archive where that has not been done, and unpack what is needed."""
    try:
        import pooch  # noqa: PLC0415 - of no use with a folder at hand
    except ModuleNotFoundError as error:
        raise InputError(
            f"{name} is downloaded with pooch, which is not installed; pip install"
            ' "ensize[train]", or give the folder of its files'
        ) from error
    cache = Path(pooch.os_cache("ensize"))
    folder = cache / layout.subfolder
    files = layout.train | layout.test
    record = layout.labels + _PIXELS
    if all(_size(folder / each) == n * record for each, n in files.items()):
        return folder
    try:
        path = pooch.retrieve(
            _SITE + layout.archive, layout.checksum, layout.archive, cache
        )
    except (OSError, ValueError) as error:
        # OSError: requests' errors are; ValueError: the checksum is another one.
        raise InputError(
            f"{name} cannot be downloaded from {_SITE} ({brief(error)}); try again, or"
            " give the folder of its files"
        ) from error
    _unpack(Path(path), folder, files, record)
    return folder


def _unpack(archive: Path, folder: Path, files: dict[str, int], record: int) -> None:
    """Write the files that are needed; no path in the archive decides where."""
    try:
        with tarfile.open(archive) as packed:
            for entry in packed:
                name = Path(entry.name).name
                if not entry.isfile() or entry.size != files.get(name, -1) * record:
                    continue
                content = packed.extractfile(entry)
                if content is not None:
                    (folder / name).unlink(missing_ok=True)
                    publish(folder / name, [content.read()])
    except (tarfile.TarError, EOFError, zlib.error) as error:
        raise InputError(
            f"{archive} cannot be unpacked ({brief(error)}); remove it, and it is"
            " downloaded again"
        ) from error


def _size(path: Path) -> int:
    return path.stat().st_size if path.is_file() else -1
