"""Clusters: committees that are trained on the nodes of a Ray cluster.

The process that runs the study, the driver, takes networks as every worker does, one
committee after another, in as many threads as committees fit on the cluster. Each
thread has a place: a bench on some node, with its share of a GPU, to which it sends a
committee and from which it gets the networks. So leases and the store are the driver's
alone. A node needs ensize and nothing else; where it sees the store's folder, it keeps
checkpoints there, and elsewhere it sends them back.

A bench that is lost takes its committee with it. The committee goes on, from its last
checkpoint, wherever there is room, and after so many losses it is given up.
"""

from __future__ import annotations

import contextlib
import logging
import math
import os
import socket
import threading
from concurrent.futures import BrokenExecutor, ThreadPoolExecutor, as_completed
from typing import TYPE_CHECKING, Any, TypeVar

from ensize.checks import InputError, positive, whole
from ensize.stores.files import rewrite
from ensize.train.benches import Bench
from ensize.train.loop import Interrupted

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence
    from pathlib import Path

    from ensize.predictions import Progress
    from ensize.train.benches import News, Where
    from ensize.train.images import Data
    from ensize.train.loop import Recipe, Trained
    from ensize.train.plans import Plan

T = TypeVar("T")
R = TypeVar("R")

_LOOK = 1.0  # seconds, while there is no room
_PATIENCE = 10.0  # seconds, with a cluster that does not answer


class Lost(BrokenExecutor):
    """What was sent to a cluster got lost too often."""


class Cluster:
    """An executor: a Ray cluster that is there, or one on this machine alone.

    Parameters
    ----------
    device
        "cpu", or a GPU where there is one.
    address
        "auto", "HOST:PORT", "ray://HOST:PORT", or "local" for one that begins and ends
        with this process. If it is not given: what RAY_ADDRESS says, or the cluster
        that this machine belongs to, or else a local one.
    gpus, cpus
        What a committee takes of a node; 0.5 lets two share a GPU. One GPU where
        there are some, and one CPU, if they are not given.
    committees
        How many to train at once; as many as fit on the nodes that are there now.
    retries
        How often a committee whose node was lost is tried again.
    stream
        Whether checkpoints are sent back, even by nodes that see the store.
    """

    def __init__(
        self,
        device: str | None = None,
        *,
        address: str | None = None,
        gpus: float | None = None,
        cpus: float = 1.0,
        committees: int | None = None,
        retries: int = 3,
        stream: bool = False,
    ) -> None:
        if device not in (None, "cpu", "cuda"):
            raise InputError(
                f"device is {device!r}, and Ray chooses among GPUs by itself; give"
                " cuda, or cpu"
            )
        self.cpus = positive("cpus per committee", cpus)
        self.retries, self.stream = whole("retries", retries), stream
        self.ray, self._joined = _connected(address)
        if gpus is None:
            gpus = float(device != "cpu" and any(_has(n, "GPU") for n in self._nodes()))
        self.gpus = positive("gpus per committee", gpus) if gpus else 0.0
        fit = sum(map(self._fitting, self._nodes()))
        if committees is None and not fit:
            raise InputError(
                f"no node of the Ray cluster has {self._share()} for a committee; ask"
                " for less by --gpus-per-committee and --cpus-per-committee, or say by"
                " --committees how many nodes that are yet to come will take"
            )
        count = fit if committees is None else whole("committees", committees, 1)
        # Where no GPU is asked for, Ray shows none.
        self.devices = (None if self.gpus else "cpu",) * count
        self.under_way: dict[Place, float] = {}
        self._held: dict[str, Any] = {}
        self._lock = threading.Lock()

    def map(
        self, function: Callable[[T], R], tasks: Iterable[T]
    ) -> Iterator[R | BaseException]:
        """Do all tasks in threads of this process, which is where places are hired."""
        given = list(tasks)
        with ThreadPoolExecutor(max(1, len(given)), "place") as threads:
            results = [threads.submit(function, task) for task in given]
            for result in as_completed(results):
                try:
                    yield result.result()
                except Exception as error:  # noqa: BLE001 - the others come to an end first
                    yield error

    def close(self) -> None:
        """Leave the cluster that this has joined, or end the one that it began."""
        if self._joined:
            self.ray.shutdown()

    def place(self, order: Path) -> Place:
        """Hire a place; `order` is a file in the store's folder."""
        return Place(self, None if self.stream else str(order.resolve()))

    def bench(self, order: str | None) -> Any:
        """Have a bench where there is room for a committee, as soon as there is."""
        options: dict[str, Any] = {"num_cpus": self.cpus, "num_gpus": self.gpus}
        options |= {"max_restarts": 0, "scheduling_strategy": "SPREAD"}
        threads = max(1, int(self.cpus))
        made = self.ray.remote(Bench).options(**options)
        return made.remote(order, self.devices[0], threads)

    def held(self, data: Data) -> Any:
        """Send data to the nodes once."""
        with self._lock:
            if data.fingerprint not in self._held:
                self._held[data.fingerprint] = self.ray.put(data)
            return self._held[data.fingerprint]

    def _nodes(self) -> list[dict[str, float]]:
        return [dict(n["Resources"]) for n in self.ray.nodes() if n["Alive"]]

    def _fitting(self, node: dict[str, float]) -> int:
        """Count the committees that fit on a node; Ray never divides one over GPUs."""
        fit = math.floor(node.get("CPU", 0.0) / self.cpus)
        if 0 < self.gpus < 1:
            fit = min(fit, math.floor(1 / self.gpus) * int(node.get("GPU", 0)))
        elif self.gpus:
            fit = min(fit, math.floor(node.get("GPU", 0.0) / self.gpus))
        return fit

    def _share(self) -> str:
        return f"{self.gpus:g} GPUs and {self.cpus:g} CPUs"


class Place:
    """Where a thread of the driver has its committees trained: on one bench at a time.

    Attributes
    ----------
    device
        The name of what its committees were last trained on.
    warnings
        What got lost.
    """

    def __init__(self, cluster: Cluster, order: str | None) -> None:
        self._cluster, self._order = cluster, order
        self._bench: Any = None
        self._where: Where | None = None
        self.warnings: list[str] = []

    @property
    def device(self) -> str:
        """Name what it has last trained on."""
        return self._where.device if self._where else "unknown"

    def plan(
        self,
        data: Data,
        family: str,
        width: int,
        recipe: Recipe,
        *,
        stop: Callable[[], bool],
        device: str | None = None,  # noqa: ARG002 - it has its own
        **how: Any,
    ) -> Plan:
        """Choose how many networks to train at once, on the bench that it has."""

        def begin(bench: Any) -> Any:
            held = self._cluster.held(data)
            return bench.plan.remote(held, family, width, recipe, **how)

        found: Plan = self._done(f"a measurement at width {width}", begin, stop)
        return found

    def train(
        self,
        data: Data,
        family: str,
        width: int,
        seeds: Sequence[int],
        recipe: Recipe | Sequence[Recipe],
        *,
        checkpoint: Path,
        stop: Callable[[], bool],
        progress: Progress | None = None,
        device: str | None = None,  # noqa: ARG002 - it has its own
        **how: Any,
    ) -> list[Trained]:
        """Train a committee, as `train` does here."""
        path = checkpoint.resolve()

        def begin(bench: Any) -> Any:
            sent = None
            if path.exists() and self._where and not self._where.sees_store:
                sent = path.read_bytes()
            held = self._cluster.held(data)
            named = (family, width, list(seeds), recipe)
            return bench.train.remote(held, str(path), sent, *named, **how)

        def heard(news: News) -> None:
            self._cluster.under_way[self] = news.share * len(seeds)
            if news.checkpoint is not None:
                path.parent.mkdir(parents=True, exist_ok=True)
                rewrite(path, [news.checkpoint])
            if progress is not None:
                progress("training", news.share)

        what = f"a committee of {len(seeds)} networks of width {width}"
        try:
            trained: list[Trained] = self._done(what, begin, stop, heard)
        finally:
            self._cluster.under_way.pop(self, None)
        return trained

    def close(self) -> None:
        """Give the bench back."""
        if self._bench is not None:
            with contextlib.suppress(Exception):  # it is gone, or all of Ray
                self._cluster.ray.kill(self._bench)
        self._bench = None

    def _done(
        self,
        what: str,
        begin: Callable[[Any], Any],
        stop: Callable[[], bool],
        heard: Callable[[News], None] | None = None,
    ) -> Any:
        """Have something done, again where it gets lost, and a few times at most."""
        cluster = self._cluster
        for left in reversed(range(cluster.retries + 1)):
            try:
                news = self._tried(begin, stop, heard)
                break
            except cluster.ray.exceptions.RayError as error:
                lost = f"{what} was lost {self._whereabouts()} ({_reason(error)})"
                self.close()
                if not left:
                    times = cluster.retries + 1
                    raise Lost(f"{lost}, after {times} tries in all") from error
                self.warnings.append(f"{lost}, and was tried again")
        if news.error is not None:
            raise news.error
        return news.result

    def _tried(
        self,
        begin: Callable[[Any], Any],
        stop: Callable[[], bool],
        heard: Callable[[News], None] | None,
    ) -> News:
        ray = self._cluster.ray
        if self._bench is None:
            self._where = None
            self._bench = self._cluster.bench(self._order)
            known = self._bench.where.remote()
            while not ray.wait([known], timeout=_LOOK)[0]:  # there is no room yet
                if stop():
                    self.close()
                    raise Interrupted
            self._where = ray.get(known)
        ray.get(begin(self._bench))
        while True:
            news: News = ray.get(self._bench.news.remote(stop()))
            if heard is not None:
                heard(news)
            if news.over:
                return news

    def _whereabouts(self) -> str:
        return f"with {self._where.node}" if self._where else "before it began"


def _has(node: dict[str, float], resource: str) -> bool:
    return node.get(resource, 0) > 0


def _reason(error: Exception) -> str:
    """Say in a line why something got lost: the last that Ray says of it."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return lines[-1].rstrip(".") if lines else type(error).__name__


def _knock(address: str | None) -> None:
    """See whether somebody is there; Ray itself tries for minutes."""
    host, colon, port = (address or "").removeprefix("ray://").rpartition(":")
    if colon and port.isdecimal():
        socket.create_connection((host.strip("[]"), int(port)), _PATIENCE).close()


def _connected(address: str | None) -> tuple[Any, bool]:
    """Import Ray, and join a cluster or begin one, unless this process has."""
    # What a library asks of its users is their affair: no counts are sent from here.
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    try:
        import ray  # noqa: PLC0415 - an extra, and slow to load
    except ImportError as error:
        raise InputError(
            'the executor "ray" needs Ray, which is not installed; pip install'
            ' "ensize[ray]"'
        ) from error
    if ray.is_initialized():
        return ray, False
    quiet = {"log_to_driver": False, "logging_level": logging.ERROR}
    try:
        _knock(address)
        ray.init(address, **quiet)
    except (OSError, RuntimeError, ValueError) as error:
        raise InputError(
            f"no Ray cluster answers at {address or 'the address that is set'}"
            f" ({_reason(error)}); give --ray-address HOST:PORT, or local for one on"
            " this machine"
        ) from error
    return ray, True
