"""Tasks: one process that trains what a store lacks, one committee after another."""

from __future__ import annotations

import contextlib
import dataclasses
import itertools
import math
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from ensize.checks import InputError
from ensize.stores.files import publish
from ensize.stores.seals import sealed_arrays
from ensize.train.images import load_data
from ensize.train.loop import Interrupted, plan, train
from ensize.train.networks import multiply_adds, parameters
from ensize.train.plans import device_of, named
from ensize.train.studies.leases import Worker
from ensize.train.studies.runs import chosen, keep_chosen, lacking, record_failure
from ensize.train.tuning import forget, tune
from ensize.train.unfinished import checkpoint_of, checkpoints_in, nameable, remove

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from ensize.predictions import Progress
    from ensize.stores import Store
    from ensize.train.images import Data
    from ensize.train.loop import Recipe, Trained
    from ensize.train.studies.declarations import Study
    from ensize.train.studies.runs import Wanted
    from ensize.train.studies.stopping import Stop

# How often a process looks whether another one has ended its search over a grid.
_WAIT = 1.0
_FLOAT16 = float(np.finfo(np.float16).max)


@dataclass(frozen=True)
class Task:
    """What a process needs to know; what is left to do it finds out by itself.

    Parameters
    ----------
    study, store, runs
        The networks, and where they go.
    stop
        Tells when to come to an end.
    folder
        Where the dataset is, if it is not to be downloaded.
    device, precision
        As `train` takes them.
    workers
        How many processes share the work.
    retry
        Whether a network that fails is tried again with another seed.
    keep_weights
        Whether weights are kept.
    every
        Seconds between checkpoints.
    """

    study: Study
    store: Store
    runs: Wanted
    stop: Stop
    folder: Path | None = None
    device: str | None = None
    precision: str | None = None
    workers: int = 1
    retry: bool = True
    keep_weights: bool = False
    every: float = 120.0


@dataclass
class Outcome:
    """What a process did: how many networks it trained, and what should be said."""

    trained: int = 0
    given_up: int = 0
    warnings: list[str] = field(default_factory=list)


def work(
    task: Task,
    *,
    data: Data | None = None,
    progress: Progress | None = None,
    place: Callable[[Path], Any] | None = None,
) -> Outcome:
    """Train until there is nothing left to take, or until asked to stop.

    With a `place`, committees are trained there: it has `train` and `plan` as `loop`
    has them, names its `device`, and says what `warnings` there are.
    """
    if place is not None:
        return _work_at(place(task.stop.order), task, data)
    if task.workers > 1 and task.device == "cpu":
        torch.set_num_threads(max(1, torch.get_num_threads() // task.workers))
    data = data or load_data(task.study.dataset, folder=task.folder)
    return _worked(_Work(task, data, progress))


def _work_at(place: Any, task: Task, data: Data | None) -> Outcome:
    with contextlib.closing(place):
        data = data or load_data(task.study.dataset, folder=task.folder)
        outcome = _worked(_Work(task, data, None, place))
    outcome.warnings += place.warnings
    return outcome


def _worked(worker: _Work) -> Outcome:
    with contextlib.suppress(Interrupted):
        while not worker.task.stop() and worker.did_something():
            pass
    return worker.outcome


def facts(study: Study, data: Data, width: int, recipe: Recipe) -> dict[str, Any]:
    """Say what a store is told of all networks of a width."""
    of: dict[str, Any] = {"shape": data.shape, "classes": data.classes}
    values = dataclasses.asdict(recipe).items()
    said = ", ".join(f"{key} {value}" for key, value in values)
    return {
        "family": study.family,
        "width": width,
        "size": parameters(study.family, width, **of),
        "multiply_adds": multiply_adds(study.family, width, **of),
        "recipe": f"{study.name}: {data.name} {data.fingerprint[:12]}, {said}",
    }


class _Work:
    def __init__(
        self,
        task: Task,
        data: Data,
        progress: Progress | None,
        place: Any = None,
    ) -> None:
        self.task, self.data, self.outcome = task, data, Outcome()
        self.place = place
        self.trainer = place.train if place else train
        self.study, self.store = task.study, task.store
        self.tell = progress
        self.given_up: set[tuple[int, int]] = set()
        self.together: dict[int, int] = {}
        left = self._left()
        self.ahead = sum(self._cost(width) * len(left[width]) for width in left)
        self.done = 0.0

    def did_something(self) -> bool:
        """Train one committee; False if there is nothing left that could be taken."""
        with Worker(self.store.path / "unfinished") as worker:
            left = self._left()
            for width in self.task.runs:
                for seeds, path in self._checkpoints(width):
                    if self._take_all(worker, width, seeds, path, left.get(width, [])):
                        recipe = self.study.recipe_at(width, self._chosen(width))
                        self._train(width, recipe, seeds, path)
                        return True
            waiting = False
            for width, seeds in left.items():
                tuned = self._tuned(worker, width)
                if tuned is None:
                    waiting = True
                elif taken := self._take(worker, width, tuned, seeds):
                    path = checkpoint_of(self._folder(width), taken)
                    self._train(width, tuned, taken, path)
                    return True
        if waiting:
            time.sleep(_WAIT)
        return waiting

    def _left(self) -> dict[int, list[int]]:
        task = self.task
        left = lacking(task.study, task.store, task.runs, retry=task.retry)
        left = {
            width: [seed for seed in seeds if (width, seed) not in self.given_up]
            for width, seeds in left.items()
        }
        found = {width: seeds for width, seeds in left.items() if seeds}
        if task.workers == 1:
            return found
        # Where several work, what takes longest goes first, and nobody waits for it.
        return {width: found[width] for width in sorted(found, key=self._cost)[::-1]}

    def _folder(self, width: int) -> Path:
        return self.store.path / "unfinished" / self.study.pool(width)

    def _checkpoints(self, width: int) -> list[tuple[list[int], Path]]:
        return checkpoints_in(self._folder(width))

    def _take_all(
        self, worker: Worker, width: int, seeds: list[int], path: Path, left: list[int]
    ) -> bool:
        """Take an unfinished committee, if it holds something that is wanted."""
        pool = self.study.pool(width)
        lacked = lacking(self.study, self.store, {width: seeds}, retry=False)
        open_ones = lacked.get(width, [])
        if not open_ones:  # killed when only the checkpoint was left to be removed
            remove(path)
        if not set(open_ones) & set(left):
            return False
        # Whoever gets the first gets all, where several want to continue it.
        taken = worker.take(pool, open_ones[:1])
        taken += worker.take(pool, open_ones[1:]) if taken else []
        if taken == open_ones and path.exists():
            return True
        worker.release()
        return False

    def _take(
        self, worker: Worker, width: int, recipe: Recipe, seeds: Sequence[int]
    ) -> list[int]:
        """Take as many networks as are trained together, and one's share of them."""
        begun = {seed for each, _ in self._checkpoints(width) for seed in each}
        free = [seed for seed in seeds if seed not in begun]
        share = math.ceil(len(free) / self.task.workers)
        most = min(self._together(width, recipe), share) if free else 0
        pool, rest, taken = self.study.pool(width), iter(free), list[int]()
        while batch := list(itertools.islice(rest, most - len(taken))):
            taken += worker.take(pool, batch)
        # Another process may have finished some before they were taken.
        there = set(self.store.seeds(pool))
        return nameable(sorted(set(taken) - there))

    def _together(self, width: int, recipe: Recipe) -> int:
        if width not in self.together:
            network = self.data, self.study.family, width, recipe
            if self.place:
                planned = self.place.plan(
                    *network, stop=self.task.stop, **self._where()
                )
            else:
                planned = plan(*network, **self._where())
            self.together[width] = planned.together
        return self.together[width]

    def _chosen(self, width: int) -> dict[str, float] | None:
        grid = self.study.grid_at(width)
        if grid is None:
            return {}
        if len(settings := grid.settings()) == 1:
            return settings[0]
        return chosen(self.store, self.study.pool(width))

    def _tuned(self, worker: Worker, width: int) -> Recipe | None:
        """Say how a width is trained: tune it first; None while another tunes it."""
        values, grid = self._chosen(width), self.study.grid_at(width)
        pool = self.study.pool(width)
        folder = self.store.path / "unfinished" / f"{pool}.tuning"
        if values is None and grid is not None:
            if not worker.take(folder.name, [0]):
                return None
            values = self._chosen(width)  # another process may have ended just now
            if values is None:
                recipe = self.study.recipe_at(width)
                found = tune(
                    *(self.data, self.study.family, width, recipe, grid),
                    folder=folder,
                    together=self._together(width, recipe),
                    study=self.study.name,
                    trainer=self.place and self.trainer,
                    **self._how(self._telling(f"tuning {pool}")),
                )
                keep_chosen(self.store, pool, found)
                values = found["chosen"]
        if grid is not None:
            forget(folder)
        return self.study.recipe_at(width, values)

    def _train(
        self, width: int, recipe: Recipe, seeds: list[int], checkpoint: Path
    ) -> None:
        pool = self.study.pool(width)
        known = facts(self.study, self.data, width, recipe)
        # Refuses a pool of another recipe before anything is trained.
        self.store.record(pool, seed=seeds[0], **known)
        cost = self._cost(width) * len(seeds)
        try:
            trained = self.trainer(
                *(self.data, self.study.family, width, seeds, recipe),
                study=self.study.name,
                checkpoint=checkpoint,
                **self._how(self._telling("training", self.done, cost)),
            )
        except Interrupted:
            raise
        except (RuntimeError, MemoryError) as error:
            self.given_up |= {(width, seed) for seed in seeds}
            self.outcome.given_up += len(seeds)
            first = (str(error) or type(error).__name__).splitlines()[0]
            self.outcome.warnings.append(
                f"{len(seeds)} networks of {pool} could not be trained ({first}); the"
                " same command tries them again"
            )
            return
        for each in trained:
            self._keep(pool, each, known, len(seeds))
        remove(checkpoint)
        self.done += cost

    def _keep(
        self, pool: str, trained: Trained, known: dict[str, Any], together: int
    ) -> None:
        failure, logits = trained.failure, trained.logits
        if failure is None and not np.isfinite(logits).all():
            failure = "its logits are not finite"
        if failure is not None:
            record_failure(self.store, pool, trained.seed, failure)
            return
        if self.task.keep_weights and trained.seed not in self.store.seeds(pool):
            path = self.store.path / "weights" / pool / f"{trained.seed}.safetensors"
            path.unlink(missing_ok=True)  # of one who was killed before the network
            said = {"pool": pool, "seed": str(trained.seed), "recipe": known["recipe"]}
            publish(path, [sealed_arrays(trained.weights, said)])
        small = float(np.abs(logits).max()) < _FLOAT16
        extra = {
            "study": self.study.name,
            "seconds": f"{trained.seconds:.6g}",
            "prediction_seconds": f"{trained.prediction_seconds:.6g}",
            "together": str(together),
            "device": self._device(),
            "precision": self.task.precision or "float32",
            "torch": torch.__version__,
        }
        self.outcome.trained += self.store.add(
            *(pool, trained.seed, logits, self.data.y_test),
            dtype=self.study.keep if small else "float32",
            extra=extra,
            **known,
        )

    def _cost(self, width: int) -> float:
        """Say how much work a network is, in multiply-adds for each object."""
        data = self.data
        each = multiply_adds(
            self.study.family, width, shape=data.shape, classes=data.classes
        )
        return float(each * self.study.recipe_at(width).epochs)

    def _telling(
        self, what: str, done: float = 0.0, cost: float | None = None
    ) -> Progress | None:
        """Tell of a part of the work as a share of all of it."""
        if (tell := self.tell) is None:
            return None
        ahead = self.ahead if cost is not None else 1.0

        def told(_: str, share: float) -> None:
            tell(what, min(1.0, (done + share * (cost or 1.0)) / ahead))

        return told

    def _device(self) -> str:
        """Name what networks are trained on."""
        if self.place:
            return str(self.place.device)
        return named(device_of(self.task.device))

    def _where(self) -> dict[str, Any]:
        where = {"device": self.task.device, "precision": self.task.precision}
        return {key: value for key, value in where.items() if value is not None}

    def _how(self, progress: Progress | None) -> dict[str, Any]:
        how = {"stop": self.task.stop, "every": self.task.every, "progress": progress}
        return how | self._where()


def check_targets(store: Store, data: Data) -> None:
    """Refuse a store of other objects."""
    path = store.path / "targets.npy"
    if path.exists() and not np.array_equal(store.targets(), data.y_test):
        raise InputError(
            f"{path} is not of the test set of {data.name}; a store is about one set of"
            " objects: use another store"
        )
