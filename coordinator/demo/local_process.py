"""The process behind an address of this machine, and its memory (Linux)."""

from __future__ import annotations

import ipaddress
import os
import re
from contextlib import suppress
from pathlib import Path
from typing import Final

_PROC: Final = Path("/proc")
_LISTENS: Final = "0A"


def process_at(address: str) -> int | None:
    """The process that listens at HOST:PORT.

    Returns:
        None where the host is not this machine's loopback, or the process is another user's.
    """
    host, _, port = address.rpartition(":")
    if not _is_loopback(host.strip("[]")):
        return None
    inodes = {f"socket:[{inode}]" for table in ("tcp", "tcp6") for inode in _listening(table, int(port))}
    for process in _PROC.glob("[0-9]*"):
        with suppress(OSError):  # it has ended, or is another user's
            if any(os.readlink(file) in inodes for file in (process / "fd").iterdir()):
                return int(process.name)
    return None


def peak_bytes(process: int) -> int | None:
    """The most memory that a process has had resident; None where that is not shown."""
    try:
        status = (_PROC / str(process) / "status").read_text()
    except OSError:
        return None
    found = re.search(r"VmHWM:\s+(\d+) kB", status)
    return None if found is None else int(found[1]) << 10


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def _listening(table: str, port: int) -> list[str]:
    """Inodes of the sockets of a table that listen on a port."""
    try:
        lines = (_PROC / "net" / table).read_text().splitlines()[1:]
    except OSError:
        return []
    found = [line.split() for line in lines]
    return [cells[9] for cells in found if cells[3] == _LISTENS and int(cells[1].rpartition(":")[2], 16) == port]
