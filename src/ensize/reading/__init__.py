"""Reading: files, arrays or a store, whatever was given, into predictions."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ensize.checks import InputError, class_labels, one_of
from ensize.predictions import KINDS, Pool, Predictions, Rows
from ensize.reading.formats import file_size, find_array, read_integers
from ensize.sketches import Grid, Sketch
from ensize.stores import (
    FileArray,
    Network,
    Store,
    fingerprint,
    open_safetensors,
    reported,
    true_classes,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy as np
    from numpy.typing import NDArray

    from ensize.reading.formats import AnyArray

__all__ = ["load"]

# More than that are another axis that was taken for the networks.
_MOST_NETWORKS = 100_000


@dataclass(frozen=True)
class _Part:
    """What one of the files, or the store, contributes."""

    name: str
    rows: Sequence[Rows]
    labels: Sequence[str]
    targets: NDArray[np.int64] | None = None
    pool: Pool = field(default_factory=Pool)
    fingerprint: str | None = None  # of the targets, where these are elsewhere
    grids: Sequence[Grid] = ()  # of sketches
    classes: int = 0  # of sketches
    stored: bool = False


def load(
    source: Any,
    *,
    targets: Any = None,
    kind: str = "logits",
    pool: str | None = None,
) -> Predictions | Sketch:
    """Load predictions, whatever they are in; what is on disk stays there until used.

    Parameters
    ----------
    source
        A store; a file, several, or a pattern such as ``"runs/*.npy"``: .npy, .npz
        (with the keys ``logits`` and, if they are there, ``targets``) or .safetensors;
        or arrays in memory. An array is (objects, classes) or (networks, objects,
        classes).
    targets
        The true classes: an array, or a file of them (also text, one integer a line).
        A store has its own.
    kind
        What the arrays hold: logits, log-probabilities or probabilities.
    pool
        Which pool, where a store has several.

    >>> load([[[2.0, 0.0]], [[0.0, 3.0]]], targets=[0]).networks
    2
    """
    one_of("kind", kind, KINDS)
    given = None if targets is None else _load_targets(targets)
    source = list(source) if isinstance(source, Iterator) else source
    paths = _paths(source, targets)
    if pool is not None and not any(path.is_dir() for path in paths):
        raise InputError(
            f"pool is {pool!r}, but only a store has pools; leave --pool away"
        )
    if not paths:
        if given is None:
            raise _no_targets("these arrays")
        return Predictions.of(source, given[1], kind=kind)
    return _joined([_open(path, pool) for path in paths], given, kind)


def _paths(source: Any, targets: Any) -> list[Path]:
    """List the files that are meant, those of a pattern in their natural order."""
    given = list(source) if isinstance(source, (list, tuple)) else [source]
    named = [isinstance(each, (str, os.PathLike)) for each in given]
    if not any(named):
        return []
    if not all(named):
        raise InputError(
            f"{given[named.index(True)]} stands among arrays in memory; load files"
            " alone, or arrays alone"
        )
    # The true classes often lie beside the predictions.
    beside = Path(targets) if isinstance(targets, (str, os.PathLike)) else None
    paths: list[Path] = []
    for path in map(Path, given):
        with reported(path):
            if path.exists() or not set("*?[") & set(str(path)):
                paths.append(path)
                continue
            root = Path(path.anchor)
            matches = root.glob(str(path.relative_to(root)))
            found = sorted((each for each in matches if each != beside), key=_natural)
        if not found:
            raise InputError(f"{path} matches no file; correct the pattern")
        paths += found
    return paths


def _natural(path: Path) -> list[Any]:
    pieces = re.split(r"([0-9]+)", str(path))
    return [int(each) if i % 2 else each for i, each in enumerate(pieces)]


def _joined(
    parts: Sequence[_Part], given: tuple[str, NDArray[np.int64]] | None, kind: str
) -> Predictions | Sketch:
    """Put the networks of all parts together, which must agree on the targets."""
    stored = [part.name for part in parts if part.stored]
    if stored and kind != "logits":
        raise InputError(
            f"{stored[0]} is of a store, which keeps logits; leave --kind {kind} away"
        )
    said = [(part.name, part.targets) for part in parts if part.targets is not None]
    said = said if given is None else [given, *said]
    if not said:
        raise _no_targets(parts[0].name)
    name, targets = said[0]
    prints = [(label, fingerprint(each)) for label, each in said]
    prints += [(part.name, part.fingerprint) for part in parts if part.fingerprint]
    for label, each in prints:
        if each != prints[0][1]:
            raise InputError(
                f"{label} speaks of other targets than {name}; predictions that are"
                " loaded together are of the same objects in the same order"
            )
    rows = [each for part in parts for each in part.rows]
    labels = [each for part in parts for each in part.labels]
    alike = all(part.pool == parts[0].pool for part in parts)
    pool = parts[0].pool if alike else Pool()
    sketches = [part for part in parts if part.grids]
    if not sketches:
        return Predictions.gather(
            rows, targets, labels=labels, kind=kind, pool=pool, truth=name
        )
    for part in parts:
        if part.classes != sketches[0].classes:
            raise InputError(
                f"{part.name} is no sketch of {sketches[0].classes} classes, as"
                f" {sketches[0].name} is; load sketches and logits apart"
            )
    return Sketch.gather(
        rows,
        [grid for part in parts for grid in part.grids],
        targets,
        classes=sketches[0].classes,
        labels=labels,
        pool=pool,
    )


def _open(path: Path, pool: str | None) -> _Part:
    """Open a store or a file, and find the networks in it."""
    if path.is_dir():
        whole = Store.open(path).read(pool)
        part = _Part(str(path), whole.rows, whole.labels, whole.targets, whole.pool)
        if isinstance(whole, Sketch):
            grids = (whole.grid,) * whole.networks
            part = replace(part, grids=grids, classes=whole.classes)
        return replace(part, stored=True)
    if path.suffix.lower() == ".safetensors" and file_size(path):
        metadata, _ = open_safetensors(path)
        if {"form", "pool", "seed"} <= metadata.keys():
            return _open_network(path)
    logits, keys = find_array(path, "logits", (2, 3))
    if logits is None:
        raise _lacking(path, "logits", keys)
    rows, labels = _networks(path, logits)
    truth = None
    if path.suffix.lower() != ".npy":
        array, _ = find_array(path, "targets")
        truth = None if array is None else true_classes(f"{path}[targets]", array)
    return _Part(str(path), rows, labels, truth)


def _open_network(path: Path) -> _Part:
    """Open one network of a store, with the store's targets where it lies in one."""
    network = Network.open(path)
    above = path.absolute().parents
    home = above[2] / "targets.npy" if above[1:2] and above[1].name == "pools" else None
    targets = None if home is None or not home.exists() else Store(above[2]).targets()
    return _Part(
        str(path),
        [network.rows],
        [str(path)],
        targets,
        network.pool,
        network.metadata.get("targets"),
        [] if network.grid is None else [network.grid],
        0 if network.grid is None else network.classes,
        stored=True,
    )


def _networks(path: Path, array: AnyArray) -> tuple[Sequence[Rows], list[str]]:
    shape = tuple(array.shape)
    if len(shape) not in (2, 3) or 0 in shape:
        raise InputError(
            f"{path} has an array of shape {shape}; predictions are (objects, classes)"
            " or (networks, objects, classes), and none of these is 0"
        )
    if len(shape) == 2:
        return [array], [str(path)]
    if shape[0] > _MOST_NETWORKS:
        raise InputError(
            f"{path} has an array of shape {shape}, which would be {shape[0]} networks;"
            " bring its axes into the order (networks, objects, classes)"
        )
    rows = array.parts() if isinstance(array, FileArray) else list(array)
    return rows, [f"{path}[{i}]" for i in range(len(rows))]


def _load_targets(given: Any) -> tuple[str, NDArray[np.int64]]:
    """Read the true classes, and name where they come from."""
    if not isinstance(given, (str, os.PathLike)):
        return "targets", class_labels("targets", given)
    path = Path(given)
    if path.suffix.lower() in (".txt", ".csv", ".tsv", ""):
        return str(path), read_integers(path)
    array, keys = find_array(path, "targets", (1,))
    if array is None:
        raise _lacking(path, "targets", keys)
    return str(path), true_classes(str(path), array)


def _lacking(path: Path, name: str, keys: Sequence[str]) -> InputError:
    there = ", ".join(map(repr, keys[:10])) or "none at all"
    return InputError(
        f"{path} has no array named {name!r}, but {there}; write it again under that"
        " name"
    )


def _no_targets(name: str) -> InputError:
    return InputError(
        f"{name} came without targets; give the true classes with --targets FILE"
        " (targets= in Python)"
    )
