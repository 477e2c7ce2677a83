"""Files of a state folder that nobody needs any more: secrets of earlier versions, drafts of processes that died."""

from __future__ import annotations

import contextlib
import re
from pathlib import Path
from typing import Final

from link.logs.structured import Log

_DRAFT: Final = re.compile(r"\..+\.[0-9a-f]{8}\.new")  # of `link.files.private_file.replace_private`
OLD_SEEDS: Final = ("stock.db", "stock.db-wal", "stock.db-shm", "stock.damaged")  # of oblivious transfers


def remove_leftovers(state: Path, log: Log) -> None:
    """Removes them from the state folder of a node that starts; the secrets with one line in the log."""
    for draft in state.rglob(".*.new"):
        if _DRAFT.fullmatch(draft.name):
            with contextlib.suppress(OSError):
                draft.unlink()
    found = [path for path in map(state.joinpath, OLD_SEEDS) if path.is_file()]
    try:
        for path in found:
            path.unlink()
    except OSError:
        log.warning("old seeds not removed")
    else:
        if found:
            log.info("old seeds removed")
