"""What the levels of a job have disclosed: kept over restarts, bound to the software, and forgotten in time."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from jobs.loading import job_of
from jobs.resumption import hindrance
from jobs.spec.job import JobSpec
from link.errors import BY_CODE
from mining.joint.progress import MAX_ATTEMPTS, KeptLevel, KeptRows
from party.jobs import progress
from party.jobs.progress import check_goes_on, check_same_rows, forget, forget_stale, keeper_of
from party.state.store import Record, Store
from protos.v1.control_pb2 import APPROVED, CANCELLED, EXPIRED, FAILED, RUNNING, SUCCEEDED, JobState
from tests.errors import fails
from tests.party.state.test_store import record

LEVELS = [
    KeptLevel(9, np.array([[0], [1]], np.int32), np.array([5, 4]), {"north": ["a=1"], "south": ["b=ミ"]}),
    KeptLevel(9, np.array([[0, 1]], np.int32), None),
]
JOB = record().job_id


def spec_of(partition: str = "vertical") -> JobSpec:
    job = {"name": "j", "task": "itemsets", "parties": ["north", "south"], "dataset": "people", "partition": partition}
    return job_of({"job": job, "itemsets": {"min_support": 2}}, "the test", Path())


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    made = Store.open(tmp_path / "node.db")
    made.add(record(state=RUNNING))
    yield made
    made.close()


def kept(store: Store) -> list[bytes]:
    return [level.pack() for level in keeper_of(store, JOB, spec_of(), 2).kept or ()]


def keep(store: Store, levels: list[KeptLevel]) -> None:
    keeper = keeper_of(store, JOB, spec_of(), 1)
    assert keeper.kept is None
    for level in levels:
        keeper.keep(level)


def test_what_was_kept_is_there_after_a_restart(tmp_path: Path, store: Store) -> None:
    keep(store, LEVELS)
    keep(store, LEVELS[1:])  # once more, by the next attempt
    again = Store.open(tmp_path / "node.db")
    assert kept(again) == [level.pack() for level in LEVELS]
    again.close()


def test_common_rows_are_kept_beside_levels(store: Store) -> None:
    rows = KeptRows(b"a session", np.array([True, False, True]))
    keep(store, LEVELS)
    keeper_of(store, JOB, spec_of(), 1).keep_rows(rows)
    again = keeper_of(store, JOB, spec_of(), 2)
    assert again.rows is not None
    assert again.rows.pack() == rows.pack()
    assert kept(store) == [level.pack() for level in LEVELS]
    assert keeper_of(store, JOB, spec_of(), 1).rows is None
    forget(store, JOB, "")
    assert keeper_of(store, JOB, spec_of(), 2).rows is None


def test_levels_after_a_gap_are_not_gone_on_from(store: Store) -> None:
    keep(store, LEVELS[1:])
    assert kept(store) == []


def test_another_version_of_comine_begins_anew(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    keep(store, LEVELS)
    monkeypatch.setattr(progress, "software_version", lambda: "99")
    assert kept(store) == []


def test_a_damaged_level_is_told(store: Store) -> None:
    keep(store, LEVELS)
    store.connection.execute("UPDATE levels SET level = x'00'")
    with fails("E100"):
        kept(store)


def test_jobs_over_rows_keep_nothing(store: Store) -> None:
    keeper = keeper_of(store, JOB, spec_of("horizontal"), 2)
    keeper.keep(LEVELS[0])
    assert keeper.kept is None
    assert kept(store) == []


@pytest.mark.parametrize(
    ("state", "expiry", "stays"),
    [(FAILED, 11, True), (CANCELLED, 11, True), (RUNNING, 11, True), (FAILED, 10, False), (SUCCEEDED, 11, False)],
)
def test_what_cannot_go_on_is_forgotten(store: Store, state: JobState.ValueType, expiry: int, stays: bool) -> None:
    other = record(2, state=state, expiry=expiry)
    store.add(other)
    store.keep_level(other.job_id, 1, "v", b"level")
    forget_stale(store, 10.0)
    assert bool(store.levels(other.job_id, "v")) == stays


@pytest.mark.parametrize("code", [*sorted(BY_CODE), ""])
def test_an_end_after_which_nothing_follows_forgets(store: Store, code: str) -> None:
    keep(store, LEVELS)
    forget(store, JOB, code)
    assert bool(kept(store)) == (code in ("E101", "E200", "E500", "E600"))


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
        (over(error_code="E103"), "vertical", 2, "only a job that lost a party"),
        (over(state=EXPIRED, error_code="E300"), "vertical", 2, "only a job that lost a party"),
        (over(), "horizontal", 2, "only jobs over columns"),
        (over(), "vertical", MAX_ATTEMPTS + 1, "its 5 attempts"),
    ],
)
def test_no_other_job_goes_on(found: Record, partition: str, attempt: int, why: str) -> None:
    with fails("E401"):
        check_goes_on(found, spec_of(partition), attempt, "north")


def test_rows_that_have_changed_are_refused() -> None:
    check_same_rows(over(data_digest=None), b"new", "north")
    check_same_rows(over(data_digest=b"old"), b"old", "north")
    with fails("E101", party="north") as caught:
        check_same_rows(over(data_digest=b"old"), b"new", "north")
    assert (caught.value.exit_code, caught.value.party) == (10, "north")
