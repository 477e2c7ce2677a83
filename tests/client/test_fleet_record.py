"""What a gateway has written down of its clients: across processes nobody tells more than one report a period."""

from __future__ import annotations

import contextlib
import shutil
import sqlite3
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from client.budget import Budget
from client.fleet import Fleet, FleetDelivery
from client.fleet_state import record as fleet_record
from client.fleet_state.record import FleetRecord
from client.gateway import GatewaySecret
from client.pseudonym import pseudonyms
from crypto.primitives.randomness import Randomness
from ldp.domain import Domain
from ldp.longitudinal.bit_flip import BitFlip
from ldp.mechanism import Mechanism
from ldp.rappor.mechanism import Rappor
from ldp.registry import oracle
from link.errors import ConfigurationError, MalformedMessage, ResourceError
from link.transports.grpc_errors import ConnectionBroken
from protos.v1.frequency_pb2 import COUNTED, BatchReceipt, ReportBatch
from tests.client.node import BEGIN, HOUR, LABELS, Direct, Kept, Node, announced, homepages, spec_of
from tests.errors import fails

pytestmark = pytest.mark.turn(3)

IDS = [f"user-{number}" for number in range(60)]
VALUES = np.array(["south"] * 40 + ["east"] * 20, dtype=object)
DOMAIN = Domain(4, LABELS)
MECHANISM = oracle("olh", DOMAIN, 1.0)
MECHANISMS: list[Mechanism[Any]] = [
    MECHANISM,
    oracle("grr", DOMAIN, 1.0),
    BitFlip(DOMAIN, 1.0, sampled=3),
    Rappor(0.5, 0.3, 0.7, bits=32, hashes=2, cohorts=4),
]


def process(folder: Path, node: Node, ids: list[str] | None = None, **more: Any) -> Fleet:
    """The fleet as another process of the gateway has it."""
    found = GatewaySecret.open(folder / "fleet.secret")
    return Fleet.of(IDS if ids is None else ids, found, clock=lambda: node.now, **more)


def reports_of(kept: Kept) -> dict[bytes, set[tuple[int, bytes]]]:
    """By pseudonym, the different reports that ever came of it."""
    found: dict[bytes, set[tuple[int, bytes]]] = {}
    for number, name, data in kept.received:
        found.setdefault(name, set()).add((number, data))
    return found


def by_another(kept: Kept, mechanism: Mechanism[Any], number: int = 0, period: int = 0) -> None:
    """From now on the node announces the round with another mechanism, or the period with another round."""
    times = {"opens": BEGIN, "closes": BEGIN + 24 * HOUR, "period": period}
    kept.mechanism = mechanism
    kept.rounds = [(announced(mechanism, number, **times), mechanism)]


# -- one report in a period -------------------------------------------------------------------------------------------
@pytest.mark.parametrize("mechanism", MECHANISMS, ids=[each.name for each in MECHANISMS])
@settings(max_examples=5, deadline=None)
@given(data=st.data())
def test_a_client_never_sends_two_different_reports_in_a_period(
    tmp_path_factory: pytest.TempPathFactory, mechanism: Mechanism[Any], data: st.DataObject
) -> None:
    """Whatever a gateway's processes are given, and whatever the node asks: other clients, values, batches, crashes,
    mechanisms, parameters, rounds of the same period."""
    folder = tmp_path_factory.mktemp("fleet")
    kept = homepages(mechanism)
    by_another(kept, mechanism)
    node = Node(kept)
    for _ in range(data.draw(st.integers(2, 5))):
        some = Randomness.from_seed(data.draw(st.integers(0, 1 << 30))).permutation(len(IDS))
        some = some[: data.draw(st.integers(1, len(IDS)))]
        values = VALUES[some].copy()
        for place in data.draw(st.lists(st.integers(0, len(some) - 1), max_size=3)):
            values[place] = data.draw(st.sampled_from(LABELS))
        other = data.draw(st.sampled_from(["", "", "mechanism", "parameter", "round"]))
        if other == "round":
            by_another(kept, mechanism, number=1)
        elif other:
            by_another(kept, oracle("oue", DOMAIN, 0.5 if other == "parameter" else 0.75))
        lose = [True] if data.draw(st.booleans()) else []
        with contextlib.suppress(ConnectionBroken, MalformedMessage):
            process(folder, node, [IDS[each] for each in some]).report(
                Direct(node, lose), "homepages", values, batch=data.draw(st.integers(1, 70))
            )
        by_another(kept, mechanism)
    assert all(len(each) == 1 for each in reports_of(kept).values())


def test_a_corrected_value_is_not_sent_and_told_and_the_others_are(tmp_path: Path) -> None:
    kept = homepages(MECHANISM)
    node = Node(kept)
    assert process(tmp_path, node).report(Direct(node), "homepages", VALUES).counted == 60
    corrected = VALUES.copy()
    corrected[:3] = "north"
    done = process(tmp_path, node).report(Direct(node), "homepages", corrected)
    assert (done.changed, done.duplicate, done.counted) == (3, 57, 0)
    node.now += HOUR  # the next round is another question
    done = process(tmp_path, node).report(Direct(node), "homepages", corrected)
    assert (done.changed, done.counted) == (0, 60)


@pytest.mark.parametrize("other", [oracle("grr", DOMAIN, 1.0), oracle("olh", DOMAIN, 0.5), oracle("oue", DOMAIN, 1.0)])
def test_a_node_that_asks_again_by_another_mechanism_gets_nothing(tmp_path: Path, other: Mechanism[Any]) -> None:
    kept = homepages(MECHANISM)
    node = Node(kept)
    process(tmp_path, node).report(Direct(node), "homepages", VALUES)
    kept.received.clear()
    by_another(kept, other)
    done = process(tmp_path, node).report(Direct(node), "homepages", VALUES)
    assert (done.changed, done.acknowledged, kept.received) == (60, 0, [])


# -- crashes and processes at once ------------------------------------------------------------------------------------
class Crash(BaseException):
    """The process ends here."""


class Dying(Direct):
    """The process dies when a batch is about to be sent."""

    def __init__(self, node: Node, after: int) -> None:
        super().__init__(node)
        self._after = after

    def submit(self, batches: Any, in_flight: int = 1) -> Iterator[Any]:
        def until_then() -> Iterator[ReportBatch]:
            for number, batch in enumerate(batches):
                if number == self._after:
                    raise Crash
                yield batch

        yield from super().submit(until_then(), in_flight)


@pytest.mark.parametrize("after", [0, 1, 2])
def test_what_was_written_down_and_not_sent_is_what_the_next_process_sends(tmp_path: Path, after: int) -> None:
    kept = homepages(MECHANISM)
    node = Node(kept)
    with pytest.raises(Crash):
        process(tmp_path, node).report(Dying(node, after), "homepages", VALUES, batch=20)
    assert len(kept.counted) == 20 * after
    corrected = VALUES.copy()
    corrected[20 * after + 5] = "north"  # was written down, but has never left
    done = process(tmp_path, node).report(Direct(node), "homepages", corrected)
    assert (done.changed, done.counted, done.duplicate) == (1, 59 - 20 * after, 20 * after)
    assert all(len(each) == 1 for each in reports_of(kept).values())
    assert process(tmp_path, node).report(Direct(node), "homepages", VALUES).counted == 1


def test_nothing_leaves_that_cannot_be_written_down(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    kept = homepages(MECHANISM)
    node = Node(kept)
    fleet = process(tmp_path, node)

    def full(*_: Any) -> None:
        raise ResourceError("the disk is full")

    with monkeypatch.context() as patch:
        patch.setattr(FleetRecord, "put", full)
        with pytest.raises(ResourceError):
            fleet.report(Direct(node), "homepages", VALUES)
    assert kept.received == []
    assert fleet.report(Direct(node), "homepages", VALUES).counted == 60


def test_processes_at_once_send_one_report_of_each_client(tmp_path: Path) -> None:
    """Each of another value, by another batch size; whoever comes second waits, and finds what the first has sent."""
    kept = homepages(MECHANISM)
    node = Node(kept)
    GatewaySecret.open(tmp_path / "fleet.secret")
    done: list[FleetDelivery] = []
    gate = threading.Barrier(4)

    def run(number: int) -> None:
        fleet = process(tmp_path, node)
        gate.wait()
        values = np.array([LABELS[number]] * 60, dtype=object)
        done.append(fleet.report(Direct(node), "homepages", values, batch=7 + number))

    threads = [threading.Thread(target=run, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted((each.counted, each.changed) for each in done) == [(0, 60)] * 3 + [(60, 0)]
    assert len(kept.received) == 60


def test_a_process_that_was_killed_holds_up_nobody(tmp_path: Path) -> None:
    GatewaySecret.open(tmp_path / "fleet.secret")
    holding = (
        "import os, sys; from pathlib import Path; from client.fleet_state.record import FleetRecord\n"
        "with FleetRecord.held(Path(sys.argv[1])): os.kill(os.getpid(), 9)"
    )
    subprocess.run([sys.executable, "-c", holding, tmp_path / "fleet.secret.db"], check=False)
    node = Node(homepages(MECHANISM))
    assert process(tmp_path, node).report(Direct(node), "homepages", VALUES).counted == 60


def test_who_waits_too_long_for_another_process_is_told_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing was sent or spent; once the other is done, all is as if it had not been tried."""
    monkeypatch.setattr(fleet_record, "WAIT_S", 0.1)
    kept = homepages(MECHANISM)
    node = Node(kept)
    fleet = process(tmp_path, node)
    with (
        FleetRecord.held(tmp_path / "fleet.secret.db"),
        fails("E103"),
    ):
        fleet.report(Direct(node), "homepages", VALUES)
    assert kept.received == []
    assert fleet.report(Direct(node), "homepages", VALUES).counted == 60


@pytest.mark.parametrize("collection", [b"record of fleet.", bytes(16), b"comine: the name"])
def test_no_collection_is_told_by_which_names_the_record_knows_clients(tmp_path: Path, collection: bytes) -> None:
    """A node chooses the collection's id, and which period it is."""
    kept = homepages(MECHANISM)
    kept.id = collection
    node = Node(kept)
    process(tmp_path, node).report(Direct(node), "homepages", VALUES)
    with FleetRecord.held(tmp_path / "fleet.secret.db") as record:
        known = {each.tobytes() for each in record.sent(kept.id, 0)[0]}
    told = {name for _, name, _ in kept.received}
    secrets = GatewaySecret.open(tmp_path / "fleet.secret").clients(IDS)
    told |= {each.tobytes() for period in (0, 1, 2**63) for each in pseudonyms(secrets, collection, period)}
    assert len(known) == 60
    assert not known & told


def test_many_clients_are_written_down_batch_by_batch(tmp_path: Path) -> None:
    kept = homepages(oracle("grr", DOMAIN, 1.0))
    node = Node(kept)
    ids = [f"{number:x}" for number in range(30_000)]
    values = np.array(["east"] * len(ids), dtype=object)

    class Counting(Direct):
        def submit(self, batches: Any, in_flight: int = 1) -> Iterator[Any]:
            for sequence, batch in enumerate(batches):
                yield BatchReceipt(sequence=sequence, status=COUNTED, counted=len(batch.pseudonyms) // 16)

    assert process(tmp_path, node, ids).report(Counting(node), "homepages", values).counted == len(ids)
    with FleetRecord.held(tmp_path / "fleet.secret.db") as record:
        assert record.last == 4  # of 8,192 clients each
        assert len(record.sent(kept.id, 0)[0]) == len(ids)
    values[7] = "west"
    done = process(tmp_path, node, ids).report(Counting(node), "homepages", values)
    assert (done.counted, done.changed) == (len(ids) - 1, 1)


# -- ledgers and budgets ----------------------------------------------------------------------------------------------
def test_a_budget_goes_on_in_the_next_process(tmp_path: Path) -> None:
    node = Node(homepages(MECHANISM), homepages(MECHANISM, name="other"))
    done = []
    for name in ("homepages", "other", "homepages", "other"):
        fleet = process(tmp_path, node, budget=Budget("2.5"))
        done.append(fleet.report(Direct(node), name, VALUES))
        again = process(tmp_path, node, budget=Budget("2.5")).report(Direct(node), name, VALUES)
        assert again.over_budget == done[-1].over_budget  # what was sent may be sent again, and costs nothing
        node.now += HOUR
    assert [(each.counted, each.over_budget) for each in done] == [(60, 0), (60, 0), (0, 60), (0, 60)]


@pytest.mark.parametrize("damaged", ["1e999999999", "1e-999999999", "much", "1/0"])
def test_what_was_spent_is_no_number_that_fills_the_memory(tmp_path: Path, damaged: str) -> None:
    node = Node(homepages(MECHANISM), homepages(MECHANISM, name="other"))
    process(tmp_path, node, budget=Budget("2.5")).report(Direct(node), "homepages", VALUES)
    with contextlib.closing(sqlite3.connect(tmp_path / "fleet.secret.db", isolation_level=None)) as record:
        record.execute("UPDATE reports SET epsilon = ?", (damaged,))
    with fails("E100"):
        process(tmp_path, node, budget=Budget("2.5")).report(Direct(node), "other", VALUES)


def test_a_ledger_of_steps_goes_on_in_the_next_process(tmp_path: Path) -> None:
    """Three steps share ε = 1; a node that gives the same step other periods gets no more than that."""
    third = oracle("olh", DOMAIN, 0.33)
    kept = homepages(third)
    kept.spec = spec_of("olh", 1, "1h", continual={"method": "lbu", "w": 3})
    node = Node(kept)
    node.now = BEGIN + 5 * HOUR
    counted = 0
    for period in range(5, 13):
        times = {"opens": BEGIN + 5 * HOUR, "closes": BEGIN + 6 * HOUR, "step": 5}
        kept.rounds = [(announced(third, period, **times), third)]
        done = process(tmp_path, node).report(Direct(node), "homepages", VALUES)
        counted += done.counted
    assert counted == 3 * 60


def test_a_node_cannot_hasten_the_steps_by_asking_another_process_each_time(tmp_path: Path) -> None:
    kept = homepages(oracle("grr", DOMAIN, 0.05))
    kept.spec = spec_of("grr", 1, "1h", continual={"method": "lsp", "w": 20})
    kept.spec["window"]["start"] = "2000-01-01T00:00:00+00:00"
    node = Node(kept)

    def asked(number: int) -> int:
        times = {"opens": node.now - 60, "closes": node.now + 3540}
        kept.rounds = [(announced(kept.mechanism, number, step=number, **times), kept.mechanism)]
        return process(tmp_path, node).report(Direct(node), "homepages", VALUES).counted

    assert asked(0) == 60
    node.now += 1
    for number in range(2, 6):
        with fails("E402"):
            asked(number)


# -- the file ---------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("lose", ["removed", "emptied", "damaged", "foreign"])
def test_without_its_record_a_secret_reports_nothing(tmp_path: Path, lose: str) -> None:
    kept = homepages(MECHANISM)
    node = Node(kept)
    process(tmp_path, node).report(Direct(node), "homepages", VALUES)
    kept.received.clear()
    path = tmp_path / "fleet.secret.db"
    if lose == "removed":
        path.unlink()
    elif lose == "emptied":
        path.write_bytes(b"")
    elif lose == "damaged":
        path.write_bytes(b"SQLite format 3\0" + bytes(5000))
    else:
        path.unlink()
        with sqlite3.connect(path) as other:
            other.execute("CREATE TABLE t (x)")
        other.close()
    with pytest.raises(ConfigurationError):
        process(tmp_path, node).report(Direct(node), "homepages", VALUES)
    assert kept.received == []


def test_an_older_secret_without_a_record_says_what_to_do(tmp_path: Path) -> None:
    (tmp_path / "fleet.secret").write_text("ab" * 32)
    (tmp_path / "fleet.secret").chmod(0o600)
    node = Node(homepages(MECHANISM))
    with fails("E100"):
        process(tmp_path, node).report(Direct(node), "homepages", VALUES)


def test_who_has_the_record_alone_learns_neither_ids_nor_values(tmp_path: Path) -> None:
    """Two gateways whose clients report the same by other secrets have nothing in common."""
    node = Node(homepages(MECHANISM))
    rows = []
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        process(tmp_path / name, node).report(Direct(node), "homepages", VALUES)
        path = tmp_path / name / "fleet.secret.db"
        assert path.stat().st_mode & 0o777 == 0o600
        assert not any(each.encode() in path.read_bytes() for each in (*IDS[10:], *LABELS))
        with FleetRecord.held(path) as record:
            rows.append(record.sent(node.collections["homepages"].id, 0))
    for mine, theirs in zip(*rows, strict=True):
        assert not {each.tobytes() for each in mine} & {each.tobytes() for each in theirs}
        assert len({each.tobytes() for each in mine}) == 60


def test_what_no_budget_counts_any_more_is_forgotten_and_asked_for_in_vain(tmp_path: Path) -> None:
    kept = homepages(MECHANISM)
    node = Node(kept)
    process(tmp_path, node).report(Direct(node), "homepages", VALUES)
    early = node.now
    for _ in range(2):
        node.now += 410 * 24 * HOUR
        process(tmp_path, node).report(Direct(node), "homepages", VALUES)
    with FleetRecord.held(tmp_path / "fleet.secret.db") as record:
        assert [len(record.sent(kept.id, period)[0]) for period in (0, 9840, 19680)] == [0, 0, 60]
    node.now = early
    kept.received.clear()
    assert process(tmp_path, node).report(Direct(node), "homepages", VALUES).already == 60
    assert kept.received == []


def test_a_copy_of_secret_and_record_goes_on_where_it_was(tmp_path: Path) -> None:
    kept = homepages(MECHANISM)
    node = Node(kept)
    (tmp_path / "old").mkdir()
    process(tmp_path / "old", node).report(Direct(node), "homepages", VALUES)
    shutil.copytree(tmp_path / "old", tmp_path / "new")
    corrected = VALUES[::-1].copy()
    done = process(tmp_path / "new", node).report(Direct(node), "homepages", corrected)
    assert done.changed == int(np.count_nonzero(corrected != VALUES))
