"""Outcomes: what a forecast says, and how sure it is."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ensize.checks import InputError, viewed, whole

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from ensize.curves import Curve
    from ensize.forecasts.refits import Refits
    from ensize.laws import Fit

Floats = np.ndarray[Any, np.dtype[np.float64]]


class Interval(NamedTuple):
    """A value and the interval around it."""

    value: float
    low: float
    high: float


@dataclass(frozen=True, eq=False)
class Forecast:
    """The expected CNLL of ensembles of n networks, with intervals.

    Parameters
    ----------
    n, cnll, low, high
        What was asked for: numbers of networks, infinity included, the CNLL expected
        of them, and its interval.
    limit
        The CNLL of infinitely many networks, with its interval.
    law
        The law that is read.
    curve
        The scores that it was fitted to.
    odd
        The networks that were left out.
    advice
        What follows, in sentences.
    warnings
        Sentences on what a reader should know.
    options
        The choices that shaped the forecast.
    refits
        The law with those that tell its uncertainty.
    """

    n: Floats
    cnll: Floats
    low: Floats
    high: Floats
    limit: Interval
    law: Fit
    curve: Curve
    odd: tuple[str, ...]
    advice: tuple[str, ...]
    warnings: tuple[str, ...]
    options: dict[str, Any]
    refits: Refits

    def at(self, n: ArrayLike) -> Any:
        """Read the expected CNLL of n networks, one number or many."""
        sizes = sizes_of("n", n)
        return self.refits.at(sizes.ravel()).reshape(sizes.shape)[()]

    def interval(self, n: ArrayLike, level: float | None = None) -> tuple[Any, Any]:
        """Bound the expected CNLL of n networks, at the forecast's level or another."""
        level = self.options["level"] if level is None else level_of(level)
        sizes = sizes_of("n", n)
        flat = sizes.ravel()
        value, half = (
            self.refits.at(flat),
            self.refits.half_width(self.refits.luck(flat), level),
        )
        low = np.maximum(value - half, 0.0).reshape(sizes.shape)
        return low[()], (value + half).reshape(sizes.shape)[()]

    def sample(
        self, n: ArrayLike, count: int, rng: np.random.Generator | int = 0
    ) -> Floats:
        """Draw CNLL at all these n together, as it might be: (count, len(n)).

        What the networks' luck does at one n it does at the others, so that the
        differences of a draw are as sure as they are.
        """
        sizes = np.atleast_1d(sizes_of("n", n))
        random = np.random.default_rng(rng)
        return self.refits.sample(sizes, whole("count", count, 1), random)

    def equivalent(self, score: float) -> float:
        """Find the number of networks whose CNLL this is: its deep-ensemble equivalent.

        It is infinite where no ensemble reaches the score, and below 1 where a single
        network is better.
        """
        if not (isinstance(score, (int, float, np.number)) and math.isfinite(score)):
            raise InputError(f"score is {score!r}; give a CNLL, a finite number")
        return self.law.law.reaches(float(score))

    def difference(
        self, fewer: float, more: float, level: float | None = None
    ) -> Interval:
        """Say by how much CNLL falls from some networks to more, with its interval.

        It is surer than either end, since luck moves both together.
        """
        level = self.options["level"] if level is None else level_of(level)
        ends = sizes_of("n", [fewer, more])
        fall, half = self.refits.fall(ends[:1], ends[1:], level)
        return Interval(*(float(each[0]) for each in (fall, fall - half, fall + half)))

    def records(self) -> list[dict[str, float]]:
        """List the forecasts as plain records."""
        names = ("n", "cnll", "low", "high")
        columns = [getattr(self, name).tolist() for name in names]
        rows = zip(*columns, strict=True)
        return [
            dict(zip(names, (count_of(row[0]), *row[1:]), strict=True)) for row in rows
        ]

    def table(self) -> str:
        """Write the forecasts as a table for reading."""
        lines = [f"{'n':>6}  {'cnll':>8}  {'low':>8}  {'high':>8}"]
        for n, *values in (record.values() for record in self.records()):
            cells = "  ".join(f"{value:8.5f}" for value in values)
            lines.append(f"{'∞' if math.isinf(n) else n:>6}  {cells}")
        return "\n".join(lines)


def count_of(n: float) -> float:
    """Return a number of networks as an int, unless it is infinite."""
    return n if math.isinf(n) else int(n)


def sizes_of(name: str, value: Any) -> Floats:
    """Return numbers of networks: whole from 1 on, or infinite."""
    sizes: Floats = viewed(name, value).astype(np.float64)
    wrong = ~((sizes >= 1) & (np.isinf(sizes) | (sizes == np.floor(sizes))))
    if wrong.any():
        raise InputError(
            f"{name} is {sizes[wrong][0]:g}; an ensemble has a whole number of networks"
            " from 1 on, or infinitely many (inf)"
        )
    return sizes


def level_of(value: Any) -> float:
    """Return the level of an interval, between 0 and 1."""
    try:
        level = float(value)
    except (TypeError, ValueError):
        level = math.nan
    if not 0 < level < 1:
        raise InputError(
            f"level is {value!r}; give a number between 0 and 1, such as 0.9"
        )
    return level
