"""ensize beside its peers: times of one run as ratios, and how right each answer is.

    pip install --group peers && pip install -e .
    python benchmarks/peers.py        # three Markdown tables, some minutes

Peers get the number type that suits them best, made before the clock starts, and the
fastest sound way of calling them. Answers are held against float64 references.
"""

from __future__ import annotations

import argparse
import functools
import importlib.metadata
import os
import platform
import statistics
import time
import warnings
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import lmfit
import numpy as np
import torch
from netcal.scaling import TemperatureScaling
from probmetrics.calibrators import TemperatureScalingCalibrator
from probmetrics.distributions import CategoricalLogits
from scipy.optimize import curve_fit, minimize, minimize_scalar
from scipy.special import log_softmax, logsumexp
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.calibration import CalibratedClassifierCV
from sklearn.frozen import FrozenEstimator
from torchmetrics.functional.classification import multiclass_accuracy
from torchmetrics.functional.text import perplexity

import ensize
from ensize.draws import disjoint
from ensize.scores import halvings
from ensize.scores.search import sketch_of
from ensize.temperatures import calibrate
from scoring import make_pool

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from numpy.typing import NDArray

    Floats = NDArray[np.float64]
    # From logits and true classes to the inverse temperature with the least NLL.
    Calibrator = Callable[[NDArray[Any], NDArray[np.int64]], float]


@dataclass(frozen=True)
class Row:
    """What somebody needed for the same job, and how right the answer is."""

    name: str
    seconds: list[float]
    right: str


def timed(work: Callable[[], Any], times: int) -> tuple[list[float], Any]:
    """Do some work again and again; the times, and what it gave."""
    taken = []
    for _ in range(times):
        start = time.perf_counter()
        result = work()
        taken.append(time.perf_counter() - start)
    return taken, result


def print_table(title: str, right: str, rows: Sequence[Row]) -> None:
    """Write a Markdown table whose ratios are to the first row."""
    base = statistics.median(rows[0].seconds)
    print(f"\n{title}\n")
    print(f"| by | seconds, median | best | n | ratio of medians | {right} |")
    print("|---|---|---|---|---|---|")
    for row in rows:
        best, median = min(row.seconds), statistics.median(row.seconds)
        print(
            f"| {row.name} | {median:.3g} | {best:.3g} | {len(row.seconds)}"
            f" | {median / base:.3g} | {row.right} |",
            flush=True,
        )


# The best temperature of one network.


class Given(ClassifierMixin, BaseEstimator):
    """A classifier whose logits are already known: they are handed in as features."""

    def fit(self, _: Any, y: NDArray[np.int64]) -> Given:
        """Learn which classes there are."""
        self.classes_ = np.unique(y)
        return self

    def decision_function(self, logits: NDArray[Any]) -> NDArray[Any]:
        """Return the logits."""
        return logits

    def predict(self, logits: NDArray[Any]) -> NDArray[np.intp]:
        """Choose a class; a classifier must be able to."""
        return logits.argmax(axis=1)


def by_sklearn(logits: NDArray[Any], targets: NDArray[np.int64]) -> float:
    """Calibrate by scikit-learn's temperature method."""
    network = FrozenEstimator(Given().fit(logits, targets))
    fitted = CalibratedClassifierCV(network, method="temperature").fit(logits, targets)
    return float(fitted.calibrated_classifiers_[0].calibrators[0].beta_)


def by_probmetrics(logits: NDArray[Any], targets: NDArray[np.int64]) -> float:
    """Calibrate by probmetrics: bisection on the slope."""
    fitted = TemperatureScalingCalibrator()
    given = CategoricalLogits(torch.from_numpy(logits))
    fitted.fit_torch(given, torch.from_numpy(targets))
    return float(fitted.invtemp_)


def by_netcal(logits: NDArray[Any], targets: NDArray[np.int64]) -> float:
    """Calibrate by netcal, which wants probabilities in float64."""
    fitted = TemperatureScaling()
    fitted.fit(np.exp(log_softmax(logits, axis=1)), targets)
    return float(fitted.temperature[0])  # it multiplies: its weight is 1/τ


def by_lbfgs(logits: NDArray[Any], targets: NDArray[np.int64]) -> float:
    """Calibrate by PyTorch's L-BFGS, with a line search and a tight tolerance."""
    z, y = torch.from_numpy(logits), torch.from_numpy(targets)
    inverse = torch.ones((), dtype=z.dtype, requires_grad=True)
    search = torch.optim.LBFGS(
        [inverse], max_iter=50, line_search_fn="strong_wolfe", tolerance_change=1e-12
    )

    def loss() -> Any:
        search.zero_grad()
        nll = torch.nn.functional.cross_entropy(inverse * z, y)
        nll.backward()
        return nll

    search.step(loss)
    return float(inverse)


PEERS: dict[str, tuple[Calibrator, type]] = {
    "scikit-learn, method `temperature`": (by_sklearn, np.float64),
    "probmetrics, bisection": (by_probmetrics, np.float32),
    "PyTorch, L-BFGS": (by_lbfgs, np.float32),
    "netcal, `mle`": (by_netcal, np.float64),
}


def nll_of(
    logits: NDArray[Any], targets: NDArray[np.int64], inverse: float = 1.0
) -> float:
    """Compute NLL at an inverse temperature, in float64."""
    logs = log_softmax(inverse * logits.astype(np.float64), axis=1)
    return float(-logs[np.arange(len(targets)), targets].mean())


def by_newton(logits: NDArray[Any], targets: NDArray[np.int64]) -> float:
    """Find the reference: Newton's steps in float64, along log 1/τ, to the last bit.

    With z the logits NLL has the slope E z - z_y and the curvature Var z, under the
    tempered probabilities; it is convex in 1/τ.
    """
    z = logits.astype(np.float64)
    z_true = z[np.arange(len(targets)), targets].mean()
    inverse = 1.0
    for _ in range(50):
        p = np.exp(log_softmax(inverse * z, axis=1))
        mean = (p * z).sum(axis=1)
        slope = mean.mean() - z_true
        curvature = ((p * z**2).sum(axis=1) - mean**2).mean()
        step = np.clip(slope / (inverse * curvature), -1, 1)
        inverse *= float(np.exp(-step))
        if abs(step) < 1e-13:
            break
    return inverse


def one_network(times: int) -> None:
    """Find the best temperature of one network, 10,000 objects × 100 classes."""
    (logits,), targets = make_pool(1, 10_000, 100)
    least = nll_of(logits, targets, by_newton(logits, targets))
    pool = ensize.Predictions.of(logits, targets)

    def ours() -> float:
        sketch = sketch_of(pool)
        return float(calibrate(sketch.grid, sketch.member_nll()).inverse[0])

    def above(inverse: float) -> str:
        return f"{max(0.0, nll_of(logits, targets, inverse) - least):.0e}"

    taken, inverse = timed(ours, times)
    rows = [Row("ensize, the temperature alone", taken, above(inverse))]
    taken, curve = timed(lambda: ensize.score(pool), times)
    found = abs(float(curve.cnll_whole[0]) - least)
    name = "ensize, `score`: with 10 halves, accuracy and Brier score"
    rows.append(Row(name, taken, f"{found:.0e}"))
    for peer, (calibrator, kind) in PEERS.items():
        given = logits.astype(kind)
        taken, inverse = timed(functools.partial(calibrator, given, targets), times)
        rows.append(Row(peer, taken, above(inverse)))
    print_table(
        "The best temperature of one network: 10,000 objects × 100 classes.",
        "NLL above the least",
        rows,
    )


# The CNLL curve of ensembles.


@dataclass(frozen=True, eq=False)
class Job:
    """The disjoint ensembles of a pool, and the halves of the test set."""

    logits: NDArray[np.float32]
    targets: NDArray[np.int64]
    halves: tuple[tuple[NDArray[np.bool_], NDArray[np.bool_]], ...]

    @classmethod
    def of(cls, networks: int, objects: int, classes: int) -> Job:
        """Make the job that `ensize.score` does with the same seed."""
        logits, targets = make_pool(networks, objects, classes)
        firsts = halvings(objects, seed=0)
        both = [(first, ~first) for first in firsts]
        halves = [pair for a, b in both for pair in ((a, b), (b, a))]
        return cls(logits, targets, tuple(halves))

    def ensembles(self) -> Iterator[tuple[int, NDArray[np.intp]]]:
        """List the ensembles of each n from 0 on, as `ensize.score` draws them."""
        for n in range(1, len(self.logits) + 1):
            for members in disjoint(len(self.logits), n):
                yield n - 1, members

    def curve(self, score: Callable[[NDArray[np.intp]], float]) -> Floats:
        """Average a score over the ensembles of each n."""
        values: list[list[float]] = [[] for _ in self.logits]
        for at, members in self.ensembles():
            values[at].append(score(members))
        return np.array([np.mean(each) for each in values])

    def after(self, calibrator: Calibrator, kind: type) -> Floats:
        """Compute the CNLL curve, the temperature after averaging, by a calibrator."""
        logs = log_softmax(self.logits.astype(kind), axis=2)

        def cnll(members: NDArray[np.intp]) -> float:
            mean = logsumexp(logs[members], axis=0)
            mean -= np.log(len(members), dtype=kind)
            found = [
                nll_of(mean[b], self.targets[b], calibrator(mean[a], self.targets[a]))
                for a, b in self.halves
            ]
            return float(np.mean(found))

        return self.curve(cnll)

    def before(self, kind: type, tolerance: float) -> Floats:
        """Compute the same, before averaging, by SciPy's bounded scalar search."""
        logits = self.logits.astype(kind)

        def nll(members: NDArray[np.intp], half: NDArray[np.bool_], u: float) -> float:
            true = self.targets[half]
            z = np.asarray(np.exp(u), kind) * logits[members][:, half]
            own = z[:, np.arange(len(true)), true] - logsumexp(z, axis=2)
            means = logsumexp(own, axis=0) - np.log(len(members))
            return float(-means.mean(dtype=np.float64))

        def cnll(members: NDArray[np.intp]) -> float:
            found = []
            for a, b in self.halves:
                best = minimize_scalar(
                    lambda u, a=a: nll(members, a, u),
                    bounds=(-3, 3),
                    method="bounded",
                    options={"xatol": tolerance},
                )
                found.append(nll(members, b, best.x))
            return float(np.mean(found))

        return self.curve(cnll)

    def uncalibrated(self) -> Floats:
        """Compute NLL at τ = 1, and the accuracy, by torchmetrics."""
        p = torch.softmax(torch.from_numpy(self.logits), dim=2)
        targets, classes = torch.from_numpy(self.targets), self.logits.shape[2]

        def nll(members: NDArray[np.intp]) -> float:
            mean = p[members].mean(dim=0)
            multiclass_accuracy(mean, targets, classes, average="micro")
            return float(torch.log(perplexity(mean.log()[None], targets[None])))

        return self.curve(nll)


def curves(times: int, networks: int) -> None:
    """Compute CNLL along n, cross-validated."""
    objects, classes = 5000, 100
    job = Job.of(networks, objects, classes)
    pool = ensize.Predictions.of(job.logits, job.targets)
    count = sum(1 for _ in job.ensembles())

    def ours(apply: str) -> ensize.Curve:
        return ensize.score(pool, ensembles="disjoint", apply=apply, keep_odd=True)

    def off(values: Floats, truth: Floats) -> str:
        return f"{np.abs(values - truth).max():.0e}"

    taken, curve = timed(lambda: ours("after"), times)
    truth = job.after(by_newton, np.float64)
    rows = [Row("ensize, every score", taken, off(curve.cnll, truth))]
    for peer, (calibrator, kind) in PEERS.items():
        taken, values = timed(lambda c=calibrator, k=kind: job.after(c, k), 1)
        rows.append(Row(f"a loop over {peer}", taken, off(values, truth)))
    taken, values = timed(job.uncalibrated, times)
    exact = job.curve(
        lambda members: nll_of(
            logsumexp(log_softmax(job.logits[members].astype(float), axis=2), axis=0),
            job.targets,
        )
    )
    name = "torchmetrics, NLL and accuracy at τ = 1 alone: no temperature"
    rows.append(Row(name, taken, off(values, exact)))
    size = (
        f"{networks} networks × {objects:,} objects × {classes} classes, {count}"
        f" ensembles, {10 * count} halves"
    )
    print_table(
        f"The CNLL curve, the temperature *after* averaging: {size}.",
        "CNLL off, at worst",
        rows,
    )
    taken, curve = timed(lambda: ours("before"), times)
    truth = job.before(np.float64, 1e-7)
    rows = [Row("ensize, every score", taken, off(curve.cnll, truth))]
    taken, values = timed(lambda: job.before(np.float32, 1e-4), 1)
    name = "a loop over SciPy's `minimize_scalar`"
    rows.append(Row(name, taken, off(values, truth)))
    print_table(
        "The same *before* averaging, which no peer offers.", "CNLL off, at worst", rows
    )


# Laws.

M = np.arange(1.0, 9.0)
# All minimize Σ w (1 - (c + b·m^a)/y)² over c ≥ 0 and b ≥ 0, with w as 1/m.
W = 1 / M / (1 / M).sum()


def law(m: Floats, c: float, b: float, a: float) -> Floats:
    """Write the law as fitters want it."""
    return c + b * m**a


def slopes(m: Floats, _: float, b: float, a: float) -> Floats:
    """Differentiate the law by c, b and a."""
    power = m**a
    return np.stack([np.ones_like(m), power, b * power * np.log(m)], axis=1)


def start_of(y: Floats) -> Floats:
    """Choose a start near which the answer of falling curves lies."""
    c = 0.9 * y.min()
    return np.array([c, y[0] - c, -1.0])


def by_curve_fit(y: Floats, **options: Any) -> Floats:
    """Fit by SciPy's curve_fit, with derivatives."""
    found: Floats = curve_fit(
        law, M, y, start_of(y), sigma=y * np.sqrt(M), jac=slopes, **options
    )[0]
    return found


def by_bfgs(y: Floats) -> Floats:
    """Fit by SciPy's BFGS, with derivatives, the objective scaled to its noise."""
    scale = 1e6

    def objective(x: Floats) -> tuple[float, Floats]:
        left = 1 - law(M, *x) / y
        slope = -2 * scale * (W * left / y) @ slopes(M, *x)
        return scale * float(W @ left**2), slope

    found: Floats = minimize(objective, start_of(y), jac=True, method="BFGS").x
    return found


LMFIT = lmfit.Model(law, independent_vars=["m"])


def by_lmfit(y: Floats) -> Floats:
    """Fit by lmfit, with c and b kept from falling below 0."""
    start = LMFIT.make_params(**dict(zip("cba", start_of(y), strict=True)))
    start["c"].min = start["b"].min = 0
    weights = 1 / (y * np.sqrt(M))
    found = LMFIT.fit(y, start, m=M, weights=weights, calc_covar=False)
    return np.array([found.best_values[name] for name in "cba"])


def rss_of(y: Floats, found: Floats) -> float:
    """Compute the objective; infinite where a limit or gain is below 0."""
    c, b, a = found
    if min(c, b) < 0:
        return np.inf
    return float(W @ (1 - law(M, c, b, a) / y) ** 2)


def reference_law(y: Floats) -> Floats:
    """Find the least of all: the best c and b at every exponent, in closed form."""
    relative = W / y**2

    def best(a: float) -> Floats:
        power = M**a
        design = np.stack([np.ones_like(M), power], axis=1)
        root = np.sqrt(relative)
        c, b = np.linalg.lstsq(design * root[:, None], y * root, rcond=None)[0]
        if c < 0:
            c, b = 0.0, (relative * power) @ y / ((relative * power) @ power)
        return np.array([c, b, a])

    grid = -np.geomspace(8, 0.01, 400)
    at = int(np.argmin([rss_of(y, best(a)) for a in grid]))
    ends = (grid[max(at - 1, 0)], grid[min(at + 1, len(grid) - 1)])
    a = minimize_scalar(
        lambda a: np.log(rss_of(y, best(a))),
        bounds=ends,
        method="bounded",
        options={"xatol": 1e-12},
    ).x
    return best(float(a))


def laws(times: int, count: int) -> None:
    """Fit laws to noisy curves of eight points."""
    noise = np.random.default_rng(0).standard_normal((count, len(M)))
    y = law(M, 1.0, 0.5, -0.9) * (1 + 0.002 * noise)
    truth = np.array([reference_law(each) for each in y])
    least = np.array([rss_of(*each) for each in zip(y, truth, strict=True)])

    def row(name: str, work: Callable[[], Any], times: int) -> Row:
        taken, found = timed(work, times)
        found = np.asarray(found)
        rss = np.array([rss_of(*each) for each in zip(y, found, strict=True)])
        reached = rss <= least * (1 + 1e-6)
        off = np.median(np.abs(found[:, 0] - truth[:, 0]))
        right = f"{reached.sum()} of {count}; {off:.0e}"
        return Row(name, [each / count for each in taken], right)

    def each_by(fitter: Callable[[Floats], Floats]) -> Callable[[], list[Floats]]:
        return lambda: [fitter(each) for each in y]

    def ours() -> Floats:
        fits = ensize.fit_many(M, y, prior=None)
        return np.stack([fits.limit, fits.gain, fits.exponent], axis=1)

    def alone(each: Floats) -> Floats:
        found = ensize.fit(M, each, prior=None)
        return np.array([found.limit, found.gain, found.exponent])

    inside = {"bounds": ([0, 0, -np.inf], np.inf)}
    bounded = functools.partial(by_curve_fit, **inside)
    rows = [
        row("ensize, `fit_many`", ours, times),
        row("ensize, `fit` in a loop", each_by(alone), times),
        row("SciPy, `curve_fit`, unbounded", each_by(by_curve_fit), times),
        row("SciPy, `curve_fit`, within bounds", each_by(bounded), times),
        row("SciPy, BFGS", each_by(by_bfgs), times),
        row("lmfit, `Model.fit`", each_by(by_lmfit), times),
    ]
    print_table(
        f"Laws: {count} curves of {len(M)} points with 0.2 % noise, seconds a fit.",
        "least sum of squares reached; limit off, median",
        rows,
    )


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--times", type=int, default=5)
    parser.add_argument("--networks", type=int, default=8)
    parser.add_argument("--curves", type=int, default=200)
    asked = parser.parse_args()
    warnings.simplefilter("ignore")  # peers' own, about their dependencies
    names = (
        "ensize numpy scipy scikit-learn torch probmetrics netcal torchmetrics lmfit"
    )
    versions = [f"{name} {importlib.metadata.version(name)}" for name in names.split()]
    cores = len(os.sched_getaffinity(0))
    print(f"{cores} cores, Python {platform.python_version()}, {', '.join(versions)}")
    one_network(asked.times)
    curves(asked.times, asked.networks)
    laws(asked.times, asked.curves)


if __name__ == "__main__":
    main()
