"""Foresight: what the pools of a plane say of more networks than they have."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ensize.forecasts import forecast
from ensize.planes import Reading
from ensize.planes.readings import DRAWS

if TYPE_CHECKING:
    from ensize.forecasts import Forecast
    from ensize.planes import Plane
    from ensize.planes.budgets import Reader


def forecasting(plane: Plane, known: Reader, method: str) -> Reader:
    """Read what was measured, and forecast what was not."""

    def read(k: int, n: int) -> Reading | None:
        if n <= plane.networks[k]:
            return known(k, n)
        ahead = forecast_of(plane, k, method)
        # The same luck at every n.
        random = np.random.default_rng((plane.options["seed"], k))
        draws = np.asarray(ahead.sample(n, DRAWS, random)).reshape(DRAWS)
        return Reading(float(ahead.at(n)), draws, "forecast")

    return read


def forecast_of(plane: Plane, k: int, method: str) -> Forecast:
    """Forecast one pool of a plane, once."""
    return plane.remember(
        ("forecast", k, method), lambda: _forecast_of(plane, k, method)
    )


def _forecast_of(plane: Plane, k: int, method: str) -> Forecast:
    if method == "robust":
        return forecast(plane.curves[k])
    return forecast(
        plane.pools[k],
        method=method,
        apply=plane.options["apply"],
        calibrate_on=None if plane.calibrate_on is None else plane.calibrate_on[k],
        keep_odd=True,
        seed=plane.options["seed"],
    )
