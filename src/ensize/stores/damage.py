"""Damage: files of a store that are not as they were written."""

from __future__ import annotations

import contextlib
import os
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from ensize.checks import InputError
from ensize.stores.files import listed, reported
from ensize.stores.networks import (
    NETWORK_NAME,
    Network,
    damaged,
    differing,
    fingerprint,
    read_claim,
    read_targets,
    targets_file,
    unlinked,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from ensize.predictions import Progress

T = TypeVar("T")


@dataclass(frozen=True)
class Damage:
    """A file that is not as it was written: its path in the store, and the reason."""

    path: str
    reason: str


def find_damage(root: Path, *, progress: Progress | None = None) -> tuple[Damage, ...]:
    """Read every byte of a store's networks, and compare what its files say."""
    found: dict[Path, str] = {}
    pools: dict[Path, list[Network]] = {}
    files: list[Path] = []
    for folder in map(Path, listed(root / "pools")):
        with _noted(found, folder):
            entries = listed(unlinked(folder))
            files += [Path(e) for e in entries if e.name.endswith(".safetensors")]
            pools[folder] = []
    for done, path in enumerate(sorted(files), 1):
        with _noted(found, path):
            pools[path.parent].append(_read_whole(path))
        if progress is not None:
            progress("verifying", done / len(files))
    # Where files disagree, what most networks say is taken to be right.
    every = Counter(
        n.metadata.get("targets", "") for each in pools.values() for n in each
    )
    path = root / "targets.npy"
    with _noted(found, path):
        if every or os.path.lexists(path):
            targets = read_targets(path)
            with reported(path):
                if path.read_bytes() != targets_file(targets):
                    raise damaged(path, "some of its bytes are others")
            if every and fingerprint(targets) != _most(every):
                raise damaged(path, "most networks were recorded with other targets")
    for folder, networks in pools.items():
        shared = Counter(tuple(network.common.items()) for network in networks)
        usual: dict[str, str] = {}
        if networks:
            most = _most(shared)
            usual = {**dict(most), "targets": _most(every)}
        for network in networks:
            with _noted(found, network.rows.path):
                _compare(network.rows.path, network.common, usual)
        path = folder / "pool.json"
        with _noted(found, path):
            if os.path.lexists(path):
                claim = read_claim(path)
                _compare(path, claim, usual or claim)
    return tuple(
        Damage(str(path.relative_to(root)), reason)
        for path, reason in sorted(found.items())
    )


def _read_whole(path: Path) -> Network:
    if not NETWORK_NAME.fullmatch(path.name):
        raise damaged(path, "its name is no seed")
    network = Network.in_store(path)
    if network.checksum() != network.metadata.get("checksum"):
        raise damaged(path, "its checksum does not fit its content")
    return network


def _compare(path: Path, mine: Mapping[str, str], most: Mapping[str, str]) -> None:
    if odd := differing(mine, most):
        raise damaged(path, odd)


def _most(said: Counter[T]) -> T:
    return said.most_common(1)[0][0]


@contextlib.contextmanager
def _noted(found: dict[Path, str], path: Path) -> Iterator[None]:
    try:
        yield
    except InputError as error:
        found[path] = str(error)
