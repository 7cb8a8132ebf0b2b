"""Members: networks of a store whose weights are kept, as plain PyTorch modules."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import numpy as np
import torch

from ensize.checks import InputError
from ensize.stores import open_safetensors
from ensize.stores.files import listed
from ensize.stores.seals import check_seal
from ensize.train.networks import layers_of, named_weights, sequential

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from ensize.stores import Store
    from ensize.train.networks import Layer

_NAME = re.compile(r"(0|[1-9][0-9]{0,17})\.safetensors")


def seeds_kept(store: Store, pool: str) -> tuple[int, ...]:
    """List the networks of a pool of which the store has both predictions and weights.

    Weights come before predictions, so that those of a killed process may stand alone.
    """
    entries = listed(store.path / "weights" / pool)
    files = (each.name for each in entries if each.is_file(follow_symlinks=False))
    found = {int(match[1]) for match in map(_NAME.fullmatch, files) if match}
    return tuple(sorted(found & set(store.seeds(pool))))


def members_of(
    store: Store,
    pool: str,
    seeds: Sequence[int],
    *,
    family: str,
    width: int,
    shape: tuple[int, ...],
    classes: int,
) -> list[torch.nn.Module]:
    """Make networks of a pool from their kept weights, ready to predict."""
    layers = layers_of(family, width, shape=shape, classes=classes)
    folder = store.path / "weights" / pool
    recipes = {seed: store.metadata(pool, seed).get("recipe") for seed in seeds}
    return [
        _member(folder / f"{seed}.safetensors", layers, pool, seed, recipes[seed])
        for seed in seeds
    ]


def _member(
    path: Path, layers: tuple[Layer, ...], pool: str, seed: int, recipe: str | None
) -> torch.nn.Module:
    check_seal(path)
    said, arrays = open_safetensors(path)
    itself = said.get("pool"), said.get("seed"), said.get("recipe")
    if itself != (pool, str(seed), recipe):
        raise _wrong(path, f"by itself it is seed {itself[1]!r} of {itself[0]!r}")
    wanted = {name: each.shape for name, each in named_weights(layers).items()}
    found = {name: each.shape for name, each in arrays.items()}
    if found != wanted:
        odd = next(
            name for name in (*wanted, *found) if found.get(name) != wanted.get(name)
        )
        raise _wrong(
            path,
            f"{odd} has shape {found.get(odd)} where the network has {wanted.get(odd)}",
        )
    state = {}
    for name, each in arrays.items():
        values = np.asarray(each[:], np.float32)
        if not np.isfinite(values).all():
            raise _wrong(path, f"{name} is not finite")
        state[name] = torch.from_numpy(values)
    network = sequential(layers, dropout=0.0)
    network.load_state_dict(state)
    return network.eval().requires_grad_(requires_grad=False)


def _wrong(path: Path, why: str) -> InputError:
    return InputError(
        f"{path} does not hold the weights of this network: {why}; leave the network"
        " out, or train it again"
    )
