"""Allocation: memory that a step frees is there for the next one."""

from __future__ import annotations

import ctypes
import functools
import sys

# Of glibc's malloc.h, with what is wanted and what older versions take at most.
_TRIM_THRESHOLD, _MMAP_THRESHOLD = -1, -3
_LARGE, _LARGEST_OF_OLD = 1 << 30, 1 << 25


@functools.cache
def keep_memory() -> bool:
    """Ask the C library to keep what is freed; say whether it does.

    Without, large arrays go back to the system at once, and each step takes them anew,
    page by page: a fifth of the time of a narrow convolution. Only glibc is asked.
    """
    if sys.platform != "linux":
        return False
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is None:
        return False
    kept = any(mallopt(_MMAP_THRESHOLD, each) for each in (_LARGE, _LARGEST_OF_OLD))
    return bool(kept and mallopt(_TRIM_THRESHOLD, _LARGE))
