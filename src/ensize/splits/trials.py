"""Trials: optimal splits predicted from six networks, against the true ones.

Section *Prediction based on power laws* of the paper. Along the diagonal of the plane
that a budget allows, n = 1, 2, 4, … networks of size B/n, the best split is predicted
from sets of six networks of each size that have none in common. The truth is what the
networks not in the set show.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from ensize.checks import InputError, one_of
from ensize.curves import score
from ensize.draws import disjoint
from ensize.forecasts import forecast
from ensize.planes import budget_of
from ensize.scores.search import sketch_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from ensize.planes import Plane
    from ensize.predictions import Predictions, Progress
    from ensize.sketches import Sketch

    Counts = NDArray[np.int64]

Floats = np.ndarray[Any, np.dtype[np.float64]]

# So many networks of each size are known when a split is predicted.
SET = 6
# And so many sets there are at most, as the paper has for VGG.
SETS = 10
# A size that differs from a pool's by no more than this part is the pool's.
_ALIKE = 0.05


@dataclass(frozen=True, eq=False)
class OptimalSplits:
    """Predicted and true best splits; an entry for each budget and set of networks.

    Parameters
    ----------
    method
        How CNLL of large ensembles was forecast.
    budget, trial
        The budget, and which set of six networks.
    true, predicted
        How many networks the best split has.
    lost
        By how much CNLL of the predicted split is above that of the true one.
    """

    method: str
    budget: Floats
    trial: Counts
    true: Counts
    predicted: Counts
    lost: Floats

    @property
    def distance(self) -> Counts:
        """How many doublings lie between the predicted and the true n, with the sign.

        0 is an exact prediction, 1 and -1 are its neighbors.
        """
        away = np.log2(self.predicted / self.true)
        return np.rint(away).astype(np.int64)

    @property
    def shares(self) -> dict[str, float]:
        """Which part of the predictions is exact, a neighbor, or worse."""
        away = np.abs(self.distance)
        kinds = (("exact", away == 0), ("neighbor", away == 1), ("worse", away > 1))
        return {name: float(np.mean(those)) for name, those in kinds}

    def records(self) -> list[dict[str, float]]:
        """List the budgets as plain records: means and deviations over the sets."""
        found = []
        for budget in np.unique(self.budget):
            those = self.budget == budget
            away = np.abs(self.distance[those])
            record = {"budget": float(budget), "sets": int(those.sum())}
            for name in ("true", "predicted"):
                n = getattr(self, name)[those]
                record |= {f"{name}_mean": float(n.mean()), f"{name}_sd": _spread(n)}
            record |= {
                "exact": float(np.mean(away == 0)),
                "neighbor": float(np.mean(away == 1)),
                "worse": float(np.mean(away > 1)),
                "lost": float(self.lost[those].mean()),
            }
            found.append(record)
        return found

    def table(self) -> str:
        """Write the budgets as a table for reading."""
        head = (
            f"{'budget':>14} {'sets':>4} {'true n':>13} {'predicted n':>13}"
            f" {'exact':>6} {'neighbor':>8} {'worse':>6} {'CNLL lost':>9}"
        )
        rows = [
            f"{row['budget']:14,.0f} {row['sets']:4}"
            f" {row['true_mean']:6.1f} ± {row['true_sd']:4.1f}"
            f" {row['predicted_mean']:6.1f} ± {row['predicted_sd']:4.1f}"
            f" {row['exact']:6.0%} {row['neighbor']:8.0%} {row['worse']:6.0%}"
            f" {row['lost']:9.5f}"
            for row in self.records()
        ]
        return "\n".join([head, *rows])


def _spread(values: Counts) -> float:
    return float(values.std(ddof=1)) if len(values) > 1 else float("nan")


def optimal_splits_test(
    plane: Plane,
    budgets: Sequence[float | str] | None = None,
    *,
    method: str = "robust",
    progress: Progress | None = None,
) -> OptimalSplits:
    """Predict best splits from six networks of each size, and compare with the truth.

    Parameters
    ----------
    plane
        Pools of at least seven networks; with twelve there are two sets.
    budgets
        In parameters; if not given, the largest size and all that differ from it by
        doublings, as far as two splits of them were measured.
    method
        ``"robust"``, or ``"paper"`` for the paper's: CNLL of up to four networks from
        disjoint groups, and its law beyond.
    progress
        Told what is being done and which share of it is done.

    >>> from ensize.planes import plane_of
    >>> from ensize.synthetic import Family
    >>> family, sizes = Family.splits_pay(), [25_000, 50_000, 100_000, 200_000]
    >>> plane = plane_of([family.of(size).predictions(24) for size in sizes])
    >>> optimal_splits_test(plane).shares["worse"]
    0.0
    """
    one_of("method", method, ("robust", "paper"))
    trials = _Trials(plane, method)
    given = trials.budgets() if budgets is None else list(map(budget_of, budgets))
    diagonals = {budget: trials.diagonal(budget) for budget in given}
    diagonals = {each: rows for each, rows in diagonals.items() if len(rows[0]) > 1}
    if not diagonals:
        raise InputError(
            "no two splits of a budget were measured beside the six networks of each"
            " size that a prediction takes; train more networks of the small sizes"
        )
    rows = []
    for done, (budget, (n, weights)) in enumerate(diagonals.items()):
        if progress is not None:
            progress("predicting splits", done / len(diagonals))
        used = np.flatnonzero(weights.any(axis=0))
        for trial in range(int(trials.sets[used].min())):
            known = [trials.values(k, trial, n) for k in used.tolist()]
            true, foreseen = (
                (weights[:, used] * np.transpose(each)).sum(axis=1)
                for each in zip(*known, strict=True)
            )
            best, chosen = int(true.argmin()), int(foreseen.argmin())
            lost = true[chosen] - true[best]
            rows.append((budget, trial, n[best], n[chosen], lost))
    columns = np.array(rows, np.float64).T
    trial, true, predicted = columns[1:4].astype(np.int64)
    return OptimalSplits(method, columns[0], trial, true, predicted, columns[4])


class _Trials:
    """The pools of a plane, cut into sets of six, and what is known of each set."""

    def __init__(self, plane: Plane, method: str) -> None:
        self.plane, self.method = plane, method
        self.options = {key: plane.options[key] for key in ("apply", "seed")}
        # A set of a pool leaves at least one network that tells the truth.
        self.sets = np.minimum(plane.networks // SET, plane.networks - SET)
        self.sets = self.sets.clip(0, SETS)
        self._known: dict[tuple[int, int], tuple[Any, Any]] = {}
        self._pools: dict[int, Predictions | Sketch] = {}

    def budgets(self) -> list[float]:
        """Double the largest size, up and down, while the plane may have splits."""
        largest, smallest = map(float, self.plane.sizes[[-1, 0]])
        most = smallest * float(self.plane.networks.max())
        steps = np.arange(
            -np.floor(np.log2(largest / smallest)),
            np.floor(np.log2(max(most, largest) / largest)) + 1,
        )
        return [float(largest * 2**step) for step in steps]

    def diagonal(self, budget: float) -> tuple[Counts, Floats]:
        """List the n of a budget's measured splits, with the weights of the pools.

        Between two sizes CNLL is read on a line in s^-1/2.
        """
        sizes = self.plane.sizes.astype(np.float64)
        kept, rows, n = [], [], 1
        while budget / n >= sizes[0] * (1 - _ALIKE):
            weights = _weights(sizes, budget / n)
            used = weights > 0
            left = self.plane.networks[used] - SET
            if used.any() and (self.sets[used] > 0).all() and n <= left.min():
                kept.append(n)
                rows.append(weights)
            n *= 2
        return np.array(kept, np.int64), np.array(rows).reshape(-1, len(sizes))

    def values(self, k: int, trial: int, n: Counts) -> tuple[Floats, Floats]:
        """Read what is true of a pool at n, and what one of its sets foresees."""
        if (k, trial) not in self._known:
            self._known[k, trial] = self._learn(k, trial)
        truth, ahead = self._known[k, trial]
        true = np.interp(n, truth.n, truth.cnll)  # at its points, or not weighted
        foreseen = np.asarray(ahead.at(n), np.float64)
        measured = np.isin(n, ahead.curve.n)
        at = np.searchsorted(ahead.curve.n, n[measured])
        foreseen[measured] = ahead.curve.cnll[at]
        return true, foreseen

    def _learn(self, k: int, trial: int) -> tuple[Any, Any]:
        pool, networks = self._pool(k), int(self.plane.networks[k])
        six = disjoint(networks, SET, self.options["seed"])[trial]
        rest = np.setdiff1d(np.arange(networks), six)
        separate = self.plane.calibrate_on
        other = None if separate is None else separate[k]
        truth = score(
            pool.choose(rest),
            n=[2**i for i in range(len(rest).bit_length())],
            calibrate_on=other and other.choose(rest),
            keep_odd=True,
            **self.options,
        )
        ahead = forecast(
            pool.choose(six),
            method=self.method,
            calibrate_on=other and other.choose(six),
            keep_odd=True,
            **self.options,
        )
        return truth, ahead

    def _pool(self, k: int) -> Predictions | Sketch:
        """Sketch a pool once, where a sketch is all that CNLL needs."""
        if k not in self._pools:
            pool = self.plane.pools[k]
            quick = self.options["apply"] == "before"
            self._pools[k] = sketch_of(pool) if quick else pool
        return self._pools[k]


def _weights(sizes: Floats, size: float) -> Floats:
    """Weight the pools for a size: one has it, or it lies between two, or nowhere."""
    weights = np.zeros(len(sizes))
    near = int(np.argmin(np.abs(np.log(sizes / size))))
    if abs(sizes[near] / size - 1) <= _ALIKE:
        weights[near] = 1.0
    elif sizes[0] < size < sizes[-1]:
        b = int(np.searchsorted(sizes, size))
        x, at = sizes**-0.5, size**-0.5
        share = (at - x[b]) / (x[b - 1] - x[b])
        weights[b - 1 : b + 1] = share, 1 - share
    return weights
