"""How many networks, and how large: power laws of deep ensembles.

>>> import ensize
>>> from ensize.synthetic import World
>>> pool = World().predictions(6)  # or ensize.load("runs/*.npy", targets="y.npy")
>>> curve = ensize.score(pool)
>>> law = ensize.fit(curve.n, curve.cnll)
>>> print(f"six networks: {curve.cnll[-1]:.2f}, without end: {law.limit:.2f}")
six networks: 0.39, without end: 0.36
"""

from ensize.checks import InputError
from ensize.claims import Claims, check_claims
from ensize.curves import Curve, score
from ensize.forecasts import BackTests, Forecast, back_test, forecast
from ensize.laws import Fit, PowerLaw, Status, fit, fit_many
from ensize.planes import Plane, plane_of
from ensize.predictions import Pool, Predictions
from ensize.reading import load
from ensize.reports import Report, report
from ensize.searches import MemorySplitSearch
from ensize.sketches import Grid, Sketch
from ensize.splits import (
    OptimalSplits,
    Splits,
    joint_law_test,
    optimal_splits_test,
    split,
)
from ensize.stores import Store
from ensize.theory import Expansion, expand_after, expand_before, lower_envelope

__version__ = "0.1.0"

# In the order in which data flows.
__all__ = [  # noqa: RUF022
    "InputError",
    "Pool",
    "Predictions",
    "Grid",
    "Sketch",
    "Store",
    "load",
    "Curve",
    "score",
    "Fit",
    "PowerLaw",
    "Status",
    "fit",
    "fit_many",
    "Expansion",
    "expand_before",
    "expand_after",
    "lower_envelope",
    "Plane",
    "plane_of",
    "Forecast",
    "forecast",
    "BackTests",
    "back_test",
    "Splits",
    "split",
    "OptimalSplits",
    "optimal_splits_test",
    "joint_law_test",
    "MemorySplitSearch",
    "Claims",
    "check_claims",
    "Report",
    "report",
]
