"""Fits: from the points of one curve, or of thousands, to their laws."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, Literal, get_args

import numpy as np

from ensize.checks import InputError, one_of, viewed
from ensize.laws.methods import PRIOR, ROUNDING, Curves, paper, robust
from ensize.laws.outcomes import Fit, Fits, Status

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

    Floats = NDArray[np.float64]

Weights = Literal["inverse", "uniform"]
Method = Literal["robust", "paper"]

# Numbers in one temporary array: some 20 of them at a time stay in the cache.
_BLOCK = 2**14


def fit(
    m: ArrayLike,
    y: ArrayLike,
    *,
    weights: str = "inverse",
    method: str = "robust",
    prior: tuple[float, float] | None = PRIOR,
) -> Fit:
    """Fit a law to the points of one curve.

    Parameters
    ----------
    m, y
        At least three points, in any order.
    weights
        `inverse` (1/m) where m is on a linear grid, such as the number of networks;
        `uniform` where it is on a logarithmic one, such as their size. See
        *Approximating sequences with power laws* in the paper's appendix.
    method
        `robust`, or `paper` for the paper's objective.
    prior
        Centre and width of the robust method's penalty on the exponent, or None.
    """
    m, y = viewed("m", m), viewed("y", y)
    if m.ndim != 1 or y.shape != m.shape:
        raise InputError(
            f"m has shape {m.shape} and y has shape {y.shape}; give one y for each m,"
            " in one dimension"
        )
    if m.size < 3:
        raise InputError(
            f"there are {m.size} points, but a law has three parameters; give at least"
            " 3 points, better 4"
        )
    if np.isnan(y).any():
        point = int(np.argmax(np.isnan(y)))
        raise InputError(f"y is nan at m = {m[point]:g} (point {point}); leave it out")
    return fit_many(m, y[None], weights=weights, method=method, prior=prior)[0]


def fit_many(
    m: ArrayLike,
    y: ArrayLike,
    *,
    weights: str = "inverse",
    method: str = "robust",
    prior: tuple[float, float] | None = PRIOR,
) -> Fits:
    """Fit a law to each of many curves with points at the same m.

    Parameters
    ----------
    m
        Where the points are.
    y
        The curves, of shape (curves, points); NaN where a curve has no point.
    weights, method, prior
        As for `fit`.
    """
    one_of("weights", weights, get_args(Weights))
    one_of("method", method, get_args(Method))
    if prior is not None and not -math.inf < prior[0] < 0 < prior[1] < math.inf:
        raise InputError(
            f"prior is {prior}; give a centre below 0 and a width above 0, or None"
        )
    m, y = _checked(viewed("m", m), viewed("y", y))
    order = np.argsort(m)
    m, y = m[order], y[:, order]

    present = np.isfinite(y)
    points = present.sum(axis=1)
    low = np.min(y, axis=1, initial=math.inf, where=present)
    high = np.max(y, axis=1, initial=0, where=present)
    flat = (points >= 3) & (high - low <= ROUNDING * low)
    status = np.full(len(y), Status.TOO_FEW, dtype=object)
    status[flat] = Status.CONSTANT
    limit, gain, exponent, rmse, rmse_log2 = np.full((5, len(y)), np.nan)
    limit[flat], gain[flat], rmse[flat] = low[flat], 0, 0

    structural = 1 / m if weights == "inverse" else np.ones_like(m)
    searched = np.flatnonzero((points >= 3) & ~flat)
    step = max(1, _BLOCK // max(1, len(m)))
    for start in range(0, len(searched), step):
        at = searched[start : start + step]
        w = present[at] * structural
        # A power of two brings a curve near 1 without rounding it.
        scale = np.exp2(np.floor(np.log2(low[at])))
        curves = Curves(
            np.log2(m / m[0])[:, None],
            np.where(present[at], y[at], low[at, None]).T / scale,
            (w / w.sum(axis=1, keepdims=True)).T,
            low[at] / scale,
            points[at],
        )
        found = paper(curves) if method == "paper" else robust(curves, prior)
        limit[at], gain[at], exponent[at], status[at] = found
        rmse[at], rmse_log2[at] = _rmse(limit[at], gain[at], exponent[at], curves)
        limit[at], rmse[at] = limit[at] * scale, rmse[at] * scale
        with np.errstate(over="ignore"):
            gain[at] *= np.where(gain[at] > 0, scale * m[0] ** -exponent[at], 1)
    lost = np.isinf(gain) | ((gain == 0) & np.isfinite(exponent))
    if lost.any():
        raise InputError(
            f"with m from {m[0]:g} on and the exponent {exponent[lost][0]:.3g}, the"
            " gain at m = 1 is beyond float64; give m in units nearer to its own size"
        )
    return Fits(limit, gain, exponent, rmse, rmse_log2, status, points, method, weights)


def _rmse(
    limit: Floats, gain: Floats, exponent: Floats, curves: Curves
) -> tuple[Floats, Floats]:
    """Average the squared residuals of y and of log2(y − c) with uniform weights."""
    present = curves.w > 0
    falls = gain > 0
    above = curves.y - limit
    fall = np.where(falls, gain * np.exp2(exponent * curves.x), 0)
    logs = np.full_like(above, np.nan)
    np.log2(above, out=logs, where=above > 0)
    logs -= np.log2(fall, out=np.full_like(fall, np.nan), where=falls)

    def root_mean(squares: Floats) -> Floats:
        total: Floats = np.where(present, squares, 0).sum(axis=0)
        return np.sqrt(total / curves.points)

    return root_mean((above - fall) ** 2), root_mean(logs**2)


def _checked(m: NDArray[Any], y: NDArray[Any]) -> tuple[Floats, Floats]:
    """Return points as float64, or say which of them no law can be fitted to."""
    m, y = m.astype(np.float64), y.astype(np.float64)
    if m.ndim != 1 or y.ndim != 2 or y.shape[1] != m.size:
        raise InputError(
            f"m has shape {m.shape} and y has shape {y.shape}; give y as (curves,"
            " points), with one m for each point"
        )
    wrong = np.argwhere(~(np.isfinite(m) & (m > 0)))
    if wrong.size:
        point = wrong[0, 0]
        raise InputError(
            f"m is {m[point]:g} at point {point}; laws are of finite m above 0:"
            " leave the point out"
        )
    order = np.argsort(m, kind="stable")
    twice = np.flatnonzero(np.diff(m[order]) == 0)
    if twice.size:
        one, other = order[twice[0] : twice[0] + 2]
        raise InputError(
            f"m is {m[one]:g} at points {one} and {other}; average points that share"
            " an m"
        )
    wrong = np.argwhere(~(np.isnan(y) | (np.isfinite(y) & (y > 0))))
    if wrong.size:
        curve, point = wrong[0]
        of = f"curve {curve}, " if len(y) > 1 else ""
        raise InputError(
            f"y is {y[curve, point]:g} at m = {m[point]:g} ({of}point {point}); laws"
            " are fitted to finite scores above 0, such as NLL: leave the point out"
        )
    for name, values, largest in (("m", m, 1e150), ("y", y, 1e75)):
        # The squares of ratios are to stay within float64.
        wrong = values[(values < 1 / largest) | (values > largest)]
        if wrong.size:
            raise InputError(
                f"{name} is {wrong[0]:g}, and a fit would go beyond float64; give"
                f" {name} in units nearer to its own size"
            )
    return m, y
