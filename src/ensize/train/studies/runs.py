"""Runs: the networks that a study wants, and which of them a store lacks.

::

    study.toml                 the study that the store came from
    tuning/POOL.json           the values chosen for a width, and the whole grid
    failures/POOL/SEED.json    a network that could not be trained, and why

A network that failed is tried once more, with the seed a million higher. If that fails
as well it is left out, and said to be.
"""

from __future__ import annotations

import dataclasses
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ensize.checks import InputError
from ensize.stores.files import (
    listed,
    publish,
    read_text,
    reported,
    rewrite,
)
from ensize.stores.seals import read_sealed_json, sealed_json, sealed_toml
from ensize.train.studies.declarations import MOST, Study, recipe_values
from ensize.train.tuning import TUNED

if TYPE_CHECKING:
    from ensize.stores import Store

Wanted = Mapping[int, Sequence[int]]
_PART = re.compile(r"([0-9]+)/([0-9]+)")
_FAILURE = re.compile(r"(0|[1-9][0-9]*)\.json")


@dataclass(frozen=True)
class Run:
    """One network to be trained."""

    pool: str
    width: int
    seed: int


@dataclass(frozen=True)
class Failure:
    """A network that could not be trained, and the reason."""

    pool: str
    seed: int
    reason: str


def missing(study: Study, store: Store) -> list[Run]:
    """List the networks that a store lacks of a study."""
    return [
        Run(study.pool(width), width, seed)
        for width, seeds in lacking(study, store, wanted(study)).items()
        for seed in seeds
    ]


def wanted(study: Study, part: str | tuple[int, int] | None = None) -> Wanted:
    """List the networks of a study, or of part K of N: every N-th from the K-th on.

    >>> few = {"name": "few", "dataset": "digits", "family": "mlp", "widths": [4, 8]}
    >>> recipe = {"epochs": 1, "learning_rate": 0.1, "weight_decay": 0.0}
    >>> wanted(Study.of({**few, "networks": [5, 3], "recipe": recipe}), "2/3")
    {4: [1, 4], 8: [2]}
    """
    runs = [(width, seed) for width in study.widths for seed in study.seeds(width)]
    first, step = (1, 1) if part is None else _part(part)
    chosen: dict[int, list[int]] = {}
    for width, seed in runs[first - 1 :: step]:
        chosen.setdefault(width, []).append(seed)
    return chosen


def lacking(
    study: Study, store: Store, runs: Wanted, *, retry: bool = True
) -> dict[int, list[int]]:
    """Say which of these runs are to be trained, failed ones under a new seed."""
    found = {}
    for width, seeds in runs.items():
        pool = study.pool(width)
        failed = set(_failed(store, pool))
        over = failed.union(store.seeds(pool))
        tries = [s + MOST if retry and s in failed else s for s in seeds]
        if left := [seed for seed in tries if seed not in over]:
            found[width] = left
    return found


def left_out(
    study: Study, store: Store, runs: Wanted, *, retry: bool = True
) -> list[Failure]:
    """List the networks that are given up, with the reason of the last try."""
    found = []
    for width, seeds in runs.items():
        pool = study.pool(width)
        failed = _failed(store, pool)
        for seed in seeds:
            last = seed + MOST if retry else seed
            if seed in failed and last in failed:
                found.append(Failure(pool, last, _reason(failed[last])))
    return found


def record_failure(store: Store, pool: str, seed: int, reason: str) -> None:
    """Keep why a network could not be trained."""
    said = {"seed": seed, "reason": reason}
    publish(store.path / "failures" / pool / f"{seed}.json", [sealed_json(said)])


def chosen(store: Store, pool: str) -> dict[str, float] | None:
    """Read the values that tuning chose for a pool; None where it has not yet."""
    path = store.path / "tuning" / f"{pool}.json"
    with reported(path):
        if not path.exists():
            return None
    remedy = "delete it, and the study tunes again"
    said = read_sealed_json(path, remedy)
    try:
        return recipe_values("what was chosen", said.get("chosen"), TUNED)
    except InputError as error:
        raise InputError(
            f"{path}: {error}; delete it, and the study tunes again"
        ) from error


def keep_chosen(store: Store, pool: str, found: Mapping[str, Any]) -> None:
    """Keep what a search over the grid has found."""
    publish(store.path / "tuning" / f"{pool}.json", [sealed_json(found)])


def begin(study: Study, store: Store) -> None:
    """Write the study into its store.

    A study may grow: more widths and more networks go into the same store.
    """
    path, text = store.path / "study.toml", sealed_toml(study.toml())
    if not path.exists() and publish(path, [text]):
        return
    check_study(study, store)
    if Study.read(path) != study:
        rewrite(path, [text])


def check_study(study: Study, store: Store) -> None:
    """Refuse the store of another study."""
    path = store.path / "study.toml"
    if path.exists() and (odd := _difference(Study.read(path), study)):
        raise InputError(
            f"{store.path} is the store of another study: {odd}; use another store, or"
            " train by its own study.toml"
        )


_ALIKE = ("name", "family", "tuning")


def _difference(there: Study, study: Study) -> str:
    """Name the first thing that makes other networks of the same seeds."""
    pairs = [(key, getattr(there, key), getattr(study, key)) for key in _ALIKE]
    theirs, ours = (Path(each.dataset).name for each in (there, study))
    pairs.append(("dataset", theirs, ours))
    for width in study.widths:
        if width in there.widths:
            for field in dataclasses.fields(study.recipe):
                what = f"{field.name} at width {width}"
                theirs, ours = (
                    getattr(each.recipe_at(width), field.name)
                    for each in (there, study)
                )
                pairs.append((what, theirs, ours))
    for what, theirs, ours in pairs:
        if theirs != ours:
            return f"its {what} is {theirs!r}, and here {ours!r}"
    return ""


def _part(part: str | tuple[int, int]) -> tuple[int, int]:
    text = part if isinstance(part, str) else "{}/{}".format(*part)
    match = _PART.fullmatch(text)
    k, n = (int(match[1]), int(match[2])) if match else (0, 0)
    if not 1 <= k <= n:
        raise InputError(f"part is {part!r}; give K/N with K from 1 to N, as in 2/8")
    return k, n


def _failed(store: Store, pool: str) -> dict[int, Path]:
    folder = store.path / "failures" / pool
    matches = map(_FAILURE.fullmatch, (entry.name for entry in listed(folder)))
    return {int(m[1]): folder / m[0] for m in matches if m}


def _reason(path: Path) -> str:
    text = read_text(path)
    try:
        return str(json.loads(text)["reason"])
    except (KeyError, RecursionError, TypeError, ValueError):
        return f"{path} cannot be read"
