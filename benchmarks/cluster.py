"""Plan past this machine: the paper's whole experiment on up to 512 GPUs.

Run `python benchmarks/cluster.py`; `--quick` takes seconds and measures little. What is
printed is Markdown for docs/cluster.md, in two parts.

Measured here: what the driver does for a committee (leases, the way to a node and back)
and for a network (writing it), 100,000 trivial runs through a Ray cluster on this
machine, in committees of 100, and a store of 20,000 small networks opened, listed,
verified and scored. A trivial run answers at once, so that the driver's time is all
that there is.

Simulated: networks by the paper's rule, hours as the paper states them, event by event.
A GPU that is free asks the driver, who does one thing at a time and takes as long as
was measured; then it trains one network, and asks again.
"""

from __future__ import annotations

import argparse
import heapq
import itertools
import math
import platform
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

import ensize
from ensize.train import clusters
from ensize.train.benches import Bench
from ensize.train.executors import EXECUTORS
from ensize.train.loop import Plan, Trained
from ensize.train.networks import parameters
from ensize.train.studies import Study, train_study
from ensize.train.studies.leases import Worker
from ensize.train.studies.presets import declared
from ensize.train.studies.runs import lacking, wanted

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

CLASSES = {"cifar10": 10, "cifar100": 100}
# Hours of a network of the smallest, the standard and the largest size: the paper's.
HOURS = {"vgg16": (1 / 3, 1.0, 4.5), "wideresnet28": (5 / 6, 5.5, 32.0)}
STANDARD = {"vgg16": 64, "wideresnet28": 160}
GPUS = (1, 8, 64, 512)
TEST_OBJECTS = 10_000
COMMITTEE = 100
WIDTHS = list(range(1, 21))
HOUR = 3600.0


@dataclass(frozen=True)
class Costs:
    """What the driver's time goes into, in seconds."""

    committee: float  # to take it and to send it away, in a store that is empty
    listed: float  # more, for each network that the store has
    network: float  # to write it, with its megabytes
    news: float  # of its processor, to ask a place how it goes


@dataclass(frozen=True)
class Job:
    """One network of the experiment."""

    study: int
    seconds: float
    stored: float
    checkpoint: float


class Trivial(Bench):
    """A bench that has trained a committee as soon as it is asked to."""

    def plan(self, *_: Any, **__: Any) -> None:
        """Choose committees of a hundred."""
        self._begin(lambda: Plan(together=COMMITTEE, way=None, seconds=0.0, bytes=0))

    def train(self, data: Any, _: Any, __: Any, /, *args: Any, **___: Any) -> None:
        """Answer with logits that were drawn."""
        seeds, shape = args[2], (len(data.y_test), data.classes)

        def drawn() -> list[Trained]:
            found = []
            for seed in seeds:
                logits = np.random.default_rng(seed).normal(size=shape)
                logits[np.arange(shape[0]), data.y_test] += 1.5
                found.append(Trained(seed, logits.astype("f4"), {}, 1e-6, 1e-6))
            return found

        self._begin(drawn)


def timed(do: Callable[[], Any]) -> tuple[float, Any]:
    """Do something, and say how long it took."""
    began = time.perf_counter()
    done = do()
    return time.perf_counter() - began, done


def trivial_study(folder: Path, networks: int) -> Study:
    """Declare networks of 50 objects of 4 classes, in twenty pools."""
    random = np.random.default_rng(0)
    x, y = random.normal(size=(50, 3)).astype("f4"), np.arange(50) % 4
    np.savez(folder / "small.npz", x_train=x, y_train=y, x_test=x, y_test=y)
    recipe = {"epochs": 1, "learning_rate": 0.1, "weight_decay": 0.0}
    each = max(1, networks // len(WIDTHS))
    few = {"name": "small", "dataset": str(folder / "small.npz"), "family": "mlp"}
    return Study.of({**few, "widths": WIDTHS, "networks": each, "recipe": recipe})


def measure_writing(folder: Path, count: int) -> float:
    """Time how the predictions of a network on CIFAR-100 are written."""
    store = ensize.Store(folder / "large")
    random = np.random.default_rng(0)
    targets = random.integers(0, 100, TEST_OBJECTS)
    logits = random.normal(size=(TEST_OBJECTS, 100)).astype("f4")
    known = {"family": "vgg16", "width": 64, "size": 15_000_000, "dtype": "float16"}
    spent, _ = timed(
        lambda: [store.add("a", i, logits, targets, **known) for i in range(count)]
    )
    return spent / count


def measure_leases(
    study: Study, store: ensize.Store, times: int
) -> tuple[float, float]:
    """Time how a committee is taken and given back, and how a store is looked at."""

    def take() -> None:
        for i in range(times):
            with Worker(store.path / "unfinished") as worker:
                worker.take("mlp-w2", [i])

    runs = wanted(study)
    looked = min(timed(lambda: lacking(study, store, runs))[0] for _ in range(3))
    return timed(take)[0] / times, looked


def measure(runs: int, networks: int) -> Costs:
    """Measure the driver's limits, and print them."""
    clusters.Bench = Trivial  # type: ignore[misc]
    cluster = EXECUTORS["ray"]("cpu")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        sent, busy = send(cluster, folder, runs)
        study = trivial_study(folder, networks)
        spent, _ = timed(lambda: train_study(study, folder / "store", executor=cluster))
        store = ensize.Store(folder / "store")
        taken, looked = measure_leases(study, store, 200)
        written = measure_writing(folder, 50)
        rows = [
            (f"{runs:,} trivial runs in committees of {COMMITTEE}", sent),
            (f"{networks:,} such runs, with leases and a store", spent),
            *measure_store(folder / "store"),
        ]
        bytes_in = sum(p.stat().st_size for p in store.path.rglob("*.safetensors"))
    cluster.close()
    committees = runs / COMMITTEE
    print(
        f"\nOn {platform.machine()} with {len(cluster.devices)} places, Python"
        f" {platform.python_version()}; the {networks:,} networks have 50 objects of 4"
        f" classes, in {len(WIDTHS)} pools, and {bytes_in / 2**20:.0f} MB in all.\n"
    )
    print("| what | seconds | a second |\n|---|---:|---:|")
    for what, seconds in rows:
        count = runs if "trivial" in what else networks
        print(f"| {what} | {seconds:.2f} | {count / seconds:,.0f} |")
    print(
        f"\nFor a committee: {1000 * sent / committees:.1f} ms to a node and back,"
        f" {1000 * taken:.1f} ms for its leases, and {1e6 * looked / networks:.1f} µs"
        " for each network that the store has already. For a network of 10,000 objects"
        f" and 100 classes: {1000 * written:.1f} ms to write it."
    )
    # It is asked twice: whether it has begun, and what there is.
    news = busy / committees / 2
    return Costs(sent / committees + taken, looked / networks, written, news)


def send(cluster: Any, folder: Path, runs: int) -> tuple[float, float]:
    """Time trivial runs, in committees, from the driver to places and back.

    Also how long its processor is busy with that.
    """
    order = folder / "order"
    order.touch()
    data = ensize.train.images.load_data(trivial_study(folder, 8).dataset)
    seeds = [range(i, i + COMMITTEE) for i in range(0, runs, COMMITTEE)]
    parts = [seeds[i :: len(cluster.devices)] for i in range(len(cluster.devices))]

    places = [cluster.place(order) for _ in cluster.devices]

    def work(task: tuple[Any, Iterable[Sequence[int]]]) -> int:
        place, part = task
        done = 0
        for each in part:
            named = (data, "mlp", 2, each, None)
            where = {"checkpoint": folder / "none", "stop": lambda: False}
            done += len(place.train(*named, **where, study="small", every=1.0))
        return done

    first = [part[:1] for part in parts]  # with which Ray's processes begin
    list(cluster.map(work, zip(places, first, strict=True)))
    before = time.process_time()
    spent, done = timed(
        lambda: list(cluster.map(work, zip(places, parts, strict=True)))
    )
    busy = time.process_time() - before
    for place in places:
        place.close()
    if sum(done) != runs:
        raise RuntimeError(done)
    return spent, busy


def measure_store(path: Path) -> list[tuple[str, float]]:
    """Time what is done with a store of many networks."""
    opened, store = timed(lambda: ensize.Store(path))
    listed, pools = timed(store.pools)
    checked, damaged = timed(store.verify)
    read, found = timed(lambda: [store.read(pool.name) for pool in pools])
    scored, _ = timed(lambda: [ensize.score(each, n=[1, 2, 4, 8]) for each in found])
    if damaged:
        raise RuntimeError(damaged)
    return [
        ("the store opened and listed", opened + listed),
        ("verified, every byte", checked),
        ("its networks' headers read", read),
        ("scored at n = 1, 2, 4 and 8", scored),
    ]


def experiment() -> list[Job]:
    """List the paper's networks, study by study, as ensize takes them."""
    jobs = []
    for number, (dataset, family) in enumerate(
        (dataset, family) for family in HOURS for dataset in CLASSES
    ):
        said = declared(f"paper-{dataset}-{family}")
        classes, widths = CLASSES[dataset], said["widths"]
        kind: dict[str, Any] = {"shape": (3, 32, 32), "classes": classes}
        sizes = [parameters(family, width, **kind) for width in widths]
        known = [sizes[0], parameters(family, STANDARD[family], **kind), sizes[-1]]
        for size, count in zip(sizes, said["networks"], strict=True):
            log = np.interp(np.log(size), np.log(known), np.log(HOURS[family]))
            seconds = HOUR * math.exp(log)
            stored = TEST_OBJECTS * classes * 2
            jobs += [Job(number, seconds, stored, 8.0 * size)] * count
    return jobs


@dataclass(frozen=True)
class Run:
    """What came of a simulation, in seconds."""

    makespan: float
    busy: float
    waited: float  # GPUs for the driver
    driver: float


def simulate(jobs: Sequence[Job], gpus: int, costs: Costs) -> Run:
    """Let GPUs take jobs in this order, each when it is free."""
    free = [0.0] * gpus
    driver = waited = spent = 0.0
    for written, job in enumerate(jobs):
        asked = heapq.heappop(free)
        took = costs.committee + costs.listed * written + costs.network
        driver = max(asked, driver) + took
        spent += took
        waited += driver - asked
        heapq.heappush(free, driver + job.seconds)
    return Run(max(free), sum(job.seconds for job in jobs), waited, spent)


def one_after_another(jobs: Sequence[Job], gpus: int, costs: Costs) -> Run:
    """Begin each study when the one before it has ended."""
    runs = [
        simulate([job for job in jobs if job.study == number], gpus, costs)
        for number in sorted({job.study for job in jobs})
    ]
    sums = (
        sum(getattr(run, key) for run in runs)
        for key in ("makespan", "busy", "waited", "driver")
    )
    return Run(*sums)


def in_turns(jobs: Sequence[Job]) -> list[Job]:
    """Take jobs of each study in turn, as drivers who share a cluster do."""
    studies = sorted({job.study for job in jobs})
    queues = [[job for job in jobs if job.study == number] for number in studies]
    rows = itertools.zip_longest(*queues)
    return [job for row in rows for job in row if job is not None]


def say_experiment(jobs: Sequence[Job]) -> None:
    """Say how large the experiment is."""
    days = sum(job.seconds for job in jobs) / HOUR / 24
    kept = sum(job.stored for job in jobs)
    sent = {
        every: sum(job.checkpoint * (job.seconds // (60 * every)) for job in jobs)
        for every in (2, 30)
    }
    most = max(job.checkpoint for job in jobs)
    print(
        f"\n{len(jobs):,} networks, {days:,.0f} GPU days; {kept / 1e9:.1f} GB of logits"
        f" in the stores. Checkpoints of up to {most / 1e9:.1f} GB, each in the place"
        f" of the last: {sent[2] / 1e12:,.1f} TB are written in all where that is every"
        f" 2 minutes, {sent[30] / 1e12:,.1f} TB every 30.\n"
    )


def print_simulation(costs: Costs) -> None:
    """Print how long the experiment takes, and what the GPUs wait for."""
    jobs = experiment()
    say_experiment(jobs)
    widest = sorted(jobs, key=lambda job: -job.seconds)
    ways: dict[str, Callable[[int], Run]] = {
        "one study after another, narrowest first": lambda gpus: one_after_another(
            jobs, gpus, costs
        ),
        "one study after another, widest first": lambda gpus: one_after_another(
            widest, gpus, costs
        ),
        "four studies at once, widest first": lambda gpus: simulate(
            in_turns(widest), gpus, costs
        ),
    }
    print("| GPUs | order | days | at best | idle | GPUs wait for the driver |")
    print("|---:|---|---:|---:|---:|---:|")
    for gpus in GPUS:
        least = max(jobs, key=lambda job: job.seconds).seconds
        least = max(least, sum(job.seconds for job in jobs) / gpus)
        for name, way in ways.items():
            run = way(gpus)
            idle = 1 - run.busy / (gpus * run.makespan)
            waited = run.waited / (gpus * run.makespan)
            print(
                f"| {gpus} | {name} | {run.makespan / HOUR / 24:,.1f} |"
                f" {least / HOUR / 24:,.1f} | {idle:.1%} | {waited:.2%} |"
            )
    print_limits(jobs, costs)


def print_limits(jobs: Sequence[Job], costs: Costs) -> None:
    """Print where more GPUs no longer help."""
    busy = sum(job.seconds for job in jobs)
    longest = max(job.seconds for job in jobs)
    mean = busy / len(jobs)
    driver = costs.committee + costs.network + costs.listed * len(jobs)
    print(
        f"\nThe longest network takes {longest / HOUR:.0f} h, and all together"
        f" {busy / longest:,.0f} times as long: beyond so many GPUs nothing gets"
        f" quicker, in whatever order. The driver is busy for {1000 * driver:.0f} ms"
        " with each network when the store is full; with networks of"
        f" {mean / HOUR:.1f} h it would be what everyone waits for from"
        f" {mean / driver:,.0f} GPUs on. Before that come news: every second from each"
        f" place, and {1000 * costs.news:.2f} ms of its processor. Those of"
        f" {1 / costs.news:,.0f} places fill it."
    )


def main() -> None:
    """Measure and simulate."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="Measure little.")
    quick = parser.parse_args().quick
    costs = measure(*((1_000, 200) if quick else (100_000, 20_000)))
    print_simulation(costs)


if __name__ == "__main__":
    main()
