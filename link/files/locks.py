"""Locks on open files, which end with the process that holds them, however it ends; on systems that have any."""

from __future__ import annotations

import os
from contextlib import suppress
from importlib import import_module
from typing import Any, Final

from link.errors import ConfigurationError

fcntl: Any = None
msvcrt: Any = None
with suppress(ImportError):  # on a Unix
    fcntl = import_module("fcntl")
with suppress(ImportError):  # on Windows
    msvcrt = import_module("msvcrt")

PLACE: Final = 1 << 40  # of the byte that is locked on Windows, where a locked byte cannot be read: behind all others


def lock(handle: int, *, shared: bool = False, wait: bool = False) -> None:
    """Locks an open file.

    Args:
        handle: The file's descriptor.
        shared: Whether others may share the lock; on Windows nobody may.
        wait: Whether to wait for who holds it.

    Raises:
        BlockingIOError: Another open file holds it.
        ConfigurationError: This system has no locks.
        OSError: The disk has none.
    """
    if fcntl is not None:
        fcntl.flock(handle, (fcntl.LOCK_SH if shared else fcntl.LOCK_EX) | (0 if wait else fcntl.LOCK_NB))
    else:
        _on_windows(handle, "LK_LOCK" if wait else "LK_NBLCK")


def unlock(handle: int) -> None:
    """Gives a lock back."""
    if fcntl is not None:
        fcntl.flock(handle, fcntl.LOCK_UN)
    else:
        _on_windows(handle, "LK_UNLCK")


def _on_windows(handle: int, what: str) -> None:
    if msvcrt is None:
        raise ConfigurationError(
            "this system has no locks on files, by which comine keeps two processes apart; run it on Linux or macOS"
        )
    place = os.lseek(handle, 0, os.SEEK_CUR)
    try:
        os.lseek(handle, PLACE, os.SEEK_SET)
        while True:
            try:
                msvcrt.locking(handle, getattr(msvcrt, what), 1)
            except PermissionError as error:
                raise BlockingIOError(*error.args) from None
            except OSError:  # what waits is given up after ten tries, one in a second
                if what != "LK_LOCK":
                    raise
            else:
                return
    finally:
        os.lseek(handle, place, os.SEEK_SET)
