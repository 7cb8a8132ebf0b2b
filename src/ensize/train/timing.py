"""Timing: what networks of each width take to train and to predict, on one device.

The paper's table: training in batches of 64, prediction in batches of 1,024, one
network after another; and beside it a network's share where many are trained together.
"""

from __future__ import annotations

import math
import time
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import torch
from torch.nn import functional

from ensize.train.batches import Batches
from ensize.train.images import load_data
from ensize.train.loop import plan, train
from ensize.train.networks import module, parameters
from ensize.train.plans import device_of, precisely

if TYPE_CHECKING:
    import os
    from collections.abc import Callable

    from ensize.predictions import Progress
    from ensize.train.images import Data
    from ensize.train.loop import Recipe
    from ensize.train.studies import Study

TRAINED, PREDICTED = 64, 1024
# Each figure is the least of several, measured for about so long.
_PATIENCE = 0.5
_MOST = 10


@dataclass(frozen=True)
class Timing:
    """What one network of a width takes, in seconds.

    Attributes
    ----------
    pool, width, size
        The network.
    epoch, prediction
        To learn the training set once and to predict the test set, alone on the device;
        NaN where its memory does not do.
    together, way
        How many are trained at once, and how.
    epoch_together, prediction_together
        A network's share of what these take.
    """

    pool: str
    width: int
    size: int
    epoch: float
    prediction: float
    together: int
    way: str
    epoch_together: float
    prediction_together: float


def timings(
    study: Study,
    *,
    data: str | os.PathLike[str] | None = None,
    device: str | None = None,
    precision: str = "float32",
    progress: Progress | None = None,
) -> tuple[Timing, ...]:
    """Measure some steps of each width of a study, and reckon what an epoch takes."""
    loaded = load_data(study.dataset, folder=data)
    place = device_of(device)
    found = []
    for done, width in enumerate(study.widths, 1):
        recipe = replace(study.recipe_at(width), batch=TRAINED)
        with precisely(precision):
            alone = _alone(loaded, study.family, width, recipe, place)
        together, way, epoch, prediction = _together(
            *(loaded, study.family, width, recipe, str(place), precision)
        )
        of: dict[str, Any] = {"shape": loaded.shape, "classes": loaded.classes}
        size = parameters(study.family, width, **of)
        found.append(
            Timing(
                *(study.pool(width), width, size, *alone),
                *(together, way, epoch, prediction),
            )
        )
        if progress is not None:
            progress("timing", done / len(study.widths))
    return tuple(found)


def _alone(
    data: Data, family: str, width: int, recipe: Recipe, device: torch.device
) -> tuple[float, float]:
    """Time a plain PyTorch module, as anybody would train it."""
    try:
        net: Any = module(family, width, shape=data.shape, classes=data.classes)
        layout = torch.channels_last if data.pictures else torch.contiguous_format
        net = net.to(device, memory_format=layout)
        descent = torch.optim.SGD(
            net.parameters(), lr=1e-4, momentum=recipe.momentum, weight_decay=1e-4
        )
        batches = Batches(data, family, device)
        which = torch.arange(min(TRAINED, len(data.y_train)), device=device)
        crops = torch.zeros_like(which, dtype=torch.uint8) if data.pictures else None
        x = next(batches.test(PREDICTED)).contiguous(memory_format=layout)

        def learn() -> None:
            descent.zero_grad()
            given = batches.take(which, crops).contiguous(memory_format=layout)
            loss: Any = functional.cross_entropy(net(given), batches.classes(which))
            loss.backward()
            descent.step()

        def predict() -> None:
            with torch.inference_mode():
                net(x)

        step = _least(learn, device)
        net.eval()
        one = _least(predict, device)
    except (RuntimeError, MemoryError):  # the memory does not do
        return math.nan, math.nan
    steps = math.ceil(len(data.y_train) / TRAINED)
    return step * steps, one * len(data.y_test) / len(x)


def _together(
    data: Data,
    family: str,
    width: int,
    recipe: Recipe,
    device: str,
    precision: str,
) -> tuple[int, str, float, float]:
    """Time a committee, on a part of the data."""
    where: dict[str, Any] = {"device": device, "precision": precision}
    try:
        planned = plan(data, family, width, recipe, **where)
        objects = TRAINED * max(2, math.ceil(_PATIENCE / planned.seconds))
        epochs = math.ceil(objects / len(data.y_train))
        part = replace(
            data,
            x_train=data.x_train[:objects],
            y_train=data.y_train[:objects],
            x_test=data.x_test[:PREDICTED],
            y_test=data.y_test[:PREDICTED],
        )
        trained = train(
            *(part, family, width, range(planned.together)),
            replace(recipe, epochs=epochs),
            study="timing",
            way=planned.way,
            **where,
        )[0]
    except (RuntimeError, MemoryError):
        return 0, "", math.nan, math.nan
    return (
        planned.together,
        str(planned.way),
        trained.seconds / epochs * len(data.y_train) / len(part.y_train),
        trained.prediction_seconds * len(data.y_test) / len(part.y_test),
    )


def _least(work: Callable[[], None], device: torch.device) -> float:
    """Time work some times, after a first that warms up; the least is the purest."""
    times: list[float] = []
    began = time.perf_counter()
    while len(times) < 3 or (
        len(times) <= _MOST and time.perf_counter() - began < _PATIENCE
    ):
        start = time.perf_counter()
        work()
        if device.type == "cuda":
            torch.cuda.synchronize(device)
        times.append(time.perf_counter() - start)
    return min(times[1:])
