"""Executors: where work is done, here, in processes, on Ray: anything with a `map`.

An executor has `map(function, tasks)`, which may do the tasks in any order and at once,
and yields their results. Each task is one worker on the same store, which takes
networks one committee after another: so workers share the work by what they finish,
not by what they were given. `devices` names one device for each worker; an executor
of another library need not have it, and gets as many tasks as it has `workers`.

An executor gets a name by a line in `EXECUTORS`: what makes one for a device.
"""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
from concurrent.futures import Future, ProcessPoolExecutor, as_completed
from multiprocessing.connection import wait
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

import torch

from ensize.checks import InputError, one_of
from ensize.threads import cores
from ensize.train.clusters import Cluster

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

T = TypeVar("T")
R = TypeVar("R")


class Executor(Protocol):
    """Anything with a map."""

    def map(
        self, function: Callable[[T], R], tasks: Iterable[T], /
    ) -> Iterable[R | BaseException]:
        """Do each task, and yield the results."""


class Here:
    """In this process, one task after another."""

    def __init__(self, device: str | None = None) -> None:
        self.devices = (device,)

    def map(self, function: Callable[[T], R], tasks: Iterable[T]) -> Iterator[R]:
        """Do each task when its result is asked for."""
        return map(function, tasks)


class Processes:
    """In processes on this machine: one for each GPU, or one for each core.

    A process that dies, or an error in one, takes nothing with it but its own task, and
    is yielded in place of the result. All end with this process, however it ends.
    """

    def __init__(self, devices: Sequence[str] | None = None) -> None:
        self.devices = tuple(devices or _devices(None))

    @classmethod
    def on(cls, device: str | None = None) -> Processes:
        """Use all there is of a device, one GPU if it is named by its number."""
        if device is None or device == "cuda":
            return cls(_devices(device))
        return cls([device] * (cores() if device == "cpu" else 1))

    def map(
        self, function: Callable[[T], R], tasks: Iterable[T]
    ) -> Iterator[R | BaseException]:
        """Do all tasks at once, and yield results as they come."""
        spawn = multiprocessing.get_context("spawn")
        pools: list[ProcessPoolExecutor] = []
        results: list[Future[R]] = []
        for task in tasks:
            pools.append(ProcessPoolExecutor(1, spawn, _begin))
            results.append(pools[-1].submit(function, task))
        try:
            for result in as_completed(results):
                try:
                    yield result.result()
                except Exception as error:  # noqa: BLE001 - the others come to an end first
                    yield error
        finally:
            for pool in pools:
                pool.shutdown(cancel_futures=True)


EXECUTORS: dict[str, Callable[[str | None], Any]] = {
    "here": Here,
    "processes": Processes.on,
    "ray": Cluster,
}


def executor_of(executor: str | Executor, device: str | None = None) -> Any:
    """Take an executor by its name, or one that is handed in."""
    if isinstance(executor, str):
        return EXECUTORS[one_of("executor", executor, list(EXECUTORS))](device)
    if not callable(getattr(executor, "map", None)):
        raise InputError(
            f"executor is {executor!r}, which has no map; give"
            f" {' or '.join(map(repr, EXECUTORS))}, or an object with map"
        )
    return executor


def devices_of(executor: Any, device: str | None) -> tuple[str | None, ...]:
    """Name a device for each worker of an executor."""
    if hasattr(executor, "devices"):
        return tuple(executor.devices)
    workers = getattr(executor, "workers", getattr(executor, "_max_workers", 1))
    return (device,) * int(workers)


def _devices(kind: str | None) -> list[str]:
    gpus = torch.cuda.device_count()
    if kind == "cuda" and not gpus:
        raise InputError(
            "device is 'cuda', and there is no GPU here; give --device cpu"
        )
    return [f"cuda:{i}" for i in range(gpus)] or ["cpu"] * cores()


def _begin() -> None:
    """Leave signals to the process that began this one, and end when it has ended."""
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.SIG_IGN)
    parent = multiprocessing.parent_process()

    def follow() -> None:
        wait([parent.sentinel] if parent else [])
        os._exit(1)

    threading.Thread(target=follow, daemon=True).start()
