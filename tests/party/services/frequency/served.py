"""A node as a process that is forked, for `test_kill_under_load`."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path

from party.server import serve


def run_node(file: Path, log: Path) -> None:
    """What `comine party serve` does, in a process that has all modules already."""
    descriptor = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    os.dup2(descriptor, 1)
    os.dup2(descriptor, 2)
    asyncio.run(serve(file))
