"""Back-tests: how good forecasts are, on pools large enough to know.

A pool is cut into disjoint sets of six networks. Each set is forecast from as if there
were no more, and the truth comes from the networks that the set does not hold. Beside
the methods stands a rival that anybody might draw: a straight line in 1/n through the
points, by least squares.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from ensize.checks import InputError, one_of, viewed, whole
from ensize.curves import score
from ensize.draws import disjoint
from ensize.forecasts.outcomes import level_of, sizes_of
from ensize.forecasts.outlook import DOUBLING, forecast
from ensize.forecasts.refits import METHODS
from ensize.forecasts.trials import LINE, BackTest, BackTests
from ensize.laws import Status
from ensize.predictions import Predictions
from ensize.scores import APPLY
from ensize.scores.search import sketch_of
from ensize.sketches import Sketch

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import ArrayLike, NDArray

    from ensize.forecasts.outcomes import Forecast
    from ensize.predictions import Progress

    Source = Predictions | Sketch

Floats = np.ndarray[Any, np.dtype[np.float64]]

_SIX = 6


def back_test(
    pools: Predictions | Sketch | Sequence[Predictions | Sketch],
    *,
    to: ArrayLike = DOUBLING,
    networks: int = _SIX,
    level: float = 0.9,
    methods: Sequence[str] = METHODS,
    truth: ArrayLike | None = None,
    apply: str = "before",
    calibrate_on: Predictions | Sketch | None = None,
    keep_odd: bool = False,
    seed: int = 0,
    progress: Progress | None = None,
) -> BackTests:
    """Forecast from many disjoint sets of a few networks, and compare with the truth.

    Parameters
    ----------
    pools
        A large pool, or several; of each, numbers of networks that it cannot know the
        truth of are left out.
    to
        The numbers of networks to forecast.
    networks
        How many networks a set has.
    level
        Of the intervals.
    methods
        Which methods are tried.
    truth
        The expected CNLL of each `to`, where it is known, as it is of synthetic
        worlds; otherwise it is that of the networks which are not in the set.
    apply, calibrate_on, keep_odd, seed, progress
        As for `ensize.forecast`; calibrate on separate predictions one pool at a time.

    Examples
    --------
    >>> from ensize.synthetic import World
    >>> tested = back_test(World().predictions(48), to=[16])
    >>> tested.pools[0].sets
    8
    >>> bool(tested.ratio("robust", "paper").value < 1)
    True
    """
    given = [pools] if isinstance(pools, (Predictions, Sketch)) else list(pools)
    wrong = [each for each in given if not isinstance(each, (Predictions, Sketch))]
    if wrong or not given:
        kind = type(wrong[0]).__name__ if wrong else "no pool"
        raise InputError(
            f"back_test was given {kind}; give it what ensize.load returned, or a list"
            " of such pools"
        )
    sizes = np.atleast_1d(sizes_of("to", to))
    count = whole("networks", networks, 3)
    level = level_of(level)
    if not methods:
        raise InputError("methods is empty; give at least one, such as 'robust'")
    for method in methods:
        one_of("methods", method, METHODS)
    one_of("apply", apply, APPLY)
    whole("seed", seed)
    if calibrate_on is not None and len(given) > 1:
        raise InputError(
            f"calibrate_on belongs to one pool, but there are {len(given)}; back-test"
            " them one at a time"
        )
    if calibrate_on is not None and calibrate_on.networks != given[0].networks:
        raise InputError(
            f"the predictions to calibrate on are of {calibrate_on.networks} networks,"
            f" but the pool has {given[0].networks}; give the same networks in the same"
            " order"
        )
    if truth is None and not np.isfinite(sizes).any():
        raise InputError(
            "to is inf, but no pool tells the truth of endlessly many networks; give"
            " finite numbers"
        )
    known = None
    if truth is not None:
        known = np.atleast_1d(viewed("truth", truth).astype(np.float64))
        if known.shape != sizes.shape:
            raise InputError(
                f"truth has {known.size} values for {sizes.size} numbers of networks;"
                " give one for each"
            )
    options = {
        "networks": count,
        "level": level,
        "methods": tuple(methods),
        "apply": apply,
        "calibrated": "cross-validated" if calibrate_on is None else "separately",
        "keep_odd": keep_odd,
        "seed": seed,
    }
    tested = [
        _test(each, sizes, known, calibrate_on, options, progress) for each in given
    ]
    return BackTests(tuple(tested), options)


def _test(
    pool: Source,
    sizes: Floats,
    known: Floats | None,
    separate: Source | None,
    options: dict[str, Any],
    progress: Progress | None,
) -> BackTest:
    """Back-test one pool."""
    how = {"apply": options["apply"], "seed": options["seed"]}
    odd: tuple[str, ...] = ()
    warnings: list[str] = []
    if not options["keep_odd"]:
        first = score(pool, n=[1], **how, progress=progress)
        odd = first.odd
        warnings += first.warnings
        left = [i for i, label in enumerate(pool.labels) if label not in odd]
        pool = pool.choose(left)
        separate = None if separate is None else separate.choose(left)
    if options["apply"] == "before":
        pool = sketch_of(pool, progress=progress)
    few, methods = options["networks"], options["methods"]
    asked = _asked(pool, sizes, few, warnings, exact=known is not None)
    sizes = sizes[asked]
    sets = disjoint(pool.networks, few, options["seed"])
    rows: dict[str, list[Any]] = {method: [] for method in (*methods, LINE)}
    truths = []
    for done, members in enumerate(sets):
        if progress is not None:
            progress(f"back-testing {pool.pool.name}", done / len(sets))
        few_alone, on = _part(pool, separate, members)
        made = {
            method: forecast(few_alone, to=sizes, method=method, **how, **on)
            for method in dict.fromkeys(("robust", *methods))
        }
        for method in methods:
            rows[method].append(_read(made[method], sizes, options["level"]))
        rows[LINE].append(_line(made["robust"], sizes))
        if known is None:
            others = np.setdiff1d(np.arange(pool.networks), members)
            rest, on = _part(pool, separate, others)
            curve = score(rest, n=sizes.astype(int).tolist(), **how, **on)
            truths.append((curve.cnll, curve.cnll_se))
        else:
            truths.append((known[asked], np.zeros(len(sizes))))
    cnll, error = (np.array(each) for each in zip(*truths, strict=True))
    found = {
        method: [np.array(column) for column in zip(*each, strict=True)]
        for method, each in rows.items()
    }
    return BackTest(
        pool=pool.pool.name,
        networks=pool.networks,
        members=few,
        n=sizes,
        truth=cnll.mean(axis=0),
        truth_se=error.mean(axis=0),
        errors={method: each[0] - cnll for method, each in found.items()},
        halves={method: each[1] for method, each in found.items()},
        at_bound={method: each[2] for method, each in found.items()},
        odd=odd,
        warnings=tuple(warnings),
    )


def _asked(
    pool: Source, sizes: Floats, few: int, warnings: list[str], *, exact: bool
) -> NDArray[np.bool_]:
    """Tell of which numbers of networks the truth can be known."""
    name, total = pool.pool.name, pool.networks
    asked = sizes <= (math.inf if exact else total - few)
    if total < few or not asked.any():
        least = few if exact else few + int(sizes.min())
        raise InputError(
            f"pool {name!r} has {total} networks, but a back-test from sets of {few}"
            f" needs {least} or more; give a larger pool"
        )
    if not asked.all():
        listed = ", ".join(f"{n:g}" for n in sizes[~asked])
        warnings.append(
            f"pool {name!r} has {total} networks, too few to know the truth of"
            f" {listed}: left out"
        )
    return asked


def _part(
    pool: Source, separate: Source | None, networks: NDArray[np.intp]
) -> tuple[Source, dict[str, Any]]:
    """Choose networks of a pool, and what is calibrated on of the same."""
    others = None if separate is None else separate.choose(networks)
    return pool.choose(networks), {"calibrate_on": others, "keep_odd": True}


def _read(made: Forecast, n: Floats, level: float) -> tuple[Floats, Floats, bool]:
    half = made.refits.half_width(made.refits.luck(n), level)
    return made.at(n), half, made.law.status is Status.BOUND


def _line(made: Forecast, n: Floats) -> tuple[Floats, Floats, bool]:
    """Continue a straight line in 1/n; it has no interval and no bound."""
    slope, limit = np.polyfit(1 / made.curve.n, made.curve.cnll, 1)
    return limit + slope / n, np.full(len(n), np.nan), False
