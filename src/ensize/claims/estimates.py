"""Estimates: a number, and how far the luck of the networks may have moved it.

Whatever a claim asks is one number made of the points of all pools. Leaving out one
network after the other tells how far it moves: the delete-one jackknife, whose
variances add up over pools, since these have no network in common. The interval takes
Student's t with as many degrees of freedom as these variances have (Welch and
Satterthwaite).
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

Floats = np.ndarray[Any, np.dtype[np.float64]]

# An interval leaves out so much on either side.
_TAIL = 0.05


class Estimate(NamedTuple):
    """A value with an interval of 90 %; NaN stands for what is not known."""

    value: float
    low: float
    high: float

    @property
    def at_least_0(self) -> Estimate:
        """Cut off what is below 0, where such values have no meaning."""
        return self.through(lambda each: max(each, 0.0))

    def through(self, function: Callable[[float], float]) -> Estimate:
        """Apply a function that rises."""
        return Estimate(*map(function, self))


def jackknife(
    statistic: Callable[[Floats], Floats],
    rows: Sequence[Floats],
    *,
    chosen_of: int = 1,
) -> Estimate:
    """Estimate a number that the pools make together.

    Parameters
    ----------
    statistic
        Makes the number, for many alternatives at once: (alternatives, pools, …) to
        (alternatives,).
    rows
        For each pool: first what all its networks say, then what they say without each
        of them.
    chosen_of
        Of how many numbers this is the most striking one: the interval is widened so
        that it would hold for each of them (Bonferroni).

    >>> pool = np.array([1.0, 2.0, 3.0, 6.0])
    >>> without = [pool[np.arange(4) != i].mean() for i in range(4)]
    >>> found = jackknife(lambda rows: rows[:, 0], [np.array([3.0, *without])])
    >>> print(found.value, round(found.high, 3), round(interval(pool).high, 3))
    3.0 5.542 5.542
    """
    counts = np.array([len(each) - 1 for each in rows])
    ends = 1 + np.cumsum(counts)
    whole = np.stack([each[0] for each in rows])
    table = np.repeat(whole[None], ends[-1], axis=0)
    for k, (end, each) in enumerate(zip(ends, rows, strict=True)):
        table[end - counts[k] : end, k] = each[1:]
    values = statistic(table)
    parts = np.split(values[1:], ends[:-1] - 1)
    variances = (counts - 1) * np.array([each.var() for each in parts])
    total = float(variances.sum())
    freedom = 1.0
    if total > 0:
        with np.errstate(divide="ignore", invalid="ignore"):
            freedom = float(total**2 / np.nansum(variances**2 / (counts - 1)))
    return around(float(values[0]), math.sqrt(total), freedom, chosen_of)


def most_striking(found: Sequence[Estimate]) -> int:
    """Choose the one that is most surely above 0, or least surely below it.

    So that where the chosen one is surely below 0, all are.
    """
    low, high = np.array([(each.low, each.high) for each in found]).T
    return int(np.nanargmax(low if (low > 0).any() else high))


def interval(values: Sequence[float] | Floats, *, chosen_of: int = 1) -> Estimate:
    """Estimate the mean of values that have nothing in common."""
    sample = np.asarray(values, np.float64)
    if len(sample) < 2:
        return Estimate(float(sample.mean()), math.nan, math.nan)
    error = sample.std(ddof=1) / math.sqrt(len(sample))
    return around(float(sample.mean()), float(error), len(sample) - 1, chosen_of)


def around(value: float, error: float, freedom: float, chosen_of: int) -> Estimate:
    """Put an interval of Student's t around a value with a standard error."""
    # Here, so that importing this room stays light; SciPy has no types.
    from scipy.special import stdtrit  # type: ignore[import-untyped]  # noqa: PLC0415

    half = float(stdtrit(freedom, 1 - _TAIL / chosen_of)) * error
    return Estimate(float(value), float(value) - half, float(value) + half)
