"""Files that nobody but their owner may read or write, such as databases."""

from __future__ import annotations

import contextlib
import errno
import os
import secrets
import stat
from collections.abc import Callable
from pathlib import Path
from typing import BinaryIO


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


def replace_private(
    path: Path, contents: bytes | memoryview | Callable[[BinaryIO], object], *, like: os.stat_result | None = None
) -> None:
    """Puts a file that only its owner may read in its place, in one step; it is on disk when this returns.

    Args:
        path: The file; its folder exists. Its draft lies beside it, under a hidden name that ends in `.new`.
        contents: What it holds, or what writes that.
        like: The file that it replaces, where others may read that one, too.

    Raises:
        OSError: It cannot be written; what was there before is still there.
    """
    draft = path.with_name(f".{path.name}.{secrets.token_hex(4)}.new")
    try:
        with open(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600), "wb") as file:
            if callable(contents):
                contents(file)
            else:
                file.write(contents)
            file.flush()
            if like is not None:
                os.fchown(file.fileno(), like.st_uid, like.st_gid)
                os.fchmod(file.fileno(), stat.S_IMODE(like.st_mode))
            os.fsync(file.fileno())
        draft.replace(path)
    except BaseException:
        with contextlib.suppress(OSError):
            draft.unlink(missing_ok=True)
        raise
    folder = os.open(path.parent, os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)
