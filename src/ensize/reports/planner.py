"""Planner: every answer that the page can look up, worked out beforehand.

The page computes nothing: for each unit, score and budget of a grid it has what
`ensize split --json` says, and for each pool its curve along n with what the next
network gains.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from ensize.checks import InputError
from ensize.planes import COSTS, SCORES
from ensize.planes.readings import LEVELS, sense
from ensize.reports.words import networks, short
from ensize.splits import split
from ensize.splits.foresight import forecast_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from ensize.forecasts import Forecast
    from ensize.planes import Plane
    from ensize.predictions import Progress

    Floats = NDArray[np.float64]

# Steps of a decade that are round numbers (Renard's series of ten).
_ROUND = (1.0, 1.25, 1.6, 2.0, 2.5, 3.2, 4.0, 5.0, 6.3, 8.0)
# Budgets reach beyond the largest network, by this factor.
_BEYOND = 8
# A curve shows each n up to here, and then a few a doubling.
_EACH = 16
_PER_DOUBLING = 4
_FAR = 64


def budgets_of(costs: Floats, more: Sequence[float] = ()) -> list[float]:
    """List round budgets, those of the pools' own networks, and more.

    >>> budgets_of(np.array([900.0, 2300.0]))[:6]
    [900.0, 1000.0, 1250.0, 1600.0, 2000.0, 2300.0]
    """
    least, most = float(costs[0]), float(costs[-1]) * _BEYOND
    decades = range(math.floor(math.log10(least)), math.ceil(math.log10(most)) + 1)
    # By way of text, so that a budget is the number that people type.
    steps = [float(f"{step}e{k}") for k in decades for step in _ROUND]
    return sorted(
        {*map(float, costs), *more, *(x for x in steps if least <= x <= most)}
    )


def planner_of(
    plane: Plane,
    *,
    within: str,
    budgets: Sequence[float] = (),
    progress: Progress | None = None,
) -> dict[str, Any]:
    """Work out what the planner shows of one family.

    Keys: `units`, each with its `budgets`, the `start` among them and, by score, a
    list of plans, or with the reason why this unit cannot be had; and `pools`, whose
    curves the plans point to. A plane of one pool has no units.

    Parameters
    ----------
    plane
        The curves of all sizes.
    within
        The tolerance, as for `ensize.split`.
    budgets
        More budgets, in parameters; the planner starts at the first of them.
    progress
        Told what is being done and which share of it is done.
    """
    units: dict[str, Any] = {}
    wanted: list[set[int]] = [set() for _ in plane.pools]
    for done, cost in enumerate(COSTS if len(plane) > 1 else ()):
        try:
            costs = plane.costs(cost)
        except InputError as error:
            units[cost] = {"reason": str(error)}
            continue
        more = budgets if cost == "parameters" else ()
        grid = budgets_of(costs, more)
        plans: dict[str, list[Any]] = {score: [] for score in SCORES}
        for k, budget in enumerate(grid):
            if progress is not None:
                progress("planning", (done + k / len(grid)) / len(COSTS))
            for score, row in plans.items():
                plan = _plan(plane, budget, score, cost, within)
                row.append(plan)
                for each in plan.get("splits", ()):
                    if each["pool"] is not None:
                        wanted[plane.names.index(each["pool"])].add(each["n"])
        units[cost] = {
            "budgets": grid,
            # If none was asked for, what people have spent on one network so far.
            "start": grid.index(more[0] if more else float(costs[-1])),
            "costs": costs.tolist(),
            "scores": {
                score: row
                for score, row in plans.items()
                if any("splits" in plan for plan in row)
            },
        }
    return {
        "units": units,
        "pools": [curves_of(plane, k, more) for k, more in enumerate(wanted)],
    }


def _plan(
    plane: Plane, budget: float, score: str, cost: str, within: str
) -> dict[str, Any]:
    """Say what `ensize split --json` says of a budget, without repeating options."""
    try:
        found = split(plane, budget, score=score, cost=cost, within=within)
    except InputError as error:
        return {"reason": str(error)}
    single = None if found.single is None else found.splits.index(found.single)
    plan = {
        "budget": found.budget,
        "splits": found.records(),
        "best": found.splits.index(found.best),
        "single": single,
        "as_good": [found.splits.index(each) for each in found.as_good],
        "advantage": [found.advantage, found.low, found.high],
        "certainty": found.certainty,
        "verdict": {"code": found.verdict.code, "sentence": found.verdict.sentence},
        "notes": list(found.warnings[len(plane.warnings) :]),
    }
    return {**plan, "headline": _headline(plan)}


def _headline(plan: dict[str, Any]) -> str:
    """Say in a few words what to do."""
    best = named(plan["splits"][plan["best"]])
    if plan["verdict"]["code"] == "split":
        return f"Split it: {best}"
    if plan["verdict"]["code"] == "no split":
        single = plan["best"] if plan["single"] is None else plan["single"]
        return f"Do not split: {named(plan['splits'][single])}"
    return f"Open: {best}, by what is known so far"


def named(each: dict[str, Any]) -> str:
    """Name a split by its networks."""
    if each["n"] == 1 and each["pool"]:
        return f"one {each['pool']}"
    count = "one network" if each["n"] == 1 else networks(each["n"])
    of = each["pool"] or f"{short(each['size'])} parameters"
    return f"{count} of {of}"


def curves_of(plane: Plane, k: int, more: set[int]) -> dict[str, Any]:
    """Give one pool's scores along n, measured and then forecast."""
    count, size = int(plane.networks[k]), plane.pools[k].pool.size
    ahead = _forecast(plane, k)
    limit = None if ahead is None else [float(each) for each in ahead.limit]
    grid = _grid(count, more)
    scores = {"cnll": _along(plane, k, "cnll", grid, ahead)}
    if np.isfinite(plane.curves[k].accuracy).all():
        scores["accuracy"] = _along(plane, k, "accuracy", grid, None)
    return {
        "name": plane.names[k],
        "size": None if size is None else int(size),
        "networks": count,
        "limit": limit,
        "curves": scores,
    }


def _grid(count: int, more: set[int]) -> list[int]:
    """Choose the n to show: round ones, the last measured, and those of the plans."""
    far = max(_FAR, 2 * count, *more, 0)
    doublings = range(_PER_DOUBLING * far.bit_length())
    steps = {round(_EACH * 2 ** (i / _PER_DOUBLING)) for i in doublings}
    every = {*range(1, _EACH + 1), *steps, count, *more, far}
    return sorted(n for n in every if n <= far)


def _along(
    plane: Plane, k: int, score: str, grid: list[int], ahead: Forecast | None
) -> dict[str, Any]:
    """Read a curve with intervals, and what one more network gains at each n."""
    count, luck = int(plane.networks[k]), plane.luck(k, score)
    way, level = sense(score), LEVELS[1] - LEVELS[0]
    measured = np.array([n for n in grid if n <= count], np.float64)
    rows = [luck.value(measured), *np.quantile(luck.draws(measured), LEVELS, axis=0)]
    if ahead is not None:
        rest = np.array([n for n in grid if n > count], np.float64)
        found = (ahead.at(rest), *ahead.interval(rest, level))
        rows = [np.append(one, other) for one, other in zip(rows, found, strict=True)]
    shown = grid[: len(rows[0])]
    gains = []
    for n in shown:
        if n < count:
            ends = np.array([n, n + 1], np.float64)
            fall = -way * np.diff(luck.value(ends))[0]
            lot = -way * np.diff(luck.draws(ends), axis=1)[:, 0]
            gains.append([float(fall), *map(float, np.quantile(lot, LEVELS))])
        elif ahead is not None:
            gains.append([float(x) for x in ahead.difference(n, n + 1, level)])
        else:
            gains.append([math.nan] * 3)
    columns = dict(zip(("value", "low", "high"), rows, strict=True))
    return {
        "n": shown,
        **{name: row.tolist() for name, row in columns.items()},
        "gain": gains,
    }


def _forecast(plane: Plane, k: int) -> Forecast | None:
    try:
        return forecast_of(plane, k, "robust")
    except InputError:
        return None  # too few networks; what was measured is shown
