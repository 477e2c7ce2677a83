"""Journals of jobs: sealed in the database, readable with their keys alone, bounded, and gone with their keys."""

from __future__ import annotations

import stat
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from link.errors import ComineError
from link.journal import ROOT, Journal, Known, Step
from party.state.journals import Journals
from party.state.store import Store
from tests.errors import fails

JOB, MARK = bytes(32), "a marked plaintext"
ROOT_SECRET = b"r" * 32
STEP = Step(f"/task/{MARK}", b"", Known([MARK] * 3, own=np.arange(3)))


@pytest.fixture
def journals(tmp_path: Path) -> Iterator[Journals]:
    store = Store.open(tmp_path / "node.db")
    yield Journals.beside(store, "north", 5000)
    store.close()


def begin(journals: Journals) -> Journal:
    return journals.begin(JOB, "v", ROOT_SECRET, attempt=1, started=False)


def test_no_file_holds_anything_readable_and_nothing_stays(journals: Journals, tmp_path: Path) -> None:
    journal = begin(journals)
    coins = journal.secret(f"/task/{MARK}", b"s" * 32)
    assert journal.keep(0, STEP)
    (key,) = journals.folder.iterdir()
    assert stat.S_IMODE(key.stat().st_mode) == 0o600
    files = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert not any(secret in path.read_bytes() for path in files for secret in (MARK.encode(), coins, ROOT_SECRET))
    journals.forget(JOB)
    assert journals.read(JOB, "*") == []
    assert list(journals.folder.iterdir()) == []


def test_a_secret_is_drawn_once_and_outlives_attempts(journals: Journals) -> None:
    first = begin(journals)
    assert first.secret("noise", b"1" * 32) == first.secret("noise", b"2" * 32) == b"1" * 32
    assert first.secret("others", b"3" * 32) == b"3" * 32
    again = journals.resume(JOB, "v")
    assert again.secret("noise", b"4" * 32) == b"1" * 32
    assert begin(journals).secret("noise", b"5" * 32) == b"5" * 32


def test_a_step_takes_the_place_of_all_behind_it(journals: Journals) -> None:
    journal = begin(journals)
    steps = [Step(str(number), b"", Known(number)) for number in range(4)]
    assert all(journal.keep(place, step) for place, step in enumerate(steps))
    assert journal.keep(1, steps[3])
    assert [step.known.public for step in journals.resume(JOB, "v").steps()] == [0, 3]


def test_steps_are_bounded_and_secrets_are_not(journals: Journals) -> None:
    journal = begin(journals)
    assert journal.keep(0, Step("small", b"", Known(bytes(500))))
    assert not journal.keep(1, Step("large", b"", Known(bytes(2500))))
    assert len(journal.steps()) == 1
    assert journal.secret("noise", b"1" * 32) == b"1" * 32


def test_another_version_takes_no_steps_over_and_refuses_coins(journals: Journals) -> None:
    first = begin(journals)
    first.keep(0, STEP)
    first.secret("rows", b"digest")
    second = journals.resume(JOB, "w")
    assert (second.steps(), second.secret("rows", b"other")) == ([], b"digest")
    assert second.keep(0, STEP)
    second.secret("/task/noise", bytes(32))
    with fails("E102", party="north"):
        journals.resume(JOB, "v")


@pytest.mark.parametrize("what", ["no key", "another key", "half a key", "no rows", "another place", "cut"])
def test_what_was_damaged_is_told(journals: Journals, what: str) -> None:
    journal = begin(journals)
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
            journals.connection.execute("UPDATE journal SET what = 'step 000000' WHERE what = 'step 000001'")
        case _:
            journals.connection.execute("UPDATE journal SET sealed = x'00' WHERE what GLOB 'step *'")
    with fails("E100"):
        journals.resume(JOB, "v").steps()


def test_a_disk_that_takes_nothing_more_keeps_nothing_more(journals: Journals) -> None:
    journal = begin(journals)
    journals.connection.execute("PRAGMA query_only = 1")
    assert not journal.keep(0, STEP)


def test_a_copy_of_the_database_shows_no_length_but_a_power_of_two(journals: Journals) -> None:
    journal = begin(journals)
    for place, size in enumerate((0, 1, 500)):
        assert journal.keep(0, Step("s", b"", Known(bytes(size))))
        ((_, sealed),) = journals.read(JOB, "step *")
        assert len(sealed) == 12 + 1024 + 16, place
        assert journal.steps()[0].known.public == bytes(size)
    journals.most = 1 << 20
    for size in (1000, 1500, 70_000):
        assert journal.keep(0, Step("s", b"", Known(bytes(size))))
        ((_, sealed),) = journals.read(JOB, "step *")
        assert (len(sealed) - 28).bit_count() == 1
        assert journal.steps()[0].known.public == bytes(size)


def test_a_journal_that_has_gone_is_missed_and_not_made_anew(journals: Journals) -> None:
    """Also by whoever has it open: coins drawn after it was forgotten would be drawn a second time later."""
    journal = begin(journals)
    journals.forget(JOB)
    for name in ("/task/noise", ROOT):
        with fails("E100"):
            journal.secret(name, bytes(32))
    with fails("E100"):
        journals.resume(JOB, "v")
    assert journals.read(JOB, "*") == []
    assert list(journals.folder.iterdir()) == []


def test_a_start_finds_what_an_earlier_one_has_made(journals: Journals) -> None:
    begin(journals)
    assert journals.begin(JOB, "v", bytes(32), attempt=1, started=True).secret(ROOT, bytes(32)) == ROOT_SECRET
    journals.connection.execute("DELETE FROM journal")
    with fails("E100"):
        journals.begin(JOB, "v", bytes(32), attempt=1, started=True)


def test_a_disk_that_is_full_as_a_job_starts_first_leaves_no_key(journals: Journals) -> None:
    journals.connection.execute("CREATE TRIGGER full BEFORE INSERT ON journal BEGIN SELECT raise(ABORT, 'full'); END")
    with pytest.raises(ComineError):
        begin(journals)
    assert list(journals.folder.iterdir()) == []
    journals.connection.execute("DROP TRIGGER full")
    journals.folder.joinpath(f"{JOB.hex()}.key").write_bytes(bytes(32))  # of a node that died in between
    assert begin(journals).secret(ROOT, bytes(32)) == ROOT_SECRET


def test_one_key_that_cannot_be_removed_is_in_nobody_elses_way(journals: Journals) -> None:
    jobs = [bytes([number]) * 32 for number in range(3)]
    for job in jobs:
        journals.begin(job, "v", ROOT_SECRET, attempt=1, started=False)
    stuck = journals.folder / f"{jobs[1].hex()}.key"
    stuck.unlink(), stuck.mkdir()
    with fails("E103"):
        journals.keep_only((), (), 0.0)
    assert list(journals.folder.iterdir()) == [stuck]
    assert not any(journals.read(job, "*") for job in jobs)
