"""Resumption: a checkpoint from which a committee goes on."""

from __future__ import annotations

import hashlib
import json
import time
from typing import TYPE_CHECKING, Any

import safetensors.numpy
from safetensors import SafetensorError

from ensize.checks import InputError, positive, whole
from ensize.stores.files import GARBLED, ordinary, rewrite

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from numpy.typing import NDArray

    Arrays = Mapping[str, NDArray[Any]]


class Checkpoint:
    """A file with all that a committee has learned, and how far it is.

    Parameters
    ----------
    path
        Where.
    identity
        What determines the networks; a file of others is not read.
    every
        Seconds between two writings.
    """

    def __init__(self, path: Path, identity: str, every: float) -> None:
        self.path, self.every = path, every
        self.identity = hashlib.sha256(identity.encode()).hexdigest()
        self._next = time.monotonic() + every

    def due(self) -> bool:
        """Tell whether it is time to write."""
        return time.monotonic() >= self._next

    def write(self, arrays: Arrays, said: dict[str, Any]) -> None:
        """Write it, in the place of what was there."""
        told = {"identity": self.identity, "said": json.dumps(said)}
        told["checksum"] = _checksum(arrays, told)
        rewrite(self.path, [safetensors.numpy.save(dict(arrays), told)])
        self._next = time.monotonic() + self.every

    def read(
        self, shapes: Mapping[str, tuple[int, ...]]
    ) -> tuple[Arrays, dict[str, Any]] | None:
        """Read arrays of these shapes, and what was said beside them.

        None where there is no file, or nothing whole that can be gone on with: it is
        derived from the study, and without it the networks begin anew.
        """
        try:
            with safetensors.safe_open(ordinary(self.path), framework="numpy") as held:
                told = held.metadata() or {}
                if told.get("identity") != self.identity:
                    return None
                arrays = {name: held.get_tensor(name) for name in held.keys()}  # noqa: SIM118
            if told["checksum"] != _checksum(arrays, told):
                return None
            if {name: each.shape for name, each in arrays.items()} != dict(shapes):
                return None
            said = json.loads(told["said"])
            said |= {key: whole(key, said[key]) for key in ("epoch", "step")}
            said["seconds"] = positive("seconds", said["seconds"])
            said["failures"] = {int(i): str(w) for i, w in said["failures"].items()}
        except (AttributeError, InputError, OSError, SafetensorError, *GARBLED):
            return None
        return arrays, said


def _checksum(arrays: Arrays, told: Mapping[str, str]) -> str:
    digest = hashlib.sha256(f"{told['identity']}{told['said']}".encode())
    for name, array in sorted(arrays.items()):
        digest.update(name.encode())
        digest.update(array.tobytes())
    return digest.hexdigest()
