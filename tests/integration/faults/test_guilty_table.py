"""One table of all faults of disks, clocks, certificates and the network, and who is named for each.

The modules that are imported below try each fault at every write, in every phase, at every byte; here each stands once,
beside all others.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from itertools import cycle
from pathlib import Path
from typing import NamedTuple

import pytest

from coordinator.jobs.runner import run_job
from jobs.results.result import Result
from link.errors import ComineError
from tests.examples import in_turn
from tests.integration.faults.test_guilty import CLOCKS, HUB, SHOWN, SPOILT, shift, showing
from tests.integration.faults.test_guilty_network import KINDS, Wire, all_running, by_wire
from tests.integration.faults.test_storage_faults import VICTIM, Disk, put_databases_on, put_on, settled
from tests.party.files import free_ports
from tests.party.nodes import Nodes, brief, hold, running

NOBODY = "nobody: the job succeeds"
COORDINATOR = "the coordinator"
PAIR = ("east", VICTIM)
STORAGE = ("store", "ledger", "audit", "table", "result")
UNWRITTEN = frozenset({"E100", "E103"})


class World(NamedTuple):
    """What faults are made in."""

    nodes: Nodes
    disk: Disk
    line: Wire  # by which one of `PAIR` calls the other
    port: int  # of the line


Addresses = Mapping[str, str]
Injected = Callable[[World], AbstractAsyncContextManager[Addresses]]


class Fault(NamedTuple):
    """A fault, and what comes of it.

    Attributes:
        inject: Makes it, and tells at which addresses the coordinator calls then.
        guilty: Who is named; one of both, where two have lost each other.
        codes: One of which the error has.
    """

    inject: Injected
    guilty: str | frozenset[str]
    codes: frozenset[str] = frozenset()


def storage(what: str) -> Injected:
    """The first write of a kind that a job makes is refused."""

    @asynccontextmanager
    async def inject(world: World) -> AsyncIterator[Addresses]:
        world.disk.plan_first(what)
        yield world.nodes.addresses
        assert world.disk.refused
        world.disk.mend()
        put_databases_on(world.disk, world.nodes.nodes[VICTIM])
        await settled(world.nodes)

    return inject


def clock(shifts: Mapping[str, float]) -> Injected:
    @asynccontextmanager
    async def inject(world: World) -> AsyncIterator[Addresses]:
        for name, seconds in shifts.items():
            shift(world.nodes, name, seconds)
        yield world.nodes.addresses
        for name, seconds in shifts.items():
            shift(world.nodes, name, -seconds)

    return inject


def certificate(phase: str, what: str) -> Injected:
    @asynccontextmanager
    async def inject(world: World) -> AsyncIterator[Addresses]:
        other = world.nodes.authority.issue("north").certificate_pem
        with showing(phase, VICTIM, (lambda _: other) if what == "another's" else SPOILT[what]):
            yield world.nodes.addresses
        await settled(world.nodes)

    return inject


def spoilt(kind: str) -> Injected:
    """Bytes are spoilt on their way to the coordinator while the job runs."""

    @asynccontextmanager
    async def inject(world: World) -> AsyncIterator[Addresses]:
        wire = Wire(world.nodes.addresses[VICTIM])
        release = [hold(node) for node in world.nodes.nodes.values()]

        async def spoil() -> None:
            await all_running(world.nodes)
            await asyncio.sleep(0.2)  # the coordinator watches by then
            wire.fault = ("down", wire.passed["down"], kind)
            for each in release:
                each.set()

        spoiling = asyncio.create_task(spoil())
        yield {**world.nodes.addresses, VICTIM: await wire.open()}
        await spoiling
        assert wire.spoilt
        await wire.close()

    return inject


@asynccontextmanager
async def unreachable(world: World) -> AsyncIterator[Addresses]:
    yield {**world.nodes.addresses, VICTIM: f"127.0.0.1:{free_ports(1)[0]}"}


@asynccontextmanager
async def impostor(world: World) -> AsyncIterator[Addresses]:
    yield {**world.nodes.addresses, VICTIM: world.nodes.addresses["north"]}


@asynccontextmanager
async def severed(world: World) -> AsyncIterator[Addresses]:
    """Two parties cannot reach each other, and nobody else has lost anybody."""
    await world.line.close()
    yield world.nodes.addresses
    await world.line.open(world.port)
    await settled(world.nodes)


LOST = frozenset({"E200", "E201"})
FAULTS: dict[str, Fault] = {
    **{f"storage: {what}": Fault(storage(what), VICTIM, UNWRITTEN) for what in STORAGE},
    **{
        f"clock: {name}": Fault(clock(shifts), guilty or COORDINATOR, frozenset({"E100"}))
        for name, (shifts, guilty, _) in CLOCKS.items()
    },
    **{
        f"certificate: {what} at the {phase}": Fault(certificate(phase, what), VICTIM, frozenset({"E201"}))
        for what, phase in zip(SPOILT, cycle(reversed(SHOWN)), strict=False)
    },
    **{f"network: {kind}": Fault(spoilt(kind), NOBODY) for kind in KINDS},
    "network: nobody listens": Fault(unreachable, VICTIM, LOST),
    "network: another answers": Fault(impostor, VICTIM, LOST),
    "network: two parties have lost each other": Fault(severed, frozenset(PAIR), LOST),
}


@pytest.mark.slow
def test_each_fault_names_the_guilty_and_nobody_else(
    tmp_path: Path, subtests: pytest.Subtests, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("party.jobs.endings.end_writer.RETRY_S", 0.02)

    async def test() -> None:
        disk, (port,) = Disk(), free_ports(1)
        policy, by_line = "max_failed_jobs = 1000\n", by_wire(tmp_path, *PAIR, port)
        async with running(tmp_path, policy=policy, prepare=by_line) as nodes:
            line = Wire(nodes.addresses[VICTIM])
            await line.open(port)
            hub = nodes.authority.issue(HUB, "coordinator")
            put_on(disk, nodes.nodes[VICTIM], monkeypatch)

            async def job(addresses: Addresses) -> Result | ComineError:
                try:
                    return await run_job(brief(recipients=["all"], deadline="60s"), hub, addresses)
                except ComineError as error:
                    return error

            disk.plan(None, stays=False)
            assert isinstance(await job(nodes.addresses), Result)
            await settled(nodes)
            assert {write.split()[0] for write in disk.writes} == set(STORAGE)
            world = World(nodes, disk, line, port)
            for name, fault in in_turn(FAULTS.items(), 3):
                with subtests.test(fault=name):
                    async with fault.inject(world) as addresses:
                        check(await job(addresses), fault)
            assert isinstance(await job(nodes.addresses), Result)
            await line.close()

    asyncio.run(test())


def check(found: Result | ComineError, fault: Fault) -> None:
    if fault.guilty is NOBODY:
        assert isinstance(found, Result), found
        return
    assert isinstance(found, ComineError)
    assert found.code in fault.codes, found
    if isinstance(fault.guilty, frozenset):
        assert found.party in fault.guilty, found
        return
    assert found.party == (None if fault.guilty is COORDINATOR else fault.guilty), found
    assert (VICTIM if fault.guilty is COORDINATOR else fault.guilty) in found.message or "clock" in found.message, found
    assert "\n" not in found.message
