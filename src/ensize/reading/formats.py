"""The formats of files: .npy, .npz, .safetensors and text.

Nothing is unpickled, and nothing is allocated because a header announces it: what a
file says of its size is first compared with the size that it has.
"""

from __future__ import annotations

import difflib
import re
import struct
import zipfile
from dataclasses import replace
from typing import IO, TYPE_CHECKING, Any

import numpy as np

from ensize.checks import InputError, class_labels
from ensize.stores.files import (
    GARBLED,
    NPY_HEADER,
    FileArray,
    brief,
    fitting,
    listed,
    open_npy,
    open_safetensors,
    read_npy_header,
    reported,
)

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from numpy.typing import NDArray

    # Of a compressed file, arrays are in memory.
    AnyArray = FileArray | NDArray[Any]

_FORMATS = "a store, .npy, .npz or .safetensors"
_PICKLES = (".pkl", ".pickle", ".pt", ".pth", ".joblib", ".bin", ".ckpt")
_INTEGER = re.compile(rb"[+-]?[0-9]{1,18}")
# Compressed arrays are read into memory: up to this size, and up to this ratio.
_MOST_BYTES, _MOST_RATIO, _HARMLESS = 2**32, 100, 2**26


def find_array(
    path: Path, name: str, dimensions: Sequence[int] = ()
) -> tuple[AnyArray | None, list[str]]:
    """Find an array by its name, or as the only one of these dimensions.

    Also returned are the names that there are.
    """
    size, suffix = file_size(path), path.suffix.lower()
    if suffix == ".npy":
        return open_npy(path), []
    if suffix == ".npz":
        with reported(path):
            return _member(path, name, size)
    if suffix == ".safetensors":
        _, arrays = open_safetensors(path)
        alone = [each for each in arrays.values() if len(each.shape) in dimensions]
        return arrays.get(name, alone[0] if len(alone) == 1 else None), list(arrays)
    if suffix in _PICKLES:
        raise InputError(
            f"{path} may be a pickle, which is never loaded; load it where it was made"
            " and save its array: np.save('predictions.npy', logits)"
        )
    raise InputError(
        f"{path} is none of {_FORMATS} by its name; convert it, for instance with"
        " np.save"
    )


def file_size(path: Path, wanted: str = _FORMATS) -> int:
    """Return a file's size, or say that it is not there, no file, or empty."""
    with reported(path):
        if not path.exists():
            there = [each.name for each in listed(path.parent)]
            near = difflib.get_close_matches(path.name, there, n=1)
            hint = f"did you mean {path.with_name(near[0])}?" if near else "correct it"
            raise InputError(f"{path} does not exist; {hint}")
        if not path.is_file():
            raise InputError(f"{path} is no ordinary file; give {wanted}")
        size = path.stat().st_size
    if not size:
        raise InputError(f"{path} is empty; write it again")
    return size


def _member(path: Path, name: str, size: int) -> tuple[AnyArray | None, list[str]]:
    """Find an array in an .npz file; if it is not compressed it stays there."""
    try:
        with zipfile.ZipFile(path) as archive:
            keys = [each.removesuffix(".npy") for each in archive.namelist()]
            if name not in keys:
                return None, keys
            info = archive.getinfo(f"{name}.npy")
            with archive.open(info) as stream:
                head = stream.read(NPY_HEADER)
            array = read_npy_header(f"{path}[{name}]", path, head)
            fitting(array, info.file_size)
            if info.compress_type == zipfile.ZIP_STORED:
                start = array.offset + _start(path, info)
                return fitting(replace(array, offset=start), size), keys
            _check_ratio(array, min(info.compress_size, size))
            with archive.open(info) as stream:
                return _inflated(array, stream), keys
    except InputError:
        raise
    except GARBLED as error:
        raise InputError(
            f"{path} is truncated, damaged or no .npz file ({brief(error)}); write it"
            " again with np.savez"
        ) from error


def _start(path: Path, info: zipfile.ZipInfo) -> int:
    """Find where a member's bytes begin: behind its own header, name and extra."""
    with path.open("rb") as file:
        file.seek(info.header_offset)
        name, extra = struct.unpack("<26xHH", file.read(30))
    return info.header_offset + 30 + int(name) + int(extra)


def _check_ratio(array: FileArray, packed: int) -> None:
    """Refuse what no predictions are compressible to."""
    if array.nbytes > min(_MOST_BYTES, max(_HARMLESS, _MOST_RATIO * packed)):
        raise InputError(
            f"{array.path} has {packed} bytes that would become {array.nbytes} in"
            " memory; write it with np.savez, uncompressed, and it is read in place"
        )


def _inflated(array: FileArray, stream: IO[bytes]) -> NDArray[Any]:
    """Decompress an array into memory."""
    stream.read(array.offset)
    data, filled = np.empty(array.nbytes, np.uint8), 0
    while chunk := stream.read(2**20):
        data[filled : filled + len(chunk)] = np.frombuffer(chunk, np.uint8)
        filled += len(chunk)
    if filled < array.nbytes:
        raise EOFError("it ends early")
    order: Any = "F" if array.strides else "C"
    held: NDArray[Any] = np.ndarray(array.shape, array.stored, data, order=order)
    return held.astype(array.dtype, copy=False)


def read_integers(path: Path) -> NDArray[np.int64]:
    """Read the true classes from a text file, one in each line."""
    file_size(path)
    with reported(path):
        lines = path.read_bytes().removeprefix(b"\xef\xbb\xbf").strip().split(b"\n")
    for number, line in enumerate(lines, 1):
        if not _INTEGER.fullmatch(line.strip()):
            raise InputError(
                f"{path} has {line[:40].decode(errors='replace')!r} in line {number};"
                " a text file of targets has one integer in each line"
            )
    return class_labels(str(path), np.array([int(line) for line in lines], np.int64))
