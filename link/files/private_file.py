"""Files that nobody but their owner may read or write, such as databases."""

from __future__ import annotations

import errno
import os
from pathlib import Path


def make_private(path: Path, *, folder: bool = False) -> None:
    """Makes a file where there is none, and sees to it that nobody but its owner may read or write it.

    One that is there is not opened: closing a database's file takes SQLite's own locks off it in the whole
    process.

    Args:
        path: The file.
        folder: Whether to make its folder, too.

    Raises:
        OSError: It cannot be made, or not be used.
    """
    if folder:
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    try:
        os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600))
    except FileExistsError:
        if path.is_dir():
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR)) from None
        if not os.access(path, os.R_OK | os.W_OK):
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES)) from None
    if path.stat().st_mode & 0o077:
        path.chmod(0o600)
