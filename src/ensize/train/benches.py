"""Benches: where a committee is trained on a node of a cluster.

A bench does one thing at a time, in a thread of its own, and is asked for news of it
again and again. Whoever asks says at the same time whether to stop, so that nothing but
answers ever leaves a node.
"""

from __future__ import annotations

import os
import platform
import shutil
import tempfile
import threading
import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch

from ensize.checks import InputError
from ensize.train.loop import Interrupted, plan, train
from ensize.train.plans import device_of, named

if TYPE_CHECKING:
    from collections.abc import Callable

# How long to wait for something to tell, before it is told that there is nothing.
_LOOK = 1.0


@dataclass(frozen=True)
class Where:
    """Which process this is, on what it trains, and whether it sees the store."""

    node: str
    device: str
    sees_store: bool


@dataclass(frozen=True)
class News:
    """What has become of a committee since one asked last.

    Parameters
    ----------
    share
        How much is done.
    checkpoint
        The checkpoint, if a new one was written where only this node sees it.
    over
        Whether this is the end of it.
    result, error
        With what it ended.
    """

    share: float
    checkpoint: bytes | None = None
    over: bool = False
    result: Any = None
    error: Exception | None = None


class Bench:
    """A process on some node that trains one committee after another.

    Parameters
    ----------
    order
        A file that is there, for those who see the store's folder.
    device
        On what to train.
    threads
        How many cores to use.
    """

    def __init__(self, order: str | None, device: str | None, threads: int) -> None:
        torch.set_num_threads(threads)
        # Ray shares data between processes, and nobody writes into them.
        warnings.filterwarnings("ignore", ".*array is not writable")
        self._device = device
        self._sees = order is not None and Path(order).exists()
        self._stop = threading.Event()

    def where(self) -> Where:
        """Say what this is."""
        node = f"{platform.node()} (process {os.getpid()})"
        return Where(node, named(device_of(self._device)), self._sees)

    def plan(self, data: Any, /, *args: Any, **how: Any) -> None:
        """Choose how many networks to train at once."""
        self._begin(lambda: plan(data, *args, device=self._device, **how))

    def train(
        self,
        data: Any,
        checkpoint: str | None,
        sent: bytes | None,
        /,
        *args: Any,
        **how: Any,
    ) -> None:
        """Train a committee.

        Its checkpoint is written in the store, or is told of with the news; then it
        begins with what was sent.
        """
        path = self._path = None if checkpoint is None else Path(checkpoint)
        folder = None
        if path is not None and not self._sees:
            folder = tempfile.mkdtemp(prefix="ensize-")
            path = self._path = Path(folder, path.name)
            if sent is not None:
                path.write_bytes(sent)
        self._begin(
            lambda: train(
                data,
                *args,
                checkpoint=path,
                device=self._device,
                stop=self._stop.is_set,
                progress=self._tell,
                **how,
            ),
            folder,
        )

    def news(self, stop: bool) -> News:  # noqa: FBT001 - Ray passes it on
        """Wait a little for news; order the end of it."""
        if stop:
            self._stop.set()
        over = self._over.wait(_LOOK)
        told = News(self._share, self._fresh())
        if not over:
            return told
        if self._folder is not None:
            shutil.rmtree(self._folder, ignore_errors=True)
        return News(1.0, told.checkpoint, over, self._result, self._error)

    def _begin(self, do: Callable[[], Any], folder: str | None = None) -> None:
        self._stop.clear()
        self._over = threading.Event()
        self._share, self._folder, self._seen = 0.0, folder, 0
        self._result: Any = None
        self._error: Exception | None = None

        def run() -> None:
            try:
                self._result = do()
            except (Interrupted, InputError, RuntimeError, MemoryError) as error:
                self._error = error
            except Exception as error:  # noqa: BLE001 - told where the study is run
                self._error = RuntimeError(f"{type(error).__name__}: {error}")
            finally:
                self._over.set()

        threading.Thread(target=run, daemon=True).start()

    def _tell(self, _: str, share: float) -> None:
        self._share = share

    def _fresh(self) -> bytes | None:
        """Read the checkpoint, if it is here and was written since the last time."""
        if self._folder is None or self._path is None:
            return None
        try:
            with self._path.open("rb") as file:
                written = os.fstat(file.fileno()).st_mtime_ns
                if written == self._seen:
                    return None
                self._seen = written
                return file.read()
        except FileNotFoundError:
            return None
