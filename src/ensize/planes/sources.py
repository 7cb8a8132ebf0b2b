"""Sources: the pools of one family, from the smallest network to the largest."""

from __future__ import annotations

import itertools
import os
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from ensize.checks import InputError, one_of
from ensize.predictions import Predictions
from ensize.sketches import Sketch
from ensize.stores import Store

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

# Fewer networks do not tell how far luck moves a curve.
LEAST = 3


@dataclass(frozen=True, eq=False)
class Source:
    """Pools in the order of their sizes, and what is known of them."""

    pools: tuple[Predictions | Sketch, ...]
    seconds: NDArray[np.float64]
    recipe: str
    name: str


def sources_of(given: Any, family: str | None) -> Source:
    """Find the pools of one family in a store, or take those handed in."""
    store = None
    if isinstance(given, (str, os.PathLike)):
        store = Store.open(given)
        pools = _in_store(store, family)
    else:
        pools = _handed_in(given)
    name = "what was handed in" if store is None else str(store.path)
    pools = sorted(pools, key=lambda each: each.pool.size or 0)
    for one, other in itertools.pairwise(pools):
        if one.pool.size == other.pool.size:
            raise InputError(
                f"pools {one.pool.name!r} and {other.pool.name!r} of {name} have the"
                f" same size, {one.pool.size:,}; hand in one of them"
            )
        if not np.array_equal(one.targets, other.targets):
            raise InputError(
                f"pools {one.pool.name!r} and {other.pool.name!r} have other targets;"
                " a plane is of the same objects in the same order"
            )
    seconds = [
        np.nan if store is None else store.average(each.pool.name, "prediction_seconds")
        for each in pools
    ]
    recipe = _recipe(store, pools)
    return Source(tuple(pools), np.array(seconds), recipe, name)


def matching(given: Any, found: Source) -> tuple[Predictions | Sketch, ...]:
    """Find the same networks' predictions on other objects."""
    if isinstance(given, (str, os.PathLike)):
        store = Store.open(given)
        others = {
            each.pool.name: store.read(each.pool.name, seeds=_seeds(each))
            for each in found.pools
        }
    else:
        others = {each.pool.name: each for each in _handed_in(given)}
    for each in found.pools:
        name = one_of("pool to calibrate on", each.pool.name, list(others))
        ours, theirs = each.pool.recipe, others[name].pool.recipe
        if ours and theirs and ours != theirs:
            raise InputError(
                f"the networks of pool {name!r} to calibrate on have another recipe"
                f" ({theirs}) than those of {found.name} ({ours}); give predictions of"
                " the same networks"
            )
    return tuple(others[each.pool.name] for each in found.pools)


def _in_store(store: Store, family: str | None) -> list[Predictions | Sketch]:
    names = [each.name for each in store.pools() if each.networks]
    pools = [store.read(name) for name in names]
    families = sorted({each.pool.family or "" for each in pools})
    if family is not None:
        one_of(f"family of {store.path}", family, families)
        pools = [each for each in pools if each.pool.family == family]
    elif len(families) > 1:
        listed = ", ".join(repr(each) for each in families)
        raise InputError(
            f"{store.path} has the families {listed}; choose one with --family"
        )
    return _sized(pools)


def _handed_in(given: Any) -> list[Predictions | Sketch]:
    pools = list(given) if isinstance(given, (list, tuple)) else [given]
    for each in pools:
        if not isinstance(each, (Predictions, Sketch)):
            raise InputError(
                f"a plane was given {type(each).__name__}; give it a store, or what"
                " ensize.load returned for each of several pools"
            )
    return _sized(pools)


def _sized(pools: Sequence[Predictions | Sketch]) -> list[Predictions | Sketch]:
    for each in pools:
        if each.pool.size is None:
            raise InputError(
                f"pool {each.pool.name!r} does not say how many parameters its networks"
                " have; record it with size="
            )
    return list(pools)


def _seeds(pool: Predictions | Sketch) -> list[int]:
    return [int(label.rsplit("/", 1)[-1]) for label in pool.labels]


def _recipe(store: Store | None, pools: Sequence[Predictions | Sketch]) -> str:
    """Name the recipe: the study's name, or what the pools say of theirs."""
    if store is not None:
        name = store.declared().get("name")
        if name:
            return f"study {name}"
    said = sorted({each.pool.recipe for each in pools if each.pool.recipe})
    if len(said) == 1:
        return f"recipe {said[0]}"
    return ""
