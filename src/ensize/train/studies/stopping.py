"""Stopping: whoever is at work learns in time that it should come to an end.

Work goes on as long as the file that ordered it is there, and its time is not over.
A file is seen by processes of any executor, on any machine that sees the store.
"""

from __future__ import annotations

import contextlib
import signal
import threading
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

_LOOK = 1.0


@dataclass
class Stop:
    """Tells whether work should stop: ``stop()``, as often as one likes."""

    order: Path
    deadline: float | None = None  # of time.time()
    _next: float = field(default=0.0, repr=False)
    _gone: bool = field(default=False, repr=False)

    def __call__(self) -> bool:
        """Look at the clock, and once a second at the file."""
        now = time.monotonic()  # a clock that is set back would stand still here
        if now >= self._next:
            self._next = now + _LOOK
            self._gone = not self.order.exists()
        return self._gone or self.late()

    def late(self) -> bool:
        """Tell whether the time is over."""
        return self.deadline is not None and time.time() >= self.deadline

    def now(self) -> None:
        """Stop all who follow this order."""
        self.order.unlink(missing_ok=True)
        self._gone = True


@contextlib.contextmanager
def heeding_signals(stop: Stop) -> Iterator[list[int]]:
    """Stop at the first Ctrl-C or SIGTERM; the second does what it always does.

    Yields the list of the signals heard. Only the main thread of a process hears.
    """
    heard: list[int] = []
    if threading.current_thread() is not threading.main_thread():
        yield heard
        return
    before = {
        number: signal.getsignal(number)
        for number in (signal.SIGINT, signal.SIGTERM)
        # What is ignored was meant to be, as in the background of a shell.
        if signal.getsignal(number) not in (signal.SIG_IGN, None)
    }

    def restore() -> None:
        for number, handler in before.items():
            signal.signal(number, handler)

    def hear(number: int, _: Any) -> None:
        heard.append(number)
        restore()
        stop.now()

    for number in before:
        signal.signal(number, hear)
    try:
        yield heard
    finally:
        restore()
