"""The file of one network: its numbers, and what it says of itself.

All that is said is text. Some of it the networks of a pool have in common; what
users add has the prefix `extra.`.
"""

from __future__ import annotations

import functools
import hashlib
import json
import os
import re
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from ensize.checks import InputError, class_labels, positive, whole
from ensize.predictions import Pool
from ensize.sketches import Grid
from ensize.stores.files import (
    FileArray,
    brief,
    open_npy,
    open_safetensors,
    publish,
    read_text,
    reported,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from pathlib import Path

    from numpy.typing import NDArray

FORMAT = "1"
NETWORK_NAME = re.compile(r"(0|[1-9][0-9]{0,17})\.safetensors")
POOL_NAME = re.compile(r"[A-Za-z0-9_+-][A-Za-z0-9._+-]{0,99}")
# What the networks of a pool share, as handed in for each.
GIVEN = (
    *("format", "kind", "form", "pool", "family", "width", "size"),
    *("multiply_adds", "recipe"),
)
# And all that they share.
COMMON = (*GIVEN, "classes", "objects", "targets")
_COUNTS = ("size", "multiply_adds", "classes", "objects")
_TENSORS = {"logits": "logits", "sketch": "log_probabilities"}
_DTYPES = {"float16": "F16", "float32": "F32"}


@dataclass(frozen=True)
class Network:
    """A network's file, opened: where its numbers lie and what is known of it."""

    rows: FileArray
    metadata: dict[str, str]
    pool: Pool
    objects: int
    classes: int
    grid: Grid | None  # of a sketch

    @classmethod
    def open(cls, path: Path) -> Self:
        """Check that what a file says of itself fits what it holds."""
        said, arrays = open_safetensors(path)
        pool, objects, classes = numbers(path, said)
        grid, shape = None, (objects, classes)
        if said.get("form") == "sketch":
            grid = _grid(path, said.get("grid", ""))
            shape = (grid.nodes, objects)
        rows = arrays.get(_TENSORS.get(said.get("form", ""), ""))
        if rows is None or (rows.shape, rows.dtype.name) != (shape, said.get("dtype")):
            raise damaged(path, "its numbers are not those that its metadata announce")
        return cls(rows, said, pool, objects, classes, grid)

    @classmethod
    def in_store(cls, path: Path) -> Self:
        """Open a file where its pool and seed are in its path."""
        network = cls.open(unlinked(path))
        itself = network.pool.name, network.metadata.get("seed")
        if itself != (path.parent.name, path.stem):
            raise damaged(path, f"by itself it is seed {itself[1]!r} of {itself[0]!r}")
        return network

    @property
    def common(self) -> dict[str, str]:
        """What it has in common with its pool."""
        return {key: self.metadata[key] for key in COMMON if key in self.metadata}

    def checksum(self) -> str:
        """Hash all that the file holds."""
        with reported(self.rows.path), self.rows.path.open("rb") as file:
            file.seek(self.rows.offset)
            chunks = (file.read(2**20) for _ in range(0, self.rows.nbytes, 2**20))
            return checksum(self.metadata, chunks)


def write(
    path: Path,
    said: Mapping[str, str],
    blocks: Sequence[NDArray[Any]],
    grid: Grid | None,
) -> bool:
    """Write the file of a network whose logits, or sketch, come in blocks of rows."""
    metadata = {
        **said,
        "written": datetime.now(UTC).isoformat(timespec="seconds"),
        "ensize": _version(),
        "numpy": np.__version__,
    }
    if grid is not None:
        metadata["grid"] = f"{grid.first} {grid.stop} {grid.per_octave}"
    data = [block.data for block in blocks]
    metadata["checksum"] = checksum(metadata, data)
    tensor = {
        "dtype": _DTYPES[said["dtype"]],
        "shape": [sum(map(len, blocks)), *blocks[0].shape[1:]],
        "data_offsets": [0, sum(block.nbytes for block in blocks)],
    }
    header = as_json({"__metadata__": metadata, _TENSORS[said["form"]]: tensor})
    header += b" " * (-len(header) % 8)
    return publish(path, [len(header).to_bytes(8, "little"), header, *data])


def fingerprint(targets: NDArray[np.int64]) -> str:
    """Tell one set of true classes from another."""
    return hashlib.sha256(targets.astype("<i8").tobytes()).hexdigest()


def checksum(said: Mapping[str, Any], data: Iterable[Any] = ()) -> str:
    """Hash what is said, but for its checksum, and the data."""
    digest = hashlib.sha256(as_json({k: said[k] for k in said if k != "checksum"}))
    for chunk in data:
        digest.update(chunk)
    return digest.hexdigest()


def as_json(value: object) -> bytes:
    """Write the same JSON for the same value."""
    return json.dumps(value, ensure_ascii=False, sort_keys=True).encode()


def numbers(path: Path, said: Mapping[str, str]) -> tuple[Pool, int, int]:
    """Read what a pool's networks share: the pool, its objects and its classes."""
    if said.get("format") != FORMAT:
        raise InputError(
            f"{path} has the store format {said.get('format')!r}, and this ensize reads"
            f" {FORMAT!r}; upgrade ensize, or record the network again"
        )
    try:
        counts = {k: whole(k, int(said[k]), 1) for k in _COUNTS if k in said}
        objects, classes = counts.pop("objects"), counts.pop("classes")
        pool = Pool(
            said["pool"],
            said.get("family"),
            positive("width", said["width"]) if "width" in said else None,
            counts.get("size"),
            counts.get("multiply_adds"),
            said.get("recipe"),
        )
    except (KeyError, ValueError) as error:
        raise damaged(path, f"its metadata cannot be read ({brief(error)})") from error
    if not POOL_NAME.fullmatch(pool.name):
        raise damaged(path, f"{pool.name!r} cannot be the name of a pool")
    return pool, objects, classes


def read_claim(path: Path) -> dict[str, str]:
    """Read what the first writer of a pool said of all its networks."""
    text = read_text(unlinked(path))
    try:
        claim = {key: str(each) for key, each in json.loads(text).items()}
        sound = claim["checksum"] == checksum(claim)
    except (AttributeError, KeyError, RecursionError, ValueError):
        sound = False
    if not sound or claim.get("pool") != path.parent.name:
        raise damaged(path, "its checksum does not fit", "delete it: it is made again")
    numbers(path, claim)
    return claim


def read_targets(path: Path) -> NDArray[np.int64]:
    """Read the true classes."""
    with reported(path):
        if not os.path.lexists(path):
            raise InputError(
                f"{path} is missing; add one of the store's networks again with its"
                " targets (it stays as it is), or give the same study, and it is back"
            )
    return true_classes(str(path), open_npy(path))


def targets_file(targets: NDArray[np.int64]) -> bytes:
    """Write true classes as .npy, always with the same bytes for the same classes."""
    header = f"{{'descr': '<i8', 'fortran_order': False, 'shape': ({len(targets)},), }}"
    start = b"\x93NUMPY\x01\x00" + (118).to_bytes(2, "little")
    return start + header.ljust(117).encode() + b"\n" + targets.astype("<i8").tobytes()


def true_classes(name: str, array: FileArray | NDArray[Any]) -> NDArray[np.int64]:
    """Read true classes, unless their shape shows that they are something else."""
    if len(array.shape) != 1:
        raise InputError(
            f"{name} has shape {tuple(array.shape)}; targets are one true class for"
            " each object, in one dimension"
        )
    return class_labels(name, array[:])


def differing(
    mine: Mapping[str, str], theirs: Mapping[str, str], keys: Sequence[str] = COMMON
) -> str:
    """Name the first thing in which a network is not like its pool, if there is any."""
    for key in keys:
        if mine.get(key) != theirs.get(key):
            return f"its {key} is {mine.get(key)!r}, and the pool's {theirs.get(key)!r}"
    return ""


def damaged(path: Path, why: str, remedy: str = "") -> InputError:
    """Say that a file is not as it was written."""
    remedy = remedy or "bring back the original, or move it away and record again"
    return InputError(f"{path} is not as it was written: {why}; {remedy}")


def unlinked(path: Path) -> Path:
    """Refuse a link."""
    with reported(path):
        link = path.is_symlink()
    if link:
        raise damaged(path, "it is a link, which may lead out of the store")
    return path


def _grid(path: Path, text: str) -> Grid:
    try:
        grid = Grid(*map(int, text.split()))
    except (TypeError, ValueError) as error:
        raise damaged(path, f"its grid cannot be read ({brief(error)})") from error
    if max(-grid.first, grid.stop) > 200 or grid.per_octave < 1:
        raise damaged(path, "its grid is none of temperatures")
    return grid


@functools.cache
def _version() -> str:
    from importlib import metadata  # noqa: PLC0415 - 30 ms, and only writers need it

    try:
        return metadata.version("ensize")
    except metadata.PackageNotFoundError:  # a tree that was not installed
        return "unknown"
