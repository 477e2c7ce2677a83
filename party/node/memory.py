"""Freed memory goes back to the machine: a node runs for months, its jobs for seconds."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from typing import Final

import pyarrow as pa

_M_MMAP_THRESHOLD: Final = -3  # of glibc's malloc.h
_M_ARENA_MAX: Final = -8
_ARENAS: Final = 2
_OWN_MAPPING_BYTES: Final = 2 << 20  # above a chunk of a bulk stream, below the vectors of a job that matter


def return_freed_arrays() -> None:
    """Lets every large array have a mapping of its own, which ends with it; does nothing where libc is not glibc.

    By itself glibc raises the least size of such arrays, up to 32 MiB, to the size of the largest that was freed. Then
    a job's vectors lie on the heaps of its threads, where the gaps that they leave are neither returned nor shared.
    For smaller arrays all threads share two heaps instead of eight for each core: what one thread frees, another uses.
    Arrow's own allocator, which keeps what it frees for itself, gives way to libc's.
    """
    pa.set_memory_pool(pa.system_memory_pool())
    mallopt = _of_glibc("mallopt")
    if mallopt is not None:
        mallopt(_M_MMAP_THRESHOLD, _OWN_MAPPING_BYTES)
        mallopt(_M_ARENA_MAX, _ARENAS)


def return_freed_heaps() -> None:
    """Gives all pages back on which nothing is left; does nothing where libc is not glibc."""
    trim = _of_glibc("malloc_trim")
    if trim is not None:
        trim(ctypes.c_size_t(0))


def _of_glibc(name: str) -> Callable[..., int] | None:
    try:
        found: Callable[..., int] = getattr(ctypes.CDLL(None), name)
    except (AttributeError, OSError, TypeError):
        return None
    return found
