"""A trainer in place of the real one: quick, and it fails when it is told to.

A network's logits are drawn from a hash of the study, the width, the seed and the
recipe, epoch by epoch, so that what is trained in two sittings can be compared with
what is trained in one.
"""

import hashlib
import json
import time
from dataclasses import dataclass, field

import numpy as np

from ensize.stores.files import publish
from ensize.train.images import Data
from ensize.train.loop import Interrupted, Plan, Trained

OBJECTS, CLASSES = 40, 3


def few_objects(objects=OBJECTS):
    """Make a data set of a few points."""
    random = np.random.default_rng(0)
    y = random.integers(0, CLASSES, 2 * objects)
    x = (random.normal(size=(2 * objects, 4)) + y[:, None]).astype(np.float32)
    half = slice(objects), slice(objects, None)
    return Data("few", x[half[0]], y[half[0]], x[half[1]], y[half[1]], CLASSES, (4,))


@dataclass
class Trainer:
    """Stands in for `train` and `plan`, and remembers what it was asked for."""

    together: int = 4
    seconds: float = 0.0  # that an epoch takes
    diverges: object = None  # (width, seed) -> whether it does
    raises: object = None  # (width, seeds) -> an exception, or nothing
    best_rate: float = 0.05  # with which a network is the best
    asked: list = field(default_factory=list)  # of (width, seeds, epochs begun at)

    def plan(self, data, family, width, recipe, **where):
        return Plan(together=self.together, way="one", seconds=0.001, bytes=1_000)

    def train(
        self,
        data,
        family,
        width,
        seeds,
        recipe,
        *,
        study,
        checkpoint=None,
        every=120.0,
        stop=None,
        progress=None,
        **where,
    ):
        recipes = recipe if isinstance(recipe, list) else [recipe] * len(seeds)
        begun, logits = 0, np.zeros((len(seeds), len(data.y_test), data.classes))
        if checkpoint is not None and checkpoint.exists():
            said = json.loads(checkpoint.read_bytes())
            begun, logits = said["epoch"], np.array(said["logits"])
        self.asked.append((width, list(seeds), begun))
        if self.raises and (error := self.raises(width, seeds)):
            raise error
        for epoch in range(begun, recipes[0].epochs):
            asked = stop is not None and stop()
            if checkpoint is not None and (asked or (every < 1 and epoch)):
                said = {"epoch": epoch, "logits": logits.tolist()}
                checkpoint.unlink(missing_ok=True)
                publish(checkpoint, [json.dumps(said).encode()])
            if asked:
                raise Interrupted
            time.sleep(self.seconds)
            for i, seed in enumerate(seeds):
                logits[i] += self._step(study, width, seed, recipes[i], epoch, data)
            if progress is not None:
                progress("training", (epoch + 1) / recipes[0].epochs)
        found = []
        for i, seed in enumerate(seeds):
            failed = self.diverges and self.diverges(width, seed)
            found.append(
                Trained(
                    seed=seed,
                    logits=logits[i].astype(np.float32),
                    weights={"0.weight": np.full(3, seed, np.float32)},
                    seconds=0.5,
                    prediction_seconds=0.01,
                    failure="its loss is not finite" if failed else None,
                )
            )
        return found

    def _step(self, study, width, seed, recipe, epoch, data):
        said = f"{study} {width} {seed} {recipe} {epoch}"
        key = int.from_bytes(hashlib.sha256(said.encode()).digest()[:8], "little")
        noise = np.random.default_rng(key).normal(size=(len(data.y_test), data.classes))
        miss = abs(np.log(recipe.learning_rate / self.best_rate))
        signal = np.eye(data.classes)[data.y_test] / (1 + miss)
        return (noise + 2 * signal) / np.sqrt(recipe.epochs)


def install(monkeypatch, trainer, data=None):
    """Let studies be trained by `trainer`, on these data."""
    data = data or few_objects()
    tasks, estimates, tuning, studies = (
        f"ensize.train.{each}"
        for each in ("studies.tasks", "studies.estimates", "tuning", "studies")
    )
    for room in (tasks, tuning):
        monkeypatch.setattr(f"{room}.train", trainer.train)
    for room in (tasks, estimates):
        monkeypatch.setattr(f"{room}.plan", trainer.plan)
    for room in (tasks, studies, "ensize.train.searching"):
        monkeypatch.setattr(f"{room}.load_data", lambda *_, **__: data)
    monkeypatch.setattr(f"{estimates}.outline", lambda *_, **__: data)
    return trainer
