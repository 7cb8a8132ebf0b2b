"""Studies: what a report knows of each store that it was given."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from ensize.checks import InputError
from ensize.planes import plane_of
from ensize.stores import Store, reported

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from ensize.planes import Plane
    from ensize.predictions import Progress

# What networks say of themselves, by the name that readers know.
_SAID = {
    "recipe": "recipe",
    "ensize": "ensize",
    "numpy": "NumPy",
    "extra.torch": "PyTorch",
    "extra.device": "device",
    "extra.precision": "trained in",
    "form": "kept as",
    "dtype": "numbers",
}


@dataclass(frozen=True)
class Made:
    """How the networks of one pool came to be, as their files say."""

    pool: str
    family: str | None
    width: float | None
    size: int | None
    networks: int
    seeds: str
    first: str
    last: str
    said: dict[str, tuple[str, ...]]


@dataclass(frozen=True, eq=False)
class Study:
    """A store, seen as a whole.

    Parameters
    ----------
    name
        The study's name, or that of the folder.
    folder
        The name of the store's folder, without where it lies.
    objects, classes
        Of the test set.
    targets
        The fingerprint of the true classes.
    made
        How each pool came to be.
    recipe
        The study file; empty where there is none.
    planes
        For each family with several sizes, its curves.
    reasons
        Why there is no plane, in sentences.
    """

    name: str
    folder: str
    objects: int
    classes: int
    targets: str
    made: tuple[Made, ...]
    recipe: str
    planes: tuple[Plane, ...]
    reasons: tuple[str, ...]


def read_study(
    path: Path,
    *,
    apply: str,
    keep_odd: bool,
    seed: int,
    progress: Progress | None = None,
) -> Study:
    """Read all that a report says of a store."""
    store = Store.open(path)
    there = [each for each in store.pools() if each.networks]
    if not there:
        raise InputError(
            f"{path} holds no networks yet; record or train some, then report"
        )
    made = tuple(_made(store, each.name) for each in there)
    families = list(dict.fromkeys(each.family for each in made))
    planes, reasons = [], []
    for k, family in enumerate(families):

        def told(what: str, share: float, k: int = k) -> None:
            if progress is not None:
                progress(what, (k + share) / len(families))

        try:
            planes.append(
                plane_of(
                    path,
                    family=family or "",
                    apply=apply,
                    keep_odd=keep_odd,
                    seed=seed,
                    progress=told,
                )
            )
        except InputError as error:
            # No path of this machine in what colleagues get to read.
            reasons.append(str(error).replace(str(path), store.path.name))
    text = _study_file(store.path / "study.toml")
    name = _name(text) or store.path.resolve().name
    known = next(each for each in there if each.objects)
    return Study(
        name,
        store.path.resolve().name,
        known.objects or 0,
        known.classes or 0,
        store.metadata(there[0].name, store.seeds(there[0].name)[0])["targets"],
        made,
        text,
        tuple(planes),
        tuple(reasons),
    )


def _made(store: Store, name: str) -> Made:
    """Gather what the files of a pool say of how they came to be."""
    seeds = store.seeds(name)
    every = [store.metadata(name, seed) for seed in seeds]
    dates = sorted(each["written"][:10] for each in every if "written" in each)
    status = next(each for each in store.pools() if each.name == name)
    return Made(
        name,
        every[0].get("family"),
        status.width,
        status.size,
        len(seeds),
        ranges(seeds),
        dates[0] if dates else "",
        dates[-1] if dates else "",
        {
            shown: tuple(sorted({each[key] for each in every if key in each}))
            for key, shown in _SAID.items()
            if any(key in each for each in every)
        },
    )


def ranges(seeds: Iterable[int]) -> str:
    """Write whole numbers in few words.

    >>> ranges([0, 1, 2, 3, 7, 9, 10])
    '0-3, 7, 9-10'
    """
    numbers = np.array(sorted(seeds))
    runs = np.split(numbers, np.flatnonzero(np.diff(numbers) > 1) + 1)
    return ", ".join(
        f"{run[0]}-{run[-1]}" if len(run) > 1 else f"{run[0]}" for run in runs
    )


def _study_file(path: Path) -> str:
    with reported(path):
        return path.read_text(encoding="utf-8") if path.exists() else ""


def _name(text: str) -> str:
    try:
        named: Any = tomllib.loads(text).get("name", "")
    except tomllib.TOMLDecodeError:
        return ""
    return named if isinstance(named, str) else ""
