"""Plans: which way networks are trained best on a device, found by measuring."""

from __future__ import annotations

import contextlib
import functools
import itertools
import os
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

import torch

from ensize.checks import InputError, one_of
from ensize.train.committees import Stack, Way, forward
from ensize.train.gradients import slopes

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ensize.train.networks import Layer, Shape

PRECISIONS = ("float32", "tf32")

# Every way is tried for about so long, twice.
_PATIENCE = 0.15
# Of the memory that is free, what committees may take.
_SHARE = 0.7
# More networks than this are no quicker together.
_MOST = 128

_CPU = (
    *(Way("convolutions", 8, 16, channels_last=True),),
    *(Way("convolutions", 4, 16, channels_last=True),),
    *(Way("convolutions", 2, 16, channels_last=True),),
    *(Way("convolutions", 1, 1, channels_last=True), Way("convolutions", 1)),
)
_GPU = (
    *(Way("products", 64), Way("convolutions", 64), Way("convolutions", 64, 32)),
    Way("convolutions", 64, 16, channels_last=True),
    Way("convolutions", 1, 1, channels_last=True),
)
_FLAT = tuple(Way("products", networks) for networks in (8, 32, 96))


@dataclass(frozen=True)
class Plan:
    """How the networks of one width are trained best on a device, as measured.

    Parameters
    ----------
    together
        How many at once.
    way
        How their layers are computed.
    seconds
        What one step of all of them takes.
    bytes
        The memory that they take.
    """

    together: int
    way: Way
    seconds: float
    bytes: int


def device_of(name: str | None) -> torch.device:
    """Take a device by its name: a GPU if there is one and none is named."""
    gpu = torch.cuda.is_available()
    try:
        device = torch.device(name or ("cuda" if gpu else "cpu"))
    except RuntimeError as error:
        raise InputError(
            f"device is {name!r}; give cpu, cuda, or cuda:K for one of several GPUs"
        ) from error
    if device.type not in ("cpu", "cuda"):
        raise InputError(f"device is {name!r}; give cpu or cuda")
    if device.type == "cuda" and not gpu:
        raise InputError(f"device is {name!r}, and there is no GPU here; give cpu")
    if device.type == "cuda" and (device.index or 0) >= torch.cuda.device_count():
        raise InputError(
            f"device is {name!r}, and GPUs here are numbered up to"
            f" {torch.cuda.device_count() - 1}; give one of them"
        )
    return device


def named(device: torch.device) -> str:
    """Name a device as its maker does."""
    if device.type == "cuda":
        return str(torch.cuda.get_device_name(device))
    return str(device)


@contextlib.contextmanager
def precisely(precision: str) -> Iterator[None]:
    """Compute products as asked, and leave the settings as they were."""
    one_of("precision", precision, PRECISIONS)
    tf32 = precision == "tf32"
    before = torch.backends.cuda.matmul.allow_tf32, torch.backends.cudnn.allow_tf32
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = tf32
    try:
        yield
    finally:
        torch.backends.cuda.matmul.allow_tf32, torch.backends.cudnn.allow_tf32 = before


def passes(some: slice, way: Way, side_by_side: int) -> list[slice]:
    """Cut networks into passes: as many networks each, one for each core at least.

    >>> passes(slice(0, 12), Way("products", 8), 2)
    [slice(0, 6, None), slice(6, 12, None)]
    """
    networks = some.stop - some.start
    count = max(-(-networks // way.networks), min(side_by_side, networks))
    edges = [some.start + networks * i // count for i in range(count + 1)]
    return [slice(i, j) for i, j in itertools.pairwise(edges)]


@functools.lru_cache(maxsize=64)
def measured_plan(
    layers: tuple[Layer, ...],
    shape: Shape,
    batch: int,
    device: torch.device,
    precision: str,
    cores: int,
) -> Plan:
    """Measure some steps each way, and choose; kept as long as the process lives."""
    ways = _FLAT if len(shape) == 1 else _GPU if device.type == "cuda" else _CPU
    best: Plan | None = None
    failure: Exception | None = None
    with precisely(precision), one_core_each(device):
        for way in ways:
            try:
                seconds, taken = _measure(layers, shape, batch, device, way)
            except (RuntimeError, MemoryError) as error:  # of this size, or this way
                failure = error
                continue
            found = Plan(way.networks, way, seconds, taken)
            if best is None or _each(found) < _each(best):
                best = found
    if best is None:
        raise failure or RuntimeError("nothing was measured")
    together = _together(best, device, cores)
    scale = together / best.together
    if device.type == "cuda":
        # What is larger fills the device better still.
        way = Way(
            best.way.kind, together, best.way.fill, channels_last=best.way.channels_last
        )
        way = best.way if best.way.networks == 1 else way
        return Plan(together, way, best.seconds * scale, int(best.bytes * scale))
    seconds = best.seconds * scale / cores
    return Plan(together, best.way, seconds, int(best.bytes * scale))


def _each(plan: Plan) -> float:
    return plan.seconds / plan.together


def _together(plan: Plan, device: torch.device, cores: int) -> int:
    """Say how many networks fit, as whole passes."""
    if device.type == "cuda":
        free = torch.cuda.mem_get_info(device)[0]
        fits = int(_SHARE * free / max(plan.bytes / plan.together, 1))
        return max(1, min(_MOST, fits))
    free = os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    fits = max(1, int(_SHARE * free / max(plan.bytes, 1)))
    return plan.together * min(cores, fits)


def _measure(
    layers: tuple[Layer, ...],
    shape: Shape,
    batch: int,
    device: torch.device,
    way: Way,
) -> tuple[float, int]:
    """Time a step of so many networks, and count the memory that it takes."""
    stack = Stack(layers, way.networks, device)
    random = torch.Generator().manual_seed(0)
    stack.values.copy_(0.05 * torch.randn(stack.values.shape, generator=random))
    x = torch.randn((way.networks, batch, *shape), generator=random).to(device)
    y = torch.zeros((way.networks, batch), dtype=torch.int64, device=device)
    weights = stack.take(slice(None))
    kept: dict[int, int] = {}

    def keep(saved: torch.Tensor) -> torch.Tensor:
        storage = saved.untyped_storage()
        kept[storage.data_ptr()] = storage.nbytes()
        return saved

    with torch.autograd.graph.saved_tensors_hooks(keep, lambda saved: saved):
        forward(layers, weights, x, way, training=True)
    slopes(layers, weights, x, y, way)  # warm
    taken = 2 * sum(kept.values()) + 4 * 4 * stack.values.numel()
    _wait(device)
    times: list[float] = []
    began = time.perf_counter()
    while len(times) < 2 or (
        len(times) < 50 and time.perf_counter() - began < _PATIENCE
    ):
        start = time.perf_counter()
        slopes(layers, weights, x, y, way)
        _wait(device)
        times.append(time.perf_counter() - start)
    return min(times), taken


@contextlib.contextmanager
def one_core_each(device: torch.device) -> Iterator[int]:
    """Keep PyTorch to one core a pass on a CPU, since passes run side by side.

    Yields how many.
    """
    if device.type != "cpu":
        yield 1
        return
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield before
    finally:
        torch.set_num_threads(before)


def _wait(device: torch.device) -> None:
    if device.type == "cuda":
        torch.cuda.synchronize(device)


def for_want_of_memory(error: Exception) -> bool:
    """Tell whether a computation failed because memory did not do."""
    if isinstance(error, (torch.cuda.OutOfMemoryError, MemoryError)):
        return True
    text = str(error).lower()
    return "out of memory" in text or "can't allocate memory" in text
