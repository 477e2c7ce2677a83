"""Progress as programs show it, and the words for it."""

from __future__ import annotations

import sys
from types import SimpleNamespace
from typing import Any

import pytest

from comine.progress import shown_progress
from coordinator.cli.terminal.steps import Steps, about, in_words
from coordinator.jobs.progress import unwatched


@pytest.mark.parametrize(
    ("step", "words"),
    [
        ("", "waiting"),
        ("alignment", "aligning rows"),
        ("/task/rows/intersection/values", "aligning rows, values of ids"),
        ("/rows/intersection/a for b/values/function", "aligning rows, values of ids"),
        ("/rows/intersection", "aligning rows, values of ids"),
        ("alignment/list", "aligning rows, the list of values"),
        ("alignment/order", "aligning rows, their common order"),
        ("itemsets of 12", "itemsets of 12"),
        ("/task/items/union/items", "union of the names of items"),
        ("/task/some-lane", "some lane"),
        ("waits for its turn at north: place 2", "waits for its turn at north: place 2"),
    ],
)
def test_steps_are_named_in_words(step: str, words: str) -> None:
    assert in_words(step) == words


def test_the_time_left_is_told_once_parts_have_been_timed() -> None:
    now = [0.0]
    steps = Steps(lambda: now[0])

    def line(done: int, total: int, step: str = "encrypting") -> str:
        return steps.line("north", step, done, total)

    assert line(0, 10) == "encrypting: 0 of 10"
    now[0] = 3.0
    assert line(1, 10) == "encrypting: 1 of 10"
    now[0] = 6.0
    assert line(2, 10) == "encrypting: 2 of 10, about 24 s left"
    assert line(10, 10) == "encrypting: 10 of 10"
    assert line(0, 1, "rules") == "deciding which rules hold"  # whose size the coordinator need not learn
    assert line(2, 9, "multiplying") == "multiplying: 2 of 9"  # another step is timed anew


@pytest.mark.parametrize(("seconds", "words"), [(0.1, "about 1 s"), (89, "about 89 s"), (600, "about 10 min")])
def test_durations_are_rounded(seconds: float, words: str) -> None:
    assert about(seconds) == words


def test_hours_are_rounded() -> None:
    assert about(7200) == "about 2 h"


def play(wanted: bool | None) -> None:
    with shown_progress(["north"], wanted) as watcher:
        for done in range(3):
            watcher("north", "alignment", done, 2, 0, 0)


def test_nobody_is_told_who_does_not_ask(capsys: pytest.CaptureFixture[str]) -> None:
    play(None)
    with shown_progress(["north"], False) as watcher:
        assert watcher is unwatched
    assert capsys.readouterr().err == ""


def test_each_step_is_told_once(capsys: pytest.CaptureFixture[str]) -> None:
    play(True)
    assert capsys.readouterr().err == "north: aligning rows\n"


def test_a_notebook_shows_a_table_that_is_replaced(monkeypatch: pytest.MonkeyPatch) -> None:
    shown = list[str]()

    def display(text: str, *, display_id: bool) -> Any:
        assert display_id
        return SimpleNamespace(update=shown.append)

    notebook = SimpleNamespace(
        get_ipython=lambda: SimpleNamespace(kernel=1), display=SimpleNamespace(display=display, HTML=str)
    )
    monkeypatch.setitem(sys.modules, "IPython", notebook)
    play(None)
    assert shown[-1] == "<table><tr><th>north</th><td>aligning rows: 2 of 2</td></tr></table>"
    assert len(shown) == 3
