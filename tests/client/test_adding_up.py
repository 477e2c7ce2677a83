"""What a service gets out of one client by asking again: in another round, collection or process, by another name.

Whatever it invents, what all different reports of a client may tell stays within the client's budget, for devices and
for clients of gateways; and what is asked again in the same way is answered by the same bits.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from client.budget import Budget
from client.fleet import Fleet
from client.gateway import GatewaySecret
from client.reporter import FrequencyClient
from ldp.domain import Domain
from ldp.mechanism import Mechanism
from ldp.registry import oracle
from tests.client.node import HOUR, LABELS, Direct, Kept, Node, homepages

DOMAIN = Domain(4, LABELS)
EPSILON = 3.0  # so that two reports are within ε = 8, and three are not
IDS = [f"user-{number}" for number in range(20)]
VALUES = np.array(["south"] * 12 + ["east"] * 8, dtype=object)
TRIES = 5


def _created_anew(number: int) -> tuple[str, bytes]:
    """Deleted and created once more, as the node draws its id then."""
    return "homepages", hashlib.sha256(b"%d" % number).digest()[:16]


def _renamed(number: int) -> tuple[str, bytes]:
    return f"homepages-{number}", hashlib.sha256(b"%d" % number).digest()[:16]


def _same_id(number: int) -> tuple[str, bytes]:
    """Other names for what clients know by one id."""
    return f"homepages-{number}", b"the same id ever"


COURSES: dict[str, Callable[[int], tuple[str, bytes]]] = {
    "created anew": _created_anew,
    "renamed": _renamed,
    "the same id": _same_id,
}


def invented(course: str, number: int, mechanism: Mechanism[Any]) -> Kept:
    kept = homepages(mechanism)
    kept.name, kept.id = COURSES[course](number)
    return kept


@pytest.mark.parametrize("restarts", [False, True])
@pytest.mark.parametrize("hours", [0, 1, 24])
@pytest.mark.parametrize("course", COURSES)
def test_a_gateway_whose_collections_are_invented_tells_no_more_than_the_budget(
    tmp_path: Path, course: str, hours: int, restarts: bool
) -> None:
    node, fleet = Node(), None
    told: dict[int, set[bytes]] = {client: set() for client in range(len(IDS))}
    for number in range(TRIES):
        kept = invented(course, number, oracle("grr", DOMAIN, EPSILON))
        node.collections[kept.name] = kept
        if fleet is None or restarts:
            fleet = Fleet.of(IDS, GatewaySecret.open(tmp_path / "fleet.secret"), clock=lambda: node.now)
        fleet.report(Direct(node), kept.name, VALUES)
        for place, (_, name, data) in enumerate(kept.received):
            told[place].add(name + data)
        assert len(kept.received) in (0, len(IDS))  # who reports at all does so in the fleet's order
        node.now += hours * HOUR
    spent = max(map(len, told.values())) * Fraction(str(EPSILON))
    assert 0 < spent <= Budget().epsilon


@pytest.mark.parametrize("restarts", [False, True])
@pytest.mark.parametrize("course", COURSES)
def test_a_device_whose_collections_are_invented_tells_no_more_than_its_budget(
    tmp_path: Path, course: str, restarts: bool
) -> None:
    node, told = Node(), set[bytes]()
    device = FrequencyClient.open(tmp_path / "device", clock=lambda: node.now)
    for number in range(TRIES):
        kept = invented(course, number, oracle("grr", DOMAIN, EPSILON))
        node.collections[kept.name] = kept
        key = device.follow(Direct(node), kept.name)
        device.report(key, "south")
        device.deliver(Direct(node))
        told |= {name + data for _, name, data in kept.received}
        node.now += HOUR
        if restarts:
            device.close()
            device = FrequencyClient.open(tmp_path / "device", clock=lambda: node.now)
    device.close()
    assert 0 < len(told) * Fraction(str(EPSILON)) <= Budget().epsilon


def test_what_one_client_less_or_another_value_changes_is_its_own_report_alone(tmp_path: Path) -> None:
    """Two runs over one round, of which one lacks a client: their difference is its report, as it was perturbed."""
    found = []
    for name, who in (("all", range(20)), ("without", [number for number in range(20) if number != 7])):
        node = Node(homepages(oracle("grr", DOMAIN, EPSILON)))
        secret = GatewaySecret(bytes(32))
        fleet = Fleet.of([IDS[number] for number in who], secret, clock=lambda node=node: node.now)
        fleet.report(Direct(node), "homepages", VALUES[list(who)])
        found.append({pseudonym: data for _, pseudonym, data in node.collections["homepages"].received})
        assert len(found[-1]) == len(list(who)), name
    everybody, without = found
    assert without.items() <= everybody.items()
