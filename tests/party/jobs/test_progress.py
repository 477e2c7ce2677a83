"""What the steps of a job have given: kept over restarts, bound to software and rows, and forgotten in time."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from decimal import Decimal
from pathlib import Path

import numpy as np
import pytest

from jobs.kinds.registry import kind_of
from jobs.loading import job_of
from jobs.privacy_account import Charge
from jobs.resumption import hindrance
from jobs.spec.job import JobSpec
from link.errors import BY_CODE
from link.journal import BEHIND, FIRST, ROOT, WHOLE, Journal, Known, Step
from link.steps import MAX_ATTEMPTS
from party.jobs import progress
from party.jobs.progress import check_goes_on, check_same_rows, forget_stale, is_over, journal_of, open_journal
from party.state.journals import Journals
from party.state.ledger import Entry
from party.state.store import Record, Store
from protos.v1.control_pb2 import APPROVED, CANCELLED, EXPIRED, FAILED, RELEASING, RUNNING, SUCCEEDED, JobState
from tests.errors import fails
from tests.party.state.test_store import record

JOB = record().job_id
ROWS = b"digest of rows"
STEPS = [Step(f"/task/itemsets of {length}", b"", Known(np.arange(length))) for length in (1, 2)]


STARTED, DRAWN = (
    Entry(JOB, 1, 1.0, "people", "j", "analyst", charge)
    for charge in (Charge("exact", None, None, None), Charge("distributed", None, Decimal(1), Decimal(0)))
)
EXPIRY = record().expiry


def spec_of(partition: str = "vertical") -> JobSpec:
    job = {"name": "j", "task": "itemsets", "parties": ["north", "south"], "dataset": "people", "partition": partition}
    return job_of({"job": job, "itemsets": {"min_support": 2}}, "the test", Path())


@pytest.fixture
def journals(tmp_path: Path) -> Iterator[Journals]:
    store = Store.open(tmp_path / "node.db")
    store.add(record(state=RUNNING))
    yield Journals.beside(store, "north")
    store.close()


def journal(journals: Journals, attempt: int = 2, rows: bytes = ROWS) -> Journal:
    open_journal(journals, JOB, spec_of(), attempt, [STARTED] * (attempt - 1))
    found = journal_of(journals, JOB, spec_of(), rows)
    assert found is not None
    return found


def keep(journals: Journals) -> None:
    first = journal(journals, 1)
    assert all(first.keep(place, step) for place, step in enumerate(STEPS))


def test_what_was_kept_is_there_in_another_attempt(journals: Journals) -> None:
    keep(journals)
    assert [step.pack() for step in journal(journals).steps()] == [step.pack() for step in STEPS]


def test_another_version_of_comine_begins_anew(journals: Journals, monkeypatch: pytest.MonkeyPatch) -> None:
    keep(journals)
    monkeypatch.setattr(progress, "software_version", lambda: "99")
    assert journal(journals).steps() == []
    with fails("E101", party="north"):
        journal(journals, rows=b"other rows")


def test_other_rows_than_those_of_the_journal_are_refused(journals: Journals) -> None:
    keep(journals)
    with fails("E101", party="north"):
        journal(journals, rows=b"other rows")


def test_coins_that_were_charged_and_are_lost_are_not_drawn_anew(journals: Journals) -> None:
    """Whether or not the first start came to draw: it may have, or the journal would be there."""
    with fails("E100"):
        open_journal(journals, JOB, spec_of(), 2, [DRAWN])
    coins = journal(journals, 1).secret("noise", b"1" * 32)
    open_journal(journals, JOB, spec_of(), 2, [DRAWN])
    assert journal(journals).secret("noise", b"2" * 32) == coins
    journals.forget(JOB)
    with fails("E100"):
        open_journal(journals, JOB, spec_of(), 2, [DRAWN])


@pytest.mark.parametrize(("attempt", "kept"), [(1, WHOLE), (2, BEHIND)])
def test_a_journal_says_whether_it_is_of_the_first_attempt(journals: Journals, attempt: int, kept: bytes) -> None:
    """One that is not takes the first word on it for good."""
    open_journal(journals, JOB, spec_of(), attempt, [])
    first = journal_of(journals, JOB, spec_of(), ROWS)
    assert first is not None
    assert first.secret(FIRST, BEHIND) == kept
    open_journal(journals, JOB, spec_of(), attempt + 1, [DRAWN])
    assert journal(journals).secret(FIRST, WHOLE) == kept


def test_a_start_that_died_before_it_drew_anything_is_followed_by_another(journals: Journals) -> None:
    open_journal(journals, JOB, spec_of(), 1, [])
    open_journal(journals, JOB, spec_of(), 2, [DRAWN])


@pytest.mark.parametrize(
    ("state", "expiry", "stays"),
    [
        (FAILED, 11, True),
        (CANCELLED, 11, True),
        (RUNNING, 10, True),
        (RELEASING, 10, True),
        (FAILED, 10, False),
        (SUCCEEDED, 11, False),
    ],
)
def test_what_cannot_go_on_is_forgotten(
    journals: Journals, tmp_path: Path, state: JobState.ValueType, expiry: int, stays: bool
) -> None:
    store, other = Store.open(tmp_path / "node.db"), record(2, state=state, expiry=expiry)
    store.add(other)
    store.close()
    journals.begin(other.job_id, "v", bytes(32), attempt=1, started=False).keep(0, STEPS[0])
    assert forget_stale(journals, 10.0) == (expiry if stays and state not in (RUNNING, RELEASING) else None)
    assert bool(journals.read(other.job_id, "*")) == stays
    assert bool(list(journals.folder.iterdir())) == stays


def test_noise_is_not_drawn_a_second_time_when_the_proposal_expires_during_an_attempt(journals: Journals) -> None:
    """Whatever else ends at the node meanwhile, before the job draws for the first time and between two draws."""
    open_journal(journals, JOB, spec_of(), 1, [])
    first = journal_of(journals, JOB, spec_of(), ROWS)
    assert first is not None
    root, noise = first.secret(ROOT, b"1" * 32), first.secret("/task/noise", b"1" * 32)
    open_journal(journals, JOB, spec_of(), 2, [DRAWN])
    forget_stale(journals, EXPIRY + 1.0)
    with fails("E101"):
        journal_of(journals, JOB, spec_of(), b"other rows")
    second = journal_of(journals, JOB, spec_of(), ROWS)
    assert second is not None
    assert second.secret(ROOT, b"2" * 32) == root
    forget_stale(journals, EXPIRY + 2.0)
    assert second.secret("/task/noise", b"2" * 32) == noise
    assert second.secret(ROOT, b"2" * 32) == root


def test_a_journal_that_is_lost_once_a_job_has_started_is_not_made_anew(journals: Journals) -> None:
    open_journal(journals, JOB, spec_of(), 1, [])
    journals.forget(JOB)
    with fails("E100"):
        journal_of(journals, JOB, spec_of(), ROWS)
    assert journals.read(JOB, "*") == []


@pytest.mark.parametrize("code", [*sorted(BY_CODE), ""])
def test_an_end_after_which_nothing_follows_forgets(code: str) -> None:
    assert is_over(1, code) == (code not in ("E101", "E103", "E200", "E500", "E600"))
    assert is_over(MAX_ATTEMPTS, "E200")


def test_what_is_over_is_forgotten_whatever_its_state_says(journals: Journals) -> None:
    keep(journals)
    assert forget_stale(journals, 0.0, [JOB]) is None
    assert journals.read(JOB, "*") == []
    assert list(journals.folder.iterdir()) == []


def over(**changes: object) -> Record:
    return replace(record(state=FAILED, error_code="E200", approval=b"yes", attempt=1), **changes)  # type: ignore[arg-type]


def test_a_lost_job_that_was_approved_goes_on() -> None:
    check_goes_on(over(), spec_of(), 2, "north")
    check_goes_on(record(state=APPROVED, approval=b"yes"), spec_of(), 2, "north")  # the first never reached this party
    assert hindrance(spec_of(), "E600", 1) == ""


@pytest.mark.parametrize(
    ("found", "partition", "attempt", "why"),
    [
        (over(approval=b""), "vertical", 2, "nobody has approved it"),
        (over(error_code="E400"), "vertical", 2, "only a job that lost a party"),
        (over(error_code="E100"), "vertical", 2, "only a job that lost a party"),
        (over(state=EXPIRED, error_code="E300"), "vertical", 2, "only a job that lost a party"),
        (over(), "vertical", MAX_ATTEMPTS + 1, "its 5 attempts"),
    ],
)
def test_no_other_job_goes_on(found: Record, partition: str, attempt: int, why: str) -> None:
    with fails("E401"):
        check_goes_on(found, spec_of(partition), attempt, "north")


def test_a_kind_that_keeps_nothing_does_not_go_on(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(type(kind_of(spec_of())), "resumes", lambda self, spec: False)
    assert "keep nothing" in hindrance(spec_of(), "E200", 1)


VERIFIED = {
    "three compute": ("horizontal", {"helper": "east"}),
    "two compute": ("horizontal", {}),
    "columns": ("vertical", {"helper": "east"}),
}


@pytest.mark.parametrize("mode", VERIFIED)
def test_where_parties_may_deviate_no_attempt_follows_and_nothing_is_kept_for_one(
    journals: Journals, mode: str
) -> None:
    """Else one could end an attempt by what it saw, and choose other counts in the next. No first one is skipped."""
    partition, trust = VERIFIED[mode]
    job = {"name": "j", "task": "itemsets", "parties": ["north", "south", "east"], "dataset": "people"}
    itemsets = (
        {"min_support": 2} if partition == "vertical" else {"min_support": 20, "universe": "c", "catalogue": ["a"]}
    )
    contents = {"job": job | {"partition": partition}, "itemsets": itemsets, "trust": trust | {"security": "malicious"}}
    spec = job_of(contents, "the test", Path())
    assert spec.is_verified
    for attempt in range(2, MAX_ATTEMPTS + 1):
        for found in (*(over(error_code=code) for code in BY_CODE), record(state=APPROVED, approval=b"yes")):
            with fails("E401"):
                check_goes_on(found, spec, attempt, "north")
    open_journal(journals, JOB, spec, 1, [])
    assert journal_of(journals, JOB, spec, ROWS) is None
    assert journals.read(JOB, "*") == []


def test_rows_that_have_changed_are_refused() -> None:
    check_same_rows(over(data_digest=None), b"new", "north")
    check_same_rows(over(data_digest=b"old"), b"old", "north")
    with fails("E101", party="north") as caught:
        check_same_rows(over(data_digest=b"old"), b"new", "north")
    assert (caught.value.exit_code, caught.value.party) == (10, "north")
