"""Descent: many networks go down at once, each with its own rate and decay."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING

import torch

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ensize.train.committees import Stack


class Descent:
    """Stochastic gradient descent with momentum: v ← μ·v + (∇ + λ·w), w ← w − η·v.

    Parameters
    ----------
    stack
        The weights w of the networks and their velocities v.
    rates, decays
        η and λ of each network.
    momentum
        μ of all.
    """

    def __init__(
        self,
        stack: Stack,
        rates: Sequence[float],
        decays: Sequence[float],
        momentum: float,
    ) -> None:
        self.stack, self.momentum = stack, momentum
        # Neighbors that share both go down in one operation.
        self.groups: list[tuple[int, int, float, float]] = []
        start = 0
        for (rate, decay), each in itertools.groupby(zip(rates, decays, strict=True)):
            stop = start + len(list(each))
            self.groups.append((start, stop, rate, decay))
            start = stop
        self._views: dict[tuple[int, int], tuple[list[torch.Tensor], ...]] = {}

    def step(
        self, some: slice, slopes: Sequence[torch.Tensor], factor: float = 1.0
    ) -> None:
        """Let some networks take a step, at a rate that is `factor` of theirs.

        Slopes are changed too. Nothing is allocated: a step is taken whole, or not at
        all.
        """
        for first, last, rate, decay in self.groups:
            start, stop = max(first, some.start), min(last, some.stop)
            if start >= stop:
                continue
            weights, velocities = self._of(start, stop)
            within = slice(start - some.start, stop - some.start)
            own = [each[within] for each in slopes]
            # Not `torch._fused_sgd_`, which is quicker, but rounds the last numbers of
            # an array otherwise: a network would depend on what it is trained with.
            if decay:
                torch._foreach_add_(own, weights, alpha=decay)
            torch._foreach_mul_(velocities, self.momentum)
            torch._foreach_add_(velocities, own)
            torch._foreach_add_(weights, velocities, alpha=-factor * rate)

    def _of(self, start: int, stop: int) -> tuple[list[torch.Tensor], ...]:
        if (start, stop) not in self._views:
            both = self.stack.learned, self.stack.velocities
            self._views[start, stop] = tuple(
                [each[start:stop] for each in of.values()] for of in both
            )
        return self._views[start, stop]
