"""Tuning: a grid search on a validation subset, the whole grid as one committee."""

from __future__ import annotations

import contextlib
import dataclasses
import itertools
import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from ensize.checks import InputError
from ensize.curves import score
from ensize.predictions import Predictions
from ensize.stores.files import brief, listed, publish, read_text
from ensize.train.loop import Recipe, train
from ensize.train.unfinished import checkpoint_of, checkpoints_in, nameable, remove

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from ensize.train.images import Data
    from ensize.train.loop import Trained

TUNED = ("learning_rate", "weight_decay", "dropout")
BY = ("cnll", "accuracy")


@dataclass(frozen=True)
class Tuning:
    """A grid of values to choose from.

    Parameters
    ----------
    learning_rate, weight_decay, dropout
        The values that are tried, each with each.
    epochs
        How long each setting is trained; as long as the networks, if not given.
    networks
        How many are trained of each setting: the same seeds for all settings.
    objects
        The size of the validation subset; a tenth of the training set, as in the
        paper, if not given.
    by
        What decides on the mean over a setting's networks: cnll or accuracy.
    """

    learning_rate: tuple[float, ...]
    weight_decay: tuple[float, ...]
    dropout: tuple[float, ...] = (0.0,)
    epochs: int | None = None
    networks: int = 1
    objects: int | None = None
    by: str = "cnll"

    def settings(self) -> list[dict[str, float]]:
        """List the settings of the grid.

        >>> Tuning((0.05,), (1e-4, 1e-3)).settings()[1]
        {'learning_rate': 0.05, 'weight_decay': 0.001, 'dropout': 0.0}
        """
        values = itertools.product(*(getattr(self, key) for key in TUNED))
        return [dict(zip(TUNED, each, strict=True)) for each in values]

    def recipes(self, recipe: Recipe) -> list[Recipe]:
        """List how the networks of the grid are trained, setting by setting."""
        shorter = dataclasses.replace(recipe, epochs=self.epochs or recipe.epochs)
        values: list[dict[str, Any]] = [*self.settings()]
        return [
            dataclasses.replace(shorter, **setting)
            for setting in values
            for _ in range(self.networks)
        ]


def tune(
    data: Data,
    family: str,
    width: int,
    recipe: Recipe,
    grid: Tuning,
    *,
    folder: Path,
    together: int,
    study: str = "",
    trainer: Callable[..., list[Trained]] | None = None,
    **how: Any,
) -> dict[str, Any]:
    """Train the grid's networks, and say which setting is the best.

    What is done stands in `folder` until the end, so that an interrupted search is
    continued. Networks are trained `together`, and `how` by `train` or by another
    `trainer`.
    """
    subset = data.validation(grid.objects or len(data.y_train) // 10)
    recipes = grid.recipes(recipe)
    scores = scores_in(folder)
    while left := [i for i in range(len(recipes)) if i not in scores]:
        begun = [each for each, _ in checkpoints_in(folder) if set(each) <= set(left)]
        chosen = begun[0] if begun else nameable(left[:together])
        checkpoint = checkpoint_of(folder, chosen)
        trained = (trainer or train)(
            *(subset, family, width),
            [i % grid.networks for i in chosen],
            [recipes[i] for i in chosen],
            study=f"{study}, tuning",
            checkpoint=checkpoint,
            **how,
        )
        mine = {
            i: _score(each, subset) for i, each in zip(chosen, trained, strict=True)
        }
        publish(checkpoint.with_suffix(".json"), [json.dumps(mine).encode()])
        remove(checkpoint)
        scores |= mine
    networks = [scores[i] for i in range(len(recipes))]
    settings = _settings(grid, networks)
    return {
        "family": family,
        "width": width,
        "study": study,
        "data": data.fingerprint,
        "validation_objects": len(subset.y_test),
        "epochs": recipes[0].epochs,
        "by": grid.by,
        "chosen": _best(settings, grid.by, f"{family} of width {width}"),
        "settings": settings,
    }


def forget(folder: Path) -> None:
    """Remove what an ended search kept in its folder."""
    for path in folder.glob("*.json"):
        path.unlink(missing_ok=True)
    with contextlib.suppress(OSError):  # not there, or not empty
        folder.rmdir()


def scores_in(folder: Path) -> dict[int, dict[str, Any]]:
    """Read the scores of the networks of a grid that are done."""
    found: dict[int, dict[str, Any]] = {}
    for entry in listed(folder):
        if entry.name.endswith(".json"):
            path = folder / entry.name
            text = read_text(path)
            try:
                found |= {int(i): dict(each) for i, each in json.loads(text).items()}
            except (AttributeError, RecursionError, TypeError, ValueError) as error:
                raise InputError(
                    f"{path} is not as it was written ({brief(error)}); delete it, and"
                    " the search goes on without it"
                ) from error
    return found


def _score(trained: Trained, subset: Data) -> dict[str, Any]:
    said = {"seed": trained.seed, "seconds": trained.seconds}
    if trained.failure is not None:
        return said | {"cnll": None, "accuracy": None, "failure": trained.failure}
    alone = Predictions.of([trained.logits], subset.y_test)
    curve = score(alone, n=[1], keep_odd=True)
    cnll, accuracy = float(curve.cnll[0]), float(curve.accuracy[0])
    return said | {"cnll": cnll, "accuracy": accuracy, "failure": None}


def _settings(grid: Tuning, networks: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Average over the networks of each setting; a setting that fails has no score."""
    found = []
    for i, setting in enumerate(grid.settings()):
        mine = networks[i * grid.networks : (i + 1) * grid.networks]
        sound = not any(each["failure"] for each in mine)
        means = {k: float(np.mean([e[k] for e in mine])) if sound else None for k in BY}
        found.append({**setting, **means, "networks": mine})
    return found


def _best(settings: list[dict[str, Any]], by: str, what: str) -> dict[str, float]:
    sound = [each for each in settings if each[by] is not None]
    if not sound:
        why = settings[0]["networks"][0]["failure"]
        raise InputError(
            f"no setting of the grid trains a {what} (the first: {why}); tune over"
            " smaller learning rates"
        )
    sign = 1 if by == "cnll" else -1
    best = min(sound, key=lambda each: sign * each[by])
    return {key: best[key] for key in TUNED}
