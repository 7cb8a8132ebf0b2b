"""Work on all cores: NumPy's loops in our threads, BLAS kept to one in each.

OpenBLAS starts threads of its own, which wait for each other actively: inside ours,
or on a busy machine, they lose many times what they gain.
"""

from __future__ import annotations

import collections
import contextlib
import ctypes
import functools
import math
import os
import threading
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from numpy.typing import NDArray

T = TypeVar("T")
R = TypeVar("R")


def cores() -> int:
    """Count the cores that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def in_threads(work: Callable[[T], R], tasks: Iterable[T]) -> Iterator[R]:
    """Do some work on every task, and yield the results in their order.

    Only a few tasks are ever ahead of the one whose result is taken, so that
    results do not pile up.
    """
    waiting: collections.deque[Future[R]] = collections.deque()
    with one_blas_thread(), ThreadPoolExecutor(cores()) as pool:
        try:
            for task in tasks:
                waiting.append(pool.submit(work, task))
                if len(waiting) > 2 * cores():
                    yield waiting.popleft().result()
            while waiting:
                yield waiting.popleft().result()
        finally:
            pool.shutdown(cancel_futures=True)


_spaces = threading.local()


def workspace(purpose: str, shape: tuple[int, ...], dtype: Any) -> NDArray[Any]:
    """Lend this thread a piece of memory, until it asks again for the same purpose.

    Fresh pages would cost more than what is computed in them.
    """
    needed = math.prod(shape)
    held = _spaces.__dict__.get(purpose)
    if held is None or held.dtype != dtype or held.size < needed:
        held = _spaces.__dict__[purpose] = np.empty(needed, dtype)
    lent: NDArray[Any] = held[:needed].reshape(shape)
    return lent


@functools.cache
def _blas_controls() -> tuple[Callable[[], int], Callable[[int], None]] | None:
    """Find how to ask and set the number of BLAS threads, if NumPy's BLAS has any."""
    from numpy.linalg import _umath_linalg  # noqa: PLC0415 - links to the BLAS

    library = ctypes.CDLL(_umath_linalg.__file__)
    for prefix in ("scipy_openblas_", "openblas_"):
        for suffix in ("64_", ""):
            with contextlib.suppress(AttributeError):
                return (
                    getattr(library, f"{prefix}get_num_threads{suffix}"),
                    getattr(library, f"{prefix}set_num_threads{suffix}"),
                )
    return None


_inside = 0
_before = 1
_lock = threading.Lock()


@contextlib.contextmanager
def one_blas_thread() -> Iterator[None]:
    """Keep BLAS from starting threads, and give them back when the last user ends."""
    global _inside, _before  # noqa: PLW0603 - BLAS has this setting once a process
    controls = _blas_controls()
    if controls is None:
        yield
        return
    get, put = controls
    with _lock:
        if _inside == 0:
            _before = get()
            put(1)
        _inside += 1
    try:
        yield
    finally:
        with _lock:
            _inside -= 1
            if _inside == 0:
                put(_before)
