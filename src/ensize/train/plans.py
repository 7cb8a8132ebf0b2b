"""Plans: which way networks are trained best on a device, found by measuring."""

from __future__ import annotations

import contextlib
import functools
import itertools
import os
import time
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import torch

from ensize.checks import InputError, one_of
from ensize.train.committees import Stack, Way, forward
from ensize.train.cores import Cores, at_work
from ensize.train.gradients import slopes
from ensize.train.networks import Conv

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ensize.train.networks import Layer, Shape

PRECISIONS = ("float32", "tf32")

# Every way is tried for about so many seconds.
_PATIENCE = 0.3
# Of the memory that is free, what committees may take.
_SHARE = 0.7
# More networks than this are no quicker together.
_MOST = 128

_CPU = (
    *(
        Way("convolutions", networks, 16, channels_last=True, shared=shared)
        for networks in (8, 4, 2, 1)
        for shared in (True, False)
    ),
    Way("convolutions", 1),
)
_GPU = (
    *(Way("products", 64), Way("convolutions", 64), Way("convolutions", 64, 32)),
    Way("convolutions", 64, 16, channels_last=True),
    Way("convolutions", 1, 1, channels_last=True),
)
_FLAT = tuple(Way("products", networks, shared=True) for networks in (16, 64))


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
    threads: int,  # noqa: ARG001 - the plan is for so many
) -> Plan:
    """Measure some steps each way, and choose; kept as long as the process lives."""
    ways = _ways(layers, shape, device)
    best: Plan | None = None
    failure: Exception | None = None
    for way in ways:
        try:
            with precisely(precision), at_work(device, way) as cores:
                found = _measure(layers, shape, batch, device, way, cores)
        except (RuntimeError, MemoryError) as error:  # of this size, or this way
            failure = error
            continue
        if best is None or _each(found) < _each(best):
            best = found
    if best is None:
        raise failure or RuntimeError("nothing was measured")
    together = _together(best, device)
    scale = together / best.together
    way = best.way
    if device.type == "cuda" and way.networks > 1:
        # What is larger fills the device better still.
        way = replace(way, networks=together)
    return Plan(together, way, best.seconds * scale, int(best.bytes * scale))


def _ways(
    layers: tuple[Layer, ...], shape: Shape, device: torch.device
) -> tuple[Way, ...]:
    """List what may be the quickest."""
    if len(shape) == 1:
        return _FLAT
    if device.type == "cuda":
        return _GPU
    # More networks than fill a group of the narrowest convolution gain nothing.
    least = min((each.outputs for each in layers if isinstance(each, Conv)), default=1)
    return tuple(way for way in _CPU if way.networks <= max(1, way.fill // least))


def _each(plan: Plan) -> float:
    return plan.seconds / plan.together


def _together(plan: Plan, device: torch.device) -> int:
    """Say how many networks fit, on a CPU as whole passes."""
    each = max(plan.bytes / plan.together, 1)
    if device.type == "cuda":
        free = torch.cuda.mem_get_info(device)[0]
        return max(1, min(_MOST, int(_SHARE * free / each)))
    free = os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    size = plan.way.networks
    return min(plan.together, size * max(1, int(_SHARE * free / (size * each))))


def _measure(
    layers: tuple[Layer, ...],
    shape: Shape,
    batch: int,
    device: torch.device,
    way: Way,
    cores: Cores,
) -> Plan:
    """Time a step of passes side by side, and count the memory that they take."""
    networks = way.networks * cores.side_by_side
    stack = Stack(layers, networks, device)
    random = torch.Generator().manual_seed(0)
    stack.values.copy_(0.05 * torch.randn(stack.values.shape, generator=random))
    x = torch.randn((networks, batch, *shape), generator=random).to(device)
    y = torch.zeros((networks, batch), dtype=torch.int64, device=device)
    cut = passes(slice(0, networks), way, cores.side_by_side)
    weights = [stack.take(some) for some in cut]
    kept: dict[int, int] = {}

    def keep(saved: torch.Tensor) -> torch.Tensor:
        storage = saved.untyped_storage()
        kept[storage.data_ptr()] = storage.nbytes()
        return saved

    with torch.autograd.graph.saved_tensors_hooks(keep, lambda saved: saved):
        forward(layers, weights[0], x[cut[0]], way, training=True)
    taken = 2 * sum(kept.values()) * len(cut) + 4 * 4 * stack.values.numel()

    def go(i: int) -> None:
        slopes(layers, weights[i], x[cut[i]], y[cut[i]], way)

    times: list[float] = []
    began = time.perf_counter()
    while len(times) < 3 or (
        len(times) < 50 and time.perf_counter() - began < _PATIENCE
    ):
        start = time.perf_counter()
        cores.map(go, range(len(cut)))
        if device.type == "cuda":
            torch.cuda.synchronize(device)
        times.append(time.perf_counter() - start)
    return Plan(networks, way, min(times), taken)


def for_want_of_memory(error: Exception) -> bool:
    """Tell whether a computation failed because memory did not do."""
    if isinstance(error, (torch.cuda.OutOfMemoryError, MemoryError)):
        return True
    text = str(error).lower()
    return "out of memory" in text or "can't allocate memory" in text
