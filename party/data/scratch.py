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

from mining.partitioned.encoding.writing import private_folder, unwritten

SCRATCH: Final = "scratch"  # in the state folder


@contextmanager
def scratch_folder(state: Path) -> Iterator[Path]:
    """A private folder, which is removed at the end, and otherwise by whoever wants one next, or the node's next start.

    Args:
        state: The state folder of a node.

    Raises:
        ResourceError: The disk refuses it.
    """
    parent = state / SCRATCH
    private_folder(parent)
    try:
        with _locked(parent):
            _remove_abandoned(parent)
            folder = Path(tempfile.mkdtemp(dir=parent))
            held = os.open(folder, os.O_RDONLY)
            fcntl.flock(held, fcntl.LOCK_EX)
    except OSError as error:
        raise unwritten(parent, error) from None
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)
        os.close(held)


def remove_abandoned(state: Path) -> None:
    """Removes the folders of those who have died."""
    with suppress(OSError), _locked(state / SCRATCH):
        _remove_abandoned(state / SCRATCH)


def _remove_abandoned(parent: Path) -> None:
    for folder in parent.iterdir():
        with suppress(OSError), _locked(folder, fcntl.LOCK_NB):
            shutil.rmtree(folder, ignore_errors=True)


@contextmanager
def _locked(folder: Path, how: int = 0) -> Iterator[None]:
    """Holds the lock of a folder, which ends with the process, however that ends."""
    opened = os.open(folder, os.O_RDONLY)
    try:
        fcntl.flock(opened, fcntl.LOCK_EX | how)
        yield
    finally:
        os.close(opened)
