"""The folder of a store: what is in it, and what may come in."""

from __future__ import annotations

import contextlib
import functools
import math
import os
import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from ensize.checks import InputError, one_of, positive, whole
from ensize.predictions import Pool, Predictions, Progress
from ensize.sketches import Grid, Sketch
from ensize.stores.damage import Damage, find_damage, set_aside
from ensize.stores.files import brief, listed, publish, read_text, reported
from ensize.stores.networks import (
    COMMON,
    FORMAT,
    GIVEN,
    NETWORK_NAME,
    POOL_NAME,
    Network,
    as_json,
    checksum,
    damaged,
    differing,
    fingerprint,
    numbers,
    read_claim,
    read_targets,
    targets_file,
    unlinked,
    write,
)
from ensize.stores.recordings import Recording

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray


@dataclass(frozen=True)
class PoolStatus:
    """What a store has of one pool."""

    name: str
    width: float | None
    size: int | None
    networks: int
    form: str | None
    objects: int | None
    classes: int | None
    partial: int


class Store:
    """A folder of pools. Nothing is read until it is asked for; reading makes nothing.

    >>> import tempfile
    >>> store = Store(tempfile.mkdtemp())
    >>> store.add("vgg16-w8", 0, [[2.0, 0.0], [0.0, 1.0]], [0, 1], size=1_000)
    True
    >>> store.read().labels
    ('vgg16-w8/0',)
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = Path(path)

    def __fspath__(self) -> str:
        """Stand for its folder, wherever a path is asked for."""
        return str(self.path)

    @classmethod
    def open(cls, path: str | os.PathLike[str]) -> Self:
        """Open a store that is there, or say that there is none."""
        store = cls(path)
        with reported(store.path):
            parts = ("pools", "study.toml")
            there = any((store.path / part).exists() for part in parts)
            what = "is no store" if store.path.exists() else "does not exist"
        if not there:
            raise InputError(
                f"{path} {what}; a store is a folder with pools/ in it (for single"
                " files, give their names)"
            )
        return store

    def pools(self) -> tuple[PoolStatus, ...]:
        """List the pools, by file names and what each pool has in common alone.

        Small networks come first, and last those of which no size is known.
        """
        found = (self._status(name) for name in self._names())
        return tuple(sorted(found, key=lambda pool: (pool.size or math.inf, pool.name)))

    def seeds(self, name: str) -> tuple[int, ...]:
        """List the networks of a pool; none where there is no such pool."""
        entries = listed(self._folder(name))
        files = (each.name for each in entries if each.is_file(follow_symlinks=False))
        matches = map(NETWORK_NAME.fullmatch, files)
        return tuple(sorted(int(match[1]) for match in matches if match))

    def targets(self) -> NDArray[np.int64]:
        """Read the true classes."""
        return read_targets(self.path / "targets.npy")

    def declared(self) -> dict[str, Any]:
        """Read what the study declares that the store came from; nothing without one.

        A name that is no line of text is left out.
        """
        path = self.path / "study.toml"
        if not os.path.lexists(path):
            return {}
        try:
            found = tomllib.loads(read_text(path).decode())
        except (RecursionError, ValueError) as error:  # of UTF-8 and of TOML
            raise InputError(
                f"{path} is no TOML file ({brief(error)}); bring back the study file"
            ) from error
        name = str(found.get("name", "")).strip()
        return found | {"name": name if name.isprintable() else ""}

    def average(self, name: str, key: str) -> float:
        """Average a number that networks bring as ``extra``; NaN where one does not."""
        said = (self.metadata(name, seed) for seed in self.seeds(name))
        try:
            numbers = [float(each[f"extra.{key}"]) for each in said]
        except (KeyError, ValueError):
            return np.nan
        mean = float(np.mean(numbers)) if numbers else np.nan
        return mean if np.isfinite(mean) else np.nan

    def metadata(self, name: str, seed: int) -> dict[str, str]:
        """Read what is known of a network; what users added begins with `extra.`."""
        return self._network(name, seed).metadata

    def read(
        self, name: str | None = None, seeds: Sequence[int] | None = None
    ) -> Predictions | Sketch:
        """Open the networks of a pool; their numbers stay on the disk until needed."""
        names = [each for each in self._names() if self.seeds(each)]
        if not names:
            raise InputError(f"{self.path} holds no networks yet; record some first")
        if name is None and len(names) > 1:
            raise InputError(
                f"{self.path} has several pools ({', '.join(names)}); choose one with"
                " --pool NAME"
            )
        name = names[0] if name is None else one_of(f"pool of {self.path}", name, names)
        there = dict.fromkeys(self.seeds(name))
        wanted = list(there if seeds is None else seeds)
        if lacking := [seed for seed in wanted if seed not in there]:
            raise InputError(
                f"pool {name!r} of {self.path} has no network of seed {lacking[0]}; it"
                f" has {len(there)}, with seeds from {min(there)} to {max(there)}"
            )
        targets, common = self.targets(), self._common(name)
        if common.get("targets") != fingerprint(targets):
            raise damaged(
                self.path / "targets.npy",
                f"the networks of pool {name!r} were recorded with other targets",
            )
        networks = [self._network(name, seed) for seed in wanted]
        for network in networks:
            if odd := differing(network.metadata, common):
                raise damaged(network.rows.path, odd)
        rows = [network.rows for network in networks]
        grids = [network.grid for network in networks if network.grid is not None]
        labels = [f"{name}/{seed}" for seed in wanted]
        pool, _, classes = numbers(self._folder(name), common)
        if not grids:
            return Predictions.gather(rows, targets, labels=labels, pool=pool)
        return Sketch.gather(
            rows, grids, targets, classes=classes, labels=labels, pool=pool
        )

    def record(
        self,
        name: str,
        *,
        seed: int,
        size: int | None = None,
        width: float | None = None,
        family: str | None = None,
        multiply_adds: int | None = None,
        recipe: str | None = None,
        dtype: str = "float32",
        sketch: bool = False,
        extra: Mapping[str, str] | None = None,
    ) -> Recording:
        """Take a network's predictions from an evaluation loop, batch by batch.

        ``with store.record("resnet50", seed=3) as r: r.update(logits, targets)``
        writes the network when the block ends well, and nothing when it does not.

        Parameters
        ----------
        name, seed
            The pool and the network; letters, digits and ``._+-`` make a name.
        size, width, family, multiply_adds, recipe
            What the networks of a pool have in common: each brings the same.
        dtype
            How logits are kept, in memory until the end: float32 or float16.
        sketch
            Keep each object's sketch in place of its logits, so that neither memory
            nor file grows with the classes.
        extra
            Whatever else should stand with the network.
        """
        self._folder(name)
        one_of("dtype", dtype, ["float32"] if sketch else ["float32", "float16"])
        known: dict[str, object] = {
            "format": FORMAT,
            "kind": "logits",
            "form": "sketch" if sketch else "logits",
            "pool": name,
            "family": family,
            "width": None if width is None else positive("width", width),
            "recipe": recipe,
            "seed": whole("seed", seed, 0, 10**18 - 1),
            "dtype": dtype,
        }
        counts = {"size": size, "multiply_adds": multiply_adds}
        known |= {k: whole(k, n, 1) for k, n in counts.items() if n is not None}
        known |= {f"extra.{key}": value for key, value in (extra or {}).items()}
        said = {key: str(value) for key, value in known.items() if value is not None}
        try:
            as_json(said)
        except UnicodeEncodeError as error:
            raise InputError(
                f"what is known of {name}/{seed} is no Unicode text ({error}); hand in"
                " plain text"
            ) from error
        self._check(said, GIVEN)
        put = functools.partial(self._put, said)
        return Recording(f"{name}/{seed}", put, dtype, sketch=sketch)

    def add(
        self, name: str, seed: int, logits: Any, targets: Any, **known: Any
    ) -> bool:
        """Write a network at once; False where the store has it already.

        What is `known` of it is handed in as to `record`.
        """
        with self.record(name, seed=seed, **known) as recording:
            recording.update(logits, targets)
        return recording.written

    def partials(self) -> tuple[Path, ...]:
        """List what writers have not finished: dead ones, or still at work."""
        found = [*self.path.glob(".*.partial"), *self.path.glob("pools/*/.*.partial")]
        return tuple(sorted(found))

    def verify(
        self, *, repair: bool = False, progress: Progress | None = None
    ) -> tuple[Damage, ...]:
        """Read every byte, and list the files that are not as they were written.

        With `repair` they are moved into `damaged/`, and nothing is deleted.
        """
        found = find_damage(self.path, progress=progress)
        return set_aside(self.path, found) if repair else found

    def _names(self) -> list[str]:
        entries = listed(self.path / "pools")
        folders = (e.name for e in entries if e.is_dir(follow_symlinks=False))
        return sorted(name for name in folders if POOL_NAME.fullmatch(name))

    def _folder(self, name: str) -> Path:
        if not isinstance(name, str) or not POOL_NAME.fullmatch(name):
            raise InputError(
                f"the pool name {name!r} cannot be that of a folder; take up to 100"
                " letters, digits and ._+-, with no dot in front"
            )
        return unlinked(self.path / "pools" / name)

    def _status(self, name: str) -> PoolStatus:
        said, folder = self._common(name), self._folder(name)
        pool, objects, classes = Pool(name), None, None
        if said:
            pool, objects, classes = numbers(folder, said)
        partial = sum(each.name.endswith(".partial") for each in listed(folder))
        return PoolStatus(
            name,
            pool.width,
            pool.size,
            len(self.seeds(name)),
            said.get("form"),
            objects,
            classes,
            partial,
        )

    def _network(self, name: str, seed: int) -> Network:
        return Network.in_store(self._folder(name) / f"{seed}.safetensors")

    def _common(self, name: str) -> dict[str, str]:
        """Say what a pool's networks have in common: nothing where there are none."""
        path = self._folder(name) / "pool.json"
        with contextlib.suppress(InputError):
            return read_claim(path)
        for seed in self.seeds(name):
            with contextlib.suppress(InputError):
                return self._network(name, seed).common
        return read_claim(path) if os.path.lexists(path) else {}

    def _check(
        self,
        said: Mapping[str, str],
        keys: Sequence[str] = COMMON,
        targets: NDArray[np.int64] | None = None,
    ) -> None:
        """Refuse what does not go with what is there."""
        label, path = f"{said['pool']}/{said['seed']}", self.path / "targets.npy"
        if targets is not None and os.path.lexists(path):
            there = self.targets()
            if not np.array_equal(there, targets):
                raise InputError(
                    f"{label} comes with {len(targets)} targets that are not the"
                    f" {len(there)} of {path}; a store is about one set of objects in"
                    " one order: use another store"
                )
        common = self._common(said["pool"])
        if common and (odd := differing(said, common, keys)):
            raise InputError(
                f"{label} does not go into its pool in {self.path}: {odd}; hand in what"
                " the pool has, or choose another pool name"
            )

    def _put(
        self,
        said: Mapping[str, str],
        blocks: Sequence[NDArray[Any]],
        targets: NDArray[np.int64],
        classes: int,
        grid: Grid | None,
    ) -> bool:
        """Write a network, if it is not there."""
        said = {
            **said,
            "classes": str(classes),
            "objects": str(len(targets)),
            "targets": fingerprint(targets),
        }
        self._check(said, targets=targets)
        folder = self._folder(said["pool"])
        path = unlinked(folder / f"{said['seed']}.safetensors")
        # Where the targets were lost, a network that is there brings them back.
        if not os.path.lexists(self.path / "targets.npy"):
            publish(self.path / "targets.npy", [targets_file(targets)])
        if os.path.lexists(path):
            return False
        if not os.path.lexists(folder / "pool.json"):
            common = {key: said[key] for key in COMMON if key in said}
            common = self._common(said["pool"]) or common
            claim = {**common, "checksum": checksum(common)}
            publish(folder / "pool.json", [as_json(claim)])
        # Another process may have been the first.
        self._check(said, targets=targets)
        return write(path, said, blocks, grid)
