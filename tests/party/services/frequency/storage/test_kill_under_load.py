"""A node that is killed while a fleet reports: what was acknowledged is counted, and nothing is counted twice.

The fleet reconnects and sends again what had no receipt. Every batch that left it is recorded; at the end the node's
sums must be those of all of them, each once.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterable, Iterator
from contextlib import aclosing
from multiprocessing.context import ForkServerProcess
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from client.connection import IN_FLIGHT, Connection
from client.fleet import Fleet, FleetDelivery
from jobs.collections.spec import CollectionSpec
from ldp.aggregator import Aggregator
from ldp.documents import mechanism_of
from ldp.mechanism import Mechanism
from protos.v1.frequency_pb2 import BatchReceipt, FrequencyRequest, ReportBatch
from tests.examples import in_turn
from tests.party.services.frequency.deployed import NODE, Deployed, deployed
from tests.party.services.frequency.forking import forking
from tests.party.services.frequency.served import run_node

VALUES = 16
CLIENTS = 10_000
BATCH = 100
ATTEMPTS = 1000


class Forked:
    """The node's process, which starts again quickly.

    Args:
        node: Its files.
    """

    def __init__(self, node: Deployed) -> None:
        self._given = (node.folder / f"{NODE}.toml", node.folder / "forked.log")
        self._process = self._started()

    def _started(self) -> ForkServerProcess:
        process = forking().Process(target=run_node, args=self._given)
        process.start()
        return process

    def kill(self) -> None:
        """Ends it at once."""
        self._process.kill()
        self._process.join()
        self._process.close()

    def kill_and_start(self) -> None:
        """Ends it at once, and starts it again."""
        self.kill()
        self._process = self._started()


class Recording(Connection):
    """A connection that keeps what goes out for the first time."""

    taken: list[bytes]

    def submit(self, batches: Iterable[ReportBatch], in_flight: int = IN_FLIGHT) -> Iterator[BatchReceipt]:
        def kept() -> Iterator[ReportBatch]:
            for batch in batches:
                self.taken.append(batch.reports)
                yield batch

        return super().submit(kept(), in_flight)


async def created(node: Deployed, mechanism: str) -> Mechanism[Any]:
    spec = CollectionSpec.model_validate(
        {
            "collection": {"name": mechanism, "mechanism": mechanism, "epsilon": 2, "size": VALUES},
            "access": {"gateways": {"fleet": 10**9}},
        }
    )
    calls = node.coordinator()
    try:
        collection = await calls.create(spec, b"")
        return mechanism_of(collection.rounds[0].mechanism)
    finally:
        await calls.close()


async def stands(node: Deployed, name: str) -> tuple[int, bytes]:
    """How many reports the node has counted, and the state over them that it exports."""
    calls = node.coordinator()
    try:
        await calls.end(name)
        estimates = await calls.estimate(FrequencyRequest(collection=name))
        async with aclosing(calls.export(name, states=True)) as pieces:
            state = b"".join([data async for file, data in pieces if file.endswith(".state")])
        return estimates.head.reports, state
    finally:
        await calls.close()


def under_load(node: Forked, connection: Recording, name: str, pause_s: float) -> FleetDelivery:
    """Kills the node so many seconds after the first receipt, and starts it again while the fleet goes on."""
    begun, done = threading.Event(), []

    def report() -> None:
        try:
            values = np.arange(CLIENTS) % VALUES
            done.append(Fleet(CLIENTS).report(connection, name, values, batch=BATCH, tell=lambda _: begun.set()))
        finally:
            begun.set()

    sender = threading.Thread(target=report)
    sender.start()
    begun.wait()
    threading.Event().wait(pause_s)
    node.kill_and_start()
    sender.join()
    return done[0]


def check(folder: Path, mechanism: str, rounds: int, seed: int) -> None:
    pauses = np.random.default_rng(seed).uniform(0, 0.1, rounds)
    with deployed(folder) as node:
        made = asyncio.run(created(node, mechanism))
        node.nodes[NODE].kill()
        forked = Forked(node)
        try:
            with Recording(node.identity("fleet"), NODE, node.address, attempts=ATTEMPTS) as connection:
                connection.taken = []
                for pause_s in pauses:
                    sent = under_load(forked, connection, mechanism, float(pause_s))
                    assert (sent.acknowledged, sent.refused, sent.late, sent.early) == (CLIENTS, 0, 0, 0)
        finally:
            forked.kill()
        node.start()
        reports, state = asyncio.run(stands(node, mechanism))
        assert reports == rounds * CLIENTS
        expected = Aggregator(made)
        for batch in connection.taken:
            expected.add(made.read(batch))
        assert state == expected.to_bytes()


@pytest.fixture(autouse=True)
def quick_retries(monkeypatch: pytest.MonkeyPatch) -> None:
    """A device waits for longer and longer between two tries; the fleet of a test does not."""
    monkeypatch.setattr("client.connection.MOST_BACKOFF_S", 0.2)


@pytest.mark.slow
@pytest.mark.parametrize(("mechanism", "rounds"), in_turn([("grr", 3), ("olh", 7)], 2))
def test_kills_lose_nothing_and_count_nothing_twice(tmp_path: Path, mechanism: str, rounds: int) -> None:
    check(tmp_path, mechanism, rounds, seed=rounds)
