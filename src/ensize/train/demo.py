"""Demo: the main job on real data, from pictures to a decision, in a minute or so.

128 of scikit-learn's digits are to learn from, and 1,669 to test on: with more to learn
from, networks hardly err, and a test set that small cannot tell how good they are.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ensize.checks import whole
from ensize.curves import score
from ensize.forecasts import back_test
from ensize.laws import fit
from ensize.planes import plane_of
from ensize.splits import split
from ensize.train.studies import Study, train_study
from ensize.train.studies.declarations import MOST

if TYPE_CHECKING:
    import os

    from ensize.curves import Curve
    from ensize.forecasts import BackTests
    from ensize.laws import Fit
    from ensize.predictions import Pool, Progress
    from ensize.splits import Splits
    from ensize.stores import Store
    from ensize.train.studies import Result

# Of each width so many networks that the ensembles which fit a budget can be measured.
_NETWORKS = {16: 240, 24: 208, 32: 176, 48: 144, 64: 112, 96: 80, 160: 48}
_LEAST = 4
# About what one network of the second, the fifth and the last width has.
BUDGETS = (2_500, 9_000, 38_000)
# Numbers of networks, each with at least two ensembles that have no network in common.
_SHOWN = (1, 2, 4, 8, 16, 32)
# Back-tests take disjoint sets of six from so many networks.
_TESTED, _SIX = 48, 6


@dataclass(frozen=True, eq=False)
class Scored:
    """The ensembles of one width: their curve along n, and its law."""

    pool: Pool
    curve: Curve
    law: Fit


def demo_study(networks: int | None = None) -> Study:
    """Declare the study of the demo, of about so many networks in all.

    >>> sum(demo_study().networks), len(demo_study().widths)
    (1008, 7)
    """
    everyone = sum(_NETWORKS.values())
    part = 1.0 if networks is None else whole("networks", networks, 1, MOST) / everyone
    recipe = {"epochs": 150, "batch": 64, "learning_rate": 0.1, "weight_decay": 3e-3}
    declared: dict[str, Any] = {
        "name": "demo",
        "dataset": "few-digits",
        "family": "mlp",
        "widths": list(_NETWORKS),
        "networks": [max(_LEAST, round(part * each)) for each in _NETWORKS.values()],
    }
    return Study.of({**declared, "recipe": recipe})


def train_demo(
    store: str | os.PathLike[str],
    networks: int | None = None,
    *,
    progress: Progress | None = None,
) -> Result:
    """Train what a store lacks of the demo's networks."""
    return train_study(demo_study(networks), Path(store), progress=progress)


def score_demo(store: Store, *, progress: Progress | None = None) -> list[Scored]:
    """Score ensembles of each width, and fit the law of their CNLL along n."""
    found = []
    for width in _NETWORKS:
        read = store.read(f"mlp-w{width}")
        n = [each for each in _SHOWN if each <= max(read.networks // 2, _LEAST)]
        curve = score(read, n=n, progress=progress)
        found.append(Scored(read.pool, curve, fit(curve.n, curve.cnll)))
    return found


def check_demo(store: Store, *, progress: Progress | None = None) -> BackTests | None:
    """Forecast from six networks, often, and compare; None with too few networks."""
    pools = [store.read(f"mlp-w{width}") for width in list(_NETWORKS)[::3]]
    able = [each.choose(range(_TESTED)) for each in pools if each.networks >= _TESTED]
    if not able:
        return None
    return back_test(able, to=[8, 16, 32], networks=_SIX, progress=progress)


def split_demo(store: Store, *, progress: Progress | None = None) -> list[Splits]:
    """Find the best split of each budget."""
    plane = plane_of(store, progress=progress)
    return [split(plane, budget) for budget in BUDGETS]
