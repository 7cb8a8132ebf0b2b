"""Evidence: the points that a forecast rests on, and what else they might have been.

Beside the points of the whole pool stand those without each network, for the luck of
the networks, and if asked for those of resampled objects, for the luck of the test set.
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from ensize.checks import InputError
from ensize.curves import Curve, score
from ensize.draws import disjoint, subsets
from ensize.forecasts.refits import PAPER_SIZES, cut_means, key_of, paper_cuts
from ensize.scores import score_ensembles, shares_of
from ensize.scores.search import profiles, sketch_of
from ensize.temperatures import calibrate

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from ensize.predictions import Predictions, Progress
    from ensize.sketches import Sketch

    Source = Predictions | Sketch

Floats = np.ndarray[Any, np.dtype[np.float64]]

# Up to so many networks every n is a point; beyond, four an octave.
_EVERY = 12
_PER_OCTAVE = 4
# How often the test set is drawn anew, and of how many parts at most.
_RESAMPLES, _PARTS = 100, 100
# A law has three parameters; the paper's points are of one to four networks.
_LEAST = {"robust": 3, "paper": len(PAPER_SIZES)}


@dataclass(frozen=True, eq=False)
class Evidence:
    """What is known of a pool: the points along n, and their alternatives.

    Parameters
    ----------
    n, cnll
        The points.
    without
        The points without each network, (networks, points); NaN where there is none.
    resampled
        The points of resampled test sets, (resamples, points), or None.
    """

    n: NDArray[np.int64]
    cnll: Floats
    without: Floats
    resampled: Floats | None = None


def gather(
    pool: Source,
    *,
    method: str,
    apply: str,
    calibrate_on: Source | None,
    keep_odd: bool,
    objects: bool,
    seed: int,
    progress: Progress | None,
) -> tuple[Curve, Evidence]:
    """Score the ensembles that a method wants."""
    options: dict[str, Any] = {
        "apply": apply,
        "calibrate_on": calibrate_on,
        "seed": seed,
        "progress": progress,
    }
    odd: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()
    if not keep_odd:
        # One size is enough to find out who stays.
        first = score(pool, **options, n=[1])
        odd, warnings = first.odd, first.warnings
        left = [i for i, label in enumerate(pool.labels) if label not in odd]
        pool = pool.choose(left)
        if calibrate_on is not None:
            calibrate_on = options["calibrate_on"] = calibrate_on.choose(left)
    _enough(pool.networks, len(odd), method)
    paper = method == "paper"
    curve = score(
        pool,
        **options,
        n=PAPER_SIZES if paper else _sizes(pool.networks),
        ensembles="disjoint" if paper else "all",
        keep_odd=True,
    )
    curve = dataclasses.replace(
        curve,
        odd=odd,
        warnings=tuple(dict.fromkeys((*warnings, *curve.warnings))),
        options={**curve.options, "keep_odd": keep_odd},
    )
    cnll = curve.cnll
    if paper:
        cnll, without = _cut(pool, apply, calibrate_on, seed)
    else:
        assert curve.cnll_without is not None  # noqa: S101  # of all subsets it is there
        without = curve.cnll_without
    resampled = None
    if objects:
        draw = disjoint if paper else subsets
        drawn = [draw(pool.networks, n, seed) for n in curve.n.tolist()]
        # How CNLL changes from one test set to another, whatever the halves.
        changed = _resampled(pool, drawn, after=apply == "after", seed=seed)
        resampled = cnll + changed - curve.cnll_whole
    return curve, Evidence(curve.n, cnll, without, resampled)


def taken(curve: Curve, *, method: str, objects: bool) -> Evidence:
    """Take a curve for evidence, if it says enough."""
    if method != "robust" or objects or curve.cnll_without is None:
        raise InputError(
            "forecast was given a curve that does not say what it asks for; from a"
            " curve of all subsets the robust method reads the luck of the networks:"
            " for all else give it the pool"
        )
    _enough(curve.networks, len(curve.odd), method)
    return Evidence(curve.n, curve.cnll, curve.cnll_without)


def _enough(networks: int, odd: int, method: str) -> None:
    least = _LEAST[method]
    if networks >= least:
        return
    some = "is 1 network" if networks == 1 else f"are {networks} networks"
    besides = f" besides {odd} that did not train" if odd else ""
    raise InputError(
        f"there {some}{besides}, but a forecast by the {method} method needs at least"
        f" {least}; train more, six are a good number"
    )


def _sizes(networks: int) -> list[int]:
    """Choose the points: every n, thinning out, and the whole pool.

    >>> _sizes(6), _sizes(40)[10:]
    ([1, 2, 3, 4, 5, 6], [11, 12, 14, 17, 20, 24, 29, 34, 40])
    """
    steps = range(_PER_OCTAVE * networks.bit_length())
    sparse = [round(_EVERY * 2 ** (i / _PER_OCTAVE)) for i in steps]
    every = range(1, min(networks, _EVERY) + 1)
    return sorted({*every, *(n for n in sparse if n < networks), networks})


def _cut(
    pool: Source, apply: str, calibrate_on: Source | None, seed: int
) -> tuple[Floats, Floats]:
    """Score the paper's disjoint groups, and those without each network."""
    whole, without = paper_cuts(pool.networks, seed)
    groups = {
        key_of(group): group
        for cuts in (whole, *without)
        for groups in cuts
        for group in groups
    }
    shares = np.vstack(
        [shares_of(group[None], pool.networks) for group in groups.values()]
    )
    scores = score_ensembles(
        pool,
        shares,
        apply=apply,  # type: ignore[arg-type] # checked by forecast
        calibrate_on=calibrate_on,
        seed=seed,
    )
    cnll = dict(zip(groups, scores.cnll.tolist(), strict=True))
    return (
        np.array(cut_means(whole, cnll)),
        np.array([cut_means(cuts, cnll) for cuts in without]),
    )


def _resampled(
    pool: Source, drawn: list[NDArray[np.intp]], *, after: bool, seed: int
) -> Floats:
    """Calibrate all ensembles on resampled test sets, the same for all of them.

    Objects are resampled by random parts, so that one pass over the pool is enough.
    """
    # A stream of its own, lest the parts be those of whoever else shuffles objects.
    random = np.random.default_rng((seed, _PARTS))
    count = min(_PARTS, pool.objects)
    part = random.permutation(np.arange(pool.objects) % count)
    weights = np.vstack(
        [part == np.arange(count)[:, None], np.ones(pool.objects, bool)]
    )
    times = random.multinomial(count, np.full(count, 1 / count), size=_RESAMPLES)
    objects = times @ weights[:-1].sum(axis=1)
    points = []
    for members in drawn:
        shares = shares_of(members, pool.networks)
        grid, sums, _ = profiles(pool, sketch_of(pool), shares, weights, after=after)
        nll = np.tensordot(times, sums[:, :-1], axes=(1, 1)) / objects[:, None, None]
        points.append(calibrate(grid, nll).nll.mean(axis=1))
    return np.column_stack(points)
