"""Loop: seeds in, logits out.

All that is drawn at random is a function of the study, the width, the seed and the
epoch (`seeds`), so that training goes on from any step as if it had not been
interrupted, and a network is the same, up to rounding, whichever committee it sits in.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import torch

from ensize.train.batches import Batches
from ensize.train.committees import Dropout, Stack, Way, forward
from ensize.train.cores import at_work
from ensize.train.descent import Descent
from ensize.train.gradients import slopes
from ensize.train.networks import layers_of
from ensize.train.plans import (
    Plan,
    device_of,
    for_want_of_memory,
    measured_plan,
    passes,
    precisely,
)
from ensize.train.resumption import Checkpoint
from ensize.train.seeds import Seed, draw

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    import numpy as np
    from numpy.typing import NDArray

    from ensize.predictions import Progress
    from ensize.train.cores import Cores
    from ensize.train.images import Data
    from ensize.train.seeds import Chances

# Objects that a pass predicts at once, of all its networks.
_PREDICTED = 2048
# Seconds between two words on how far it is.
_TELL = 0.5


class Interrupted(Exception):  # noqa: N818 - it was asked for, and is no error
    """Training was asked to stop; what was done stands in the checkpoint."""


@dataclass(frozen=True)
class Recipe:
    """How a network is trained: stochastic gradient descent with momentum.

    Parameters
    ----------
    epochs, learning_rate
        How long, and the rate of the first half; `schedule` lowers it.
    weight_decay, dropout
        Regularization.
    batch, momentum
        Of the descent.
    augment
        Whether pictures are cropped and mirrored at random.
    """

    epochs: int
    learning_rate: float
    weight_decay: float
    dropout: float = 0.0
    batch: int = 128
    momentum: float = 0.9
    augment: bool = True


@dataclass(frozen=True, eq=False)
class Trained:
    """A network that went through all its epochs, or failed.

    Parameters
    ----------
    seed
        Which one.
    logits
        For the objects of the test set.
    weights
        By the names of the plain PyTorch module.
    seconds, prediction_seconds
        Its share of the time that its committee took to train and to predict.
    failure
        Why it is of no use, or None.
    """

    seed: int
    logits: NDArray[np.float32]
    weights: dict[str, NDArray[np.float32]]
    seconds: float
    prediction_seconds: float
    failure: str | None = None


def schedule(done: float) -> float:
    """Return the paper's factor of the learning rate, by the share of epochs done.

    >>> [schedule(done) for done in (0, 0.5, 0.7, 0.9, 0.99)]
    [1.0, 1.0, 0.505, 0.01, 0.01]
    """
    fall = min(max((done - 0.5) / 0.4, 0.0), 1.0)
    return round(1 - 0.99 * fall, 12)


def plan(
    data: Data,
    family: str,
    width: int,
    recipe: Recipe,
    *,
    device: str | None = None,
    precision: str = "float32",
) -> Plan:
    """Choose how many networks to train at once, and how, by a short measurement."""
    layers = layers_of(family, width, shape=data.shape, classes=data.classes)
    place, cores = device_of(device), torch.get_num_threads()
    return measured_plan(layers, data.shape, recipe.batch, place, precision, cores)


def train(
    data: Data,
    family: str,
    width: int,
    seeds: Sequence[int],
    recipe: Recipe | Sequence[Recipe],
    *,
    study: str,
    device: str | None = None,
    precision: str = "float32",
    way: Way | None = None,
    checkpoint: Path | None = None,
    every: float = 120.0,
    stop: Callable[[], bool] | None = None,
    progress: Progress | None = None,
) -> list[Trained]:
    """Train networks of one width together, and let them predict the test set.

    Parameters
    ----------
    data
        What to train and to test on.
    family, width
        Of the networks.
    seeds
        One for each network.
    recipe
        Of all, or one for each, which may differ in rates, decay and dropout.
    study
        With the width and the seed it determines a network.
    device, precision, way
        On what, and how; the quickest of some ways if not given.
    checkpoint, every
        A file from which training goes on, written every so many seconds.
    stop
        Asked before each step; if it says so, `Interrupted` is raised.
    progress
        Told which share is done.
    """
    recipes = [recipe] * len(seeds) if isinstance(recipe, Recipe) else list(recipe)
    if way is None:
        first = recipes[0]
        way = plan(data, family, width, first, device=device, precision=precision).way
    with precisely(precision), at_work(device_of(device), way) as cores:
        committee = _Committee(
            data, family, width, [Seed(study, width, seed) for seed in seeds], recipes
        )
        committee.begin(device_of(device), way, cores)
        kept = None
        if checkpoint is not None:
            kept = Checkpoint(checkpoint, committee.identity(), every)
            committee.go_on(kept)
        committee.learn(kept, stop, progress)
        return committee.finish()


class _Committee:
    """Networks on their way through the epochs."""

    def __init__(
        self,
        data: Data,
        family: str,
        width: int,
        seeds: Sequence[Seed],
        recipes: Sequence[Recipe],
    ) -> None:
        self.data, self.family, self.width = data, family, width
        self.seeds, self.recipes, self.recipe = seeds, recipes, recipes[0]
        self.layers = layers_of(family, width, shape=data.shape, classes=data.classes)
        self.epoch = self.step = 0
        self.seconds = 0.0
        self.failures: dict[int, str] = {}

    def identity(self) -> str:
        """Say what must be the same for training to go on."""
        said = (self.data.fingerprint, self.family, self.seeds, self.recipes)
        return repr(said)

    def begin(self, device: torch.device, way: Way, cores: Cores) -> None:
        """Draw the weights, and bring all to the device."""
        self.device, self.way, self.cores = device, way, cores
        self.batches = Batches(self.data, self.family, device)
        self.stack = Stack(self.layers, len(self.seeds), device)
        for i, seed in enumerate(self.seeds):
            for name, drawn in seed.weights(self.layers).items():
                self.stack.named[name][i] = torch.from_numpy(drawn)
        self.descent = Descent(
            self.stack,
            [each.learning_rate for each in self.recipes],
            [each.weight_decay for each in self.recipes],
            self.recipe.momentum,
        )
        rates = [each.dropout for each in self.recipes]
        self.dropout = torch.tensor(rates, device=device) if any(rates) else None

    def go_on(self, kept: Checkpoint) -> None:
        """Take up what a checkpoint holds, if it is of these networks."""
        state = self._state()
        found = kept.read({name: tuple(each.shape) for name, each in state.items()})
        if found is None:
            return
        arrays, said = found
        for name, tensor in state.items():
            tensor.copy_(torch.from_numpy(arrays[name]))
        self.epoch, self.step = said["epoch"], said["step"]
        self.seconds, self.failures = said["seconds"], said["failures"]

    def _state(self) -> dict[str, torch.Tensor]:
        stack = self.stack
        return {
            "values": stack.values,
            "velocity": stack.velocity,
            **stack.statistics,
        }

    def learn(
        self,
        kept: Checkpoint | None,
        stop: Callable[[], bool] | None,
        progress: Progress | None,
    ) -> None:
        """Go through the epochs that are left."""
        objects, size = len(self.data.y_train), self.recipe.batch
        steps = -(-objects // size)
        before, began = self.seconds, time.perf_counter()
        told = began
        networks = len(self.seeds)
        while self.epoch < self.recipe.epochs and len(self.failures) < networks:
            keys, orders, windows = self._draw()
            while self.step < steps:
                self.seconds = before + time.perf_counter() - began
                stopping = stop is not None and stop()
                if kept is not None and (stopping or kept.due()):
                    self._keep(kept)
                if stopping:
                    raise Interrupted
                some = slice(self.step * size, (self.step + 1) * size)
                cut = None if windows is None else windows[:, some]
                self._step(orders[:, some], cut, keys)
                self.step += 1
                now = time.perf_counter()
                if progress is not None and now - told > _TELL:
                    told = now
                    done = self.epoch + self.step / steps
                    progress("training", done / self.recipe.epochs)
            self._judge()
            self.epoch, self.step = self.epoch + 1, 0
        self.seconds = before + time.perf_counter() - began
        # Whoever is killed while networks go into the store trains none of them again.
        if kept is not None and kept.path.exists():
            self._keep(kept)

    def _keep(self, kept: Checkpoint) -> None:
        arrays = {name: each.cpu().numpy() for name, each in self._state().items()}
        said = {"epoch": self.epoch, "step": self.step, "seconds": self.seconds}
        kept.write(arrays, {**said, "failures": self.failures})

    def _draw(self) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor | None]:
        """Draw what this epoch needs: keys, orders and crops of all networks."""
        objects = len(self.data.y_train)
        crops = self.recipe.augment and self.data.pictures

        def part(some: slice) -> Chances:
            return draw(self.seeds[some], self.epoch, objects, crops=crops)

        return self.batches.epoch(self.cores.map(part, self._passes()))

    def _step(
        self, which: torch.Tensor, crops: torch.Tensor | None, keys: torch.Tensor
    ) -> None:
        """Let every network learn from its batch."""
        dropout = None
        if self.dropout is not None:
            dropout = Dropout(self.dropout, keys + 0x85EBCA6B * (self.step + 1))
        factor = schedule(self.epoch / self.recipe.epochs)

        def go(some: slice) -> None:
            x = self.batches.take(which[some], None if crops is None else crops[some])
            own = None if dropout is None else dropout.take(some)
            weights = self.stack.take(some)
            y = self.batches.classes(which[some])
            found = slopes(self.layers, weights, x, y, self.way, own)
            self.descent.step(some, found, factor)

        self._in_passes(go)

    def _in_passes(self, work: Callable[[slice], None]) -> None:
        """Work on some networks after others; where memory does not do, on fewer."""

        def short(some: slice) -> bool:
            try:
                work(some)
            except (RuntimeError, MemoryError) as error:
                if not for_want_of_memory(error) or self.way.networks == 1:
                    raise
                return True
            return False

        cut = self._passes()
        while cut:
            found = self.cores.map(short, cut)
            left = [each for each, want in zip(cut, found, strict=True) if want]
            if left:
                most = max(each.stop - each.start for each in left)
                self.way = replace(self.way, networks=max(1, most // 2))
                if self.device.type == "cuda":
                    torch.cuda.empty_cache()
            cut = [some for each in left for some in self._passes(each)]

    def _passes(self, some: slice | None = None) -> list[slice]:
        some = slice(0, len(self.seeds)) if some is None else some
        return passes(some, self.way, self.cores.side_by_side)

    def _judge(self) -> None:
        """Note which have diverged: their weights are not finite either."""
        each = self.stack.learned.values()
        sound = torch.stack([weight.isfinite().flatten(1).all(1) for weight in each])
        for i, fine in enumerate(sound.all(0).tolist()):
            if not fine and i not in self.failures:
                why = f"its loss is not finite in epoch {self.epoch + 1}"
                self.failures[i] = why

    def finish(self) -> list[Trained]:
        """Predict the test set, and hand the networks over."""
        began = time.perf_counter()
        networks = len(self.seeds)
        size = max(1, _PREDICTED // min(self.way.networks, networks))
        logits = torch.empty((networks, len(self.data.y_test), self.data.classes))
        start = 0
        for x in self.batches.test(size):
            self._predict(x, logits[:, start : start + len(x)])
            start += len(x)
        spent = (time.perf_counter() - began) / networks
        found = []
        for i, seed in enumerate(self.seeds):
            weights = {n: w[i].cpu().numpy() for n, w in self.stack.named.items()}
            found.append(
                Trained(
                    *(seed.number, logits[i].numpy(), weights),
                    *(self.seconds / networks, spent, self.failures.get(i)),
                )
            )
        return found

    def _predict(self, x: torch.Tensor, out: torch.Tensor) -> None:
        def go(some: slice) -> None:
            weights = {name: each[some] for name, each in self.stack.named.items()}
            same = x.expand(some.stop - some.start, *x.shape)
            with torch.inference_mode():
                out[some] = forward(self.layers, weights, same, self.way).cpu()

        self._in_passes(go)
