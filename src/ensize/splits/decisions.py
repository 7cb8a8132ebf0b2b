"""Decisions: the splits of one budget, the best of them, and whether it is worth it."""

from __future__ import annotations

import dataclasses
import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from ensize.checks import InputError, one_of, positive
from ensize.planes import COSTS, SCORES, Plane, Verdict, budget_of, plane_of
from ensize.planes.budgets import (
    Candidate,
    candidates,
    compare,
    measured,
    single_of,
)
from ensize.planes.readings import LEVELS, choose, sense
from ensize.splits.foresight import forecasting
from ensize.splits.joint import beyond

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from ensize.planes.budgets import Comparison
    from ensize.predictions import Progress

    Floats = NDArray[np.float64]

METHODS = ("robust", "paper")

_SAYS = {
    "split": "a split is worth it",
    "no split": "no split is worth it here",
    "cannot be said": "whether a split is worth it cannot be said",
}
# How sure a warning is.
_SURE = 0.9


@dataclass(frozen=True)
class Split:
    """A split of the budget and what it is worth.

    Parameters
    ----------
    pool
        Whose networks these are; None where the size lies between two pools.
    n, size, total
        So many networks, the parameters of one, and what all cost together.
    value, low, high
        The expected score, with an interval of 90 %; of the best split, with what it
        owes to having been chosen taken off.
    probability
        That it is the best.
    source
        `measured`, `forecast`, `interpolated` or `joint law`.
    """

    pool: str | None
    n: int
    size: int
    total: float
    value: float
    low: float
    high: float
    probability: float
    source: str


@dataclass(frozen=True, eq=False)
class Splits:
    """What can be done with a budget.

    Parameters
    ----------
    budget, cost, score
        What was asked.
    splits
        The splits that are known, by their n.
    best
        The best of them.
    single
        The single network that uses the budget; None where none is known.
    as_good
        Those within the tolerance of the best, itself included.
    advantage, low, high
        By how much the best is better than the single network, with an interval of
        90 %; NaN where that is not known.
    certainty
        The probability of what the verdict says.
    verdict
        `split`, `no split` or `cannot be said`.
    optimism
        What was taken off the best one for having been chosen.
    """

    budget: float
    cost: str
    score: str
    splits: tuple[Split, ...]
    best: Split
    single: Split | None
    as_good: tuple[Split, ...]
    advantage: float
    low: float
    high: float
    certainty: float
    verdict: Verdict
    optimism: float
    warnings: tuple[str, ...]
    options: dict[str, Any]

    def records(self) -> list[dict[str, Any]]:
        """List the splits as plain records."""
        return [dataclasses.asdict(each) for each in self.splits]

    def table(self) -> str:
        """Write the splits as a table for reading."""
        columns = ["n", "pool", "size", "total", self.score, "low", "high"]
        rows = [[*columns, "best with", "source"]]
        for each in self.splits:
            figures = (f"{x:.5f}" for x in (each.value, each.low, each.high))
            counts = (f"{each.size:,}", _amount(each.total))
            sure = f"{each.probability:.2f}"
            row = [str(each.n), each.pool or "–", *counts, *figures, sure, each.source]
            rows.append(row)
        widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
        return "\n".join(
            "  ".join(cell.rjust(w) for cell, w in zip(row, widths, strict=True))
            for row in rows
        )


def split(
    source: Any,
    budget: float | str,
    *,
    score: str = "cnll",
    within: float | str = "0.5%",
    cost: str = "parameters",
    probability: float = 0.9,
    method: str = "robust",
    family: str | None = None,
    apply: str = "before",
    calibrate_on: Any = None,
    keep_odd: bool = False,
    seed: int = 0,
    progress: Progress | None = None,
) -> Splits:
    """Find the best split of a budget, and say whether it is worth it.

    Parameters
    ----------
    source
        A plane, or what `plane_of` takes. For many budgets make the plane once.
    budget
        A number, or text such as ``"15.3M"``.
    score
        ``"cnll"``, forecast where there are too few networks; or ``"accuracy"``,
        which is measured only.
    within
        The tolerance, as a part of the best score (``"0.5%"``) or in its own units.
    cost
        What the budget counts: parameters, multiply-adds a prediction, or seconds to
        predict the test set.
    probability
        How sure a verdict must be.
    method
        How forecasts are made.
    family, apply, calibrate_on, keep_odd, seed, progress
        As for `plane_of`, if no plane is given.

    >>> from ensize.synthetic import Family
    >>> family = Family.splits_pay(objects=2000)
    >>> sizes = [25_000 * 2**i for i in range(5)]
    >>> plane = plane_of([family.of(size).predictions(16) for size in sizes])
    >>> found = split(plane, "400k")
    >>> found.best.n, family.splits(400_000).best
    (4, 4)
    >>> found.verdict.code
    'split'
    """
    one_of("score", score, SCORES)
    one_of("method", method, METHODS)
    one_of("cost", cost, COSTS)
    limit = budget_of(budget)
    if not 0.5 < positive("probability", probability) < 1:
        raise InputError(
            f"probability is {probability!r}; a verdict is sure with more than 0.5 and"
            " less than 1"
        )
    _tolerance(within, 1.0)
    if isinstance(source, Plane):
        plane = source
    else:
        plane = plane_of(
            source,
            family=family,
            apply=apply,
            calibrate_on=calibrate_on,
            keep_odd=keep_odd,
            seed=seed,
            progress=progress,
        )
    if np.isnan([getattr(each, score)[0] for each in plane.curves]).any():
        raise InputError(
            f"the {score} of sketches is unknown, for they hold the probability of the"
            " true class only; score by cnll, or record logits"
        )
    read = measured(plane, score)
    if score == "cnll":
        read = forecasting(plane, read, method)
    found = candidates(plane, limit, score, cost, read)
    if (score, cost) == ("cnll", "parameters"):
        found += beyond(plane, limit)
        found.sort(key=lambda each: (each.n, each.size))
    if not found:
        raise InputError(
            f"there are too few networks to measure the {score} of any split of"
            f" {budget}; give a smaller budget, or score by cnll, which is forecast"
        )
    asked = {"score": score, "in": cost, "within": within, "probability": probability}
    options = {**plane.options, **asked, "method": method, "recipe": plane.recipe}
    return _decide(plane, found, limit, options)


def _decide(
    plane: Plane, found: list[Candidate], budget: float, options: dict[str, Any]
) -> Splits:
    score, cost = options["score"], options["in"]
    way, sure = sense(score), options["probability"]
    values = np.array([each.reading.value for each in found])
    draws = np.column_stack([each.reading.draws for each in found])
    best, optimism = choose(values, draws, way)
    is_best = np.bincount(np.argmin(way * draws, axis=1), minlength=len(found))
    shares = is_best / len(draws)
    listed = []
    for k, each in enumerate(found):
        off = optimism if k == best else 0.0
        low, high = each.reading.interval
        listed.append(
            Split(
                *(each.pool, each.n, each.size, float(each.total)),
                value=float(values[k] - off),
                low=max(low - off, 0.0),
                high=high - off,
                probability=float(shares[k]),
                source=each.reading.source,
            )
        )
    tolerance = _tolerance(options["within"], listed[best].value)
    reach = way * listed[best].value + tolerance
    single = single_of(found, budget)
    rival = compare(found, budget, score)
    low, high = math.nan, math.nan
    if rival is not None:
        low, high = map(float, np.quantile(rival.ahead, LEVELS))
    code, certainty = _judge(rival, found, tolerance, sure)
    unit = " nats" if score == "cnll" else ""
    if rival is None and code == "no split":
        sentence = f"the budget allows no two networks of {plane.names[0]!r}"
    elif rival is None:
        sentence = (
            f"no single network that uses the budget of {_amount(budget)} {cost} is"
            " known, so that nothing tells whether a split beats it; train some of that"
            " size"
        )
    else:
        rest, ahead = found[rival.best], rival.advantage
        how = f"better by {ahead:.4f}{unit} ({low:.4f} to {high:.4f})"
        if ahead < 0:
            how = f"worse by {-ahead:.4f}{unit} ({-high:.4f} to {-low:.4f})"
        sentence = (
            f"{rest.n} networks of {_named(rest)} against one of {_amount(budget)}"
            f" {cost}: {rival.value:.4f} against {rival.single:.4f}, {how}; better"
            f" by more than the tolerance of {tolerance:.2g} with probability"
            f" {np.mean(rival.ahead > tolerance):.2f}"
        )
    return Splits(
        budget=budget,
        cost=cost,
        score=score,
        splits=tuple(listed),
        best=listed[best],
        single=None if single is None else listed[single],
        as_good=tuple(each for each in listed if way * each.value <= reach),
        advantage=math.nan if rival is None else rival.advantage,
        low=low,
        high=high,
        certainty=certainty,
        verdict=Verdict(code, f"{_SAYS[code]}: {sentence}{_rests(plane)}"),
        optimism=optimism,
        warnings=(*plane.warnings, *_notes(plane, found, budget, score, cost)),
        options=options,
    )


def _judge(
    rival: Comparison | None, found: list[Candidate], tolerance: float, sure: float
) -> tuple[str, float]:
    """Decide, and say with which probability."""
    if rival is None:
        alone = all(each.n == 1 for each in found)
        return ("no split", 1.0) if alone else ("cannot be said", math.nan)
    wins = float(np.mean(rival.ahead > tolerance))
    nothing = float(np.mean(rival.most <= tolerance))
    if wins >= sure:
        return "split", wins
    if nothing >= sure:
        return "no split", nothing
    return "cannot be said", wins


def _tolerance(within: float | str, value: float) -> float:
    """Read a tolerance: a part of a value, or a number in its units."""
    text = str(within).strip()
    part = text.removesuffix("%")
    try:
        number = float(part)
    except ValueError:
        number = math.nan
    if not (math.isfinite(number) and number >= 0):
        raise InputError(
            f"within is {within!r}; give a part of the best score, as in 0.5%, or a"
            " number in its units"
        )
    return abs(value) * number / 100 if part != text else number


def _named(each: Candidate) -> str:
    if each.pool is not None:
        return repr(each.pool)
    return f"{each.size:,} parameters (between two pools)"


def _amount(value: float) -> str:
    return f"{value:,.0f}" if value == round(value) else f"{value:,.4g}"


def _rests(plane: Plane) -> str:
    """Name the recipe that a verdict rests on."""
    if not plane.recipe:
        return " (the store does not name the recipe that this rests on)"
    return f" (this rests on {plane.recipe})"


def _notes(
    plane: Plane, found: list[Candidate], budget: float, score: str, cost: str
) -> list[str]:
    """Say what else a reader should know before believing a verdict."""
    notes = []
    # The same for every budget.
    alone = plane.remember(("alone", score), lambda: plane.along_size(1, score=score))
    if alone.turned >= _SURE:
        notes.append(
            f"single networks get worse as they grow ({alone.verdict.sentence}); with"
            " large networks that are badly tuned or unregularized a split looks better"
            " than it is"
        )
    missing = [
        name
        for name, each in zip(plane.names, plane.costs(cost), strict=True)
        if each <= budget and name not in {each.pool for each in found}
    ]
    if missing:
        notes.append(
            f"the budget allows more networks of {', '.join(missing)} than there are,"
            f" and {score} is measured only: these splits are left out"
        )
    return notes
