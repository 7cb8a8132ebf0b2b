"""Searching: the best split of a budget, with networks trained as a study trains them.

Pools and seeds are named as the study names them, so that what either has trained the
other does not train again.
"""

from __future__ import annotations

import dataclasses
import functools
import signal
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ensize.checks import positive
from ensize.predictions import Pool
from ensize.searches import MemorySplitSearch
from ensize.stores import Store
from ensize.train.images import load_data
from ensize.train.networks import multiply_adds, parameters, width_for
from ensize.train.studies import train_networks
from ensize.train.studies.runs import check_study
from ensize.train.studies.tasks import check_targets

if TYPE_CHECKING:
    import os
    from collections.abc import Callable

    from ensize.predictions import Progress
    from ensize.searches import Step
    from ensize.train.images import Data
    from ensize.train.studies import Study

# How long to wait for networks that other processes train.
_WAIT = 2.0  # seconds


@dataclass(frozen=True, eq=False)
class Searched:
    """What became of a search.

    Attributes
    ----------
    search
        The search, with its steps and its verdict.
    seconds
        How long it took this time.
    stopped
        What brought it to an end before all was done: a signal's number, the time, or
        nothing.
    given_up
        How many networks could not be trained this time, for want of memory or the
        like; the same command tries them again.
    warnings
        What else should be known.
    """

    search: MemorySplitSearch
    seconds: float
    stopped: int | str | None
    given_up: int
    warnings: tuple[str, ...]


def search_study(
    study: Study,
    store_path: str | os.PathLike[str],
    budget: float | str,
    *,
    method: str = "robust",
    patience: int = 0,
    apply: str = "before",
    keep_odd: bool = False,
    seed: int = 0,
    data: str | os.PathLike[str] | None = None,
    minutes: float | None = None,
    told: Callable[[Step], None] | None = None,
    progress: Progress | None = None,
    **how: Any,
) -> Searched:
    """Seek the best split of a budget, and train the networks that this takes.

    Parameters
    ----------
    study, store_path
        How networks are trained, and the folder where they go.
    budget, method, patience, apply, keep_odd, seed
        As for `ensize.MemorySplitSearch`.
    told
        Told of each step as soon as it is known.
    data, minutes, progress, how
        As for `train_study`.
    """
    started = time.monotonic()
    left = None if minutes is None else 60 * positive("minutes", minutes)
    store, folder = Store(store_path), None if data is None else Path(data)
    loaded = load_data(study.dataset, folder=folder)
    check_study(study, store)
    check_targets(store, loaded)
    search = MemorySplitSearch(
        budget,
        smallest=_size(study, 1, loaded),
        method=method,
        patience=patience,
        pool_at=functools.cache(functools.partial(_pool_at, study, loaded)),
        store=store,
        apply=apply,
        keep_odd=keep_odd,
        seed=seed,
    )
    warnings: dict[str, None] = {}
    stopped: int | str | None = None
    given_up = known = 0
    try:
        while (wanted := search.ask()) and not (stopped or given_up):
            known = _tell(told, search, known)
            spent = time.monotonic() - started
            if left is not None and spent >= left:
                stopped = "time"
                break
            result = train_networks(
                *(study, store, int(wanted.pool.width or 0), wanted.seeds),
                data=data,
                minutes=None if left is None else (left - spent) / 60,
                progress=progress,
                **how,
            )
            stopped, given_up = result.stopped, result.given_up
            failed = tuple(each.seed for each in result.failures)
            if failed:
                search.lose(dataclasses.replace(wanted, seeds=failed))
            if result.trained or failed or stopped or given_up:
                warnings |= dict.fromkeys(result.warnings)
            else:
                time.sleep(_WAIT)
    except KeyboardInterrupt:  # between two trainings; the search is saved
        stopped = int(signal.SIGINT)
    _tell(told, search, known)
    return Searched(
        search,
        time.monotonic() - started,
        stopped,
        given_up,
        (*warnings, *search.warnings),
    )


def _size(study: Study, width: int, data: Data) -> int:
    return parameters(study.family, width, shape=data.shape, classes=data.classes)


def _pool_at(study: Study, data: Data, size: int) -> Pool:
    """Name the pool of the widest network that is not larger."""
    kind: dict[str, Any] = {"shape": data.shape, "classes": data.classes}
    width = width_for(study.family, size, **kind)
    return Pool(
        study.pool(width),
        family=study.family,
        width=width,
        size=_size(study, width, data),
        multiply_adds=multiply_adds(study.family, width, **kind),
    )


def _tell(
    told: Callable[[Step], None] | None, search: MemorySplitSearch, known: int
) -> int:
    """Tell of the steps that are new."""
    for step in search.steps[known:]:
        if told is not None:
            told(step)
    return len(search.steps)
