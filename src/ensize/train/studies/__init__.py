"""Studies: from a file that says which networks there should be to a store of them.

>>> import tempfile
>>> few = {"name": "few", "dataset": "digits", "family": "mlp"}
>>> recipe = {"epochs": 2, "learning_rate": 0.1, "weight_decay": 0.0}
>>> study = Study.of({**few, "widths": [4, 8], "networks": 3, "recipe": recipe})
>>> train_study(study, tempfile.mkdtemp()).done
6
"""

from __future__ import annotations

import contextlib
import functools
import threading
import time
from concurrent.futures import BrokenExecutor
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ensize.checks import InputError, one_of, positive, whole
from ensize.stores import Store, reported
from ensize.train.clusters import Cluster, Lost
from ensize.train.executors import Here, devices_of, executor_of
from ensize.train.images import load_data
from ensize.train.plans import PRECISIONS, device_of
from ensize.train.studies.declarations import Study
from ensize.train.studies.estimates import Cost, costs
from ensize.train.studies.leases import Worker, clear
from ensize.train.studies.presets import PRESETS
from ensize.train.studies.runs import (
    Failure,
    Run,
    Wanted,
    begin,
    lacking,
    left_out,
    missing,
    wanted,
)
from ensize.train.studies.stopping import Stop, heeding_signals
from ensize.train.studies.tasks import Task, check_targets, work

if TYPE_CHECKING:
    import os
    from collections.abc import Iterator, Mapping, Sequence

    from ensize.predictions import Progress

__all__ = [
    "PRESETS",
    "Cost",
    "Failure",
    "Result",
    "Run",
    "Study",
    "costs",
    "missing",
    "study_of",
    "train_networks",
    "train_study",
]

_KILLED = (
    "a process of the study was ended from outside, perhaps for want of memory; the"
    " same command goes on with its networks"
)
_ELSEWHERE = (
    "{} networks are being trained by other processes; this one has no more to do"
)
_WATCH = 2.0  # seconds


@dataclass(frozen=True)
class Result:
    """What became of the networks that were asked for.

    Attributes
    ----------
    runs, done, failed
        How many were asked for; are in the store now; are given up.
    trained
        How many of them this process, and those that it began, have trained.
    given_up
        How many could not be trained this time, for want of memory or the like; the
        same command tries them again.
    seconds
        How long it took.
    failures
        The networks that are given up, and why.
    stopped
        What brought it to an end before all was done: a signal's number, the time, or
        nothing.
    warnings
        What else should be known.
    """

    runs: int
    done: int
    failed: int
    trained: int
    given_up: int
    seconds: float
    failures: tuple[Failure, ...]
    stopped: int | str | None
    warnings: tuple[str, ...]


def train_study(
    study: Study,
    store_path: str | os.PathLike[str],
    *,
    data: str | os.PathLike[str] | None = None,
    executor: Any = "here",
    part: str | tuple[int, int] | None = None,
    keep_weights: bool = False,
    minutes: float | None = None,
    device: str | None = None,
    precision: str | None = None,
    every: float = 120.0,
    retry: bool = True,
    progress: Progress | None = None,
) -> Result:
    """Train the networks that a store lacks of a study.

    Parameters
    ----------
    study, store_path
        The networks, and the folder where they go.
    data
        The folder of the dataset, if it is not to be downloaded.
    executor
        "here", "processes", or an object with a map.
    part
        "K/N": only every N-th network, from the K-th on.
    keep_weights
        Keep weights too.
    minutes
        Stop after so many, in good order.
    device, precision
        As `train` takes them.
    every
        Seconds between checkpoints.
    retry
        Whether a network that diverges is replaced, once, by one of a new seed.
    progress
        Told what is being done and which share of it is done.
    """
    runs = wanted(study, part)
    return _train(
        *(study, Store(store_path), runs, data, executor, minutes, progress),
        device=device,
        precision=precision,
        keep_weights=keep_weights,
        retry=retry,
        every=positive("every", every),
    )


def train_networks(
    study: Study,
    store_path: str | os.PathLike[str],
    width: int,
    seeds: Sequence[int],
    *,
    data: str | os.PathLike[str] | None = None,
    executor: Any = "here",
    minutes: float | None = None,
    progress: Progress | None = None,
    **how: Any,
) -> Result:
    """Train exactly these networks, of any width, as the study trains its own.

    What a store has of them is not trained again, and what fails is not replaced.
    `how` is what `train_study` takes besides.
    """
    runs = {whole("width", width, 1): [whole("seed", seed) for seed in seeds]}
    return _train(
        *(study, Store(store_path), runs, data, executor, minutes, progress),
        retry=False,
        **how,
    )


def study_of(text: str | os.PathLike[str]) -> Study:
    """Read a study file, or take one of the paper's studies by its name."""
    path = Path(text)
    with reported(path):
        file = path.exists() or path.suffix or len(path.parts) > 1
    if file:
        return Study.read(path)
    try:
        return Study.preset(str(text))
    except InputError as error:
        raise InputError(f"{error}; or give a study file, NAME.toml") from error


def _train(
    study: Study,
    store: Store,
    runs: Wanted,
    data: Any,
    executor: Any,
    minutes: float | None,
    progress: Progress | None,
    *,
    device: str | None = None,
    retry: bool = True,
    **how: Any,
) -> Result:
    started = time.time()
    end = None if minutes is None else started + 60 * positive("minutes", minutes)
    executor = executor_of(executor, device)
    if isinstance(executor, Here):
        device_of(device)
    one_of("precision", how.get("precision") or PRECISIONS[0], PRECISIONS)
    folder = None if data is None else Path(data)
    loaded = load_data(study.dataset, folder=folder)
    check_targets(store, loaded)
    begin(study, store)
    warnings: dict[str, None] = {}
    errors: list[BaseException] = []
    trained = given_up = 0
    with Worker(store.path / "unfinished") as order:
        stop = Stop(order.path, end)
        devices = devices_of(executor, device)
        task = Task(
            *(study, store, runs, stop, folder),
            **{"workers": len(devices), "retry": retry, **how},
        )
        function: Any = work
        if isinstance(executor, Here):
            function = functools.partial(work, data=loaded, progress=progress)
            progress = None
        elif isinstance(executor, Cluster):
            function = functools.partial(work, data=loaded, place=executor.place)
        lacks = functools.partial(lacking, study, store, runs, retry=retry)
        under_way = getattr(executor, "under_way", {})
        with heeding_signals(stop) as heard, _watched(lacks, under_way, progress):
            tasks = [replace(task, device=each) for each in devices]
            for outcome in executor.map(function, tasks):
                if isinstance(outcome, Lost):
                    warnings[f"{outcome}; the same command tries again"] = None
                    given_up += 1
                elif isinstance(outcome, BrokenExecutor):
                    warnings[_KILLED] = None
                elif isinstance(outcome, BaseException):
                    errors.append(outcome)
                    stop.now()
                else:
                    trained += outcome.trained
                    given_up += outcome.given_up
                    warnings |= dict.fromkeys(outcome.warnings)
    unfinished = store.path / "unfinished"
    for pool in map(study.pool, runs):  # of networks that killed processes had held
        clear(unfinished / pool, store.seeds(pool))
    with contextlib.suppress(OSError):  # not empty
        unfinished.rmdir()
    if errors:
        raise errors[0]
    left = sum(map(len, lacks().values()))
    failures = left_out(study, store, runs, retry=retry)
    stopped = heard[0] if heard else "time" if left and stop.late() else None
    asked = sum(map(len, runs.values()))
    if left and stopped is None and not given_up and not warnings:
        warnings[_ELSEWHERE.format(left)] = None
    return Result(
        asked,
        asked - left - len(failures),
        len(failures),
        trained,
        given_up,
        time.time() - started,
        tuple(failures),
        stopped,
        (*warnings, *map(_sentence, failures)),
    )


@contextlib.contextmanager
def _watched(
    lacks: Any, under_way: Mapping[Any, float], progress: Progress | None
) -> Iterator[None]:
    """Tell of networks as they come into the store, whoever trains them.

    Of those that are under way, where that is known, their share counts.
    """
    if progress is None:
        yield
        return
    over = threading.Event()

    def count() -> float:
        return sum(map(len, lacks().values())) - sum([*under_way.values()])

    def watch(ahead: float) -> None:
        while not over.wait(_WATCH):
            with contextlib.suppress(InputError):  # work will meet it, and say so
                progress("training", 1 - count() / ahead)

    thread = threading.Thread(target=watch, args=(max(count(), 1),), daemon=True)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()


def _sentence(left_out: Failure) -> str:
    return (
        f"{left_out.pool}/{left_out.seed} is left out: {left_out.reason}; the ensembles"
        " of its pool are drawn from the others"
    )
