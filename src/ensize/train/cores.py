"""Cores: whether all share each pass on a CPU, or each has passes of its own."""

from __future__ import annotations

import contextlib
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, TypeVar

import torch

from ensize.train.allocation import keep_memory

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from ensize.train.committees import Way

    T = TypeVar("T")
    R = TypeVar("R")


class Cores:
    """What works on passes: one that all cores share, or several side by side."""

    def __init__(self, side_by_side: int, others: ThreadPoolExecutor) -> None:
        self.side_by_side, self._others = side_by_side, others

    def map(self, work: Callable[[T], R], tasks: Sequence[T]) -> list[R]:
        """Do a share of the tasks in this thread, and the others beside it."""

        def share(k: int) -> list[R]:
            return [work(each) for each in tasks[k :: self.side_by_side]]

        apart = range(1, min(self.side_by_side, len(tasks)))
        others = [self._others.submit(share, k) for k in apart]
        shares = [share(0), *(each.result() for each in others)]
        return [shares[i % len(shares)][i // len(shares)] for i in range(len(tasks))]


@contextlib.contextmanager
def at_work(device: torch.device, way: Way) -> Iterator[Cores]:
    """Yield the cores as a way wants them; PyTorch's own threads are set to fit."""
    before = torch.get_num_threads()
    side_by_side = 1
    if device.type == "cpu":
        keep_memory()
        side_by_side = 1 if way.shared else before
    with ThreadPoolExecutor(side_by_side, initializer=_alone) as others:
        if side_by_side > 1:
            _alone()
        try:
            yield Cores(side_by_side, others)
        finally:
            torch.set_num_threads(before)


def _alone() -> None:
    """Keep a thread's operations to one core: the other threads have the others."""
    torch.set_num_threads(1)
