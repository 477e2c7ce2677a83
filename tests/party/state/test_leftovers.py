from __future__ import annotations

import io
import json
from pathlib import Path

import pytest

from party.node.logs import open_log
from party.state.leftovers import OLD_SEEDS, remove_leftovers


def events(state: Path) -> list[str]:
    lines = io.StringIO()
    remove_leftovers(state, open_log("north", lines))
    return [json.loads(line)["event"] for line in lines.getvalue().splitlines()]


@pytest.mark.parametrize("names", [OLD_SEEDS, OLD_SEEDS[:1], OLD_SEEDS[-1:]])
def test_old_seeds_are_removed_once_and_nothing_else(tmp_path: Path, names: tuple[str, ...]) -> None:
    for name in (*names, "node.db", "stockings.db"):
        (tmp_path / name).write_bytes(b"kept")
    assert events(tmp_path) == ["old seeds removed"]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["node.db", "stockings.db"]
    assert events(tmp_path) == []


def test_seeds_that_cannot_be_removed_stop_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / OLD_SEEDS[0]).write_bytes(b"kept")

    def refuse(path: Path) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(Path, "unlink", refuse)
    assert events(tmp_path) == ["old seeds not removed"]


def test_drafts_of_a_process_that_died_are_removed(tmp_path: Path) -> None:
    (tmp_path / "journals").mkdir()
    for name in (".queue.json.390bc567.new", "journals/.a.key.00000000.new", ".audit.log.head.new", "queue.json"):
        (tmp_path / name).write_bytes(b"kept")
    assert events(tmp_path) == []
    assert sorted(path.name for path in tmp_path.rglob("*") if path.is_file()) == [".audit.log.head.new", "queue.json"]
