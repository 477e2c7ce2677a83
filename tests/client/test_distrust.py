"""A device gives a service that breaks the rules nothing, and tosses its coins itself."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from client.description import Description
from client.outcome import Status
from client.reporter import FrequencyClient
from ldp.domain import Domain
from ldp.heavy_hitters.bit_strings import Texts
from ldp.heavy_hitters.prefix_extending import PrefixExtending
from ldp.registry import oracle
from tests.client.devices import KEY, device, grr
from tests.client.node import BEGIN, HOUR, LABELS, PARTY, Direct, Kept, Node, announced, homepages, spec_of
from tests.errors import fails
from tests.ldp.contract import ERROR, chi_square_p

pytestmark = pytest.mark.turn(3)


# -- a service that is not to be trusted ------------------------------------------------------------------------------
def changed(kept: Kept, **fields: Any) -> None:
    asked, mechanism = kept.round(0)
    for name, value in fields.items():
        setattr(asked, name, value)
    kept.rounds = [(asked, mechanism)]


@pytest.mark.parametrize(
    "fields",
    [{"share": "1/2"}, {"period": 1}, {"step": 1}, {"purpose": "dissimilarity"}, {"fingerprint": bytes(16)}],
    ids=lambda fields: next(iter(fields)),
)
def test_a_round_that_changes_is_refused(tmp_path: Path, fields: dict[str, Any]) -> None:
    kept = homepages(grr())
    node = Node(kept)
    client = device(tmp_path, node)
    changed(kept, **fields)
    with fails("E400") as found:
        client.follow(Direct(node), "homepages")
    assert found.value.party == PARTY
    assert client.report(KEY, "south").reported  # by what was announced first


def test_another_mechanism_under_the_same_id_is_refused(tmp_path: Path) -> None:
    kept = homepages(grr())
    node = Node(kept)
    client = device(tmp_path, node)
    node.collections["homepages"] = homepages(oracle("grr", Domain(4, LABELS), 2.0))
    with fails("E400"):
        client.follow(Direct(node), "homepages")


def test_asking_for_more_than_the_collection_is_for_is_refused(tmp_path: Path) -> None:
    kept = homepages(grr(1.0))
    kept.mechanism = grr(1.5)
    with fails("E402"):
        device(tmp_path, Node(kept))


@pytest.mark.parametrize("share", ["2", "0", "-1/2", "1/0", "1e400000000", "a"])
def test_a_share_that_is_none_is_refused(tmp_path: Path, share: str) -> None:
    kept = homepages(grr())
    changed(kept, share=share)
    with fails("E402"):
        device(tmp_path, Node(kept))


@pytest.mark.parametrize(
    "spec",
    [
        {},
        {"collection": {"mechanism": "grr", "epsilon": "x"}},
        {"collection": {"mechanism": "grr", "epsilon": "-1"}},
        {"collection": {"mechanism": "grr", "epsilon": "1"}, "window": {"length": "1y"}},
        {"collection": {"mechanism": "grr", "epsilon": "1"}, "window": {"length": "0s"}},
        {"collection": {"mechanism": "grr", "epsilon": "1"}, "continual": {"w": 3}},
        {"collection": {"mechanism": "prefix-extending", "epsilon": "1"}},
        [],
    ],
)
def test_a_description_that_is_none_is_refused(tmp_path: Path, spec: Any) -> None:
    kept = homepages(grr())
    kept.describe = lambda now, describe=kept.describe: _with_spec(describe(now), spec)  # type: ignore[method-assign]
    with fails("E402"):
        device(tmp_path, Node(kept))


def _with_spec(sent: Any, spec: Any) -> Any:
    sent.spec = json.dumps(spec).encode()
    return sent


@pytest.mark.parametrize(
    "data", [b"", b"\xff\xff", b"\x1a\xa0\x8d\x06" + b"[" * 100_000], ids=["empty", "bytes", "deep"]
)
def test_bytes_that_are_no_description_are_refused(data: bytes) -> None:
    with fails("E402"):
        Description.read(data, PARTY, "homepages")


def test_reports_that_are_too_long_are_refused(tmp_path: Path) -> None:
    with fails("E402"):
        device(tmp_path, Node(homepages(oracle("oue", 1 << 24, 1.0))))


def test_labels_must_be_those_that_were_announced(tmp_path: Path) -> None:
    node = Node(homepages(grr()))
    connection = Direct(node)
    connection.labels = lambda name: b"a\nb\nc\nd\n"  # type: ignore[method-assign]
    with fails("E402"):
        FrequencyClient.open(tmp_path).follow(connection, "homepages")  # type: ignore[arg-type]


def test_a_collection_that_comes_back_finds_its_ledger(tmp_path: Path) -> None:
    """A node that swaps ids under a name cannot make a device forget."""
    first, second = homepages(grr()), homepages(grr(), "second")
    second.name = "homepages"
    node = Node(first)
    client = device(tmp_path, node)
    assert client.report(KEY, "south").reported
    for kept in (second, first):
        node.collections["homepages"] = kept
        client.follow(Direct(node), "homepages")
    assert client.report(KEY, "south").status is Status.ALREADY


# -- coins ------------------------------------------------------------------------------------------------------------
def test_the_coin_of_a_share_is_tossed_once(tmp_path: Path) -> None:
    selected = 0
    for number in range(60):
        kept = homepages(grr())
        changed(kept, share="1/3")
        client = device(tmp_path / str(number), Node(kept))
        first = client.report(KEY, "south").status
        assert first in (Status.REPORTED, Status.NOT_SELECTED)
        again = client.report(KEY, "south").status
        assert again is (Status.ALREADY if first is Status.REPORTED else Status.NOT_SELECTED)
        selected += first is Status.REPORTED
        client.close()
    assert 3 < selected < 42  # 60 draws with probability 1/3: an error of 10^-7


def test_a_search_is_answered_in_one_round_that_the_device_draws(tmp_path: Path) -> None:
    plan = PrefixExtending(Texts(2), 2.0, 2, groups=3)
    spec = spec_of("prefix-extending", 2, "1h", collection={"text_bytes": 2, "k": 2, "parameters": {"groups": 3}})
    drawn = np.zeros(3, dtype=np.int64)
    for number in range(60):
        kept = Kept("homepages", plan.oracle(0), spec)
        kept.rounds = [
            (announced(made, which, period=0, opens=BEGIN + which * HOUR, closes=BEGIN + (which + 1) * HOUR), made)
            for which, made in enumerate([plan.oracle(0), plan.oracle(1, (3, 9)), plan.oracle(2, (7, 8))])
        ]
        node = Node(kept)
        client = device(tmp_path / str(number), node)
        outcomes = []
        for which in range(3):
            node.now = BEGIN + which * HOUR + 1
            client.follow(Direct(node), "homepages")
            outcomes.append(client.report(KEY, "ab").status)
        (which,) = (place for place, status in enumerate(outcomes) if status is Status.REPORTED)
        assert outcomes == [Status.OTHER_ROUND] * which + [Status.REPORTED] + [Status.ALREADY] * (2 - which)
        drawn[which] += 1
        client.close()
    assert chi_square_p(drawn, np.full(3, 20.0)) > ERROR


def test_prefixes_that_are_none_of_the_search_are_refused(tmp_path: Path) -> None:
    spec = spec_of("prefix-extending", 2, "1h", collection={"text_bytes": 2, "k": 2, "parameters": {"groups": 3}})
    kept = Kept("homepages", PrefixExtending(Texts(2), 2.0, 2, groups=1).oracle(0), spec)
    with fails("E402"):
        device(tmp_path, Node(kept))
