"""Freed memory goes back to the machine: a node runs for months, its jobs for seconds."""

from __future__ import annotations

import ctypes
from typing import Final

_M_MMAP_THRESHOLD: Final = -3  # of glibc's malloc.h
_OWN_MAPPING_BYTES: Final = 2 << 20  # above a chunk of a bulk stream, below the vectors of a job that matter


def return_freed_arrays() -> None:
    """Lets every large array have a mapping of its own, which ends with it; does nothing where libc is not glibc.

    By itself glibc raises the least size of such arrays, up to 32 MiB, to the size of the largest that was freed. Then
    a job's vectors lie on the heaps of its threads, where the gaps that they leave are neither returned nor shared.
    """
    try:
        mallopt = ctypes.CDLL(None).mallopt
    except (AttributeError, OSError, TypeError):
        return
    mallopt(_M_MMAP_THRESHOLD, _OWN_MAPPING_BYTES)
