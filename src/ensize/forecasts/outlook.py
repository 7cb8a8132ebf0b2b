"""Outlook: from a pool to what larger ensembles will score."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ensize.checks import InputError, one_of, whole
from ensize.curves import Curve
from ensize.forecasts.advice import advise, tolerance_of
from ensize.forecasts.evidence import gather, taken
from ensize.forecasts.outcomes import Forecast, Interval, level_of, sizes_of
from ensize.forecasts.refits import METHODS, paper_refits, robust_refits
from ensize.laws import Status
from ensize.predictions import Predictions
from ensize.scores import APPLY
from ensize.sketches import Sketch

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from ensize.predictions import Progress

# What is forecast where nobody says otherwise.
DOUBLING = (8, 16, 32, 64)
_OF_SCORING = ("apply", "calibrated", "keep_odd", "seed")
_REFITS = {"robust": robust_refits, "paper": paper_refits}


def forecast(
    pool: Predictions | Sketch | Curve,
    *,
    to: ArrayLike = DOUBLING,
    level: float = 0.9,
    method: str = "robust",
    within: float | str = "1%",
    objects: bool = False,
    apply: str = "before",
    calibrate_on: Predictions | Sketch | None = None,
    keep_odd: bool = False,
    seed: int = 0,
    progress: Progress | None = None,
) -> Forecast:
    """Forecast the CNLL of ensembles larger than a pool.

    Parameters
    ----------
    pool
        At least three networks, as `ensize.load` returned them; six are a good number.
        Or the curve of all their subsets, from `ensize.score`, so that nothing is
        scored twice; the options of scoring are then the curve's.
    to
        Numbers of networks to forecast, infinity included.
    level
        Of the intervals.
    method
        ``"robust"`` reads all subsets and takes what most recipes have in common for
        the exponent as far as the pool leaves it open; ``"paper"`` fits the paper's
        objective to disjoint groups of one to four networks.
    within
        How near to the limit is near enough, for the advice: a part of it (``"1%"``)
        or in nats.
    objects
        Whether intervals cover the luck of the test set too.
    apply, calibrate_on, keep_odd, seed, progress
        As for `ensize.score`.

    Examples
    --------
    >>> import ensize
    >>> from ensize.synthetic import World
    >>> world = World(objects=5000)
    >>> ahead = ensize.forecast(world.predictions(6), to=[16, np.inf])
    >>> ahead.cnll.round(2), world.best([16, np.inf])[1].round(2)
    (array([0.38, 0.37]), array([0.38, 0.37]))
    """
    if not isinstance(pool, (Predictions, Sketch, Curve)):
        raise InputError(
            f"forecast was given {type(pool).__name__}; give it what ensize.load or"
            " ensize.Predictions.of returned"
        )
    sizes = np.atleast_1d(sizes_of("to", to))
    level = level_of(level)
    one_of("method", method, METHODS)
    one_of("apply", apply, APPLY)
    whole("seed", seed)
    tolerance_of(within, 1.0)
    if isinstance(pool, Curve):
        curve, evidence = pool, taken(pool, method=method, objects=objects)
    else:
        curve, evidence = gather(
            pool,
            method=method,
            apply=apply,
            calibrate_on=calibrate_on,
            keep_odd=keep_odd,
            objects=objects,
            seed=seed,
            progress=progress,
        )
    refits = _REFITS[method](
        evidence.n, evidence.cnll, evidence.without, evidence.resampled
    )
    law = refits.law
    wide = np.append(sizes, np.inf)
    value = refits.at(wide)
    half = refits.half_width(refits.luck(wide), level)
    low, high = np.maximum(value - half, 0.0), value + half
    warnings = [*curve.warnings]
    if law.status in {Status.BOUND, Status.TOO_FEW, Status.NOT_DECREASING}:
        warnings.append(law.message)
    return Forecast(
        n=sizes,
        cnll=value[:-1],
        low=low[:-1],
        high=high[:-1],
        limit=Interval(float(value[-1]), float(low[-1]), float(high[-1])),
        law=law,
        curve=curve,
        odd=curve.odd,
        advice=advise(refits, level, within),
        warnings=tuple(warnings),
        options={
            "level": level,
            "method": method,
            "within": within,
            "objects": objects,
            **{key: curve.options[key] for key in _OF_SCORING},
        },
        refits=refits,
    )
