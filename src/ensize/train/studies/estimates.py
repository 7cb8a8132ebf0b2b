"""Estimates: what the networks that a store lacks would take, from a measured step."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ensize.stores import Store
from ensize.train.images import outline
from ensize.train.loop import plan
from ensize.train.networks import parameters
from ensize.train.studies.runs import check_study, chosen, lacking, wanted

if TYPE_CHECKING:
    import os
    from pathlib import Path

    from ensize.predictions import Progress
    from ensize.train.images import Data
    from ensize.train.studies.declarations import Study


@dataclass(frozen=True)
class Cost:
    """What the networks of one width would take.

    Attributes
    ----------
    pool, width, size
        The networks.
    runs, missing
        How many are wanted, and how many of them the store lacks.
    trials
        Networks that are trained before, to tune the width.
    together
        How many are trained at once.
    way
        And how.
    bytes
        The memory that these take on the device.
    seconds
        How long all would take on one device.
    """

    pool: str
    width: int
    size: int
    runs: int
    missing: int
    trials: int
    together: int
    way: str
    bytes: int
    seconds: float


def costs(
    study: Study,
    store_path: str | os.PathLike[str] | None = None,
    *,
    data: Path | None = None,
    part: str | tuple[int, int] | None = None,
    progress: Progress | None = None,
    **where: Any,
) -> tuple[Cost, ...]:
    """Measure a step of each width on the device, and reckon what a study takes."""
    known = outline(study.dataset, folder=data)
    runs = wanted(study, part)
    left: dict[int, list[int]] = {width: list(seeds) for width, seeds in runs.items()}
    store = None if store_path is None else Store(store_path)
    if store is not None:
        check_study(study, store)
        left = lacking(study, store, runs)
    given = {key: each for key, each in where.items() if each is not None}
    found = []
    for done, (width, seeds) in enumerate(runs.items(), 1):
        lacks = len(left.get(width, []))
        found.append(_cost(study, store, known, width, len(seeds), lacks, given))
        if progress is not None:
            progress("measuring steps", done / len(runs))
    return tuple(found)


def _cost(
    study: Study,
    store: Store | None,
    data: Data,
    width: int,
    runs: int,
    lacks: int,
    where: dict[str, Any],
) -> Cost:
    pool, grid = study.pool(width), study.grid_at(width)
    recipe = study.recipe_at(width)
    trials: list[Any] = []
    if grid is not None and lacks and len(grid.settings()) > 1:
        known = store is not None and chosen(store, pool) is not None
        trials = [] if known else grid.recipes(recipe)
    planned = plan(data, study.family, width, recipe, **where)
    together = min(planned.together, max(lacks, len(trials), 1))
    steps = math.ceil(len(data.y_train) / recipe.batch)
    epochs = recipe.epochs * math.ceil(lacks / together)
    epochs += sum(each.epochs for each in trials[:1]) * math.ceil(
        len(trials) / together
    )
    size = parameters(study.family, width, shape=data.shape, classes=data.classes)
    return Cost(
        *(pool, width, size, runs, lacks, len(trials), together),
        *(str(planned.way), planned.bytes, planned.seconds * steps * epochs),
    )
