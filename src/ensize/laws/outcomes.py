"""Outcomes: a law, how well it fits, and what became of the search for it."""

from __future__ import annotations

import enum
import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from ensize.checks import InputError, viewed

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

    Floats = NDArray[np.float64]


class Status(enum.StrEnum):
    """What became of a fit; `Fit.message` says what to do about it."""

    FITTED = "fitted"
    BOUND = "limit at its bound"
    PRIOR = "exponent from the prior"
    TOO_FEW = "too few points"
    NOT_DECREASING = "not decreasing"
    CONSTANT = "constant"


_MESSAGES = {
    Status.FITTED: "limit, gain and exponent all come from the {points} points",
    Status.BOUND: (
        "the points show no limit above 0, so that the limit is unknown and forecasts"
        " are too low; measure larger m, or average each point over more ensembles"
    ),
    Status.PRIOR: (
        "the exponent {exponent:.3g} comes less from the {points} points than from what"
        " was assumed of it (its prior, or the range searched); measure larger m, or"
        " average each point over more ensembles"
    ),
    Status.TOO_FEW: (
        "{points} points cannot check a law with three parameters; measure at least 4"
    ),
    Status.NOT_DECREASING: (
        "the points do not fall as m grows, so that there is no law and the limit is"
        " their mean; check that m and y are the right columns, or average each point"
        " over more ensembles"
    ),
    Status.CONSTANT: (
        "all {points} points are {limit:.6g}, so that there is no gain and no exponent;"
        " check that y is the right column"
    ),
}


@dataclass(frozen=True)
class PowerLaw:
    """A law `limit + gain·m^exponent`, the paper's `c + b·m^a`.

    Without gain there is no exponent: it is NaN, and the law is its limit.

    >>> from ensize.laws import PowerLaw, fit
    >>> law = PowerLaw(limit=1.0, gain=0.5, exponent=-0.9)
    >>> found = fit([1, 2, 3, 4, 5], law([1, 2, 3, 4, 5]))
    >>> print(f"{found.limit:.8f} {found.gain:.8f} {found.exponent:.8f}")
    1.00000000 0.50000000 -0.90000000
    """

    limit: float
    gain: float
    exponent: float

    def __call__(self, m: ArrayLike) -> Any:
        """Read the law at m, one number or many; at infinity it is the limit."""
        return _read(self.limit, self.gain, self.exponent, m)

    def reaches(self, value: float) -> float:
        """Find the least m from which on the law is at most `value`, or infinity.

        >>> PowerLaw(limit=1.0, gain=0.5, exponent=-1.0).reaches(1.125)
        4.0
        """
        if self.gain <= 0:
            return 0.0 if self.limit <= value else math.inf
        if value <= self.limit:
            return math.inf
        with np.errstate(over="ignore"):
            part = np.float64((value - self.limit) / self.gain)
            return float(part ** (1 / self.exponent))


@dataclass(frozen=True)
class Fit:
    """A law with how well it fits, and what became of the search for it.

    Parameters
    ----------
    law
        The law found; `limit`, `gain` and `exponent` are also attributes of the fit.
    rmse, rmse_log2
        Root mean squared residual of y and of log2(y − c), with uniform weights, as
        the paper reports it. The latter is NaN where y ≤ c somewhere or b = 0.
    status, message
        The outcome, and a sentence that says what to do about it.
    points
        How many points the curve had.
    method, weights
        How the law was found.
    """

    law: PowerLaw
    rmse: float
    rmse_log2: float
    status: Status
    message: str
    points: int
    method: str
    weights: str

    @property
    def limit(self) -> float:
        """The limit c."""
        return self.law.limit

    @property
    def gain(self) -> float:
        """The gain b."""
        return self.law.gain

    @property
    def exponent(self) -> float:
        """The exponent a."""
        return self.law.exponent


@dataclass(frozen=True, eq=False)
class Fits:
    """The fits of many curves, an entry for each curve; see `Fit` for their meaning.

    A curve with fewer than three points has no law: its numbers are NaN.
    """

    limit: Floats
    gain: Floats
    exponent: Floats
    rmse: Floats
    rmse_log2: Floats
    status: NDArray[np.object_]
    points: NDArray[np.int64]
    method: str
    weights: str

    def __len__(self) -> int:
        return len(self.limit)

    def __getitem__(self, curve: int) -> Fit:
        law = PowerLaw(
            float(self.limit[curve]),
            float(self.gain[curve]),
            float(self.exponent[curve]),
        )
        status, points = Status(self.status[curve]), int(self.points[curve])
        return Fit(
            law,
            float(self.rmse[curve]),
            float(self.rmse_log2[curve]),
            status,
            _MESSAGES[status].format(
                limit=law.limit, exponent=law.exponent, points=points
            ),
            points,
            self.method,
            self.weights,
        )

    def __call__(self, m: ArrayLike) -> Floats:
        """Read every law at every m; the shape is (curves, len(m))."""
        table: Floats = _read(
            self.limit[:, None], self.gain[:, None], self.exponent[:, None], m
        )
        return table


def _read(limit: Any, gain: Any, exponent: Any, m: ArrayLike) -> Any:
    at = viewed("m", m).astype(np.float64)
    if not (at > 0).all():
        raise InputError(f"m is {at[~(at > 0)][0]:g}; read a law at m above 0")
    return (limit + np.where(np.equal(gain, 0), 0, gain * at**exponent))[()]
