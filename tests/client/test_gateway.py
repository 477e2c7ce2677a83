"""Clients that a gateway knows by ids: counted once, whichever process reports for them."""

from __future__ import annotations

import hmac
import stat
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from client.fleet import Fleet
from client.gateway import GatewaySecret
from client.pseudonym import pseudonym
from crypto.primitives.randomness import Randomness
from ldp.domain import Domain
from ldp.longitudinal.bit_flip import BitFlip
from ldp.longitudinal.one_bit_mean import OneBitMean
from ldp.mechanism import Mechanism
from ldp.rappor.mechanism import Rappor
from ldp.registry import ORACLES, oracle
from link.transports.grpc_errors import ConnectionBroken
from protos.v1.frequency_pb2 import COUNTED, DUPLICATE
from tests.client.node import BEGIN, HOUR, LABELS, Direct, Node, announced, homepages, spec_of
from tests.errors import fails
from tests.examples import examples

pytestmark = pytest.mark.turn(3)

SECRET = GatewaySecret(bytes(range(32)))
IDS = [f"user-{number}" for number in range(500)]
VALUES = np.array(["south"] * 300 + ["east"] * 200, dtype=object)
MECHANISM = oracle("olh", Domain(4, LABELS), 1.0)


def fleet(node: Node, ids: list[str] | None = None) -> Fleet:
    return Fleet.of(IDS if ids is None else ids, SECRET, clock=lambda: node.now)


def test_pseudonyms_follow_from_the_secret_and_the_id() -> None:
    kept = homepages(MECHANISM)
    node = Node(kept)
    fleet(node, ["ann", "β"]).report(Direct(node), "homepages", VALUES[:2])
    expected = {pseudonym(hmac.digest(SECRET.secret, each.encode(), "sha256"), kept.id, 0) for each in ("ann", "β")}
    assert {name for _, name in kept.counted} == expected


def test_another_process_sends_the_very_same_again() -> None:
    kept = homepages(MECHANISM)
    node = Node(kept)
    assert fleet(node).report(Direct(node), "homepages", VALUES, batch=64).counted == 500
    assert fleet(node).report(Direct(node), "homepages", VALUES, batch=64).duplicate == 500
    assert len(set(kept.received)) == 500
    node.now += HOUR
    assert fleet(node).report(Direct(node), "homepages", VALUES, batch=64).counted == 500
    rounds = [{data for number, _, data in kept.received if number == which} for which in (0, 1)]
    assert rounds[0] != rounds[1]


def test_in_another_order_or_with_other_values_clients_are_counted_once() -> None:
    kept = homepages(MECHANISM)
    node = Node(kept)
    assert fleet(node, IDS[:300]).report(Direct(node), "homepages", VALUES[:300]).counted == 300
    done = fleet(node, IDS[::-1]).report(Direct(node), "homepages", VALUES)
    assert (done.counted, done.duplicate) == (200, 300)
    assert node.statuses == {COUNTED: 500, DUPLICATE: 300}


COLLECTED: list[tuple[Mechanism[Any], Any]] = [
    *((oracle(name, Domain(4, LABELS), 1.0), VALUES) for name in ORACLES),
    (BitFlip(Domain(4, LABELS), 1.0, sampled=3), VALUES),
    (OneBitMean(1.0, 0.0, 1.0, intervals=3), np.arange(500) / 500),
    (Rappor(0.5, 0.3, 0.7, bits=32, hashes=2, cohorts=4), VALUES),
]


@pytest.mark.parametrize(("mechanism", "values"), COLLECTED, ids=[each.name for each, _ in COLLECTED])
@examples(2, 4)
@given(data=st.data())
def test_a_value_is_reported_by_the_same_bits_in_every_batch(
    mechanism: Mechanism[Any], values: Any, data: st.DataObject
) -> None:
    """Other batch sizes, orders, subsets, values of others, calls that break off: k runs tell no more than one."""
    kept = homepages(mechanism)
    node = Node(kept)
    fleet(node).report(Direct(node), "homepages", values)
    first = {name: report for _, name, report in kept.received}
    for _ in range(3):
        kept.received.clear()
        some = Randomness.from_seed(data.draw(st.integers(0, 1 << 30))).permutation(500)
        some = some[: data.draw(st.integers(2, 500))]
        shown, broken = values[some].copy(), data.draw(st.booleans())
        changed = data.draw(st.integers(0, len(some) - 1))
        shown[changed] = values[0] if values[some[changed]] != values[0] else values[-1]
        clients = fleet(node, [IDS[each] for each in some])
        size = data.draw(st.integers(1, 600))
        if broken:
            with pytest.raises(ConnectionBroken):
                clients.report(Direct(node, [True]), "homepages", shown, batch=size)
        clients.report(Direct(node), "homepages", shown, batch=size)
        clients.deliver(Direct(node))
        names = [pseudonym(hmac.digest(SECRET.secret, IDS[each].encode(), "sha256"), kept.id, 0) for each in some]
        own = names[changed]
        assert {name for _, name, _ in kept.received} == set(names)
        assert all(report == first[name] for _, name, report in kept.received if name != own)


def test_another_value_has_independent_coins() -> None:
    """A report with the same coins for another value would tell both; 500 functions of 64 bits differ."""
    kept = homepages(MECHANISM)
    node = Node(kept)
    for values in (VALUES, VALUES[::-1]):
        fleet(node).report(Direct(node), "homepages", values)
    seeds: dict[bytes, set[bytes]] = {}
    for _, name, data in kept.received:
        seeds.setdefault(name, set()).add(MECHANISM.read(data).fields[0].tobytes())
    same = VALUES[::-1] == VALUES
    assert sorted(map(len, seeds.values())) == sorted(np.where(same, 1, 2).tolist())


@pytest.mark.parametrize("method", ["lpu", "lbu"])
def test_clients_of_a_stream_decide_alike_in_every_process(method: str) -> None:
    kept = homepages(MECHANISM)
    kept.spec = spec_of("olh", 1, "1h", continual={"method": method, "w": 3})
    times = {"opens": BEGIN + 5 * HOUR, "closes": BEGIN + 6 * HOUR}
    kept.rounds = [(announced(MECHANISM, 5, share="1/2", **times), MECHANISM)]
    node = Node(kept)
    node.now = BEGIN + 5 * HOUR
    first, second = (fleet(node).report(Direct(node), "homepages", VALUES) for _ in range(2))
    assert 0 < first.counted < 500
    assert (second.counted, second.duplicate, second.not_selected) == (0, first.counted, first.not_selected)
    assert len(set(kept.received)) == first.counted


def test_the_secret_is_made_once_and_for_its_owner_alone(tmp_path: Path) -> None:
    path = tmp_path / "fleet.secret"
    made = GatewaySecret.open(path)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert GatewaySecret.open(path) == made != GatewaySecret.open(tmp_path / "other.secret")
    assert made.secret.hex() not in repr(made)
    path.chmod(0o644)
    with fails("E100"):
        GatewaySecret.open(path)
    with fails("E103"):
        GatewaySecret.open(tmp_path / "nowhere" / "fleet.secret")


@pytest.mark.parametrize("contents", ["", "ab" * 31, "nothing", "ö", "ab" * 33])
def test_a_wrong_file_is_no_secret(tmp_path: Path, contents: Any) -> None:
    path = tmp_path / "fleet.secret"
    path.write_text(contents)
    path.chmod(0o600)
    with fails("E100"):
        GatewaySecret.open(path)


def test_an_id_comes_once() -> None:
    with fails("E101"):
        Fleet.of(["a", "b", "c", "b"], SECRET)
