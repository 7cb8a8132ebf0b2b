"""Measure the fitting of laws, against SciPy's BFGS on the same objective.

Run `python benchmarks/fitting.py`. Every ratio is of times of one run. What is printed
is Markdown for docs/benchmarks.md.
"""

from __future__ import annotations

import functools
import time
from typing import TYPE_CHECKING

import numpy as np
from scipy.optimize import minimize

from ensize.laws import PRIOR, PowerLaw, Status, fit_many

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

CURVES = 10_000
BY_BFGS = 200
REPEATS = 5
M = np.arange(1.0, 9.0)


def best_time(work: Callable[[], object]) -> float:
    """Return the least of several times, in seconds."""
    times = []
    for _ in range(REPEATS):
        start = time.perf_counter()
        work()
        times.append(time.perf_counter() - start)
    return min(times)


def by_bfgs(y: NDArray[np.float64], *, derivatives: bool) -> NDArray[np.float64]:
    """Minimize the robust objective over (c, b, a) from one generic start."""
    w = 1 / M / (1 / M).sum()
    centre, width = PRIOR
    freedom = (len(M) - 2) / 2

    def objective(law: NDArray[np.float64]) -> float:
        c, b, a = law
        rss = w @ (1 - (c + b * M**a) / y) ** 2
        penalty = np.log1p(((a - centre) / width) ** 2)
        return float(freedom * np.log(rss) + penalty)

    def gradient(law: NDArray[np.float64]) -> NDArray[np.float64]:
        c, b, a = law
        power = M**a
        left = 1 - (c + b * power) / y
        moves = np.stack([1 / y, power / y, b * power * np.log(M) / y])
        slope: NDArray[np.float64] = moves @ (w * left) / (w @ left**2)
        slope *= -2 * freedom
        slope[2] += 2 * (a - centre) / (width**2 + (a - centre) ** 2)
        return slope

    c = 0.9 * y.min()
    start = np.array([c, y[0] - c, -1.0])
    jac = gradient if derivatives else None
    law: NDArray[np.float64] = minimize(objective, start, method="BFGS", jac=jac).x
    return law


def main() -> None:
    """Time both methods and BFGS, and print how far their answers are apart."""
    noise = np.random.default_rng(0).standard_normal((CURVES, len(M)))
    y = PowerLaw(1.0, 0.5, -0.9)(M) * (1 + 0.002 * noise)
    print(
        f"{CURVES:,} curves of {len(M)} points, 0.2 % noise; best of {REPEATS}. BFGS"
        f" over {BY_BFGS} of them, once; how far its (c, b, a) is from ours.\n"
    )
    print("| by | all curves | a fit | ratio | aim | within 10⁻³ | median distance |")
    print("|---|---|---|---|---|---|---|")
    seconds = {}
    for method in ("robust", "paper"):
        seconds[method] = best_time(functools.partial(fit_many, M, y, method=method))
        each = seconds[method] / CURVES
        aim = "2 s" if method == "robust" else "–"
        print(
            f"| ensize, {method} | {seconds[method]:.3f} s | {1e6 * each:.0f} µs"
            f" | {seconds[method] / seconds['robust']:.2g} | {aim} | – | – |"
        )
    fits = fit_many(M, y[:BY_BFGS])
    inside = fits.status != Status.BOUND  # BFGS knows no bounds
    ours = np.stack([fits.limit, fits.gain, fits.exponent], axis=1)
    for derivatives in (False, True):
        start = time.perf_counter()
        theirs = np.array(
            [by_bfgs(row, derivatives=derivatives) for row in y[:BY_BFGS]]
        )
        each = (time.perf_counter() - start) / BY_BFGS
        apart = np.abs(theirs - ours).max(axis=1)[inside]
        ratio = each / (seconds["robust"] / CURVES)
        given = "given" if derivatives else "numerical"
        print(
            f"| SciPy's BFGS, {given} derivatives | – | {1e6 * each:.0f} µs"
            f" | {ratio:.0f} | 50 | {np.sum(apart < 1e-3)} of {len(apart)}"
            f" | {np.median(apart):.0e} |"
        )


if __name__ == "__main__":
    main()
