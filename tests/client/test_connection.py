"""Over real TLS: what breaks is tried again, what is wrong ends in a sentence that names the node."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from client.connection import Connection
from client.reporter import FrequencyClient
from crypto.primitives.randomness import Randomness
from ldp.domain import Domain
from ldp.registry import oracle
from link.errors import ProtocolViolation
from link.pki.authority import Authority, write_identity
from protos.v1.frequency_pb2 import COUNTED, BatchReceipt, ReportBatch
from tests.client.node import BEGIN, LABELS, PARTY, Node, Served, homepages, served
from tests.errors import fails


@pytest.fixture(scope="module")
def service() -> Iterator[Served]:
    with served(Node(homepages(oracle("grr", Domain(4, LABELS), 1.0)))) as found:
        yield found


@pytest.fixture
def node(service: Served) -> Served:
    """The node as it was at the start."""
    service.servicer.breaks, service.servicer.lie = [], None
    service.node.collections = {"homepages": homepages(oracle("grr", Domain(4, LABELS), 1.0))}
    service.node.statuses.clear()
    return service


def batches(number: int) -> list[ReportBatch]:
    mechanism, rng = oracle("grr", Domain(4, LABELS), 1.0), Randomness.from_seed(1)
    return [
        ReportBatch(
            collection="homepages",
            round=0,
            pseudonyms=bytes([each]) * 16,
            reports=mechanism.privatise(["east"], rng).to_bytes(),
        )
        for each in range(number)
    ]


def test_a_device_reports_over_tls(node: Served, tmp_path: Path) -> None:
    with node.connect() as connection, FrequencyClient.open(tmp_path, clock=lambda: BEGIN) as client:
        key = client.follow(connection, "homepages")
        assert key == (PARTY, "homepages")
        assert client.report(key, "south").reported
        assert client.deliver(connection).counted == 1


@pytest.mark.parametrize("breaks", [[0], [3], [0, 0, 2], [7, 7]], ids=str)
def test_batches_without_a_receipt_are_sent_again(node: Served, breaks: list[int]) -> None:
    node.servicer.breaks = list(breaks)
    with node.connect() as connection:
        receipts = list(connection.submit(iter(batches(20)), in_flight=4))
    assert sorted(receipt.sequence for receipt in receipts) == list(range(20))
    kept = node.node.collections["homepages"]
    assert len(kept.counted) == len(set(kept.received)) == 20
    assert node.node.statuses[COUNTED] == 20


def test_after_some_tries_it_gives_up(node: Served) -> None:
    node.servicer.breaks = [0] * 9
    with node.connect(attempts=3) as connection, fails("E200", party="north"):
        list(connection.submit(iter(batches(1))))
    assert len(node.servicer.breaks) == 6


@pytest.mark.parametrize(
    "lie", [BatchReceipt(sequence=99), BatchReceipt(sequence=0, statuses=b"\0\0")], ids=["foreign", "long"]
)
def test_a_wrong_receipt_is_a_violation(node: Served, lie: BatchReceipt) -> None:
    node.servicer.lie = lie
    with node.connect() as connection, pytest.raises(ProtocolViolation) as found:
        list(connection.submit(iter(batches(1))))
    assert found.value.party == PARTY


def test_a_status_that_nobody_knows_is_a_violation(node: Served, tmp_path: Path) -> None:
    node.servicer.lie = BatchReceipt(sequence=0, statuses=b"\x63")
    with node.connect() as connection, FrequencyClient.open(tmp_path, clock=lambda: BEGIN) as client:
        client.report(client.follow(connection, "homepages"), "south")
        with fails("E400"):
            client.deliver(connection)
        assert client.waiting() == 1


def test_the_nodes_own_word_comes_through(node: Served) -> None:
    with node.connect() as connection, fails("E100") as found:
        connection.describe("nothing")
    assert found.value.party == PARTY


def test_nobody_listens(node: Served) -> None:
    connection = Connection(node.identity, PARTY, "127.0.0.1:1", attempts=2)
    with fails("E200"):
        connection.describe("homepages")
    with fails("E200"):
        list(connection.submit(iter(batches(1))))
    connection.close()


def test_another_party_answers(node: Served) -> None:
    with (
        Connection(node.identity, "south", node.address) as connection,
        fails("E201", party="south"),
    ):
        connection.describe("homepages")


def test_a_silent_node_is_given_up(node: Served) -> None:
    """The stream waits for batches that do not come, and the client for a receipt."""
    node.servicer.lie = None
    with node.connect(deadline_s=0.3, attempts=1) as connection:
        first = iter(batches(1))
        node.node.submit = lambda batch: _hang()  # type: ignore[method-assign]
        try:
            with fails("E200"):
                list(connection.submit(first))
        finally:
            del node.node.submit


def _hang() -> BatchReceipt:
    import time

    time.sleep(1.0)
    return BatchReceipt()


def test_identities_are_read_from_files(tmp_path: Path) -> None:
    authority = Authority.create()
    authority.write(tmp_path)
    for name, role in (("phone", "client"), ("analyst", "coordinator")):
        write_identity(authority.issue(name, role), tmp_path)  # type: ignore[arg-type]
    files = {"ca": tmp_path / "ca.crt", "certificate": tmp_path / "phone.crt", "key": tmp_path / "phone.key"}
    Connection.open(PARTY, "127.0.0.1:1", **files).close()
    files |= {"certificate": tmp_path / "analyst.crt", "key": tmp_path / "analyst.key"}
    with fails("E100"):
        Connection.open(PARTY, "127.0.0.1:1", **files)
