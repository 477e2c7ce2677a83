"""Locks of files, on a system with `flock`, on one like Windows, and on one without any."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest

from link.files import locks
from tests.errors import fails


class Windows:
    """As `msvcrt`: a byte of a file is locked by one handle, and who waits is refused after a while."""

    LK_LOCK, LK_NBLCK, LK_UNLCK = 1, 2, 0

    def __init__(self) -> None:
        self.holder: int | None = None
        self.gave_up = 0

    def locking(self, handle: int, mode: int, size: int) -> None:
        assert size == 1
        assert os.lseek(handle, 0, os.SEEK_CUR) == locks.PLACE
        if mode == self.LK_UNLCK:
            self.holder = None
        elif self.holder is None:
            self.holder = handle
        elif mode == self.LK_NBLCK:
            raise PermissionError(errno.EACCES, "Permission denied")
        else:
            self.gave_up += 1
            self.holder = None  # while it waited
            raise OSError(errno.EDEADLK, "Resource deadlock avoided")


@pytest.fixture
def windows(monkeypatch: pytest.MonkeyPatch) -> Windows:
    monkeypatch.setattr(locks, "fcntl", None)
    monkeypatch.setattr(locks, "msvcrt", made := Windows())
    return made


def twice(path: Path) -> tuple[int, int]:
    path.write_bytes(b"text")
    return os.open(path, os.O_RDWR), os.open(path, os.O_RDWR)


def test_one_holds_a_lock_until_it_gives_it_back(tmp_path: Path) -> None:
    one, other = twice(tmp_path / "file")
    locks.lock(one)
    with pytest.raises(BlockingIOError):
        locks.lock(other, shared=True)
    locks.unlock(one)
    locks.lock(other, shared=True)
    locks.lock(one, shared=True, wait=True)
    os.close(one)
    os.close(other)


def test_so_does_windows_and_no_place_in_a_file_changes(tmp_path: Path, windows: Windows) -> None:
    one, other = twice(tmp_path / "file")
    os.lseek(one, 2, os.SEEK_SET)
    locks.lock(one)
    assert os.read(one, 9) == b"xt"
    with pytest.raises(BlockingIOError):
        locks.lock(other)
    locks.lock(other, wait=True)
    assert windows.gave_up == 1
    locks.unlock(other)
    assert windows.holder is None
    os.close(one)
    os.close(other)


def test_where_there_are_none_a_sentence_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(locks, "fcntl", None)
    monkeypatch.setattr(locks, "msvcrt", None)
    one, other = twice(tmp_path / "file")
    with fails("E100"):
        locks.lock(one)
    os.close(one)
    os.close(other)
