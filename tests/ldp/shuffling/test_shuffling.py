"""Routes, layers, batches and statements, without any node."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from crypto.primitives.randomness import Randomness
from crypto.primitives.sealed import OVERHEAD, new_private_key, public_key_of
from ldp.shuffling.batch import digest, first_seen, shuffled, tags_of
from ldp.shuffling.collecting import Collecting
from ldp.shuffling.onion import peel, wrap
from ldp.shuffling.route import Route, route_of
from ldp.shuffling.statement import check_chain, read_key, sign_key, sign_statement
from link.errors import ConfigurationError, IdentityError
from link.pki.authority import Authority
from protos.v1.shuffle_pb2 import BatchStatement, LayerKey, SignedLayerKey, SignedStatement
from tests.errors import fails
from tests.ldp.contract import ERROR

NEGATIVE = json.loads((Path(__file__).parents[2] / "vectors" / "negative" / "shuffle.json").read_text())
KEYS = [new_private_key(Randomness.from_seed(seed)) for seed in range(4)]
PUBLIC = [public_key_of(key) for key in KEYS]


def route_with(hops: int = 2, **changes: Any) -> Route:
    fields: dict[str, Any] = {
        "name": "weekly",
        "id": bytes(range(16)),
        "shufflers": ("north", "south", "east")[:hops],
        "collector": "coordinator/analyst",
        "collector_key": PUBLIC[3],
        "size": 8,
        "minimum": 2,
    }
    return Route(**{**fields, **changes})


def numbered(n: int, size: int = 8) -> Any:
    return np.arange(n, dtype="<u8").view(np.uint8).reshape(n, 8)[:, :size].copy()


# -- routes ------------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"every": 3600, "senders": ("client/a", "party/north"), "gateways": (("client/fleet", 10),), "maximum": 50},
        {"every": 1.5, "hops": 1, "size": 1},
    ],
)
def test_a_route_is_its_document(changes: dict[str, Any]) -> None:
    route = route_with(**changes)
    assert route_of(route.document()) == route
    assert route_of(route.document()).digest == route.digest


@pytest.mark.parametrize(
    "changes",
    [
        {"name": "A week"},
        {"id": bytes(15)},
        {"collector_key": b""},
        {"shufflers": ()},
        {"shufflers": ("north", "north")},
        {"shufflers": ("North",)},
        {"collector": "analyst"},
        {"senders": ("boss/x",)},
        {"gateways": (("client/x", 0),)},
        {"gateways": (("client/x", 1), ("client/x", 2))},
        {"size": 0},
        {"size": 2.0},
        {"minimum": 1},
        {"maximum": 1},
        {"every": 0.5},
        {"every": float("nan")},
    ],
)
def test_a_route_that_cannot_be_says_why(changes: dict[str, Any]) -> None:
    with fails("E100"):
        route_with(**changes)


def test_a_document_is_read_only_as_it_was_written() -> None:
    written = json.loads(route_with().document())
    changed: Any
    for changed in (
        {**written, "version": 2},
        {**written, "more": 1},
        {**written, "size": 8.0},
        {**written, "senders": "client"},
        {**written, "id": "x"},
        {**written, "gateways": [["client/x", True]]},
        {**written, "shufflers": None},
        [],
    ):
        with pytest.raises(ConfigurationError):
            route_of(json.dumps(changed, sort_keys=True, separators=(",", ":")).encode())
    for data in (b"", b"\xff", route_with().document() + b" ", b"[" * 100_000):
        with fails("E100"):
            route_of(data)


def test_shares() -> None:
    route = route_with(gateways=(("client/fleet", 7),))
    assert [route.share(who) for who in ("client/fleet", "client/x", "party/x")] == [7, 1, 0]
    route = route_with(senders=("party/x",))
    assert [route.share(who) for who in ("client/x", "party/x")] == [0, 1]


# -- layers ------------------------------------------------------------------------------------------------------------
@settings(max_examples=20, deadline=None)
@given(hops=st.integers(1, 3), n=st.integers(0, 5), size=st.integers(1, 80))
def test_layers_come_off_one_by_one(hops: int, n: int, size: int) -> None:
    route = route_with(hops, size=size)
    reports = np.frombuffer(Randomness.from_seed(n).bytes(n * size), np.uint8).reshape(n, size)
    sealed = wrap(reports, route, PUBLIC[:hops])
    for hop, key in enumerate([*KEYS[:hops], KEYS[3]]):
        assert sealed.shape == (n, route.sealed_size(hop)) == (n, size + OVERHEAD * (hops - hop + 1))
        sealed, readable = peel(sealed, route, hop, key)
        assert readable.all()
    assert np.array_equal(sealed, reports)


def test_no_shuffler_opens_a_report() -> None:
    """Not by its own key at any layer but its own, and not by those of all shufflers together."""
    route = route_with(3)
    sealed = wrap(numbered(2), route, PUBLIC[:3])
    for hop in range(3):
        for who, key in enumerate(KEYS):
            for at in range(4):
                assert peel(sealed, route, at, key)[1].all() == (at == hop == who)
        sealed, _ = peel(sealed, route, hop, KEYS[hop])
    assert sealed.shape[1] == route.size + OVERHEAD
    for key in KEYS[:3]:
        for at in range(4):
            assert not peel(sealed, route, at, key)[1].any()
    assert not any(report.tobytes() in sealed.tobytes() for report in numbered(2))


def test_layers_are_of_one_route() -> None:
    route = route_with()
    sealed = wrap(numbered(3), route, PUBLIC[:2])
    for change in ({"id": bytes(16)}, {"minimum": 3}, {"shufflers": ("south", "north")}, {"every": 60}):
        assert not peel(sealed, replace(route, **change), 0, KEYS[0])[1].any()


def test_equal_reports_look_different() -> None:
    sealed = wrap(np.zeros((50, 8), np.uint8), route_with(), PUBLIC[:2])
    inner, _ = peel(sealed, route_with(), 0, KEYS[0])
    for layer in (sealed, inner):
        assert len({row.tobytes() for row in layer}) == 50


def test_wrong_reports_and_keys_are_refused() -> None:
    with fails("E101"):
        wrap(np.zeros((1, 9), np.uint8), route_with(), PUBLIC[:2])
    with fails("E100"):
        wrap(numbered(1), route_with(), PUBLIC[:1])
    with fails("E100"):
        wrap(numbered(1), route_with(), [PUBLIC[0], bytes(32)])


# -- batches -----------------------------------------------------------------------------------------------------------
@settings(max_examples=50, deadline=None)
@given(reports=st.lists(st.binary(min_size=1, max_size=2), max_size=30), before=st.sets(st.binary(max_size=2)))
def test_only_what_was_not_seen_is_new(reports: list[bytes], before: set[bytes]) -> None:
    key = bytes(32)
    known = set(tags_of(before, key).tolist())
    new = first_seen(tags_of(reports, key), lambda tags: np.array([tag in known for tag in tags.tolist()], np.bool_))
    seen, expected = set(before), []
    for report in reports:
        expected.append(report not in seen)
        seen.add(report)
    assert new.tolist() == expected


def test_tags_need_their_key() -> None:
    reports = [bytes([i]) for i in range(100)]
    mine, others = tags_of(reports, bytes(32)), tags_of(reports, b"\1" * 32)
    assert len(np.unique(mine)) == 100
    assert not np.any(np.isin(mine, others))


def test_every_order_is_equally_likely() -> None:
    """All 24 orders of four reports, and no correlation of places among many; each test errs with probability ERROR."""
    random, runs = Randomness.from_seed(7), 24_000
    orders = np.array([shuffled(numbered(4, 1), random)[:, 0] for _ in range(runs)])
    counts = np.unique(orders @ np.array([64, 16, 4, 1]), return_counts=True)[1]
    assert len(counts) == 24
    assert stats.chisquare(counts).pvalue > ERROR
    n = 100_000
    out = shuffled(numbered(n), random).view("<u8")[:, 0].astype(np.int64)
    assert np.array_equal(np.sort(out), np.arange(n))
    assert stats.spearmanr(np.arange(n), out).pvalue > ERROR
    assert stats.spearmanr(out[:-1], out[1:]).pvalue > ERROR


# -- statements --------------------------------------------------------------------------------------------------------
AUTHORITY = Authority.create()
SIGNERS = {name: AUTHORITY.issue(name) for name in ("north", "south", "east")}
TRUST = SIGNERS["north"].trust


def statement(hop: int, route: Route, **fields: Any) -> BatchStatement:
    return BatchStatement(route=route.digest, batch=1, shuffler=route.shufflers[hop], **fields)


def signed(*statements: BatchStatement) -> list[SignedStatement]:
    return [sign_statement(each, SIGNERS[each.shuffler]) for each in statements]


def chain(route: Route) -> list[BatchStatement]:
    statements = []
    for hop, fields in enumerate(NEGATIVE["statements"]):
        read = {name: bytes.fromhex(value) if isinstance(value, str) else value for name, value in fields.items()}
        statements.append(statement(hop, route, **read))
    return statements


def test_a_good_chain_is_believed() -> None:
    route = route_with()
    assert check_chain(signed(*chain(route)), route, 1, 4, b"two", TRUST) == chain(route)
    assert check_chain(signed(*chain(route)[:1]), route, 1, 5, b"one", TRUST) == chain(route)[:1]


@pytest.mark.parametrize("vector", NEGATIVE["vectors"], ids=lambda vector: vector["name"])
def test_a_chain_that_does_not_agree_names_the_shuffler(vector: dict[str, Any]) -> None:
    route, statements = route_with(), chain(route_with())
    for name, value in vector["change"].items():
        setattr(statements[vector["shuffler"]], name, bytes.fromhex(value) if isinstance(value, str) else value)
    with fails("E400") as caught:
        check_chain(signed(*statements), route, 1, 4, b"two", TRUST)
    assert caught.value.party == route.shufflers[vector["shuffler"]]


def test_statements_need_their_signatures() -> None:
    route = route_with()
    good = signed(*chain(route))
    forged = sign_statement(chain(route)[1], SIGNERS["north"])
    stranger = sign_statement(chain(route)[1], Authority.create().issue("south"))
    changed = SignedStatement(statement=good[0].statement, signature=good[1].signature, certificate=good[1].certificate)
    for wrong in (forged, stranger, changed):
        with pytest.raises(IdentityError):
            check_chain([good[0], wrong], route, 1, 4, b"two", TRUST)
    for few in ([], [*good, good[1]]):
        with fails("E402"):
            check_chain(few, route, 1, 4, b"two", TRUST)


def test_keys_are_signed_for_their_route() -> None:
    route = route_with()
    key = LayerKey(route=route.digest, shuffler="north", public_key=PUBLIC[0])
    assert read_key(sign_key(key, SIGNERS["north"]), route, 0, TRUST) == PUBLIC[0]
    with pytest.raises(IdentityError):
        read_key(sign_key(key, SIGNERS["south"]), route, 0, TRUST)
    with fails("E400", party="north"):
        read_key(sign_key(key, SIGNERS["north"]), replace(route, minimum=3), 0, TRUST)
    statement_as_key = signed(*chain(route))[0]
    mixed = SignedLayerKey(
        key=statement_as_key.statement,
        signature=statement_as_key.signature,
        certificate=statement_as_key.certificate,
    )
    with pytest.raises(IdentityError):  # a signature is for one purpose
        read_key(mixed, route, 0, TRUST)


# -- the collector -----------------------------------------------------------------------------------------------------
def test_the_collector_drops_what_comes_twice_or_cannot_be_read() -> None:
    route = route_with(1)
    sealed, _ = peel(wrap(numbered(6), route, PUBLIC[:1]), route, 0, KEYS[0])
    sealed = np.concatenate([sealed, sealed[:2], np.zeros_like(sealed[:1])])
    collecting = Collecting(route, KEYS[3], TRUST)

    def statements(batch: int) -> list[SignedStatement]:
        said = statement(0, route, output=digest(sealed), received=9, forwarded=9)
        said.batch = batch
        return signed(said)

    found = collecting.open(1, sealed, statements(1))
    assert np.array_equal(found.reports, numbered(6))
    assert (found.unreadable, found.replayed, found.statements[0].received) == (1, 2, 9)
    again = collecting.open(2, sealed, statements(2))
    assert (len(again.reports), again.replayed) == (0, 9)
    assert "private_key" not in repr(collecting)


def test_the_collector_wants_all_shufflers() -> None:
    route = route_with(2)
    sealed, _ = peel(wrap(numbered(3), route, PUBLIC[:2]), route, 0, KEYS[0])
    said = signed(statement(0, route, output=digest(sealed), received=3, forwarded=3))
    with fails("E402", party="south"):
        Collecting(route, KEYS[3], TRUST).open(1, sealed, said)
