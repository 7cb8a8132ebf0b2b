"""Refits: the law of a pool, and the laws it might as well have had.

A law is fitted to the points of the pool, and again without each network. How far
these laws scatter tells how far the networks' luck carries a forecast.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, get_args

import numpy as np

from ensize.draws import disjoint
from ensize.laws import PRIOR, Fit, Fits, Status, fit_many
from ensize.laws.methods import ROUNDING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

Floats = np.ndarray[Any, np.dtype[np.float64]]

Method = Literal["robust", "paper"]
METHODS: tuple[Method, ...] = get_args(Method)

# The paper's starting points: ensembles of one to four networks.
PAPER_SIZES = (1, 2, 3, 4)

# The exponent of most recipes, and by how much they differ (the paper's curves and
# our back-tests alike).
_CENTER, _WIDTH = PRIOR[0], 0.1
# Curves are not quite laws: by which part an exponent may be off beyond n.
_DOUBT = 0.06


@dataclass(frozen=True, eq=False)
class Refits:
    """The law of a pool with those that tell its uncertainty.

    Parameters
    ----------
    laws
        First the law itself, then those without each network, then one with another
        exponent (`robust` only), then those of resampled test sets, if any.
    networks
        How many networks there are to leave out.
    doubts
        How many laws have another exponent.
    """

    laws: Fits
    networks: int
    doubts: int

    @property
    def law(self) -> Fit:
        """The law of the whole pool."""
        return self.laws[0]

    def at(self, n: Floats) -> Floats:
        """Read the law."""
        value: Floats = self.laws(n)[0]
        return value

    def luck(self, n: Floats) -> tuple[Floats, Floats]:
        """Tell in which directions the forecasts at n may be off together.

        Two tables, (directions, len(n)), whose squares add up to variances: of the
        networks' luck, by the delete-one jackknife, and of all else.
        """
        table, last = self.laws(n), 1 + self.networks
        of_networks = table[1:last] - table[1:last].mean(axis=0)
        of_networks *= math.sqrt((self.networks - 1) / self.networks)
        doubts = table[last : last + self.doubts] - table[0]
        resampled = table[last + self.doubts :]
        if not len(resampled):
            return of_networks, doubts
        spread = (resampled - resampled.mean(axis=0)) / math.sqrt(len(resampled))
        return of_networks, np.vstack([doubts, spread])

    def half_width(self, luck: tuple[Floats, Floats], level: float) -> Floats:
        """Compute how far an interval reaches to either side.

        The networks are a handful, so that their part takes Student's t.
        """
        # Here, so that importing this room stays light; SciPy has no types.
        from scipy.special import (  # type: ignore[import-untyped]  # noqa: PLC0415
            ndtri,
            stdtrit,
        )

        upper = (1 + level) / 2
        quantiles = (stdtrit(self.networks - 1, upper), ndtri(upper))
        parts = [
            quantile**2 * (directions**2).sum(axis=0)
            for quantile, directions in zip(quantiles, luck, strict=True)
        ]
        width: Floats = np.sqrt(parts[0] + parts[1])
        return width

    def fall(self, fewer: Floats, more: Floats, level: float) -> tuple[Floats, Floats]:
        """Compute how far CNLL falls from some networks to more, give or take.

        It is surer than either end, since luck moves both together.
        """
        less, least = self.luck(fewer), self.luck(more)
        luck = (less[0] - least[0], less[1] - least[1])
        return self.at(fewer) - self.at(more), self.half_width(luck, level)

    def sample(self, n: Floats, count: int, random: np.random.Generator) -> Floats:
        """Draw forecasts as they might have come out, (count, len(n))."""
        of_networks, others = self.luck(n)
        freedom = self.networks - 1
        # The whole vector shares one divisor: a multivariate t.
        scale = np.sqrt(freedom / random.chisquare(freedom, size=(count, 1)))
        drawn = self.at(n) + scale * (
            random.standard_normal((count, len(of_networks))) @ of_networks
        )
        drawn += random.standard_normal((count, len(others))) @ others
        positive: Floats = np.maximum(drawn, 0)
        return positive


def robust_refits(
    n: NDArray[np.int64], cnll: Floats, without: Floats, resampled: Floats | None = None
) -> Refits:
    """Fit laws whose exponent is shrunk to the usual one, as far as it is uncertain.

    With the exponent's jackknife variance s² and what is known of exponents, -0.85 ±
    0.1, the share of the pool in its exponent is 0.1² / (0.1² + s²). For this exponent
    limit and gain follow by least squares.

    Parameters
    ----------
    n, cnll
        The points of the pool.
    without
        The points without each network, (networks, points).
    resampled
        The points of resampled test sets, (resamples, points).
    """
    networks, size = len(without), np.asarray(n, np.float64)
    more = np.empty((0, len(size))) if resampled is None else resampled
    curves = np.vstack([cnll, without, more])
    free = fit_many(size, curves)
    without_each = free.exponent[1 : 1 + networks]
    variance = (networks - 1) * without_each.var()
    share = _WIDTH**2 / (_WIDTH**2 + variance) if np.isfinite(variance) else 0.0
    found = np.where(np.isnan(free.exponent), _CENTER, free.exponent)
    exponent = _CENTER + share * (found - _CENTER)
    # One more law through the points themselves, with another exponent.
    last = 1 + networks
    exponent = np.insert(exponent, last, exponent[0] * (1 - _DOUBT))
    curves = np.insert(curves, last, cnll, axis=0)
    laws = _laws_of(size, curves, exponent)
    status = laws.status
    if free.status[0] == Status.CONSTANT:
        status[0] = Status.CONSTANT
    elif status[0] == Status.FITTED and share < 1 / 2:
        status[0] = Status.PRIOR
    return Refits(laws, networks, doubts=1)


def paper_refits(
    n: NDArray[np.int64], cnll: Floats, without: Floats, resampled: Floats | None = None
) -> Refits:
    """Fit laws by the paper's objective to CNLL of one to four networks."""
    more = np.empty((0, len(n))) if resampled is None else resampled
    laws = fit_many(n, np.vstack([cnll, without, more]), method="paper")
    return Refits(laws, len(without), doubts=0)


def paper_cuts(
    networks: int, seed: int
) -> tuple[list[NDArray[np.intp]], list[list[NDArray[np.intp]]]]:
    """Cut a pool into the paper's disjoint groups, and again without each network.

    >>> whole, without = paper_cuts(6, seed=0)
    >>> [len(groups) for groups in whole], [len(groups) for groups in without[0]]
    ([6, 3, 2, 1], [5, 2, 1, 1])
    """
    order = disjoint(networks, 1, seed)[:, 0]

    def cut(of: NDArray[np.intp]) -> list[NDArray[np.intp]]:
        return [of[: len(of) // n * n].reshape(-1, n) for n in PAPER_SIZES]

    return cut(order), [cut(np.delete(order, i)) for i in np.argsort(order)]


def cut_means(
    cuts: Sequence[NDArray[np.intp]], cnll: dict[bytes, float]
) -> list[float]:
    """Average the CNLL of each cut's groups; NaN where there is none."""
    return [
        float(np.mean([cnll[key_of(group)] for group in groups]))
        if len(groups)
        else math.nan
        for groups in cuts
    ]


def key_of(group: NDArray[np.intp]) -> bytes:
    """Name a group by its members, whatever their order."""
    return np.sort(group).tobytes()


def _laws_of(n: Floats, curves: Floats, exponent: Floats) -> Fits:
    """Fit limit and gain, neither below 0, for given exponents; points weigh 1/n."""
    present = np.isfinite(curves)
    weights = present / n
    weights /= weights.sum(axis=1, keepdims=True)
    y = np.where(present, curves, 0.0)
    x = n ** exponent[:, None]

    def mean(v: Floats) -> Floats:
        averaged: Floats = (weights * v).sum(axis=1)
        return averaged

    dx = x - mean(x)[:, None]
    gain = mean(dx * y) / mean(dx * dx)
    limit = mean(y) - gain * mean(x)
    bound = limit <= ROUNDING * y.max(axis=1)
    gain = np.where(bound, mean(x * y) / mean(x * x), gain)
    flat = gain <= 0
    gain = np.where(flat, 0.0, gain)
    limit = np.where(flat, mean(y), np.where(bound, 0.0, limit))
    status = np.full(len(y), Status.FITTED, dtype=object)
    status[bound] = Status.BOUND
    status[flat] = Status.NOT_DECREASING
    above, fall = curves - limit[:, None], gain[:, None] * x
    with np.errstate(divide="ignore", invalid="ignore"):
        logs = np.log2(above) - np.log2(fall)
    points = present.sum(axis=1)

    def root_mean(v: Floats) -> Floats:
        root: Floats = np.sqrt(np.where(present, v**2, 0).sum(axis=1) / points)
        return root

    return Fits(
        limit,
        gain,
        np.where(flat, math.nan, exponent),
        root_mean(above - fall),
        np.where(flat, math.nan, root_mean(logs)),
        status,
        points,
        "robust",
        "inverse",
    )
