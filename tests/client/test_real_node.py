"""Devices and fleets against the node itself, over TLS: what they send is what it counts."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from client.budget import Budget
from client.connection import Connection
from client.fleet import Fleet
from client.outcome import Status
from client.reporter import CollectionKey, FrequencyClient
from jobs.collections.spec import labels_of
from tests.client.node import BEGIN, HOUR, LABELS
from tests.clock import Clock
from tests.examples import slowly
from tests.party.services.frequency.nodes import World, running
from tests.party.services.frequency.specs import spec_of

pytestmark = pytest.mark.turn(6)

KEY = CollectionKey("north", "homepages")
GATEWAYS = {"gateways": {"fleet": 1_000_000}}
WINDOWS: dict[str, Any] = {"window": {"length": "1h", "grace": "1h"}, "access": GATEWAYS}


def with_node(
    folder: Path, clock: Clock, create: dict[str, Any], labels: list[str], work: Callable[[World, Connection], None]
) -> Any:
    """Creates a collection, has a client work on a thread, and returns the collection as its creator sees it."""

    async def run() -> Any:
        async with running(folder, now=clock) as world:
            await world.analyst.create(spec_of(**create), labels_of(labels))
            with Connection(world.authority.issue("fleet", "client"), "north", world.address) as connection:
                await asyncio.to_thread(work, world, connection)
            return await world.analyst.describe()

    return asyncio.run(run())


KINDS: dict[str, tuple[dict[str, Any], list[str], Any]] = {
    "grr": ({"size": 4, "labelled": True}, LABELS, "south"),
    "auto": ({"size": 300}, [], 7),
    "l-osue": ({"size": 4, "labelled": True}, LABELS, "south"),
    "dbitflip": ({"size": 40, "parameters": {"sampled": 4}}, [], 7),
    "1bit-mean": ({"parameters": {"low": 0, "high": "2.5"}}, [], 1.25),
    "rappor": ({"parameters": {"permanent_epsilon": "2.0"}}, [], "a text"),
    "sfp": ({"epsilon": "4.0", "text_bytes": 4, "k": 3}, [], "abc"),
}


@pytest.mark.parametrize("mechanism", KINDS)
def test_every_mechanism_is_understood(tmp_path: Path, mechanism: str) -> None:
    collection, labels, value = KINDS[mechanism]
    clock = Clock(BEGIN)

    def work(world: World, connection: Connection) -> None:
        with FrequencyClient.open(tmp_path / "device", budget=Budget(100), clock=clock) as client:
            key = client.follow(connection, "homepages")
            for _ in range(2):
                assert client.report(key, value).reported
                assert client.report(key, value).status is Status.ALREADY
                assert client.deliver(connection).counted == 1
                clock.now += HOUR
            assert client.report(key, value).reported  # offline, in a round that the node has not announced
            assert client.deliver(connection).counted == 1
            fleet = Fleet(50, clock=clock)
            values = np.full(50, value, dtype=object if isinstance(value, str) else None)
            assert fleet.report(connection, "homepages", values, batch=20).counted == 50

    told = with_node(tmp_path / "node", clock, {"mechanism": mechanism, **collection, **WINDOWS}, labels, work)
    assert (told.counters.counted, told.counters.malformed, told.counters.foreign) == (53, 0, 0)


def test_a_report_that_was_made_offline_is_late_after_its_round(tmp_path: Path) -> None:
    clock = Clock(BEGIN)

    def work(world: World, connection: Connection) -> None:
        with FrequencyClient.open(tmp_path / "device", clock=clock) as client:
            key = client.follow(connection, "homepages")
            for _ in range(3):
                assert client.report(key, "south").reported
                clock.now += HOUR
            done = client.deliver(connection)
            assert (done.counted, done.late) == (1, 2)  # the hour of grace has the last one still

    told = with_node(tmp_path / "node", clock, {"size": 4, "labelled": True, **WINDOWS}, LABELS, work)
    assert told.counters.counted == 1


def test_a_search_is_answered_once_by_each(tmp_path: Path) -> None:
    clock = Clock(BEGIN)
    collection = {
        "mechanism": "prefix-extending",
        "epsilon": "4.0",
        "text_bytes": 2,
        "k": 2,
        "parameters": {"groups": 2},
        "window": {"length": "1h"},
        "access": GATEWAYS,
    }
    outcomes: list[Status] = []
    counted: list[int] = []

    def work(world: World, connection: Connection) -> None:
        fleet = Fleet(2000, clock=clock)
        values = np.array(["hi"] * 1500 + ["yo"] * 500, dtype=object)
        with FrequencyClient.open(tmp_path / "device", clock=clock) as client:
            for _ in range(2):
                key = client.follow(connection, "homepages")
                outcomes.append(client.report(key, "hi").status)
                client.deliver(connection)
                counted.append(fleet.report(connection, "homepages", values).counted)
                clock.now += HOUR

    told = with_node(tmp_path / "node", clock, collection, [], work)
    assert sum(counted) == 2000
    assert outcomes in ([Status.REPORTED, Status.ALREADY], [Status.OTHER_ROUND, Status.REPORTED])
    assert told.counters.counted == 2001


@pytest.mark.parametrize("method", slowly(["lbu", "lsp", "lbd", "lba", "lpu", "lpd", "lpa"], now=[0, 2, 5]))
def test_continual_release_asks_for_no_more_than_the_ledger_allows(tmp_path: Path, method: str) -> None:
    clock = Clock(BEGIN)
    create = {
        "size": 4,
        "labelled": True,
        "window": {"length": "1h"},
        "continual": {"method": method, "w": 3},
        "access": GATEWAYS,
    }
    refused: list[Any] = []
    made = 0

    def work(world: World, connection: Connection) -> None:
        nonlocal made
        fleet = Fleet(300, clock=clock)
        values = np.array(["south"] * 200 + ["east"] * 100, dtype=object)
        with FrequencyClient.open(tmp_path / "device", budget=Budget(100), clock=clock) as client:
            for _ in range(16):
                key = client.follow(connection, "homepages")
                outcome = client.report(key, "south")
                made += outcome.reported
                if outcome.status is Status.REFUSED:
                    refused.append(outcome.sentence)
                assert client.deliver(connection).refused == 0
                done = fleet.report(connection, "homepages", values)
                made += done.counted
                if not method.startswith("lp"):
                    assert not done.over_budget
                clock.now += HOUR / 2

    told = with_node(tmp_path / "node", clock, create, LABELS, work)
    assert told.counters.counted == made > 0
    assert not refused or method.startswith("lp"), refused
