"""The privacy ledger: every start is charged once, and nothing is lost or taken back, whatever dies when."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from decimal import Decimal
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from jobs.privacy_account import Charge
from party.policy.privacy_budget import totals
from party.state.journals import Journals
from party.state.ledger import Entry, Ledger, charges
from party.state.store import Store
from protos.v1.control_pb2 import APPROVED, RUNNING
from tests.errors import fails
from tests.party.state.test_store import record

COST = Charge("distributed", None, Decimal("0.5"), Decimal("1e-6"))


def entry(job: int = 1, attempt: int = 1, time: float = 5.0, cost: Charge = COST, dataset: str = "baskets") -> Entry:
    return Entry(bytes([job]) * 32, attempt, time, dataset, "weekly", "analyst", cost)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "state" / "node.db"


@pytest.fixture
def ledger(path: Path) -> Iterator[Ledger]:
    opened = Ledger.open(path)
    yield opened
    opened.close()


def test_what_is_recorded_is_read_again_as_it_was(ledger: Ledger) -> None:
    recorded = [
        entry(1),
        entry(2, time=6.0, cost=Charge("shuffle", Decimal("8"), Decimal("1.10"), Decimal("1E-9"))),
        entry(3, time=7.0, cost=Charge("exact", None, None, None)),
        entry(4, time=7.5, cost=Charge("local", Decimal("0.1"), Decimal("0.1"), Decimal(0)), dataset="visits"),
    ]
    for each in recorded:
        ledger.record(each)
    assert ledger.entries("baskets") == recorded[:3]
    assert ledger.entries("baskets", since=5.0) == recorded[1:3]
    assert ledger.of_job(bytes([4]) * 32) == recorded[3:]
    assert ledger.datasets() == ["baskets", "visits"]
    assert ledger.spent("baskets") == Counter(each.charge for each in recorded[:3])
    assert ledger.spent("baskets", since=5.0) == {recorded[1].charge: 1}  # nothing bounds the third
    assert charges(ledger.spent("visits"), composed=True) == (recorded[3].charge,)


def test_a_job_under_noise_is_charged_once_over_all_attempts(ledger: Ledger) -> None:
    assert [ledger.record(entry(1)) for _ in range(3)] == [True, False, False]
    assert not ledger.record(entry(1, attempt=2, time=9.0))
    assert ledger.record(entry(2, attempt=3))  # which was never started here before
    assert totals(charges(ledger.spent("baskets"), composed=False)).epsilon == Decimal("1.0")
    assert [each.attempt for each in ledger.of_job(bytes([1]) * 32)] == [1]


def test_each_attempt_of_an_exact_job_counts(ledger: Ledger) -> None:
    exact = Charge("exact", None, None, None)
    assert [ledger.record(entry(1, attempt=attempt, cost=exact)) for attempt in (1, 2, 2)] == [True, True, False]
    assert [each.attempt for each in ledger.of_job(bytes([1]) * 32)] == [1, 2]


def test_how_far_a_job_came_is_told_beside_its_charge(path: Path, ledger: Ledger) -> None:
    store = Store.open(path)
    store.add(record(1, state=APPROVED))
    ledger.record(entry(1))
    ledger.record(entry(2))  # of a job that the node has forgotten
    assert [each.state for each in ledger.entries("baskets")] == ["APPROVED", ""]
    store.move(record(1).job_id, APPROVED, RUNNING, {"started": 5.0, "attempt": 1})
    assert [each.state for each in ledger.entries("baskets")] == ["RUNNING", ""]
    store.close()


def test_refusals_are_forgotten_and_charges_are_not(path: Path, ledger: Ledger) -> None:
    store = Store.open(path)
    ledger.record(entry(1))
    store.forget_refused("policy", keep=0)
    Journals.beside(store, "north").keep_only((), (), now=9e9)
    assert len(ledger.entries("baskets")) == 1
    store.close()


def test_a_ledger_that_cannot_be_used_is_one_sentence(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Ledger, "KIND", replace(Ledger.KIND, busy_s=0.05))
    ledger, other = Ledger.open(path), Store.open(path)
    with other.alone(), fails("E103"):
        ledger.record(entry())
    ledger.record(entry())
    ledger.close(), other.close()
    path.write_bytes(b"this is no database" * 99)
    with fails("E100"):
        Ledger.open(path)


def test_tables_of_one_node_wait_for_each_other_however_long_the_disk_takes(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Store, "KIND", replace(Store.KIND, busy_s=0.01))
    with contextlib.closing(Store.open(path)) as store, ThreadPoolExecutor(1) as thread:
        ledger = Ledger.beside(store)
        with store.alone():
            recording = thread.submit(ledger.record, entry())
            with pytest.raises(TimeoutError):
                recording.result(timeout=0.2)
        recording.result()
        assert ledger.entries("baskets") == [entry()]


_WRITER = """
import sys
from decimal import Decimal
from pathlib import Path
from jobs.privacy_account import Charge
from party.state.journals import Journals
from party.state.ledger import Entry, Ledger
ledger = Ledger.open(Path(sys.argv[1]))
cost = Charge("distributed", None, Decimal("0.5"), Decimal("1e-6"))
for number in range(1, 10_000):
    ledger.record(Entry(number.to_bytes(32, "big"), 1, float(number), "baskets", "weekly", "analyst", cost))
    print(number, flush=True)
"""


def test_what_was_recorded_before_a_kill_is_there_after_it(path: Path) -> None:
    with subprocess.Popen([sys.executable, "-c", _WRITER, str(path)], stdout=subprocess.PIPE, text=True) as writer:
        assert writer.stdout is not None
        for _ in range(25):
            told = int(writer.stdout.readline())
        os.kill(writer.pid, signal.SIGKILL)
        told = max([told, *map(int, writer.stdout.read().split())])
    ledger = Ledger.open(path)
    found = [int.from_bytes(each.job_id, "big") for each in ledger.entries("baskets")]
    ledger.close()
    assert found[:told] == list(range(1, told + 1))
    assert len(found) in (told, told + 1)  # one more may have come to the disk and not been told any more


def test_commits_survive_a_loss_of_power(path: Path, ledger: Ledger) -> None:
    connection = ledger.connection
    assert connection.execute("PRAGMA synchronous").fetchone() == (2,)  # FULL: each commit waits for the disk
    assert connection.execute("PRAGMA journal_mode").fetchone() == ("wal",)


class Lives(RuleBasedStateMachine):
    """Jobs start, die and start again in any order; the ledger always has the sum of all jobs' first starts."""

    def __init__(self) -> None:
        super().__init__()
        self._folder = tempfile.TemporaryDirectory()
        self._path = Path(self._folder.name) / "node.db"
        self._ledger, self._starts = Ledger.open(self._path), dict[int, Charge]()
        self._clock = 0.0

    @rule(job=st.integers(1, 4), attempt=st.integers(1, 3), epsilon=st.decimals("0.001", 9, places=3))
    def start(self, job: int, attempt: int, epsilon: Decimal) -> None:
        """A start that may have been charged before its process died, and comes again."""
        cost = self._starts.setdefault(job, Charge("distributed", None, epsilon, Decimal("1e-9")))
        self._clock += 1.0
        self._ledger.record(entry(job, attempt, self._clock, cost))

    @rule()
    def crash(self) -> None:
        """The process ends without a word."""
        self._ledger.close()
        self._ledger = Ledger.open(self._path)

    @rule()
    def beside(self) -> None:
        """The command line writes to the same file."""
        store = Store.open(self._path)
        store.forget_refused("policy", keep=0)
        store.close()

    @invariant()
    def sums(self) -> None:
        found = totals(tuple(each.charge for each in self._ledger.entries("baskets")))
        for composed in (True, False):
            assert totals(charges(self._ledger.spent("baskets"), composed=composed)) == found
        assert found.epsilon == sum(cost.epsilon or 0 for cost in self._starts.values())
        assert found.delta == len(self._starts) * Decimal("1e-9")

    def teardown(self) -> None:
        self._ledger.close()
        self._folder.cleanup()


TestLives = Lives.TestCase
TestLives.settings = settings(max_examples=25, stateful_step_count=15, deadline=None)


@given(st.permutations(list(range(6))))
def test_the_sum_does_not_hang_on_the_order(order: list[int]) -> None:
    costs = [Charge("distributed", None, Decimal(1) / (1 << i), Decimal(f"1e-{i + 1}")) for i in range(6)]
    assert totals([costs[i] for i in order]) == totals(costs)


_BESIDE = """
import sys
from pathlib import Path
from party.state.store import Store
Store.open(Path(sys.argv[1])).close()
"""


def test_whoever_opens_the_database_beside_the_node_takes_nothing_from_it(path: Path) -> None:
    """Whoever believes to close the last connection removes the log, to which the node would still write."""
    store, ledger = Store.open(path), Ledger.open(path)
    store.add(record(1))
    subprocess.run([sys.executable, "-c", _BESIDE, str(path)], check=True)
    store.add(record(2))
    ledger.record(entry(1))
    shown = _BESIDE.replace(".close()", ".all()").replace("Store.open(", "print(len(Store.open(").strip() + "))"
    ran = subprocess.run([sys.executable, "-c", shown, str(path)], check=True, capture_output=True, text=True)
    assert ran.stdout == "2\n"
    store.close(), ledger.close()
