"""Damage: files of a store that are not as they were written, and their repair.

To repair is to move them aside, into ``damaged/1/`` and so on, where they keep the
path that they had in the store, with the reasons in a file. Nothing is deleted, and
what is missing then can be recorded, or trained, again.
"""

from __future__ import annotations

import contextlib
import errno
import os
from collections import Counter
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from ensize.checks import InputError
from ensize.stores.files import listed, publish, reported
from ensize.stores.networks import (
    NETWORK_NAME,
    Network,
    as_json,
    damaged,
    differing,
    fingerprint,
    read_claim,
    read_targets,
    targets_file,
    unlinked,
)
from ensize.stores.seals import check_seal

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from ensize.predictions import Progress

T = TypeVar("T")
# What a disk says of a file that is lost, where other errors may pass: a file that we
# may not read today can be whole.
_LOST = {errno.EIO, errno.EISDIR, errno.ELOOP, errno.EBADMSG}
# Beside the pools: what a study and a search leave.
_OTHERS = (
    *("study.toml", "tuning/*.json", "failures/*/*.json", "searches/**/*.json"),
    "weights/*/*.safetensors",
)


@dataclass(frozen=True)
class Damage:
    """A file that is not as it was written.

    Attributes
    ----------
    path
        Where it is in the store.
    reason
        What is wrong with it.
    read
        Whether it could be read; one that could not may be whole.
    moved
        Where repair has put it.
    """

    path: str
    reason: str
    read: bool = True
    moved: str | None = None


def find_damage(root: Path, *, progress: Progress | None = None) -> tuple[Damage, ...]:
    """Read every byte of a store's networks, and compare what its files say."""
    found: dict[Path, InputError] = {}
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
    for path in sorted(each for form in _OTHERS for each in root.glob(form)):
        with _noted(found, path):
            check_seal(path)
    return tuple(
        Damage(str(path.relative_to(root)), str(error), _was_read(error))
        for path, error in sorted(found.items())
    )


def set_aside(root: Path, found: Sequence[Damage]) -> tuple[Damage, ...]:
    """Move damaged files out of the way, but what is not ours, or could not be read."""
    ours = {each.path for each in found if each.read and not _linked(root, each.path)}
    if not ours:
        return tuple(found)
    folder = _fresh(root / "damaged")
    reasons = {each.path: each.reason for each in found if each.path in ours}
    publish(folder / "reasons.json", [as_json(reasons)])
    for path in reasons:
        aside = folder / path
        with reported(root / path, "moved"):
            aside.parent.mkdir(parents=True, exist_ok=True)
            with contextlib.suppress(FileNotFoundError):  # somebody has moved it
                (root / path).rename(aside)
    name = folder.relative_to(root)
    return tuple(
        replace(each, moved=str(name / each.path)) if each.path in ours else each
        for each in found
    )


def _linked(root: Path, path: str) -> bool:
    """Tell whether a link leads to a file, perhaps out of the store."""
    return any((root / each).is_symlink() for each in Path(path).parents if each.parts)


def _fresh(folder: Path) -> Path:
    """Make the first numbered folder that nobody has made."""
    with reported(folder, "written"):
        unlinked(folder).mkdir(exist_ok=True)
        number = 1
        while True:
            try:
                (folder / str(number)).mkdir()
            except FileExistsError:
                number += 1
            else:
                return folder / str(number)


def _was_read(error: InputError) -> bool:
    cause = error.__cause__
    return not isinstance(cause, OSError) or cause.errno in _LOST


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
def _noted(found: dict[Path, InputError], path: Path) -> Iterator[None]:
    try:
        yield
    except InputError as error:
        found[path] = error
