"""Resumption: a checkpoint from which a committee goes on."""

from __future__ import annotations

import hashlib
import json
import time
from typing import TYPE_CHECKING, Any

import safetensors.numpy
from safetensors import SafetensorError

from ensize.stores.files import GARBLED, rewrite

if TYPE_CHECKING:
    from pathlib import Path

    from numpy.typing import NDArray


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

    def write(self, arrays: dict[str, NDArray[Any]], said: dict[str, Any]) -> None:
        """Write it, in the place of what was there."""
        told = {"identity": self.identity, "said": json.dumps(said)}
        rewrite(self.path, [safetensors.numpy.save(arrays, told)])
        self._next = time.monotonic() + self.every

    def read(self) -> tuple[dict[str, NDArray[Any]], dict[str, Any]] | None:
        """Read it; None where there is none, or nothing that can be gone on with.

        It is derived from the study: without it the networks begin anew.
        """
        try:
            with safetensors.safe_open(self.path, framework="numpy") as held:
                told = held.metadata() or {}
                if told.get("identity") != self.identity:
                    return None
                arrays = {name: held.get_tensor(name) for name in held.keys()}  # noqa: SIM118
            return arrays, dict(json.loads(told["said"]))
        except (OSError, SafetensorError, *GARBLED):
            return None
