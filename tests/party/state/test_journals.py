"""Journals of jobs: sealed in the database, readable with their keys alone, bounded, and gone with their keys."""

from __future__ import annotations

import stat
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from link.journal import Known, Step
from party.state.journals import Journals
from party.state.store import Store
from tests.errors import fails

JOB, MARK = bytes(32), "a marked plaintext"
STEP = Step(f"/task/{MARK}", b"", Known([MARK] * 3, own=np.arange(3)))


@pytest.fixture
def journals(tmp_path: Path) -> Iterator[Journals]:
    store = Store.open(tmp_path / "node.db")
    yield Journals.beside(store, "north", 1000)
    store.close()


def test_no_file_holds_anything_readable_and_nothing_stays(journals: Journals, tmp_path: Path) -> None:
    journal = journals.begin(JOB, "v", again=False)
    coins = journal.secret("/task/noise", b"s" * 32)
    assert journal.keep(0, STEP)
    (key,) = journals.folder.iterdir()
    assert stat.S_IMODE(key.stat().st_mode) == 0o600
    files = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert not any(secret in path.read_bytes() for path in files for secret in (MARK.encode(), coins))
    journals.forget(JOB)
    assert journals.read(JOB, "*") == []
    assert list(journals.folder.iterdir()) == []


def test_a_secret_is_drawn_once_and_outlives_attempts(journals: Journals) -> None:
    first = journals.begin(JOB, "v", again=False)
    assert first.secret("noise", b"1" * 32) == first.secret("noise", b"2" * 32) == b"1" * 32
    assert first.secret("others", b"3" * 32) == b"3" * 32
    again = journals.begin(JOB, "v", again=True)
    assert again.secret("noise", b"4" * 32) == b"1" * 32
    assert journals.begin(JOB, "v", again=False).secret("noise", b"5" * 32) == b"5" * 32


def test_a_step_takes_the_place_of_all_behind_it(journals: Journals) -> None:
    journal = journals.begin(JOB, "v", again=False)
    steps = [Step(str(number), b"", Known(number)) for number in range(4)]
    assert all(journal.keep(place, step) for place, step in enumerate(steps))
    assert journal.keep(1, steps[3])
    assert [step.known.public for step in journals.begin(JOB, "v", again=True).steps()] == [0, 3]


def test_steps_are_bounded_and_secrets_are_not(journals: Journals) -> None:
    journal = journals.begin(JOB, "v", again=False)
    assert journal.keep(0, Step("small", b"", Known(bytes(500))))
    assert not journal.keep(1, Step("large", b"", Known(bytes(500))))
    assert len(journal.steps()) == 1
    assert journal.secret("noise", b"1" * 32) == b"1" * 32


def test_another_version_takes_no_steps_over_and_refuses_coins(journals: Journals) -> None:
    first = journals.begin(JOB, "v", again=False)
    first.keep(0, STEP)
    first.secret("rows", b"digest")
    second = journals.begin(JOB, "w", again=True)
    assert (second.steps(), second.secret("rows", b"other")) == ([], b"digest")
    assert second.keep(0, STEP)
    second.secret("/task/noise", bytes(32))
    with fails("E102", party="north"):
        journals.begin(JOB, "v", again=True)


@pytest.mark.parametrize("what", ["no key", "another key", "half a key", "no rows", "another place", "cut"])
def test_what_was_damaged_is_told(journals: Journals, what: str) -> None:
    journal = journals.begin(JOB, "v", again=False)
    journal.keep(0, STEP)
    (key,) = journals.folder.iterdir()
    match what:
        case "no key":
            key.unlink()
        case "another key":
            key.write_bytes(bytes(32))
        case "half a key":
            key.write_bytes(bytes(16))
        case "no rows":
            journals.connection.execute("DELETE FROM journal")
        case "another place":
            journal.keep(1, STEP)
            journals.connection.execute("DELETE FROM journal WHERE what = 'step 000000'")
            journals.connection.execute("UPDATE journal SET what = 'step 000000'")
        case _:
            journals.connection.execute("UPDATE journal SET sealed = x'00'")
    with fails("E100"):
        journals.begin(JOB, "v", again=True).steps()


def test_a_disk_that_takes_nothing_more_keeps_nothing_more(journals: Journals) -> None:
    journal = journals.begin(JOB, "v", again=False)
    journals.connection.execute("PRAGMA query_only = 1")
    assert not journal.keep(0, STEP)
