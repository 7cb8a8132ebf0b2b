"""Readings: what a curve says of n networks, and how luck would have it otherwise.

A pool's curve is known with an error that all its points share. The delete-one
jackknife says how the points move together; normal draws with its covariance, widened
to Student's t with ℓ - 1 degrees of freedom, say what other networks of the same recipe
might have shown. Pools have no network in common, so that their draws are independent.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, get_args

import numpy as np

if TYPE_CHECKING:
    from ensize.curves import Curve

Floats = np.ndarray[Any, np.dtype[np.float64]]

ScoreName = Literal["cnll", "accuracy"]
SCORES: tuple[ScoreName, ...] = get_args(ScoreName)

# How often networks are drawn anew: a probability of 0.9 is right to half a percent.
DRAWS = 4000

# The levels between which an interval of 90 % lies.
LEVELS = (0.05, 0.95)


@dataclass(frozen=True)
class Verdict:
    """An answer in a word that programs may rely on, and in a sentence."""

    code: str
    sentence: str


@dataclass(frozen=True, eq=False)
class Reading:
    """One value, the values that other networks might have given, and its source."""

    value: float
    draws: Floats
    source: str = "measured"

    @property
    def interval(self) -> tuple[float, float]:
        """Between which values it lies with a probability of 90 %."""
        low, high = np.quantile(self.draws, LEVELS)
        return float(low), float(high)


@dataclass(frozen=True, eq=False)
class Luck:
    """A curve along n, and how far other networks would move all of it.

    Parameters
    ----------
    n, points
        The curve.
    off
        Deviations from it, (draws, points).
    """

    n: Floats
    points: Floats
    off: Floats

    @classmethod
    def of(cls, curve: Curve, score: str, seed: Any) -> Luck:
        """Draw from the jackknife's covariance of the points."""
        points: Floats = getattr(curve, score)
        without: Floats = getattr(curve, f"{score}_without")
        l = curve.networks
        away = without - without.mean(axis=0)
        away[:, curve.n == l] = away[:, curve.n == curve.n[curve.n < l][-1:]]
        random = np.random.default_rng(seed)
        normal = random.standard_normal((DRAWS, l)) * np.sqrt((l - 1) / l)
        heavy = np.sqrt((l - 1) / random.chisquare(l - 1, (DRAWS, 1)))
        return cls(curve.n.astype(np.float64), points, heavy * (normal @ away))

    def value(self, n: Floats) -> Floats:
        """Read the curve, between its points on lines in 1/n; NaN beyond its end."""
        return self.between(self.points, n)

    def draws(self, n: Floats) -> Floats:
        """Read all that luck might have made of it, (draws, len(n))."""
        return self.value(n) + self.between(self.off, n)

    def reading(self, n: int) -> Reading:
        """Read it at one n up to the number of networks."""
        at = np.array([float(n)])
        return Reading(float(self.value(at)[0]), self.draws(at)[:, 0])

    def between(self, rows: Floats, n: Floats) -> Floats:
        """Read what has a value at each point of the curve, (…, points), at these n."""
        right = np.searchsorted(self.n, n).clip(1, len(self.n) - 1)
        left = right - 1
        share = (1 / n - 1 / self.n[right]) / (1 / self.n[left] - 1 / self.n[right])
        read: Floats = share * rows[..., left] + (1 - share) * rows[..., right]
        return np.where(n <= self.n[-1], read, np.nan)


def sense(score: str) -> int:
    """Tell which way is better: 1 where lower is, -1 where higher is."""
    return -1 if score == "accuracy" else 1


def choose(values: Floats, draws: Floats, way: int) -> tuple[int, float]:
    """Choose the best of several values, and tell by how much it is likely to flatter.

    The best of several uncertain values was lucky more often than not. Were the values
    the truth, the best of each draw, (draws, values), would seem better than it is by
    the optimism returned; taking it off leaves what the chosen one is worth.
    """
    best = int(np.argmin(way * values))
    chosen = np.argmin(way * draws, axis=1)
    seems = np.take_along_axis(draws, chosen[:, None], axis=1)[:, 0]
    return best, float((seems - values[chosen]).mean())
