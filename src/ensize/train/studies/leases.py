"""Leases: which process trains which network, agreed on through the store's folder.

::

    unfinished/HOST-PROCESS-TOKEN.worker   touched by its process every 20 seconds
    unfinished/POOL/SEED.GENERATION        a lease: a hard link to its worker's file

A network belongs to its lowest lease that is alive, and a lease lives as long as its
process. On the same machine death is seen at once, for a process holds a lock on its
file; elsewhere, when the file has not been touched for three minutes by the clock of
the filesystem. A dead lease is not removed but followed by one of the next generation:
so only one of several processes that take over can succeed, and nobody can remove a
lease that has just come to life.

This assumes a filesystem with hard links, which only one of several processes can
make under one name, and which shows a change of a file's time to all machines within
a minute (ext4, XFS, Lustre and NFS do). Nothing is lost where that fails, or where a
process was suspended for longer than three minutes and wakes up: two processes then
train the same network, and the store keeps the first.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import platform
import re
import secrets
import threading
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from ensize.checks import InputError
from ensize.stores.files import listed, ordinary, reported

if TYPE_CHECKING:
    from collections.abc import Iterable

BEAT = 20.0
PATIENCE = 180.0
# How often a folder is made again that another process has just removed.
_TIMES = 20
# More than a worker says.
_SAID = 2**10
_LEASE = re.compile(r"(0|[1-9][0-9]*)\.(0|[1-9][0-9]*)")


class Worker:
    """A process at work on a store, from beginning to end of a ``with`` block.

    Its file is `path`.

    >>> import tempfile
    >>> folder = Path(tempfile.mkdtemp())
    >>> with Worker(folder) as one, Worker(folder) as other:
    ...     one.take("mlp-w8", [0, 1]), other.take("mlp-w8", [1, 2])
    ([0, 1], [2])
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        name = f"{platform.node()[:100]}-{os.getpid()}-{secrets.token_hex(8)}.worker"
        self.path = folder / name
        self._held: list[Path] = []
        self._ended = threading.Event()

    def __enter__(self) -> Self:
        """Show that this process is at work, and go on showing it."""
        with reported(self.path, "written"):
            self._file = self._opened()
            machine = _machine() if _locked(self._file, fcntl.LOCK_EX) else None
            try:
                self._file.write(json.dumps({"machine": machine}).encode())
            except OSError:
                self.path.unlink(missing_ok=True)
                raise
        self._tidy()
        threading.Thread(target=self._beat, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        """Give everything back."""
        self._ended.set()
        self.release()
        self.path.unlink(missing_ok=True)
        self._file.close()

    def take(self, pool: str, seeds: Iterable[int]) -> list[int]:
        """Take the networks that no process at work holds; say which they are.

        The store may have got one of them meanwhile: look there afterwards.
        """
        folder = self._folder / pool
        with reported(folder, "written"):
            folder.mkdir(exist_ok=True)
        before = _leases(folder)
        taken: dict[int, int] = {}
        for seed in seeds:
            generations = before.get(seed, [])
            if any(self._alive(folder / f"{seed}.{each}") for each in generations):
                continue
            next_one = max(generations, default=-1) + 1
            if self._link(folder / f"{seed}.{next_one}"):
                taken[seed] = next_one
        # What was dead may have been removed, and begun anew, since it was listed.
        after = _leases(folder)
        for seed, mine in list(taken.items()):
            lower = [each for each in after.get(seed, []) if each < mine]
            if any(self._alive(folder / f"{seed}.{each}") for each in lower):
                (folder / f"{seed}.{mine}").unlink(missing_ok=True)
                del taken[seed]
            else:
                self._held += [folder / f"{seed}.{each}" for each in [*lower, mine]]
        return list(taken)

    def release(self) -> None:
        """Give the networks back, and remove the dead leases before ours."""
        for path in self._held:
            with contextlib.suppress(OSError):
                path.unlink()
        for folder in {path.parent for path in self._held}:
            with contextlib.suppress(OSError):  # of others, or not empty
                folder.rmdir()
        self._held = []

    def _opened(self) -> Any:
        """Open the worker's file; who was the last in the folder may just remove it."""
        for _ in range(_TIMES):
            self._folder.mkdir(parents=True, exist_ok=True)
            with contextlib.suppress(FileNotFoundError):
                return self.path.open("x+b", buffering=0)
        return self.path.open("x+b", buffering=0)

    def _link(self, lease: Path, times: int = _TIMES) -> bool:
        try:
            os.link(self.path, lease)
        except FileNotFoundError as error:
            if (
                times and self.path.exists()
            ):  # who was the last there removed the folder
                lease.parent.mkdir(exist_ok=True)
                return self._link(lease, times - 1)
            raise InputError(
                f"{lease} cannot be made: its worker's file was removed while in use;"
                " run again"
            ) from error
        except FileExistsError:
            # Over NFS the answer may get lost although the link was made.
            with contextlib.suppress(FileNotFoundError):
                return lease.samefile(self.path)
            return False
        except OSError as error:
            raise InputError(
                f"{lease} cannot be made: {error.strerror}; keep the store where hard"
                " links can be made"
            ) from error
        return True

    def _alive(self, path: Path) -> bool:
        try:
            with ordinary(path).open("rb") as file:
                # Opening asks the server, where a file is far away, for its time.
                touched = os.fstat(file.fileno()).st_mtime
                return self._seen_alive(file, touched)
        except FileNotFoundError:
            return False

    def _seen_alive(self, file: Any, touched: float) -> bool:
        try:
            machine = json.loads(file.read(_SAID)).get("machine")
        except (AttributeError, RecursionError, ValueError):  # no worker wrote this
            return False
        if machine is not None and machine == _machine():
            return not _locked(file, fcntl.LOCK_SH)
        os.utime(self._file.fileno())
        return os.fstat(self._file.fileno()).st_mtime - touched < PATIENCE

    def _beat(self) -> None:
        while not self._ended.wait(BEAT):
            with contextlib.suppress(OSError):
                os.utime(self._file.fileno())

    def _tidy(self) -> None:
        """Remove the files of dead workers; their leases stay, and are seen as dead."""
        now = os.fstat(self._file.fileno()).st_mtime
        for entry in listed(self._folder):
            if not entry.name.endswith(".worker") or not entry.is_file():
                continue
            with contextlib.suppress(OSError):
                seen = entry.stat()
                # An empty one may have been made a moment ago.
                old = seen.st_size > 0 or now - seen.st_mtime > PATIENCE
                if old and not self._alive(Path(entry.path)):
                    Path(entry.path).unlink()


def clear(folder: Path, seeds: Iterable[int]) -> None:
    """Remove the leases of a pool's networks that need none, whoever left them."""
    done = set(seeds)
    for seed, generations in _leases(folder).items():
        if seed in done:
            for each in generations:
                (folder / f"{seed}.{each}").unlink(missing_ok=True)
    with contextlib.suppress(OSError):  # of others, or not empty
        folder.rmdir()


def _leases(folder: Path) -> dict[int, list[int]]:
    """List the generations of each network's leases."""
    found: dict[int, list[int]] = {}
    for match in map(_LEASE.fullmatch, (entry.name for entry in listed(folder))):
        if match:
            found.setdefault(int(match[1]), []).append(int(match[2]))
    return found


def _locked(file: Any, how: int) -> bool:
    """Try to lock a file; False also where the filesystem has no locks."""
    try:
        fcntl.flock(file.fileno(), how | fcntl.LOCK_NB)
    except OSError:
        return False
    return True


def _machine() -> str:
    """Tell this machine, since it was started, from all others.

    Containers on one machine share its locks, and this.
    """
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text("ascii").strip()
    except OSError:
        return platform.node()
