"""Jobs of nodes that only dial out: what comes of them, and what a relay that means harm can do."""

from __future__ import annotations

import asyncio
import io
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path

import pytest
from websockets.asyncio.server import ServerConnection

from client.connection import Connection
from coordinator.doctor import examine
from coordinator.jobs.runner import run_job
from jobs.federation import Federation
from jobs.kinds.itemsets_finding import FoundItemsets
from jobs.results.result import Result
from link.errors import ComineError
from link.pki.authority import write_identity
from mining.reference.pooled import brute_force
from party.node.health import check
from relay.passing import Flow
from tests.errors import fails
from tests.examples import in_turn
from tests.integration.faults.test_guilty_network import all_running
from tests.party.files import free_ports
from tests.party.nodes import DATA, brief, hold, running, weekly
from tests.party.services.frequency import nodes as frequency
from tests.party.services.frequency.specs import spec_of
from tests.party.services.shuffler import nodes as shuffler
from tests.proxy import Proxy
from tests.relay.relays import by_relay, relaying

pytestmark = pytest.mark.slow

Change = Callable[[bytes, int], bytes]


def itemsets(result: Result) -> dict[frozenset[str], int]:
    assert isinstance(result.finding, FoundItemsets)
    return {frozenset(items): count for items, count in result.finding.itemsets}


WHOLE = brute_force((row for rows in DATA.values() for row in rows), 36)
EXPECTED = {items: count for items, count in WHOLE.items() if len(items) == 1}


@pytest.fixture
def passed(monkeypatch: pytest.MonkeyPatch) -> list[bytes]:
    """What a curious relay sees."""
    seen: list[bytes] = []
    tamper(monkeypatch, lambda data, number: seen.append(data) or data)
    return seen


def tamper(patch: pytest.MonkeyPatch, change: Change) -> None:
    """Has the relay change messages, of which each connection counts its own."""

    async def run(self: Flow, source: ServerConnection, target: ServerConnection, alive: Callable[[], None]) -> None:
        number = 0
        async for data in source:
            assert isinstance(data, bytes)
            alive()
            number += 1
            self.size += len(data)
            await target.send(change(data, number))

    patch.setattr(Flow, "run", run)


async def until_connected(logs: Mapping[str, io.StringIO]) -> None:
    """Waits until the relay connects all nodes; they log when it does."""
    for log in logs.values():
        while '"relay connected"' not in log.getvalue():  # noqa: ASYNC110 - nobody tells
            await asyncio.sleep(0.01)


async def ended(job: Awaitable[Result]) -> Result | ComineError:
    """The result of a job, or its error."""
    try:
        return await job
    except ComineError as error:
        return error


def test_a_job_gives_the_pooled_result_and_the_relay_reads_nothing(tmp_path: Path, passed: list[bytes]) -> None:
    (port,) = free_ports(1)

    async def test() -> None:
        async with running(tmp_path, prepare=by_relay(tmp_path, port)) as nodes, relaying(tmp_path) as (_, log):
            await until_connected(nodes.logs)
            hub = nodes.authority.issue("hub", "coordinator")
            assert itemsets(await run_job(weekly(), hub, nodes.addresses)) == WHOLE
            traffic = b"".join(passed)
            assert len(traffic) > 100_000
            for word in (b"item0", b"comine.v1", b"itemsets", b"weekly"):
                assert word not in traffic
            assert "item0" not in log.getvalue()

    asyncio.run(test())


def test_some_parties_may_have_addresses(tmp_path: Path) -> None:
    (port,) = free_ports(1)

    async def test() -> None:
        prepare = by_relay(tmp_path, port, ("north", "east"))
        async with running(tmp_path, prepare=prepare) as nodes, relaying(tmp_path):
            await until_connected({name: nodes.logs[name] for name in ("north", "east")})
            hub = nodes.authority.issue("hub", "coordinator")
            assert itemsets(await run_job(brief(), hub, nodes.addresses)) == EXPECTED

    asyncio.run(test())


def test_a_relay_that_dies_and_is_started_again_loses_no_job(tmp_path: Path) -> None:
    (port,) = free_ports(1)

    async def between(proxy: Proxy, dialled: str) -> None:
        prepare = by_relay(tmp_path, port, dialled=int(dialled))
        async with running(tmp_path, prepare=prepare) as nodes:
            hub = nodes.authority.issue("hub", "coordinator")
            release = [hold(node) for node in nodes.nodes.values()]
            async with relaying(tmp_path):
                await until_connected(nodes.logs)
                job = asyncio.create_task(run_job(brief(deadline="5m"), hub, nodes.addresses))
                await all_running(nodes)
                proxy.cut()  # as the death of its process would
            for each in release[:2]:
                each.set()
            async with relaying(tmp_path):
                proxy.mend()
                release[2].set()
                assert itemsets(await job) == EXPECTED

    async def test() -> None:
        async with Proxy(f"127.0.0.1:{port}") as proxy:
            await between(proxy, proxy.address.rpartition(":")[2])

    asyncio.run(test())


@pytest.mark.parametrize("number", in_turn([3, 6, 9], 3))
def test_a_byte_that_the_relay_changes_changes_no_result(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    """The connection ends, and another one takes its place."""
    (port,), left = free_ports(1), [2]

    def spoil(data: bytes, at: int) -> bytes:
        if at != number or not left[0]:
            return data
        left[0] -= 1
        return data[:-1] + bytes([data[-1] ^ 1])

    tamper(monkeypatch, spoil)

    async def test() -> None:
        async with running(tmp_path, prepare=by_relay(tmp_path, port)) as nodes, relaying(tmp_path):
            await until_connected(nodes.logs)
            hub = nodes.authority.issue("hub", "coordinator")
            found = await ended(run_job(brief(deadline="5m"), hub, nodes.addresses))
            assert found.exit_code == 20 if isinstance(found, ComineError) else itemsets(found) == EXPECTED
            assert left == [0]

    asyncio.run(test())


def test_who_cannot_be_reached_is_told_by_doctor_and_jobs(tmp_path: Path) -> None:
    """A party that is not connected, and the relay, which is no party."""
    (port,) = free_ports(1)

    async def test() -> None:
        async with running(tmp_path, prepare=by_relay(tmp_path, port)) as nodes:
            hub = nodes.authority.issue("hub", "coordinator")
            write_identity(hub, tmp_path / "pki")
            file = tmp_path / "federation.toml"
            own = '[coordinator]\nca = "pki/ca.crt"\ncertificate = "pki/hub.crt"\nkey = "pki/hub.key"\n'
            file.write_text(file.read_text() + own)
            known = Federation.load(file)
            assert known.coordinator is not None
            with fails("E200", party="north"):
                await check(tmp_path / "north.toml")
            async with relaying(tmp_path):
                await until_connected(nodes.logs)
                assert (await check(tmp_path / "north.toml"))[0] == "north"
                checks = await examine(hub, known.coordinator, known.addresses)
                assert [each.ready for each in checks] == [True] * 3, checks
                assert all(each.days_left is not None for each in checks)
                await nodes.nodes["east"].stop()
                with fails("E200", party="east"):
                    await run_job(brief(), hub, nodes.addresses)
            with fails("E200") as caught:
                await run_job(brief(), hub, nodes.addresses)
            assert caught.value.party is None
            await nodes.restart("east")

    asyncio.run(test())


def test_a_client_of_the_frequency_service_goes_through_the_relay(tmp_path: Path) -> None:
    (port,) = free_ports(1)

    async def test() -> None:
        prepare = by_relay(tmp_path, port, ("north",))
        async with frequency.running(tmp_path, prepare=prepare) as world, relaying(tmp_path):
            await until_connected({"north": world.log})
            await world.analyst.create(spec_of())
            with Connection(world.authority.issue("fleet", "client"), "north", world.address) as connection:
                found = await asyncio.to_thread(connection.describe, "homepages")
            assert found.name == "homepages"

    asyncio.run(test())


def test_a_shuffler_forwards_its_batches_through_a_relay(tmp_path: Path) -> None:
    (port,) = free_ports(1)

    async def test() -> None:
        prepare = by_relay(tmp_path, port, ("south",))
        async with shuffler.running(tmp_path, prepare=prepare) as world, relaying(tmp_path):
            await until_connected({"south": world.logs["south"]})
            route = shuffler.route_for()
            sealed = await world.sealed(route, range(10))
            await world.caller("fleet").submit(sealed)
            await world.analyst().flush()
            (batch,) = await world.opened(route, 1)
            assert sorted(shuffler.numbers(batch.reports)) == list(range(10))

    asyncio.run(test())
