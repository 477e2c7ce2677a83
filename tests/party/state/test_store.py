from __future__ import annotations

import hashlib
import re
import sqlite3
import stat
import threading
from collections.abc import Callable
from dataclasses import replace
from decimal import Decimal
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from jobs.privacy_account import Charge
from link.journal import Known, Step
from party.jobs.job import MOVES
from party.state.journals import Journals
from party.state.ledger import Entry, Ledger, charges
from party.state.store import Record, Store
from protos.v1.control_pb2 import (
    APPROVED,
    AWAITING_APPROVAL,
    CANCELLED,
    DENIED,
    EXPIRED,
    FAILED,
    JOB_STATE_UNSPECIFIED,
    RELEASING,
    RUNNING,
    SUCCEEDED,
    JobState,
)
from tests.errors import fails

ROOT = Path(__file__).parents[3]


def record(number: int = 1, **changes: Any) -> Record:
    made = Record(
        job_id=bytes([number]) * 32,
        proposal=b"proposal",
        coordinator="analyst",
        dataset="baskets",
        parties=("north", "south"),
        min_support="0.01",
        expiry=2000,
        received=1000.0 + number,
        state=AWAITING_APPROVAL,
    )
    return replace(made, **changes)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "state" / "node.db"


def test_the_database_is_made_for_its_owner_alone(path: Path) -> None:
    store = Store.open(path)
    store.add(record())
    for file in (path, *path.parent.glob("node.db-*")):
        assert stat.S_IMODE(file.stat().st_mode) == 0o600, file
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700
    store.close()
    path.chmod(0o644)
    Store.open(path).close()
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_what_is_written_is_read_after_a_restart(path: Path) -> None:
    first = Store.open(path)
    whole = record(
        state=SUCCEEDED,
        decided=1.5,
        decided_by="policy",
        reason="none",
        approval=b"approval",
        started=2.5,
        n_rows=7,
        data_digest=b"digest",
        ended=3.5,
        error_code="E100",
        error_message="words",
        error_party="north",
        release=b"release",
        attempt=2,
    )
    assert first.add(whole)
    assert first.add(record(2))
    first.close()
    second = Store.open(path)
    assert second.get(whole.job_id) == whole
    assert second.get(bytes(32)) is None
    assert second.all() == [record(2), whole]
    assert second.within([AWAITING_APPROVAL, APPROVED]) == [record(2)]
    second.close()


def test_a_job_id_is_taken_once(path: Path) -> None:
    store = Store.open(path)
    assert store.add(record())
    assert not store.add(record(coordinator="rival"))
    assert store.get(record().job_id) == record()
    store.close()


def test_of_jobs_that_the_policy_refused_the_newest_are_kept(path: Path) -> None:
    store = Store.open(path)
    for number in range(1, 6):
        store.add(record(number, state=DENIED, decided_by="policy"))
    store.add(record(6, state=DENIED, decided_by="Ada", received=1.0))
    store.add(record(7))
    store.forget_refused("policy", keep=2)
    assert {kept.job_id[0] for kept in store.all()} == {4, 5, 6, 7}
    store.close()


def test_jobs_are_found_by_the_beginning_of_their_id(path: Path) -> None:
    store = Store.open(path)
    for number in (0x11, 0x12, 0xAB):
        store.add(record(number))
    assert [found.job_id[0] for found in store.find("1")] == [0x11, 0x12]
    assert [found.job_id[0] for found in store.find("ABab")] == [0xAB]
    assert store.find("12" * 32) == [record(0x12)]
    assert store.find("13") == []
    store.close()


def test_history_is_of_started_jobs_on_the_dataset_alone_and_in_order(path: Path) -> None:
    store = Store.open(path)
    store.add(record(1, started=30.0, state=SUCCEEDED, n_rows=5, data_digest=b"rows"))
    store.add(record(2, started=20.0, state=RUNNING))
    store.add(record(3))
    store.add(record(4, started=10.0, dataset="visits", state=RUNNING))
    earlier = store.latest("baskets", b"", 9)
    assert [(job.job_id[0], job.started, job.state, job.n_rows) for job in earlier] == [
        (2, 20.0, "RUNNING", None),
        (1, 30.0, "SUCCEEDED", 5),
    ]
    assert store.first("baskets", b"") == earlier[:1]
    assert store.first("baskets", earlier[0].job_id) == earlier[1:]
    assert store.latest("baskets", b"", 1) == earlier[1:]
    assert [(job.job_id, job.started) for job in store.starts("baskets", b"", 9)] == [
        (job.job_id, job.started) for job in earlier
    ]
    assert [job.job_id for job in store.starts("baskets", earlier[1].job_id, 1)] == [earlier[0].job_id]
    assert store.latest("baskets", earlier[1].job_id, 1) == earlier[:1]
    assert store.last_counted("baskets", b"") == earlier[1:]
    assert store.last_counted("baskets", earlier[1].job_id) == []
    store.close()


def test_the_last_approved_job_is_of_the_same_coordinator_and_dataset(path: Path) -> None:
    store = Store.open(path)
    store.add(record(1, state=APPROVED, approval=b"yes", decided=5.0))
    store.add(record(2, state=SUCCEEDED, approval=b"yes", decided=6.0))
    store.add(record(3, state=DENIED))
    store.add(record(4, state=APPROVED, approval=b"yes", decided=8.0, coordinator="rival"))
    store.add(record(5, state=APPROVED, approval=b"yes", decided=9.0, dataset="visits"))
    found = store.last_approved("analyst", "baskets", before=1006.0)
    assert found is not None
    assert found.job_id[0] == 2
    assert store.last_approved("analyst", "baskets", before=1000.0) is None
    store.close()


STATES = [state for state in JobState.values() if state != JOB_STATE_UNSPECIFIED]


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=60)
@given(moves=st.lists(st.tuples(st.sampled_from(STATES), st.sampled_from(STATES)), max_size=8))
def test_only_legal_moves_from_the_present_state_are_written(tmp_path: Path, moves: list[tuple[Any, Any]]) -> None:
    store = Store.open(tmp_path / "node.db")
    number = len(store.all())
    job = record(state=AWAITING_APPROVAL, job_id=number.to_bytes(32, "big"))
    store.add(job)
    present: Any = AWAITING_APPROVAL
    for before, after in moves:
        if after not in MOVES[before]:
            with pytest.raises(RuntimeError, match="cannot go from"):
                store.move(job.job_id, before, after, {})
        else:
            moved = store.move(job.job_id, before, after, {"ended": 1.0})
            assert moved == (before == present)
            present = after if moved else present
        assert (found := store.get(job.job_id)) is not None
        assert found.state == present
    store.close()


def test_of_many_that_decide_at_once_one_does(path: Path) -> None:
    stores = [Store.open(path) for _ in range(4)]
    stores[0].add(record())
    barrier, won = threading.Barrier(8), list[int]()

    def decide(number: int) -> None:
        barrier.wait()
        if stores[number % 4].move(record().job_id, AWAITING_APPROVAL, APPROVED, {"decided_by": str(number)}):
            won.append(number)

    threads = [threading.Thread(target=decide, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(won) == 1
    assert (found := stores[1].get(record().job_id)) is not None
    assert found.decided_by == str(won[0])
    for store in stores:
        store.close()


def test_what_another_process_writes_is_noticed_once(path: Path) -> None:
    node, person = Store.open(path), Store.open(path)
    node.add(record())
    assert not node.changed()
    assert person.changed()
    person.move(record().job_id, AWAITING_APPROVAL, DENIED, {})
    assert node.changed()
    assert not node.changed()
    node.close(), person.close()


def test_what_is_done_alone_is_done_whole_or_not_at_all(path: Path) -> None:
    store = Store.open(path)

    def interrupted() -> None:
        with store.alone():
            store.add(record())
            raise KeyError

    with pytest.raises(KeyError):
        interrupted()
    assert store.all() == []
    with store.alone():
        store.add(record())
    assert store.all() == [record()]
    store.close()


def test_nothing_that_one_thread_reads_is_in_the_way_of_what_another_writes(path: Path) -> None:
    store, stop, faults = Store.open(path), threading.Event(), list[BaseException]()

    def fold() -> None:
        try:
            while not stop.is_set():
                store.fold()
                store.bins()
        except BaseException as error:
            faults.append(error)

    reader = threading.Thread(target=fold)
    reader.start()
    try:
        for number in range(150):
            with store.alone():
                store.add_companions([f"other{number}.db"])
    finally:
        stop.set()
        reader.join()
        store.close()
    assert not faults


def test_a_column_that_does_not_exist_is_a_fault_of_ours(path: Path) -> None:
    store = Store.open(path)
    with pytest.raises(RuntimeError, match="no column"):
        store.move(record().job_id, RELEASING, CANCELLED, {"state = 1 --": 1})
    store.close()


def foreign(path: Path) -> None:
    with sqlite3.connect(path) as database:
        database.execute("CREATE TABLE contacts (name TEXT)")
    database.close()


def newer(path: Path) -> None:
    Store.open(path).close()
    with sqlite3.connect(path) as database:
        database.execute("PRAGMA user_version = 99")
    database.close()


def damaged(path: Path) -> None:
    store = Store.open(path)
    for number in range(60):
        store.add(record(number, proposal=b"x" * 2000))
    store.close()
    contents = bytearray(path.read_bytes())
    contents[4096 : 4096 * 20] = b"\xa5" * (4096 * 19)
    path.write_bytes(contents)


@pytest.mark.parametrize(
    ("spoil", "code"),
    [
        (lambda path: path.write_bytes(b"this is no database" * 99), "E100"),
        (damaged, "E100"),
        (foreign, "E100"),
        (newer, "E100"),
        (lambda path: path.mkdir(), "E103"),
    ],
)
def test_a_database_that_is_not_ours_or_not_whole_is_one_sentence(tmp_path: Path, spoil: Any, code: str) -> None:
    path = tmp_path / "node.db"
    spoil(path)
    with fails(code):
        Store.open(path).all()


def test_no_sentence_advises_a_folder_without_the_history_that_limits_count() -> None:
    sources = [path for folder in ("party", "jobs", "coordinator") for path in (ROOT / folder).rglob("*.py")]
    assert len(sources) > 100
    for path in sources:
        assert not re.search(r"change (\[party\] )?state_dir", path.read_text()), path


def test_a_database_that_is_held_for_too_long_is_one_sentence(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Store, "KIND", replace(Store.KIND, busy_s=0.05))
    one, other = Store.open(path), Store.open(path)
    with one.alone():
        one.add(record())
        with fails("E103"):
            other.add(record(2))
    one.close(), other.close()


# -- what a long past costs -------------------------------------------------------------------------------------------
class Steps:
    """Counts the instructions of SQLite's virtual machine: what a query visits, whatever the machine is busy with."""

    def __init__(self, *connections: sqlite3.Connection) -> None:
        self.number = 0
        for connection in connections:
            connection.set_progress_handler(self._count, 1)

    def _count(self) -> int:
        self.number += 1
        return 0

    def of(self, call: Callable[[], object]) -> int:
        before = self.number
        call()
        return self.number - before


def past(path: Path, number: int) -> tuple[Store, Ledger]:
    """Jobs of some datasets that came to every end, some of which can go on."""
    store, ledger = Store.open(path), Ledger.open(path)
    ends = (SUCCEEDED, FAILED, CANCELLED, DENIED, EXPIRED)
    with store.alone():
        for i in range(number):
            started = None if i % 5 > 2 else 1000.0 + i
            approval = {"approval": b"yes", "decided": 900.0 + i} if i % 5 != 3 else {"decided_by": "policy"}
            end: Any = ends[i % 5]
            store.add(
                record(
                    job_id=hashlib.sha256(i.to_bytes(8, "big")).digest(),
                    received=1000.0 + i,
                    state=end,
                    started=started,
                    n_rows=None if started is None else i,
                    data_digest=None if started is None else b"rows",
                    ended=2000.0 + i,
                    attempt=int(started is not None),
                    **approval,
                )
            )
    for i in range(number // 10):
        ledger.record(
            Entry(
                hashlib.sha256(i.to_bytes(8, "big")).digest(), 1, 5.0 + i, "baskets", "weekly", "analyst", COSTS[i % 2]
            )
        )
    return store, ledger


def journals(store: Store) -> Journals:
    return Journals.beside(store, "north")


COSTS = (Charge("exact", None, None, None), Charge("distributed", None, Decimal("0.5"), Decimal("1e-6")))
NEW = bytes(32)
CALLS: dict[str, Callable[[Store, Ledger], object]] = {
    "get": lambda store, _: store.get(hashlib.sha256(bytes(8)).digest()),
    "find": lambda store, _: store.find("abcdef"),
    "empty": lambda store, _: store.is_empty(),
    "open": lambda store, _: store.within([APPROVED, AWAITING_APPROVAL, RUNNING, RELEASING]),
    "first": lambda store, _: store.first("baskets", NEW),
    "latest": lambda store, _: store.latest("baskets", NEW, 5),
    "starts": lambda store, _: store.starts("baskets", NEW, 5),
    "counted": lambda store, _: store.last_counted("baskets", NEW),
    "approved": lambda store, _: store.last_approved("analyst", "baskets", before=9e9),
    "add": lambda store, _: store.add(record(job_id=NEW)),
    "refused": lambda store, _: store.forget_refused("policy", keep=10**6),
    "approve": lambda store, _: store.move(NEW, AWAITING_APPROVAL, APPROVED, {}),
    "start": lambda store, _: store.move(NEW, APPROVED, RUNNING, {"started": 9e8}),
    "data": lambda store, _: store.note_data(NEW, 7, b"rows"),
    "step": lambda store, _: (
        journals(store).begin(NEW, "1", NEW, attempt=1, started=False).keep(0, Step("step", b"", Known(1)))
    ),
    "steps": lambda store, _: journals(store).resume(NEW, "1").steps(),
    "stale": lambda store, _: journals(store).next_stale((APPROVED, FAILED, CANCELLED)),
    "keep journals": lambda store, _: journals(store).keep_only((RUNNING,), (FAILED, CANCELLED), 0.0),
    "end": lambda store, _: store.move(NEW, RUNNING, FAILED, {"ended": 9e8}),
    "forget": lambda store, _: journals(store).forget(NEW),
    "ended": lambda store, _: store.ended_after(8e8),
    "failed": lambda store, _: store.failed_here(["baskets", "visits"], "analyst", "north", ("north", "south"), 8e8),
    "prune": lambda store, _: store.prune(2005.0, 2010.0, 9e9, {"baskets": 3}, 4),
    "charge": lambda _, ledger: ledger.record(Entry(NEW, 1, 9e8, "baskets", "weekly", "analyst", COSTS[1])),
    "charged": lambda _, ledger: ledger.of_job(NEW),
    "spent": lambda _, ledger: charges(ledger.spent("baskets"), composed=False),
}


def test_no_call_of_a_job_visits_more_rows_after_a_longer_past(tmp_path: Path) -> None:
    """But for the depth of the trees, which grows with the logarithm of it."""
    costs = []
    for number in (300, 6000):
        store, ledger = past(tmp_path / f"{number}.db", number)
        steps = Steps(store.connection, ledger.connection)
        costs.append({name: steps.of(partial(call, store, ledger)) for name, call in CALLS.items()})
        store.close(), ledger.close()
    few, many = costs
    assert all(count > 0 for count in few.values())
    few["refused"] += 6000 // 5 * 20  # the newest thousand refusals are kept, and those are counted
    assert {name: (few[name], many[name]) for name in CALLS if many[name] > 1.2 * few[name] + 20} == {}


def test_of_the_past_what_rules_may_ask_for_is_kept_however_old(path: Path) -> None:
    store, ledger = Store.open(path), Ledger.open(path)
    for number in range(1, 21):
        ended = {"state": SUCCEEDED, "started": float(number), "ended": float(number), "attempt": 1}
        counted = {"n_rows": 5, "data_digest": b"rows"} if number < 10 else {}
        store.add(record(number, **ended, **counted))
        ledger.record(Entry(bytes([number]) * 32, 1, float(number), "baskets", "weekly", "analyst", COSTS[number % 2]))
    store.add(record(21, state=RUNNING, started=0.5))
    store.add(record(23, state=FAILED, started=0.6, ended=0.7, expiry=4000))  # it may go on
    store.add(record(22, state=FAILED, started=0.1, ended=0.2, dataset="visits"))
    before = ledger.spent("baskets")
    place: float | None = 0.0
    while place is not None:
        place = store.prune(place, 15.5, 3000.0, {"baskets": 2}, 4)
    # The first, the last of which rows were noted, the last two, what is not old, what runs, another dataset's first.
    assert {kept.job_id[0] for kept in store.all()} == {9, 16, 17, 18, 19, 20, 21, 22, 23}
    assert store.first("baskets", b"")[0].job_id[0] == 21
    assert ledger.spent("baskets") == before
    assert {each.job_id[0] for each in ledger.entries("baskets") if each.charge.epsilon} == set(range(1, 21, 2))
    store.close(), ledger.close()


def test_of_jobs_that_never_began_the_newest_are_kept_beyond_their_expiry(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("party.state.store.MOST_UNSTARTED", 2)
    store = Store.open(path)
    for number in range(1, 8):
        store.add(record(number, state=CANCELLED, ended=5.0, expiry=100 + number))
    store.add(record(8, state=CANCELLED, ended=5.0, expiry=5000))  # it could be proposed again
    store.add(record(9, expiry=50))  # it has yet to end
    store.forget_unstarted(1000.0)
    assert {kept.job_id[0] for kept in store.all()} == {6, 7, 8, 9}
    store.close()


def test_jobs_that_data_or_a_limit_ended_count_as_failed(path: Path) -> None:
    """By data of this party (E101), or over a limit among the same parties (E104): and no other ends."""
    store = Store.open(path)
    ours, others = ("north", "south", "east"), ("north", "west")
    ends = [
        *(("E101", "north", ours), ("E101", "north", others), ("E104", "", ours), ("E104", "", ours[::-1])),
        *(("E100", "north", ours), ("E100", "", ours), ("E101", "south", ours), ("E101", "", ours)),
        *(("E104", "", others), ("E500", "north", ours), ("E300", "north", ours)),
    ]
    for number, (code, party, parties) in enumerate(ends, 1):
        dataset = ("baskets", "twin")[number % 2]
        made = record(number, state=FAILED, dataset=dataset, started=1500.0, parties=parties)
        store.add(replace(made, error_code=code, error_party=party, ended=1500.0))
    store.add(record(99, state=FAILED, error_code="E104", ended=1500.0))  # never started

    def failed(among: tuple[str, ...], datasets: tuple[str, ...] = ("baskets", "twin"), since: float = 1400) -> int:
        return store.failed_here(datasets, "analyst", "north", among, since)

    assert failed(ours) == 4
    assert failed(("south", "north", "east")) == 4
    assert failed(others) == 3
    assert failed(("north", "south")) == 2
    assert failed(ours, ("baskets",)) == 2
    assert failed(ours, since=1500) == 0
    going_on = record(98, state=FAILED, started=1300.0, ended=1500.0, attempt=3, error_code="E500", error_party="north")
    store.add(going_on)  # whatever ended its first two attempts, long after it was started
    assert failed(ours) == 6
    assert store.move(going_on.job_id, FAILED, RUNNING, {"attempt": 4, "ended": None})
    assert failed(ours) == 7  # while the next one runs
    assert store.failed_here(("baskets", "twin"), "another", "north", ours, 1400) == 0
    store.close()
