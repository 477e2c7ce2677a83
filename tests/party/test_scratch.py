"""Copies of rows that a command makes for a while: none outlives it for long, however it ends."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from party.data.scratch import SCRATCH, remove_abandoned, scratch_folder

DIES = """
import os, pathlib, signal, sys
from party.data.scratch import scratch_folder
with scratch_folder(pathlib.Path(sys.argv[1])) as folder:
    (folder / "rows").write_text("milk")
    os.kill(os.getpid(), signal.SIGKILL)
"""


def test_a_folder_is_private_and_goes_with_its_use(tmp_path: Path) -> None:
    with scratch_folder(tmp_path) as folder:
        (folder / "rows").write_text("milk")
        assert {each.stat().st_mode & 0o777 for each in (folder, folder.parent)} == {0o700}
        with scratch_folder(tmp_path) as other:
            assert other != folder
        remove_abandoned(tmp_path)
        assert (folder / "rows").exists()
    assert not any((tmp_path / SCRATCH).iterdir())


def test_what_a_process_leaves_that_dies_is_removed_by_the_next(tmp_path: Path) -> None:
    for clean in (lambda: remove_abandoned(tmp_path), lambda: scratch_folder(tmp_path).__enter__()):
        died = subprocess.run([sys.executable, "-c", DIES, str(tmp_path)], check=False)
        assert died.returncode < 0
        (left,) = (tmp_path / SCRATCH).iterdir()
        clean()
        assert not left.exists()


def test_a_node_without_such_folders_has_nothing_to_remove(tmp_path: Path) -> None:
    remove_abandoned(tmp_path)
    assert not any(tmp_path.iterdir())
