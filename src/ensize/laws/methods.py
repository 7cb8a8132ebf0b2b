"""Methods: the two objectives, and the search along one line that they share.

Arrays over points and curves have the shape (points, curves), so that a sum over the
few points of many curves is a sum of rows.
"""

from __future__ import annotations

import dataclasses
import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from ensize.laws.outcomes import Status

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    Floats = NDArray[np.float64]
    Found = tuple[Floats, Floats, Floats, NDArray[np.object_]]

# Centre and width of the penalty on the exponent: the paper's CIFAR curves have
# exponents from −0.64 to −0.91 (CNLL) and from −0.8 to −0.95 (NLL); theory says −1.
PRIOR = (-0.85, 0.2)

# Where the searches look: exponents, and gaps min y − c as parts of min y. Two extrema
# between neighboring nodes are missed, and a minimum that shallow means nothing; the
# gaps lie closer where noisy curves have theirs.
_EXPONENTS = -np.geomspace(8, 0.01, 48)
_GAPS = np.r_[np.geomspace(1e-12, 1e-4, 48, endpoint=False), np.geomspace(1e-4, 1, 192)]

# Curves times nodes that are looked at in one go.
_AT_ONCE = 256

# Enough to halve the distance of two nodes down to the last bit, and then some.
_STEPS = 80
_EPS = float(np.finfo(np.float64).eps)

# The part of the least y below which a number is rounding.
ROUNDING = 1e-12


@dataclass(frozen=True)
class Curves:
    """Curves to be searched, in units in which the least y is from 1 to 2."""

    x: Floats  # log2 of m over the least m, of shape (points, 1)
    y: Floats
    w: Floats  # sums to 1 over the points; 0 where a curve has no point
    low: Floats  # the least y of each curve
    points: NDArray[np.int64]  # how many each curve has

    def take(self, curve: NDArray[np.intp]) -> Curves:
        """Take some curves, in this order, one perhaps several times."""
        return Curves(
            self.x,
            self.y[:, curve],
            self.w[:, curve],
            self.low[curve],
            self.points[curve],
        )


def paper(curves: Curves) -> Found:
    """Minimize the paper's objective; return c, b at the least m, a, and statuses.

    For a fixed c the section *Experimental setup* notes a linear regression of
    log2(y − c) on log2 m, so that the search is one of the gap min y − c.
    """

    def line(gap: Any, of: Curves) -> tuple[Floats, Floats, Floats, Floats]:
        above = of.y - of.low + gap * of.low  # y − c
        exponent, log2_gain, left = _line(of.w, of.x, np.log2(above))
        return exponent, log2_gain, left, above

    def slope(gap: Any, of: Curves) -> Floats:
        # By the envelope theorem the derivative is that at a fixed line. Of 1/(y − c)
        # only what no line can follow meets the residuals; leaving out the rest keeps
        # their rounding out.
        *_, left, above = line(gap, of)
        return _mean(of.w, left * _line(of.w, of.x, 1 / above)[2])

    gaps, curve = _minima(slope, _GAPS, curves)
    exponent, _, left, _ = line(gaps, curves.take(curve))
    objective = _mean(curves.w[:, curve], left**2)
    inside = (exponent < 0) & (gaps < 1 - ROUNDING)
    gaps, curve, objective = gaps[inside], curve[inside], objective[inside]
    best = _lowest(objective, curve)
    gap = np.ones_like(curves.low)  # c = 0, unless there is a minimum inside
    gap[curve[best]] = gaps[best]

    exponent, log2_gain, *_ = line(gap, curves)
    status = np.full(len(gap), Status.FITTED, dtype=object)
    status[curves.points == 3] = Status.TOO_FEW
    status[gap == 1] = Status.BOUND
    falls = exponent < 0
    status[~falls] = Status.NOT_DECREASING
    return (
        np.where(falls, curves.low * (1 - gap), _mean(curves.w, curves.y)),
        np.where(falls, np.exp2(log2_gain), 0),
        np.where(falls, exponent, np.nan),
        status,
    )


def robust(curves: Curves, prior: tuple[float, float] | None) -> Found:
    """Minimize (M − 2)/2·log RSS(a) + penalty(a); return as `paper` does.

    RSS is the weighted sum of the squares of 1 − (c + b·m^a)/y at the best c ≥ 0 and
    b ≥ 0. Its logarithm is what a normal likelihood leaves when the unknown noise is
    profiled out, so that exact points outweigh any penalty. The penalty is
    log(1 + z²), where z is the distance from the prior's centre in widths: nearly z²
    around the centre, and giving way where points contradict it, as z² would not.
    """
    centre, width = prior or (-1.0, math.inf)
    relative = curves.w * curves.y**-2.0
    curves = dataclasses.replace(curves, w=relative / relative.sum(axis=0))

    def law(a: Any, of: Curves) -> tuple[Floats, Floats, Floats, Floats]:
        power = np.exp2(a * of.x)
        free = _line(of.w, power, of.y)[1] > 0  # otherwise c = 0
        gain, limit, left = _line(of.w, power, of.y, free)
        falls, flat = gain > 0, _mean(of.w, of.y)
        gain = np.maximum(gain, 0)
        # How the law moves with a, as far as c and b cannot follow.
        moves = gain * _line(of.w, power, np.log(2) * of.x * power, free)[2]
        left = np.where(falls, left, of.y - flat)
        return np.where(falls, limit, flat), gain, left, moves

    def slope(a: Any, of: Curves) -> Floats:
        # The derivative times 2·RSS, which is regular where the points are exact.
        *_, left, moves = law(a, of)
        rss, rss_slope = _mean(of.w, left**2), -2 * _mean(of.w, left * moves)
        pull = 2 * (a - centre) / (width**2 + (a - centre) ** 2)
        total: Floats = (of.points - 2) * rss_slope + 2 * pull * rss
        return total

    each = np.arange(len(curves.low))
    a, curve = _minima(slope, _EXPONENTS, curves)
    ends = _EXPONENTS[[0, -1]]
    a = np.concatenate([a, np.repeat(ends, len(each))])
    curve = np.concatenate([curve, each, each])
    rss = _mean(curves.w[:, curve], law(a, curves.take(curve))[2] ** 2)
    freedom = (curves.points[curve] - 2) / 2
    penalty = np.log1p(((a - centre) / width) ** 2)
    objective = freedom * np.log(rss + np.finfo(np.float64).tiny) + penalty
    a = a[_lowest(objective, curve)]
    three = curves.points == 3
    if prior:
        # Any three points lie on some law: they cannot tell its exponent from noise.
        a = np.where(three, centre, a)

    limit, gain, left, moves = law(a, curves)
    # How sharply points and penalty determine the exponent: second derivatives.
    points_say = (curves.points - 2) * _mean(curves.w, moves**2)
    prior_says = 2 / width**2 * _mean(curves.w, left**2)
    status = np.full(len(a), Status.FITTED, dtype=object)
    status[(points_say < prior_says) | np.isin(a, ends)] = Status.PRIOR
    status[three] = Status.PRIOR if prior else Status.TOO_FEW
    bound, falls = limit <= ROUNDING * curves.low, gain > 0
    status[bound] = Status.BOUND
    status[~falls] = Status.NOT_DECREASING
    return np.where(bound, 0, limit), gain, np.where(falls, a, np.nan), status


def _minima(
    slope: Callable[[Any, Curves], Floats], nodes: Floats, curves: Curves
) -> tuple[Floats, NDArray[np.intp]]:
    """Find every minimum between nodes: where it is, and the curve it belongs to."""
    count = len(curves.low)
    rises = np.empty((len(nodes), count), bool)
    # Of few curves many nodes at once: what is small is slow by the calls alone.
    many = max(1, _AT_ONCE // count)
    for start in range(0, len(nodes), many):
        some = nodes[start : start + many]
        each = curves
        if len(some) > 1:
            each = curves.take(np.tile(np.arange(count), len(some)))
        slopes = slope(np.repeat(some, count), each)
        rises[start : start + many] = slopes.reshape(len(some), count) > 0
    node, curve = np.nonzero(~rises[:-1] & rises[1:])
    return _roots(slope, nodes[node], nodes[node + 1], curves.take(curve)), curve


def _roots(
    slope: Callable[[Any, Curves], Floats], low: Floats, high: Floats, curves: Curves
) -> Floats:
    """Find where each slope changes its sign, to the last bit.

    Chandrupatla's method: inverse quadratic interpolation where the last three points
    are fit for it, halving elsewhere. `new` and `other` bracket the root.
    """
    roots, left = high.copy(), np.arange(len(high))
    new, other, part = high, low, np.full_like(high, 0.5)
    f_new, f_other = slope(new, curves), slope(other, curves)
    for _ in range(_STEPS):
        at = new + part * (other - new)
        f_at = slope(at, curves)
        same = (f_at > 0) == (f_new > 0)
        old, f_old = np.where(same, new, other), np.where(same, f_new, f_other)
        other, f_other = np.where(same, other, new), np.where(same, f_other, f_new)
        new, f_new = at, f_at
        roots[left] = np.where(np.abs(f_new) < np.abs(f_other), new, other)
        # A step is at least the distance of two numbers.
        least = 2 * _EPS * np.abs(roots[left]) / np.abs(other - new)
        going = np.flatnonzero((least < 0.5) & (f_new != 0))
        if len(going) < len(left):
            if not len(going):
                break
            left, least, curves = left[going], least[going], curves.take(going)
            new, other, old = new[going], other[going], old[going]
            f_new, f_other, f_old = f_new[going], f_other[going], f_old[going]
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            x = (new - other) / (old - other)
            y = (f_new - f_other) / (f_old - f_other)
            part = f_new / (f_other - f_new) * f_old / (f_other - f_old)
            third = f_new / (f_old - f_new) * f_other / (f_old - f_other)
            part += (old - new) / (other - new) * third
            fit = (y**2 < x) & ((1 - y) ** 2 < 1 - x)
        part = np.where(fit, part, 0.5).clip(least, 1 - least)
    return roots


def _lowest(value: Floats, curve: NDArray[np.intp]) -> NDArray[np.intp]:
    """Find where each curve that has values has its lowest."""
    order = np.lexsort((value, curve))
    return order[np.unique(curve[order], return_index=True)[1]]


def _line(
    w: Floats, z: Floats, v: Floats, free: Any = 1
) -> tuple[Floats, Floats, Floats]:
    """Regress v on z: the slope, the level at z = 0, and what is left over.

    Where `free` is 0 the line passes through the origin.
    """
    z0, v0 = free * _mean(w, z), free * _mean(w, v)
    dz, dv = z - z0, v - v0
    slope = _mean(w, dz * dv) / _mean(w, dz * dz)
    return slope, v0 - slope * z0, dv - slope * dz


def _mean(w: Floats, v: Floats) -> Floats:
    """Average v over the points; the weights sum to 1."""
    total: Floats = (w * v).sum(axis=0)
    return total
