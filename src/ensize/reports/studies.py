"""Studies: what a report knows of each store that it was given."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from ensize.checks import InputError
from ensize.curves import score
from ensize.evidence import Evidence, gather_evidence
from ensize.planes import Plane
from ensize.planes.sources import LEAST
from ensize.stores import Store, reported

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from pathlib import Path

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
    networks: int
    seeds: str
    first: str
    last: str
    said: dict[str, tuple[str, ...]]


@dataclass(frozen=True, eq=False)
class Study:
    """One family of a store, seen as a whole.

    Parameters
    ----------
    folder
        The name of the store's folder, without where it lies.
    evidence
        Its pools and their scores.
    planes
        The plane of all sizes; where there is none, a plane for each single pool.
    several
        Whether the store has other families, too.
    made
        How each pool came to be.
    targets
        The fingerprint of the true classes.
    recipe
        The study file; empty where there is none.
    """

    folder: str
    evidence: Evidence
    planes: tuple[Plane, ...]
    several: bool
    made: tuple[Made, ...]
    targets: str
    recipe: str

    @property
    def name(self) -> str:
        """The study's name, or that of the folder."""
        return self.evidence.name

    @property
    def whole(self) -> bool:
        """Whether sizes can be compared."""
        return self.evidence.plane is not None


def read_studies(
    paths: Sequence[Path], *, progress: Progress | None = None
) -> tuple[Study, ...]:
    """Read all that a report says of stores, each network once."""
    groups = [gather_evidence(path, progress=progress) for path in paths]
    # Together, so that two stores of one study do not take each other's name.
    named = iter(gather_evidence([each for group in groups for each in group]))
    return tuple(
        _study(path, next(named), several=len(group) > 1)
        for path, group in zip(paths, groups, strict=True)
        for _ in group
    )


def _study(path: Path, found: Evidence, *, several: bool) -> Study:
    store = Store.open(path)
    pools = [each.pool.name for each in found.pools]
    file = path / "study.toml"
    with reported(file):
        recipe = file.read_text(encoding="utf-8") if file.exists() else ""
    return Study(
        path.resolve().name,
        found,
        _planes(found),
        several,
        tuple(_made(store, name) for name in pools),
        store.metadata(pools[0], store.seeds(pools[0])[0])["targets"],
        recipe,
    )


def _planes(found: Evidence) -> tuple[Plane, ...]:
    """Take the plane with what predictions cost, or each pool by itself."""
    if found.plane is not None:
        seconds = found.prediction_seconds
        return (dataclasses.replace(found.plane, seconds=seconds),)
    alone = []
    for pool, seconds in zip(found.pools, found.prediction_seconds, strict=True):
        curve = score(pool)
        if curve.networks < LEAST:
            continue
        kept = [i for i, label in enumerate(pool.labels) if label not in curve.odd]
        alone.append(
            Plane(
                pools=(pool.choose(kept),),
                curves=(curve,),
                seconds=np.array([seconds]),
                recipe=pool.pool.recipe or "",
                warnings=curve.warnings,
                options={"apply": "before", "keep_odd": False, "seed": 0},
            )
        )
    if not alone:
        names = ", ".join(each.pool.name for each in found.pools)
        raise InputError(
            f"{found.name} has no pool ({names}) with at least {LEAST} networks, and"
            " fewer do not tell how far luck moves their scores; record or train more,"
            " then report"
        )
    # The one that tells most comes first.
    return tuple(sorted(alone, key=lambda plane: -plane.networks[0]))


def _made(store: Store, name: str) -> Made:
    """Gather what the files of a pool say of how they came to be."""
    seeds = store.seeds(name)
    every = [store.metadata(name, seed) for seed in seeds]
    dates = sorted(each["written"][:10] for each in every if "written" in each)
    return Made(
        name,
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
