"""Runs `comine` where modules of Unix alone are absent: `python tests/comine/without_unix.py ARGUMENTS`.

Files are locked as on Windows, by a module that is feigned; what others than comine have imported before stays.
"""

from __future__ import annotations

import sys
from importlib.abc import MetaPathFinder
from types import ModuleType
from typing import Any

import duckdb
import gmpy2
import grpc.aio
import numpy as np
import pyarrow.parquet
import rich.console
import rich.progress
import structlog
import typer

LOADED = (duckdb, gmpy2, grpc, np, pyarrow, rich, structlog, typer)
UNIX_ONLY = frozenset(("fcntl", "resource", "pwd", "grp", "termios", "tty", "pty", "syslog"))


class Hidden(MetaPathFinder):
    """Finds none of the modules."""

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> None:
        if name in UNIX_ONLY:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)


def take_away() -> None:
    """Leaves what Windows has."""
    for name in UNIX_ONLY & set(sys.modules):
        del sys.modules[name]
    sys.meta_path.insert(0, Hidden())
    windows: Any = ModuleType("msvcrt")
    windows.LK_LOCK, windows.LK_NBLCK, windows.LK_UNLCK = 1, 2, 0
    windows.locking = lambda handle, mode, size: None
    sys.modules["msvcrt"] = windows


if __name__ == "__main__":
    take_away()
    from comine.__main__ import main

    main()
