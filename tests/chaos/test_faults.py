"""What the simulation takes for right of files that faults have touched."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from tests.chaos.faults import bring_back


def world(folder: Path, *ran_on: str) -> Any:
    for name, contents in (
        ("north", "now"),
        ("north.right0.4", "before the second fault"),
        ("north.right0.1", "whole"),
    ):
        (folder / name).mkdir()
        (folder / name / "node.db").write_text(contents)
    return SimpleNamespace(folder=folder, damaged={"north": "node.db"}, ran_on={*ran_on}, say=lambda line: None)


@pytest.mark.parametrize(("ran_on", "damaged"), [((), {}), (("north",), {"north": ""})])
def test_files_of_before_all_faults_are_older_for_who_has_run_since(
    tmp_path: Path, ran_on: tuple[str, ...], damaged: dict[str, str]
) -> None:
    made = world(tmp_path, *ran_on)
    bring_back(made, "north")
    assert (tmp_path / "north" / "node.db").read_text() == "whole"
    assert made.damaged == damaged
