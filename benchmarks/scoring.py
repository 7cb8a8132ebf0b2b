"""How long scoring takes, as multiples of one softmax over the same pool.

    python benchmarks/scoring.py            # the ratios, about a minute
    python benchmarks/scoring.py --large    # also 50 networks on disk, 5 GB

A is the best time of one plain NumPy softmax over the pool. Every ratio is of one
run, so that a busy machine touches both of its sides. What is printed is Markdown for
docs/benchmarks.md.
"""

from __future__ import annotations

import argparse
import os
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

import ensize
from ensize.draws import disjoint, subsets
from ensize.scores import halvings

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray


def softmax(logits: NDArray[Any]) -> NDArray[Any]:
    """Compute probabilities as everybody writes it, network by network."""
    result = np.empty_like(logits)
    for i, each in enumerate(logits):
        p = np.exp(each - each.max(axis=1, keepdims=True))
        np.divide(p, p.sum(axis=1, keepdims=True), out=result[i])
    return result


def make_pool(
    networks: int, objects: int, classes: int, seed: int = 0
) -> tuple[NDArray[np.float32], NDArray[np.int64]]:
    """Make logits of networks that agree on easy objects and differ on hard ones.

    With 100 classes one network is right on 65 % of the objects, 16 on 72 %.
    """
    random = np.random.default_rng(seed)
    targets = random.integers(0, classes, objects)
    common = 2 * random.standard_normal((objects, classes), np.float32)
    common[np.arange(objects), targets] += 5 * random.gamma(2, 1, objects)
    logits = np.empty((networks, objects, classes), np.float32)
    for each in logits:
        each[:] = common + 1.5 * random.standard_normal(common.shape, np.float32)
    return logits, targets


def seconds(work: Callable[[], object], times: int) -> list[float]:
    """Time some work again and again."""
    taken = []
    for _ in range(times):
        start = time.perf_counter()
        work()
        taken.append(time.perf_counter() - start)
    return taken


def simplex(
    logits: NDArray[Any], targets: NDArray[np.int64], half: NDArray[np.bool_]
) -> float:
    """Calibrate one ensemble on one half as the paper's own code does.

    Nelder and Mead's simplex search over the temperature, each step a softmax of
    every member in float64; then the NLL of the other half.
    """
    from scipy.optimize import minimize  # noqa: PLC0415 - only here

    def nll(some: NDArray[np.bool_], temperature: float) -> float:
        tempered = logits[:, some].astype(np.float64) / temperature
        tempered -= tempered.max(axis=2, keepdims=True)
        p = np.exp(tempered)
        p /= p.sum(axis=2, keepdims=True)
        mean = p.mean(axis=0)
        chosen = mean[np.arange(len(mean)), targets[some]]
        return float(-np.log(chosen).mean())

    best = minimize(lambda t: nll(half, t[0]), [1.0], method="Nelder-Mead")
    return nll(~half, best.x[0])


def ratios(networks: int, objects: int, classes: int, times: int) -> None:
    """Print the ratios of one pool."""
    logits, targets = make_pool(networks, objects, classes)
    pool = ensize.Predictions.of(logits, targets)
    sizes = range(1, networks + 1)
    count = {
        "disjoint": sum(len(disjoint(networks, n)) for n in sizes),
        "all": sum(len(subsets(networks, n)) for n in sizes),
    }
    softmax(logits)
    # What is drawn, how it is calibrated, and the aim in multiples of A.
    aims = {("disjoint", "before"): 6, ("all", "before"): 12, ("disjoint", "after"): 20}
    rows = list(aims)
    taken: dict[tuple[str, str], list[float]] = {row: [] for row in rows}
    base: list[float] = []
    for _ in range(times):
        base += seconds(lambda: softmax(logits), 2)
        for draw, apply in rows:
            taken[draw, apply] += seconds(
                lambda d=draw, a=apply: ensize.score(pool, ensembles=d, apply=a), 1
            )
    A = min(base)
    print(
        f"{networks} networks × {objects:,} objects × {classes} classes, float32, in"
        f" memory. A = {A:.3f} s (best of {len(base)}; median"
        f" {statistics.median(base):.3f}). The whole curve n = 1…{networks}, every"
        f" score, cross-validated; n = {times} runs.\n"
    )
    print("| apply | draw | ensembles | best | median | aim |")
    print("|---|---|---|---|---|---|")
    for (draw, apply), aim in aims.items():
        t = taken[draw, apply]
        print(
            f"| {apply} | {draw} | {count[draw]} | {min(t) / A:.2f} A"
            f" | {statistics.median(t) / A:.2f} A | {aim} A |"
        )
    ours = min(taken["disjoint", "before"])
    against_simplex(logits, targets, count["disjoint"], ours)


def against_simplex(
    logits: NDArray[Any], targets: NDArray[np.int64], ensembles: int, ours: float
) -> None:
    """Time the paper's procedure on one half of ensembles of some sizes, and scale.

    Its cost is proportional to the number of members, of which every n has about
    as many as there are networks.
    """
    half = halvings(len(targets), seed=0, times=1)[0]
    parts = (1, 4, 16)
    members, taken = 0, 0.0
    for n in parts:
        taken += seconds(lambda n=n: simplex(logits[:n], targets, half), 1)[0]
        members += n
    sizes = range(1, len(logits) + 1)
    total = sum(n * (len(logits) // n) for n in sizes) * 10
    scaled = taken / members * total
    print(
        f"\nThe paper's procedure, timed on {len(parts)} of {ensembles * 10:,} halves"
        f" ({members} of {total:,} members) and scaled by members: {scaled:,.0f} s,"
        f" {scaled / ours:,.0f} times as long as disjoint before (aim: 1,000)."
    )


def large() -> None:
    """Score 50 networks of 50,000 × 1,000 in float16 files, 5 GB."""
    networks, objects, classes = 50, 50_000, 1000
    folder = Path(tempfile.mkdtemp(prefix="ensize-large-"))
    try:
        random = np.random.default_rng(0)
        targets = random.integers(0, classes, objects)
        np.save(folder / "targets.npy", targets)
        common = 2 * random.standard_normal((objects, classes), np.float32)
        common[np.arange(objects), targets] += 5 * random.gamma(2, 1, objects)
        for i in range(networks):
            noise = random.standard_normal(common.shape, np.float32)
            np.save(folder / f"{i:02}.npy", (common + 1.5 * noise).astype(np.float16))
        del common, noise
        print(
            f"\n{networks} networks × {objects:,} objects × {classes:,} classes in"
            " float16 files, one run.\n"
        )
        print(
            "| cache | reading and one softmax | the disjoint curve *before* | ratio"
            " | aim | anonymous memory | aim |"
        )
        print("|---|---|---|---|---|---|---|")
        for cache in ("cold", "warm"):
            if cache == "cold":
                forget(folder)
            reading = seconds(lambda: read_and_softmax(folder), 1)[0]
            if cache == "cold":
                forget(folder)
            done = subprocess.run(
                [sys.executable, __file__, "--score", str(folder)],
                check=True,
                capture_output=True,
                text=True,
            )
            taken, anonymous = map(float, done.stdout.split())
            print(
                f"| {cache} | {reading:.1f} s | {taken:.1f} s | {taken / reading:.2f}"
                f" | 3 | {anonymous / 1e9:.2f} GB | 1.5 GB |",
                flush=True,
            )
    finally:
        shutil.rmtree(folder)


def read_and_softmax(folder: Path) -> None:
    """Do the least that anybody has to do."""
    for path in sorted(folder.glob("[0-9]*.npy")):
        mapped = np.load(path, mmap_mode="r")
        for i in range(0, len(mapped), 1000):
            softmax(np.asarray(mapped[None, i : i + 1000], np.float32))


def forget(folder: Path) -> None:
    """Take the files out of the system's cache, once they are on the disk."""
    for path in folder.iterdir():
        with path.open("rb") as file:
            os.fsync(file.fileno())
            os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)


def score_folder(folder: Path) -> None:
    """Score the large pool, and print seconds and peak anonymous bytes."""
    start = time.perf_counter()
    paths = sorted(map(str, folder.glob("[0-9]*.npy")))
    pool = ensize.load(paths, targets=str(folder / "targets.npy"))
    peak = 0

    def watch(_what: str, _share: float) -> None:
        nonlocal peak
        lines = Path("/proc/self/status").read_text().splitlines()
        anonymous = next(line for line in lines if line.startswith("RssAnon"))
        peak = max(peak, 1024 * int(anonymous.split()[1]))

    ensize.score(pool, ensembles="disjoint", progress=watch)
    watch("", 1)
    print(time.perf_counter() - start, peak)


def main() -> None:
    """Print what was asked for."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--networks", type=int, default=64)
    parser.add_argument("--times", type=int, default=5)
    parser.add_argument("--large", action="store_true")
    parser.add_argument("--score", type=Path, help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if asked.score:
        score_folder(asked.score)
        return
    ratios(asked.networks, 10_000, 100, asked.times)
    if asked.large:
        large()
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    print(f"\nPeak memory of this process: {peak / 1e6:.2f} GB.")


if __name__ == "__main__":
    main()
