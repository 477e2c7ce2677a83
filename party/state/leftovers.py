"""Secrets that earlier versions of a node kept, and that none needs any more."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from link.logs.structured import Log

OLD_SEEDS: Final = ("stock.db", "stock.db-wal", "stock.db-shm", "stock.damaged")  # of oblivious transfers


def remove_leftovers(state: Path, log: Log) -> None:
    """Removes them from the state folder, with one line in the log."""
    found = [path for path in map(state.joinpath, OLD_SEEDS) if path.is_file()]
    try:
        for path in found:
            path.unlink()
    except OSError:
        log.warning("old seeds not removed")
    else:
        if found:
            log.info("old seeds removed")
