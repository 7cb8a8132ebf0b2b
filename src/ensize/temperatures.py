"""The best temperature of one ensemble, either way round.

NLL is known at the nodes of a grid of inverse temperatures and is a smooth
function of log(1/τ) between them: polynomials through eight nodes give it, and
its minimum, to a few parts in 10⁷. *After* averaging NLL is convex in 1/τ; *before*
it is not, so every local minimum among the nodes is refined and the lowest taken.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from ensize.sketches import Grid

_STENCIL = 8  # nodes under one polynomial
_STEPS = 40  # bisections, should Newton's steps all leave the bracket


@dataclass(frozen=True, eq=False)
class Best:
    """The least NLL of many profiles, and where it lies.

    Parameters
    ----------
    nll
        The least NLL of each profile.
    inverse
        The inverse temperature at which it is reached.
    at_edge
        Whether the first or last of the grid is as good, so that the best may lie
        beyond.
    """

    nll: NDArray[np.float64]
    inverse: NDArray[np.float64]
    at_edge: NDArray[np.bool_]

    @property
    def temperature(self) -> NDArray[np.float64]:
        """The best temperature of each profile."""
        return 1 / self.inverse


def calibrate(grid: Grid, profiles: NDArray[np.float64]) -> Best:
    """Find the temperature with the least NLL.

    Parameters
    ----------
    grid
        Where NLL is known.
    profiles
        NLL at the nodes, in the last axis.

    >>> from ensize.sketches import Grid
    >>> grid = Grid(-16, 16)
    >>> parabola = 1 + (np.log(grid.inverse_temperatures) - np.log(0.8)) ** 2
    >>> best = calibrate(grid, parabola)
    >>> round(float(best.temperature), 9), round(float(best.nll), 9)
    (1.25, 1.0)
    """
    flat = profiles.reshape(-1, grid.nodes)
    last = grid.nodes - 1
    # A node no higher than its neighbours brackets a minimum between them.
    falls = np.ones((len(flat), grid.nodes), bool)
    falls[:, 1:] &= flat[:, 1:] <= flat[:, :-1]
    falls[:, :-1] &= flat[:, :-1] <= flat[:, 1:]
    falls[np.arange(len(flat)), flat.argmin(axis=1)] = True
    which, node = np.nonzero(falls)
    value, place = flat[which, node], np.log(grid.inverse_temperatures)[node]
    inner = (node > 0) & (node < last)
    refined = _refine(grid, flat[which[inner]], node[inner])
    better = refined[0] < value[inner]
    # NLL is never negative; a polynomial through zeros may be, by a rounding error.
    value[inner] = np.where(better, refined[0].clip(0), value[inner])
    place[inner] = np.where(better, refined[1], place[inner])
    # Sorted by profile, then by NLL: the first of each profile is its minimum.
    order = np.lexsort((value, which))
    lowest = order[np.unique(which[order], return_index=True)[1]]
    shape = profiles.shape[:-1]
    return Best(
        value[lowest].reshape(shape),
        np.exp(place[lowest]).reshape(shape),
        (np.minimum(flat[:, 0], flat[:, -1]) <= value[lowest]).reshape(shape),
    )


def nll_at(
    grid: Grid, profiles: NDArray[np.float64], inverse: NDArray[np.float64] | float
) -> NDArray[np.float64]:
    """Read NLL between the nodes: each profile at its own inverse temperature."""
    place = np.log(np.broadcast_to(inverse, profiles.shape[:-1])).ravel()
    flat = profiles.reshape(-1, grid.nodes)
    nodes = np.log(grid.inverse_temperatures)
    near = np.searchsorted(nodes, place).clip(1, grid.nodes - 1)
    start, middle, scale = _stencils(grid, near)
    coefficients = _coefficients(grid, flat, start)
    x = (place - middle) / scale
    return _horner(coefficients, x).reshape(profiles.shape[:-1])


def _refine(
    grid: Grid, profiles: NDArray[np.float64], node: NDArray[np.intp]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Minimize the polynomials between the neighbors of these nodes.

    Newton's steps on the slope, kept inside a bracket that shrinks with each.
    """
    nodes = np.log(grid.inverse_temperatures)
    start, middle, scale = _stencils(grid, node)
    coefficients = _coefficients(grid, profiles, start)
    degree = np.arange(1, coefficients.shape[1])
    slopes = coefficients[:, 1:] * degree
    bends = slopes[:, 1:] * degree[:-1]
    low = (nodes[node - 1] - middle) / scale
    high = (nodes[node + 1] - middle) / scale
    x = (nodes[node] - middle) / scale
    for _ in range(_STEPS):
        slope = _horner(slopes, x)
        low, high = np.where(slope < 0, x, low), np.where(slope > 0, x, high)
        bend = _horner(bends, x)
        with np.errstate(divide="ignore", invalid="ignore"):
            newton = x - slope / bend
        inside = (newton > low) & (newton < high)
        moved = np.where(inside, newton, (low + high) / 2)
        moved = np.where(slope == 0, x, moved)
        settled = np.abs(moved - x) <= 1e-12
        x = moved
        if settled.all():
            break
    return _horner(coefficients, x), middle + scale * x


def _stencils(
    grid: Grid, near: NDArray[np.intp]
) -> tuple[NDArray[np.intp], NDArray[np.float64], NDArray[np.float64]]:
    """Where the eight nodes around each place begin, their middle and half width."""
    nodes = np.log(grid.inverse_temperatures)
    width = min(_STENCIL, grid.nodes)
    start = (near - width // 2).clip(0, grid.nodes - width)
    first, last = nodes[start], nodes[start + width - 1]
    return start, (first + last) / 2, (last - first) / 2


def _coefficients(
    grid: Grid, profiles: NDArray[np.float64], start: NDArray[np.intp]
) -> NDArray[np.float64]:
    """Coefficients, in ascending powers, of the polynomial through each stencil."""
    solve = _solvers(grid)
    width = solve.shape[-1]
    values = np.take_along_axis(profiles, start[:, None] + np.arange(width), axis=1)
    # One product for all profiles of a stencil: there are few stencils.
    result = np.empty_like(values)
    for each in np.unique(start):
        chosen = start == each
        result[chosen] = values[chosen] @ solve[each].T
    return result


@functools.lru_cache(maxsize=16)
def _solvers(grid: Grid) -> NDArray[np.float64]:
    """For each stencil the matrix from values at its nodes to coefficients."""
    width = min(_STENCIL, grid.nodes)
    start = np.arange(grid.nodes - width + 1)
    first, middle, scale = _stencils(grid, start + width // 2)
    nodes = np.log(grid.inverse_temperatures)
    x = (nodes[first[:, None] + np.arange(width)] - middle[:, None]) / scale[:, None]
    powers = x[:, :, None] ** np.arange(width)
    inverse: NDArray[np.float64] = np.linalg.inv(powers)
    return inverse


def _horner(
    coefficients: NDArray[np.float64], x: NDArray[np.float64]
) -> NDArray[np.float64]:
    value = coefficients[:, -1].copy()
    for column in coefficients[:, -2::-1].T:
        value = value * x + column
    return value
