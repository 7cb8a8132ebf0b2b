"""Arrays in files, and files that are written whole or not at all."""

from __future__ import annotations

import contextlib
import errno
import functools
import io
import json
import lzma
import math
import os
import re
import secrets
import stat
import struct
import tokenize
import warnings
import zipfile
import zlib
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from safetensors import SafetensorError, safe_open

from ensize.checks import InputError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

    from numpy.typing import NDArray

_DTYPES = {"BF16": "<u2", "F16": "<f2", "F32": "<f4", "F64": "<f8"}
_DTYPES |= {f"I{bits}": f"<i{bits // 8}" for bits in (8, 16, 32, 64)}
_DTYPES |= {f"U{bits}": f"<u{bits // 8}" for bits in (8, 16, 32, 64)}
_HEADERS = {
    (1, 0): np.lib.format.read_array_header_1_0,
    (2, 0): np.lib.format.read_array_header_2_0,
    # As 2.0, but for the names of fields, which predictions have none of.
    (3, 0): np.lib.format.read_array_header_2_0,
}
# What the libraries raise on files that are not what they seem.
GARBLED = (
    *(ArithmeticError, EOFError, LookupError, MemoryError, RuntimeError, SyntaxError),
    *(TypeError, ValueError, struct.error, tokenize.TokenError),
    *(zipfile.BadZipFile, zlib.error, lzma.LZMAError),
)
# More than the header of an .npy file may have.
NPY_HEADER = 2**14
# More than any text that a study, or a person, writes.
_TEXT = 2**24
_OBJECT = re.compile(r":? <[\w.]+ object at 0x[0-9a-f]+>")
_NO_HARD_LINKS = {errno.EPERM, errno.ENOSYS, errno.ENOTSUP, errno.EOPNOTSUPP}


@dataclass(frozen=True, slots=True)
class FileArray:
    """An array in a file, read by slices of its first axis.

    Each slice opens the file, reads and closes it: thousands of networks hold neither
    files nor memory maps open, and a file that shrinks or a disk that fails under the
    reader is an error with a sentence, where a memory map would end the process. It
    costs as much as the slices of the safetensors library, and in blocks of 1,000
    rows of 100 classes a sixth more than a memory map that is kept open.
    """

    path: Path
    offset: int
    shape: tuple[int, ...]
    stored: np.dtype[Any]
    bfloat16: bool = False
    strides: tuple[int, ...] | None = None  # where it is not in C order

    @property
    def dtype(self) -> np.dtype[Any]:
        """What is read from it, in the byte order of this machine."""
        return np.dtype("f4") if self.bfloat16 else self.stored.newbyteorder("=")

    @property
    def nbytes(self) -> int:
        """How long it is."""
        return math.prod(self.shape) * self.stored.itemsize

    def __getitem__(self, rows: slice, /) -> NDArray[Any]:
        """Read some rows that follow one another."""
        start, stop, step = rows.indices(self.shape[0])
        if step != 1:
            raise IndexError("an array in a file is read by slices without a step")
        with reported(self.path):
            block = self._read(start, max(start, stop))
        if block is None:
            raise InputError(
                f"{self.path} ends before row {stop}: it was truncated while in use;"
                " write it again"
            )
        if self.bfloat16:
            return (block.astype(np.uint32) << 16).view(np.float32)
        return block.astype(self.dtype, copy=False)

    def _read(self, start: int, stop: int) -> NDArray[Any] | None:
        if self.strides is None:
            block = np.empty((stop - start, *self.shape[1:]), self.stored)
            with self.path.open("rb") as file:
                file.seek(self.offset + start * block.strides[0])
                return block if file.readinto(block.data) == block.nbytes else None
        try:
            held = np.memmap(self.path, np.uint8, "r", self.offset)
            view = np.ndarray(self.shape, self.stored, held, 0, self.strides)
        except (TypeError, ValueError):  # the file is shorter than that
            return None
        return view[start:stop].copy()

    def parts(self) -> list[FileArray]:
        """Split it along its first axis."""
        inner = self.shape[1:]
        first, *others = self.strides or (math.prod(inner) * self.stored.itemsize,)
        part = functools.partial(
            replace, self, shape=inner, strides=tuple(others) or None
        )
        return [part(offset=self.offset + i * first) for i in range(self.shape[0])]


def open_safetensors(path: Path) -> tuple[dict[str, str], dict[str, FileArray]]:
    """Read a .safetensors file's header: its metadata, and where its arrays lie.

    Arrays of types that NumPy lacks are left out, bfloat16 apart.
    """
    with reported(path):
        ordinary(path)
        try:
            # The library checks every size and offset against the file.
            with path.open("rb") as file, safe_open(path, framework="numpy"):
                length = int.from_bytes(file.read(8), "little")
                header = json.loads(file.read(length))
        except (SafetensorError, ValueError) as error:
            raise InputError(
                f"{path} is truncated, damaged or no .safetensors file"
                f" ({brief(error)}); write it again"
            ) from error
    metadata = header.pop("__metadata__", None) or {}
    return metadata, {
        name: FileArray(
            path,
            8 + length + each["data_offsets"][0],
            tuple(each["shape"]),
            np.dtype(_DTYPES[each["dtype"]]),
            bfloat16=each["dtype"] == "BF16",
        )
        for name, each in header.items()
        if each["dtype"] in _DTYPES
    }


def open_npy(path: Path) -> FileArray:
    """Read an .npy file's header, and find where its array lies."""
    with reported(path), ordinary(path).open("rb") as file:
        array = read_npy_header(str(path), path, file.read(NPY_HEADER))
        return fitting(array, os.fstat(file.fileno()).st_size)


def read_npy_header(name: str, path: Path, start: bytes) -> FileArray:
    """Read what an .npy file begins with, and refuse what holds no numbers."""
    file = io.BytesIO(start)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # about headers that Python 2 wrote
            version = np.lib.format.read_magic(file)
            shape, fortran, dtype = _HEADERS[version](file)
        if min(shape, default=0) < 0:
            raise ValueError(f"the shape is {shape}")
    except GARBLED as error:
        raise InputError(
            f"{name} is truncated, damaged or no .npy array ({brief(error)}); write it"
            " again with np.save"
        ) from error
    if dtype.kind not in "fiub":
        what = "Python objects, which are never unpickled" if dtype.hasobject else dtype
        raise InputError(
            f"{name} holds {what}; save an array of numbers:"
            " np.save(file, array.astype('float32'))"
        )
    strides = tuple(dtype.itemsize * math.prod(shape[:i]) for i in range(len(shape)))
    order = strides if fortran and len(shape) > 1 else None
    return FileArray(path, file.tell(), shape, dtype, strides=order)


def fitting(array: FileArray, size: int) -> FileArray:
    """Refuse an array that its file is too short for."""
    if array.offset + array.nbytes > size:
        raise InputError(
            f"{array.path} announces an array of shape {array.shape}, {array.nbytes}"
            f" bytes, and has {size} in all: it is truncated or damaged; write it again"
        )
    return array


def ordinary(path: Path) -> Path:
    """Refuse a pipe, a socket or a device, which may have no end."""
    with reported(path):
        try:  # one look: what another process removes may be gone at a second one
            there = path.stat().st_mode
        except (FileNotFoundError, NotADirectoryError):
            there = 0
    if there and not (stat.S_ISREG(there) or stat.S_ISDIR(there)):
        raise InputError(f"{path} is no ordinary file; move it away")
    return path


def read_text(path: Path) -> bytes:
    """Read a file of text, as studies and people write them: of some size at most."""
    with reported(path), ordinary(path).open("rb") as file:
        content = file.read(_TEXT + 1)
    if len(content) > _TEXT:
        raise InputError(
            f"{path} has more than {_TEXT} bytes, and what it should hold has not;"
            " bring back the original, or move it away"
        )
    return content


@contextlib.contextmanager
def reported(path: Path, doing: str = "read") -> Iterator[None]:
    """Turn an error of the operating system into a sentence that names the file."""
    try:
        yield
    except OSError as error:
        raise InputError(
            f"{path} cannot be {doing} ({error.strerror or error}); look at its folder,"
            " the permissions there and the space on that disk"
        ) from error


def brief(error: Exception) -> str:
    """Quote an error: its first line, without what a terminal would obey."""
    said = _OBJECT.sub("", str(error)).strip() or type(error).__name__
    line = said.splitlines()[0]
    return "".join(each if each.isprintable() else "?" for each in line[:200])


def listed(folder: Path) -> list[os.DirEntry[str]]:
    """List a folder; nothing where there is none."""
    with reported(folder):
        return list(os.scandir(folder)) if folder.is_dir() else []


def publish(path: Path, content: Iterable[Any]) -> bool:
    """Write a file whole under its name; False, and nothing done, if that is taken.

    Where the filesystem has no hard links the file is renamed: still whole, but of two
    writers of one name in the same instant both are told that they wrote it, and the
    later file stays.
    """
    token = f"{os.getpid()}-{secrets.token_hex(8)}"
    hidden = path.with_name(f".{path.name}.{token}.partial")
    with reported(path, "written"):
        if not path.parent.is_dir():
            make_folder(path.parent)
            _flush_folder(path.parent.parent)
        try:
            with hidden.open("xb") as file:
                for chunk in content:
                    file.write(chunk)
                file.flush()
                os.fsync(file.fileno())
            new = _link(hidden, path)
        finally:
            hidden.unlink(missing_ok=True)
        _flush_folder(path.parent)
    return new


def rewrite(path: Path, content: Iterable[Any]) -> None:
    """Write a file whole in the place of what is there under its name, if anything."""
    fresh = path.with_name(f".{path.name}.{secrets.token_hex(8)}.partial")
    publish(fresh, content)
    with reported(path, "written"):
        fresh.replace(path)


def make_folder(folder: Path) -> None:
    """Make a folder, or say which file stands in its way."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except (FileExistsError, NotADirectoryError) as error:
        file = next(each for each in (folder, *folder.parents) if each.exists())
        raise InputError(
            f"{file} is a file, where a folder is to be made; choose another name"
        ) from error


def _link(hidden: Path, path: Path) -> bool:
    try:
        os.link(hidden, path)
    except FileExistsError:
        # Over NFS the answer may get lost although the link was made.
        return hidden.stat().st_nlink == 2
    except OSError as error:
        if error.errno not in _NO_HARD_LINKS:
            raise
        if path.exists():
            return False
        hidden.replace(path)
    return True


def _flush_folder(folder: Path) -> None:
    """Have the names in a folder outlast a power cut, where the system offers that."""
    with contextlib.suppress(OSError):
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
