"""Runs `comine` with what macOS lacks taken away: `python tests/comine/as_macos.py ARGUMENTS`.

What others have chosen for Linux when they were imported stays; comine is imported afterwards.
"""

from __future__ import annotations

import asyncio
import builtins
import concurrent.futures.process
import io
import os
import resource
import signal
import socket
import subprocess
import sys
import urllib.request
from typing import Any

import duckdb
import gmpy2
import grpc.aio
import numpy as np
import pyarrow.parquet
import scipy.stats
import structlog
import websockets.asyncio.server

LOADED = (
    urllib.request,
    asyncio,
    subprocess,
    concurrent.futures.process,
    duckdb,
    gmpy2,
    grpc,
    np,
    pyarrow,
    scipy,
    structlog,
    websockets,
)
LINUX_ONLY: dict[Any, tuple[str, ...]] = {
    os: (
        *("sched_getaffinity", "sched_setaffinity", "memfd_create", "eventfd", "pidfd_open", "posix_fadvise"),
        *("posix_fallocate", "pipe2", "splice", "copy_file_range", "getrandom", "O_TMPFILE", "O_DIRECT"),
    ),
    resource: ("prlimit",),
    signal: ("sigtimedwait", "sigwaitinfo", "pidfd_send_signal"),
    socket: (
        "TCP_DEFER_ACCEPT",
        "TCP_INFO",
        "TCP_USER_TIMEOUT",
        "TCP_QUICKACK",
        "SO_PEERCRED",
        "SO_DOMAIN",
        "SO_PROTOCOL",
    ),
}
PLACES = ("/proc", "/sys")


def take_away() -> None:
    """Leaves what macOS has."""
    sys.platform = "darwin"
    for module, names in LINUX_ONLY.items():
        for name in names:
            if hasattr(module, name):
                delattr(module, name)
    given_limit, given_open, given_list = resource.setrlimit, io.open, os.listdir

    def getrlimit(kind: int) -> tuple[int, int]:
        descriptors = kind == resource.RLIMIT_NOFILE
        return (256 if descriptors else resource.RLIM_INFINITY, resource.RLIM_INFINITY)  # as in a shell there

    def setrlimit(kind: int, limits: tuple[int, int]) -> None:
        if kind == resource.RLIMIT_NOFILE:
            if limits[0] == resource.RLIM_INFINITY:
                raise ValueError("current limit exceeds maximum limit")
            sys.stderr.write(f"descriptors: {limits[0]}\n")
            return
        given_limit(kind, limits)

    def absent(path: object) -> None:
        if isinstance(path, str | os.PathLike) and os.fspath(path).startswith(PLACES):  # type: ignore[arg-type]
            raise FileNotFoundError(2, "No such file or directory", os.fspath(path))  # type: ignore[arg-type]

    def opened(path: Any, *arguments: Any, **named: Any) -> Any:
        absent(path)
        return given_open(path, *arguments, **named)

    def listed(path: Any = ".") -> list[str]:
        absent(path)
        return given_list(path)

    resource.getrlimit = getrlimit
    resource.setrlimit, io.open, builtins.open, os.listdir = setrlimit, opened, opened, listed


if __name__ == "__main__":
    take_away()
    from comine.__main__ import main

    main()
