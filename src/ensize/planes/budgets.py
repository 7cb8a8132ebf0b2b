"""Cuts along the budget: the splits that it allows, the best of them, and their law."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from ensize.checks import InputError, positive
from ensize.planes.readings import LEVELS, Reading, Verdict, choose, sense
from ensize.planes.sizes import judge

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from numpy.typing import NDArray

    from ensize.laws import Fit
    from ensize.planes import Plane

    Reader = Callable[[int, int], Reading | None]

Floats = np.ndarray[Any, np.dtype[np.float64]]

COSTS = ("parameters", "multiply-adds", "seconds")
_LARGEST = 1e18
_SUFFIXES = {"": 1.0, "k": 1e3, "m": 1e6, "g": 1e9, "b": 1e9, "t": 1e12}
# A pool that leaves no more than this part of a budget unused is not interpolated.
_UNUSED = 0.05
# Points of the log-uniform grid of budgets for each doubling.
_PER_DOUBLING = 4


def budget_of(given: float | str) -> float:
    """Read a budget: a number, or text such as 15.3M, 250k or 1e6.

    >>> budget_of("15.3M"), budget_of("250k"), budget_of("1e6")
    (15300000.0, 250000.0, 1000000.0)
    """
    if not isinstance(given, str):
        return _countable(given, positive("budget", given))
    match = re.fullmatch(r"\s*([0-9.,_]+(?:[eE][+-]?[0-9]+)?)\s*([A-Za-z]?)\s*", given)
    if match and match[2].lower() in _SUFFIXES:
        try:
            number = float(match[1].replace(",", "").replace("_", ""))
        except ValueError:
            number = math.nan
        if math.isfinite(number) and number > 0:
            # By the exact power of ten: 15.3 · 10⁶ is 15,300,000.
            return _countable(given, round(number * _SUFFIXES[match[2].lower()], 9))
    raise InputError(
        f"budget is {given!r}; give a number above 0, with k, M, G or T behind it if"
        " you like, as in 15.3M"
    )


def _countable(given: object, budget: float) -> float:
    if budget > _LARGEST:
        raise InputError(
            f"budget is {given}; nobody has more than {_LARGEST:g} to spend"
        )
    return budget


@dataclass(frozen=True, eq=False)
class Candidate:
    """One split of a budget: n networks of a size, and what it is worth."""

    pool: str | None
    n: int
    size: int
    total: float
    reading: Reading


def measured(plane: Plane, score: str) -> Reader:
    """Read what was measured, and nothing beyond."""

    def read(k: int, n: int) -> Reading | None:
        known = n <= plane.networks[k]
        return plane.luck(k, score).reading(n) if known else None

    return read


def candidates(
    plane: Plane, budget: float, score: str, cost: str, read: Reader
) -> list[Candidate]:
    """List the splits of a budget that can be read.

    Of each pool as many networks as the budget allows; and for n = 1, 2, 4, … networks
    of the size that uses all of it, read between two sizes where no pool has it.
    """
    costs = plane.costs(cost)
    if budget < costs[0]:
        raise InputError(
            f"the budget is {budget:,.10g} {cost}, but the smallest network, of pool"
            f" {plane.names[0]!r}, takes {costs[0]:,.10g}; give at least that, or train"
            " a smaller one"
        )
    found = []
    for k, each in enumerate(costs):
        n = math.floor(budget / each * (1 + 1e-12))
        reading = read(k, n) if n else None
        if reading:
            size = int(plane.sizes[k])
            found.append(Candidate(plane.names[k], n, size, n * each, reading))
    used = {each.n for each in found if each.total >= (1 - _UNUSED) * budget}
    n = 1
    while budget / n >= costs[0]:
        if n not in used and budget / n <= costs[-1]:
            reading = between(plane, n, budget / n, score, cost, read)
            if reading:
                size = round(
                    math.exp(
                        np.interp(
                            math.log(budget / n), np.log(costs), np.log(plane.sizes)
                        )
                    )
                )
                found.append(Candidate(None, n, size, budget, reading))
        n *= 2
    return sorted(found, key=lambda each: (each.n, each.size))


def between(
    plane: Plane, n: int, each: float, score: str, cost: str, read: Reader
) -> Reading | None:
    """Read n networks between two sizes, on a line in cost^-1/2.

    A law along the size with the paper's exponent is such a line. How far the points
    of the plane are from one, as their second divided differences tell, is added to
    the uncertainty.
    """
    costs = plane.costs(cost)
    b = int(np.searchsorted(costs, each).clip(1, len(costs) - 1))
    a = b - 1
    left, right = read(a, n), read(b, n)
    if left is None or right is None:
        return None
    x = costs**-0.5
    at = each**-0.5
    share = (at - x[b]) / (x[a] - x[b])
    value = share * left.value + (1 - share) * right.value
    bend = abs((at - x[a]) * (at - x[b])) * _curvature(plane, n, a, b, x, score)
    noise = np.random.default_rng((n, b)).standard_normal(len(left.draws))
    draws = share * left.draws + (1 - share) * right.draws + bend * noise
    return Reading(value, draws, "interpolated")


def _curvature(plane: Plane, n: int, a: int, b: int, x: Floats, score: str) -> float:
    """Find how much the score along x = cost^-1/2 bends around two sizes."""
    bends = []
    for k in {max(a, 1), min(b, len(x) - 2)}:
        if not 0 < k < len(x) - 1:
            continue
        three = slice(k - 1, k + 2)
        n_there = min(n, int(plane.networks[three].min()))
        y = plane.at(n_there, score=score)[three]
        slopes = np.diff(y) / np.diff(x[three])
        bends.append((slopes[1] - slopes[0]) / (x[k + 1] - x[k - 1]))
    if bends:
        return float(np.sqrt(np.mean(np.square(bends))))
    # Two sizes tell nothing: as much as a line in the logarithm would differ.
    y = plane.at(min(n, int(plane.networks.min())), score=score)
    middle = np.sqrt(x[0] * x[1])
    share = (middle - x[1]) / (x[0] - x[1])
    off = abs((share - 0.5) * (y[0] - y[1]))
    return float(off / abs((middle - x[0]) * (middle - x[1])))


@dataclass(frozen=True, eq=False)
class BudgetCut:
    """The best measured score of every budget.

    Parameters
    ----------
    score, cost
        Of what, and in what budgets are counted.
    budget, value, low, high
        The points; what luck alone gives to the best of several is taken off.
    n, size, pool
        The split that is best.
    law, exponent, verdict
        As in `SizeCut`.
    """

    score: str
    cost: str
    budget: Floats
    value: Floats
    low: Floats
    high: Floats
    n: NDArray[np.int64]
    size: NDArray[np.int64]
    pool: tuple[str, ...]
    law: Fit | None
    exponent: tuple[float, float, float]
    verdict: Verdict

    def records(self) -> list[dict[str, Any]]:
        """List the points as plain records."""
        names = ("budget", "value", "low", "high", "n", "size")
        columns = [getattr(self, name).tolist() for name in names]
        rows = zip(*columns, self.pool, strict=True)
        return [dict(zip((*names, "pool"), row, strict=True)) for row in rows]


def along_budget(
    plane: Plane, given: Sequence[float | str] | None, score: str, cost: str
) -> BudgetCut:
    """Find the lower envelope of all curves, aligned by what they cost."""
    costs, way = plane.costs(cost), sense(score)
    if given is None:
        # As far as every pool goes, and at least to the largest network.
        top = max(float((costs * plane.networks).min()), costs[-1])
        doublings = math.log2(top / costs[0])
        count = max(2, round(doublings * _PER_DOUBLING) + 1)
        budgets = np.geomspace(costs[0], top, count)
    else:
        budgets = np.array(sorted(budget_of(each) for each in given))
    if not len(budgets) or budgets[0] < costs[0] * (1 - 1e-12):
        raise InputError(
            f"the least of the budgets is {budgets[:1]}, but the smallest network takes"
            f" {costs[0]:,.10g} {cost}; give at least that"
        )
    n = np.floor(budgets[:, None] / costs * (1 + 1e-12)).astype(np.int64)
    n = np.minimum(n, plane.networks)
    rows, lots = [], []
    for k in range(len(plane)):
        luck, at = plane.luck(k, score), n[:, k].clip(1).astype(np.float64)
        value, draws = luck.value(at), luck.draws(at)
        value[n[:, k] == 0], draws[:, n[:, k] == 0] = way * np.inf, way * np.inf
        rows.append(value)
        lots.append(draws)
    values, draws = np.array(rows).T, np.stack(lots, axis=2)
    chosen = [
        choose(*_afforded(values[i], draws[:, i]), way) for i in range(len(budgets))
    ]
    best = np.array([each[0] for each in chosen])
    optimism = np.array([each[1] for each in chosen])
    every = np.arange(len(budgets))
    value = values[every, best] - optimism
    lot = draws[:, every, best] - optimism
    low, high = np.quantile(lot, LEVELS, axis=0)
    law, exponent, verdict = judge(budgets, value, lot, score, 0.0, "budget")
    return BudgetCut(
        score,
        cost,
        budgets,
        value,
        low,
        high,
        n[every, best],
        plane.sizes[best],
        tuple(plane.names[k] for k in best),
        law,
        exponent,
        verdict,
    )


def _afforded(values: Floats, draws: Floats) -> tuple[Floats, Floats]:
    able = np.isfinite(values)  # networks that the budget allows come first
    return values[able], draws[:, able]


@dataclass(frozen=True, eq=False)
class Advantages:
    """The memory-split advantage of budgets: the best split against one network.

    Budgets that no two networks share, or that no single network was measured for, are
    left out.

    Parameters
    ----------
    score, cost
        Of what, and in what budgets are counted.
    budget, n, size
        The best split of n > 1 for each budget.
    value, single
        Its score, with the luck of being chosen taken off, and that of one network
        that uses the budget.
    advantage, low, high
        By how much the split is better, with an interval of 90 %.
    probability
        That it is better.
    """

    score: str
    cost: str
    budget: Floats
    n: NDArray[np.int64]
    size: NDArray[np.int64]
    value: Floats
    single: Floats
    advantage: Floats
    low: Floats
    high: Floats
    probability: Floats

    def records(self) -> list[dict[str, Any]]:
        """List the budgets as plain records."""
        names = (
            *("budget", "n", "size", "value", "single"),
            *("advantage", "low", "high", "probability"),
        )
        columns = [getattr(self, name).tolist() for name in names]
        return [
            dict(zip(names, row, strict=True)) for row in zip(*columns, strict=True)
        ]


def find_advantages(
    plane: Plane, given: Sequence[float | str] | None, score: str, cost: str
) -> Advantages:
    """Compare the best split of each budget with its single network."""
    costs = plane.costs(cost)
    rows = []
    for budget in costs if given is None else map(budget_of, given):
        found = candidates(plane, budget, score, cost, measured(plane, score))
        rival = compare(found, budget, score)
        if rival is not None:
            best = found[rival.best]
            low, high = np.quantile(rival.ahead, LEVELS)
            rows.append(
                (
                    *(budget, best.n, best.size, rival.value, rival.single),
                    *(rival.advantage, low, high, np.mean(rival.ahead > 0)),
                )
            )
    columns = np.array(rows, np.float64).reshape(-1, 9).T
    counts = columns[1:3].astype(np.int64)
    return Advantages(score, cost, columns[0], *counts, *columns[3:])


@dataclass(frozen=True, eq=False)
class Comparison:
    """The best split of n > 1 against the single network that uses the budget.

    Parameters
    ----------
    best
        Which of the candidates it is.
    value, single, advantage
        What both are worth, and by how much the split is better; what it owes to
        having been chosen is taken off.
    ahead, most
        Draws of the advantage of this split, and of that of the best split of each
        draw.
    """

    best: int
    value: float
    single: float
    advantage: float
    ahead: Floats
    most: Floats


def compare(found: Sequence[Candidate], budget: float, score: str) -> Comparison | None:
    """Compare splits with the single network, if there are both."""
    single, way = single_of(found, budget), sense(score)
    several = [k for k, each in enumerate(found) if each.n > 1]
    if single is None or not several:
        return None
    alone = found[single].reading
    values = np.array([found[k].reading.value for k in several])
    draws = np.column_stack([found[k].reading.draws for k in several])
    top, optimism = choose(values, draws, way)
    value = values[top] - optimism
    return Comparison(
        several[top],
        value,
        alone.value,
        way * (alone.value - value),
        way * (alone.draws - draws[:, top] + optimism),
        way * (alone.draws + optimism) - (way * draws).min(axis=1),
    )


def single_of(found: Sequence[Candidate], budget: float) -> int | None:
    """Find the single network that uses a budget, if one can be read."""
    for k, each in enumerate(found):
        if each.n == 1 and each.total >= (1 - _UNUSED) * budget:
            return k
    return None
