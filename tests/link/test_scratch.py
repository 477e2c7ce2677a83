"""Copies of rows that a command makes for a while: none outlives it for long, however it ends."""

from __future__ import annotations

import fcntl
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import pytest

from link.files import scratch
from link.files.scratch import remove_abandoned, scratch_folder

PREFIX = "scratch-"

DIES = """
import os, pathlib, signal, sys
from link.files.scratch import scratch_folder
with scratch_folder(pathlib.Path(sys.argv[1]), "scratch-") as folder:
    (folder / "rows").write_text("milk")
    os.kill(os.getpid(), signal.SIGKILL)
"""


def test_a_folder_is_private_and_goes_with_its_use(tmp_path: Path) -> None:
    with scratch_folder(tmp_path, PREFIX) as folder:
        (folder / "rows").write_text("milk")
        assert folder.stat().st_mode & 0o777 == 0o700
        with scratch_folder(tmp_path, PREFIX) as other:
            assert other != folder
        remove_abandoned(tmp_path, PREFIX)
        assert (folder / "rows").exists()
    assert not any(tmp_path.iterdir())


def test_what_a_process_leaves_that_dies_is_removed_by_the_next(tmp_path: Path) -> None:
    for clean in (lambda: remove_abandoned(tmp_path, PREFIX), lambda: scratch_folder(tmp_path, PREFIX).__enter__()):
        died = subprocess.run([sys.executable, "-c", DIES, str(tmp_path)], check=False)
        assert died.returncode < 0
        (left,) = tmp_path.iterdir()
        assert left.name.startswith(PREFIX)
        clean()
        assert not left.exists()


def test_a_folder_that_is_taken_for_abandoned_before_it_is_locked_is_made_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made, make, lock = [], tempfile.mkdtemp, fcntl.flock

    def removed(*args: Any, **options: Any) -> str:
        made.append(make(*args, **options))
        if len(made) == 1:
            remove_abandoned(tmp_path, PREFIX)
        return made[-1]

    def locked(descriptor: int, how: int) -> None:
        if len(made) == 2 and how == fcntl.LOCK_EX:
            Path(made[-1]).rmdir()
        lock(descriptor, how)

    monkeypatch.setattr(scratch.tempfile, "mkdtemp", removed)
    monkeypatch.setattr(fcntl, "flock", locked)
    with scratch_folder(tmp_path, PREFIX) as folder:
        assert [str(folder)] == made[2:]


def test_no_state_folder_is_no_place(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError), scratch_folder(tmp_path / "none", PREFIX):
        pass


def test_what_is_of_others_or_leads_elsewhere_stays(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("elsewhere", f"{PREFIX}a", "b"):
        (tmp_path / name).mkdir()
    (tmp_path / f"{PREFIX}link").symlink_to(tmp_path / "elsewhere")
    (tmp_path / f"{PREFIX}file").write_text("")
    with monkeypatch.context() as other:
        other.setattr(scratch.os, "geteuid", lambda: -1)
        remove_abandoned(tmp_path, PREFIX)
    assert (tmp_path / f"{PREFIX}a").exists()
    remove_abandoned(tmp_path, PREFIX)
    assert {each.name for each in tmp_path.iterdir()} == {"elsewhere", "b", f"{PREFIX}link", f"{PREFIX}file"}
