"""Evidence: the points that a forecast rests on, and what else they might have been.

Beside the points of the whole pool stand those without each network, for the luck of
the networks, and if asked for those of resampled objects, for the luck of the test set.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from ensize.curves import Curve, score
from ensize.predictions import Predictions

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from ensize.predictions import Progress
    from ensize.sketches import Sketch

    Source = Predictions | Sketch

Floats = np.ndarray[Any, np.dtype[np.float64]]

# Up to so many networks every n is a point; beyond, four an octave.
_EVERY = 12
# How often the test set is drawn anew, and of how many parts at most.
_RESAMPLES, _PARTS = 100, 100


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
    if not keep_odd:
        # One size is enough to find out who stays.
        first = score(pool, **options, n=[1])
        left = [i for i, label in enumerate(pool.labels) if label not in first.odd]
        odd, warnings = first.odd, first.warnings
        pool = pool.choose(left)
        if calibrate_on is not None:
            options["calibrate_on"] = calibrate_on.choose(left)
    raise NotImplementedError
