"""Folders for copies of rows that are needed for a while: of those who die over one, the next one removes it."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from link.files import locks


@contextmanager
def scratch_folder(place: Path, prefix: str) -> Iterator[Path]:
    """A private folder, which is removed at the end, and otherwise by whoever wants one next.

    Args:
        place: Where it is made.
        prefix: Of its name; nothing else there has it.

    Raises:
        OSError: The disk refuses it.
    """
    remove_abandoned(place, prefix)
    folder, held = _made(place, prefix)
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)
        os.close(held)


def remove_abandoned(place: Path, prefix: str) -> None:
    """Removes the folders of those who have died; others are locked, or not of this user."""
    for folder in place.glob(f"{prefix}*"):
        with suppress(OSError):
            opened = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
            try:
                locks.lock(opened)
                if os.fstat(opened).st_uid == os.geteuid():
                    shutil.rmtree(folder, ignore_errors=True)
            finally:
                os.close(opened)


def _made(place: Path, prefix: str) -> tuple[Path, int]:
    """A new folder, and what holds its lock, which ends with the process, however that ends."""
    while True:
        folder = Path(tempfile.mkdtemp(prefix=prefix, dir=place))
        with suppress(FileNotFoundError):  # before it was locked, somebody has removed it as abandoned
            opened = os.open(folder, os.O_RDONLY)
            locks.lock(opened, wait=True)
            if folder.exists():
                return folder, opened
            os.close(opened)
