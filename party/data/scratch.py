"""Folders for copies of rows that a command needs for a while: of those who die over one, the next one removes it."""

from __future__ import annotations

import fcntl
import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

from mining.partitioned.encoding.writing import unwritten

PREFIX: Final = "scratch-"  # of their names, in the state folder


@contextmanager
def scratch_folder(state: Path) -> Iterator[Path]:
    """A private folder, which is removed at the end, and otherwise by whoever wants one next, or the node's next start.

    Args:
        state: The state folder of a node.

    Raises:
        ResourceError: The disk refuses it.
    """
    remove_abandoned(state)
    try:
        folder, held = _made(state)
    except OSError as error:
        raise unwritten(state, error) from None
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)
        os.close(held)


def remove_abandoned(state: Path) -> None:
    """Removes the folders of those who have died; others are locked."""
    for folder in state.glob(f"{PREFIX}*"):
        with suppress(OSError):
            opened = os.open(folder, os.O_RDONLY)
            try:
                fcntl.flock(opened, fcntl.LOCK_EX | fcntl.LOCK_NB)
                shutil.rmtree(folder, ignore_errors=True)
            finally:
                os.close(opened)


def _made(state: Path) -> tuple[Path, int]:
    """A new folder, and what holds its lock, which ends with the process, however that ends."""
    while True:
        folder = Path(tempfile.mkdtemp(prefix=PREFIX, dir=state))
        with suppress(FileNotFoundError):  # before it was locked, somebody has removed it as abandoned
            opened = os.open(folder, os.O_RDONLY)
            fcntl.flock(opened, fcntl.LOCK_EX)
            if folder.exists():
                return folder, opened
            os.close(opened)
