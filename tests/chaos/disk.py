"""Disks: what is on one when its machine dies, and disks that are full.

Nodes write real files, by SQLite and by themselves; this counts what makes a write last, and can let the process die
there. What such a write has not made last yet may then be missing from its end: of the write-ahead log of a database,
or of any other file. A bit of a file may flip. The kernel's own order of writes within a file is not simulated.
"""

from __future__ import annotations

import errno
import os
import random
import shutil
import sqlite3
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.chaos.machines import HERE


@dataclass(eq=False)
class Disk:
    """The state folder of a machine.

    Attributes:
        folder: The folder.
        random: Decides how much of a write is there after a crash.
        writes: How many writes have been made to last.
        full: Whether nothing can be written.
        dies_at: The number of the write at which the process dies.
        dies: Called there.
        lasting: By file, the bytes of it that last.
    """

    folder: Path
    random: random.Random
    writes: int = 0
    full: bool = False
    dies_at: int | None = None
    dies: Callable[[], None] = lambda: None
    lasting: dict[str, int] = field(default_factory=dict)

    def touch(self, *, may_fail: bool = True) -> None:
        """Something is about to be made to last.

        Raises:
            OSError: The disk is full.
        """
        self.writes += 1
        if self.dies_at == self.writes:
            self.dies_at = None
            self.dies()
        if self.full and may_fail:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    def crash(self, *, power: bool) -> None:
        """Keeps the folder as it is found after a crash at this moment; `find` puts it in its place.

        Args:
            power: Whether what was not made to last may be missing.
        """
        self._image.mkdir()
        for path in sorted(self.folder.rglob("*")):
            to = self._image / path.relative_to(self.folder)
            if path.is_dir():
                to.mkdir()
            elif not path.name.endswith("-shm"):
                shutil.copy2(path, to)
                lasts = self.lasting.get(str(path), path.stat().st_size)
                if power and lasts < path.stat().st_size:
                    os.truncate(to, self.random.randint(lasts, path.stat().st_size))

    def find(self) -> None:
        """After a crash: what the dead process still has open is another folder from now on."""
        if self._image.exists():
            self.folder.rename(self.folder.with_name(f"{self.folder.name}.dead{self.writes}"))
            self._image.rename(self.folder)

    def rot(self) -> str:
        """Flips a bit of a file of a machine that is down; which file."""
        files = [path for path in sorted(self.folder.rglob("*")) if path.is_file() and path.suffix != ".lock"]
        path = self.random.choice([path for path in files if path.stat().st_size])
        content = bytearray(path.read_bytes())
        content[self.random.randrange(len(content))] ^= 1 << self.random.randrange(8)
        path.write_bytes(content)
        return str(path.relative_to(self.folder))

    @property
    def _image(self) -> Path:
        return self.folder.with_name(f"{self.folder.name}.found")

    def copy(self, to: Path) -> None:
        """A copy of the folder as a backup makes it while the node runs."""
        shutil.copytree(self.folder, to, ignore=shutil.ignore_patterns("*-shm", "*.lock"))


DISKS: dict[str, Disk] = {}
"""By machine."""
HANDLES: list[tuple[int, int]] = []
"""Open files that hold locks, and their inodes: those of the dead are closed at the end."""


def _disk() -> Disk | None:
    process = HERE.get()
    return None if process is None or process.dead else DISKS.get(process.machine.name)


class _Connection(sqlite3.Connection):
    """A connection whose commits count."""

    place = ""

    def execute(self, sql: str, *arguments: Any) -> sqlite3.Cursor:
        disk = _disk()
        if disk is None:
            return super().execute(sql, *arguments)
        if sql.startswith("BEGIN"):
            log = f"{self.place}-wal"
            disk.lasting[log] = _size(log)
        elif sql.startswith("COMMIT"):
            self._touch(disk)
            cursor = super().execute(sql, *arguments)
            disk.touch(may_fail=False)
            disk.lasting.pop(f"{self.place}-wal", None)
            return cursor
        return super().execute(sql, *arguments)

    @staticmethod
    def _touch(disk: Disk) -> None:
        try:
            disk.touch()
        except OSError:
            raise sqlite3.OperationalError("database or disk is full") from None


def _size(path: str) -> int:
    try:
        return os.stat(path).st_size
    except OSError:
        return 0


def install() -> None:
    """Replaces what makes writes last in this process, which does nothing but simulations."""
    connect, lock = sqlite3.connect, __import__("fcntl")

    def connected(path: Any, *arguments: Any, **named: Any) -> sqlite3.Connection:
        if (disk := _disk()) is None:
            return connect(path, *arguments, **named)
        # SQLite makes a database itself last, before it is done with what its log has of it.
        disk.lasting.pop(str(path), None)
        made = connect(path, *arguments, factory=_Connection, **named)
        made.place = str(path)
        return made

    def lasting(handle: int) -> None:
        disk = _disk()
        if disk is None:
            return
        path = os.readlink(f"/proc/self/fd/{handle}")
        disk.lasting.setdefault(path, 0)
        disk.touch()
        disk.lasting[path] = os.fstat(handle).st_size

    flock = lock.flock

    def noted(handle: Any, operation: int) -> None:
        flock(handle, operation)
        if isinstance(handle, int) and operation & lock.LOCK_EX:
            found = os.fstat(handle)
            if (handle, found.st_ino) not in HANDLES[-8:]:
                HANDLES.append((handle, found.st_ino))

    sqlite3.connect = connected  # type: ignore[assignment]
    os.fsync = lasting  # type: ignore[assignment]
    lock.flock = noted  # type: ignore[assignment]


def close_handles() -> None:
    """Closes the locked files that the dead have left."""
    while HANDLES:
        handle, inode = HANDLES.pop()
        try:
            if os.fstat(handle).st_ino == inode:
                os.close(handle)
        except OSError:
            pass
