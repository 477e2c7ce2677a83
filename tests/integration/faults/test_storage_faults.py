"""A disk that fails at one party, at every write of a job: that party is named, the job ends, and nobody is accused.

Each write is refused, every other one from there on until the disk is mended; or the node dies before it is.
"""

from __future__ import annotations

import asyncio
import errno
import os
import sqlite3
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import pytest

import party.jobs.endings.release
from coordinator.jobs.runner import run_job
from jobs.audit.checks.verification import verification
from jobs.results.result import Result
from jobs.resumption import lost
from link.errors import ComineError, ResourceError
from link.pki.trust import Trust
from party.jobs.job import ENDS
from party.server import Node
from protos.v1.control_pb2 import APPROVED, CANCELLED, FAILED
from tests.examples import in_turn
from tests.party.nodes import Nodes, brief, hold, refused, running, weekly

pytestmark = [pytest.mark.turn(2), pytest.mark.slow]

VICTIM = "south"
JOB = brief(recipients=["all"], deadline="60s")
WRITES = ("INSERT", "UPDATE", "DELETE", "BEGIN", "COMMIT")
SQLITE: tuple[sqlite3.Error, ...] = (
    sqlite3.OperationalError("database or disk is full"),
    sqlite3.OperationalError("disk I/O error"),
    sqlite3.OperationalError("attempt to write a readonly database"),
    sqlite3.OperationalError("database is locked"),
    sqlite3.DatabaseError("database disk image is malformed"),
)


class Disk:
    """Refuses writes: the one with the number `at`, and, if it stays broken, all after it; or the first of a kind."""

    def __init__(self) -> None:
        self.writes: list[str] = []
        self.at: int | None = None
        self.kind = ""
        self.stays = False
        self.refused: list[str] = []

    def plan(self, at: int | None, *, stays: bool) -> None:
        self.writes, self.refused, self.at, self.stays = [], [], at, stays

    def plan_first(self, kind: str) -> None:
        """Plans by kind, since jobs do not make all writes in one order."""
        self.plan(None, stays=False)
        self.kind = kind

    def mend(self) -> None:
        self.at, self.kind = None, ""

    def write(self, what: str, error: Callable[[int], Exception]) -> None:
        number = len(self.writes)
        self.writes.append(what)
        is_first = what.split()[0] == self.kind and not self.refused
        if is_first or (self.at is not None and (number == self.at or (self.stays and number > self.at))):
            self.refused.append(what)
            raise error(number)


class Connection:
    """A connection to a database on that disk."""

    def __init__(self, inner: Any, disk: Disk, name: str) -> None:
        self._inner, self._disk, self._name = inner, disk, name

    def execute(self, statement: str, *values: Any) -> Any:
        verb = statement.split(None, 1)[0].upper()
        if verb in WRITES:
            self._disk.write(f"{self._name} {verb}", lambda number: SQLITE[number % len(SQLITE)])
        return self._inner.execute(statement, *values)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)


def full(_: int) -> OSError:
    return OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def put_databases_on(disk: Disk, node: Node) -> None:
    """Those of a node that are not there yet."""
    for name, user in (("store", node.store), ("ledger", node.ledger)):
        if not isinstance(user.connection, Connection):
            user.connection = Connection(user.connection, disk, name)  # type: ignore[assignment]


def put_on(disk: Disk, node: Node, monkeypatch: pytest.MonkeyPatch) -> None:
    """Lets a node write to that disk from now on."""
    put_databases_on(disk, node)
    audit, tables = node.audit, node.host.context.tables
    for name in ("_write", "write_head"):
        method = getattr(audit, name)

        def refusing(*arguments: Any, name: str = name, method: Any = method) -> Any:
            disk.write(f"audit {name}", full)
            return method(*arguments)

        monkeypatch.setattr(audit, name, refusing)
    write, folder = tables.write, node.host.context.results

    def write_table(*arguments: Any) -> None:
        disk.write("table", lambda _: ResourceError("/secret/place cannot be written (No space left)"))
        write(*arguments)

    monkeypatch.setattr(tables, "write", write_table)
    write_folder = party.jobs.endings.release.write_result_folder

    def write_result(path: Path, result: Any) -> None:
        if path.parent == folder:
            disk.write("result", lambda _: ResourceError("/secret/place cannot be written (No space left)"))
        write_folder(path, result)

    monkeypatch.setattr(party.jobs.endings.release, "write_result_folder", write_result)


async def job(nodes: Nodes) -> Result | ComineError:
    try:
        hub = nodes.authority.issue("analyst", "coordinator")
        return await run_job(JOB, hub, nodes.addresses)
    except ComineError as error:
        return error


async def settled(nodes: Nodes) -> None:
    """Once every end is on the disk, and no job is open any more: what was only approved ends by its expiry, or so."""
    for node in nodes.nodes.values():
        for open_job in node.host.jobs:
            if open_job.state == APPROVED:
                await node.host.cancel(open_job, "")
    while any(list(node.host.jobs) for node in nodes.nodes.values()):  # noqa: ASYNC110 - nobody tells
        await asyncio.sleep(0.01)


def check(nodes: Nodes, folder: Path, found: Result | ComineError, disk: Disk) -> None:
    """What must be so after any fault."""
    context = disk.refused[:3]
    if isinstance(found, ComineError):
        assert found.party == VICTIM, (found, context)
        assert VICTIM in found.message, (found, context)
        assert "/secret" not in found.message
        assert str(folder) not in found.message
        assert "\n" not in found.message
    for name, node in nodes.nodes.items():
        records = node.store.all()
        assert all(record.state in ENDS for record in records), (name, context)
        may_go_on = records[0].state in (FAILED, CANCELLED) and lost(records[0].error_code)
        assert may_go_on or node.host.context.journals.read(records[0].job_id, "*") == []
    check_logs(nodes, folder, [VICTIM], context)  # whose disk it was; those of all parties, which only grow, at the end


def check_logs(nodes: Nodes, folder: Path, parties: Iterable[str], context: object = None) -> None:
    """Nothing is found in the parties' logs, nor between them."""
    logs = [folder / "state" / name / "audit.log" for name in parties]
    assert verification(logs, [], Trust(nodes.authority.certificate_pem)).findings == [], context


@pytest.mark.parametrize("dies", [False, True])
def test_a_disk_that_fails_at_any_write_is_told_and_accuses_nobody(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, dies: bool
) -> None:
    monkeypatch.setattr("party.jobs.endings.end_writer.RETRY_S", 0.02)

    async def test() -> None:
        disk = Disk()
        async with running(tmp_path) as nodes:
            put_on(disk, nodes.nodes[VICTIM], monkeypatch)
            for _ in range(2):  # the second writes as much as all later ones, the first a little more
                disk.plan(None, stays=False)
                assert isinstance(await job(nodes), Result)
            await settled(nodes)
            usual = len(disk.writes)
            assert {"store", "ledger", "audit", "table", "result"} <= {write.split()[0] for write in disk.writes}
            for turn, at in enumerate([*in_turn(range(usual), 12 if dies else 6), usual]):
                disk.plan(at, stays=turn % 2 == 1)
                found = await job(nodes)
                if not disk.refused:
                    assert isinstance(found, Result)
                    assert at >= usual
                    break
                if dies:
                    await nodes.crash(VICTIM)
                    disk.mend()
                    put_on(disk, await nodes.restart(VICTIM), monkeypatch)
                else:
                    disk.mend()
                    put_databases_on(disk, nodes.nodes[VICTIM])
                await settled(nodes)
                check(nodes, tmp_path, found, disk)
            check_logs(nodes, tmp_path, nodes.nodes)
            disk.mend()
            assert isinstance(await job(nodes), Result)

    asyncio.run(test())


def test_a_job_whose_end_cannot_be_written_has_ended_for_all_who_ask(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("party.jobs.endings.end_writer.RETRY_S", 3600.0)

    async def test() -> None:
        disk = Disk()
        async with running(tmp_path) as nodes:
            put_on(disk, nodes.nodes[VICTIM], monkeypatch)
            release = hold(nodes.nodes[VICTIM])
            job_id = await nodes.begin(weekly())
            disk.plan(0, stays=True)
            release.set()
            for _ in range(2):
                event = (await nodes.clients[VICTIM].watch(job_id))[-1]
                assert (event.state, event.error_party) == (FAILED, VICTIM)
            host = nodes.nodes[VICTIM].host
            assert host.running == 0
            assert [each.id for each in host.jobs] == [job_id]
            refusal = await refused(nodes.clients[VICTIM].start(job_id, nodes.forged(job_id, weekly()), attempt=2))
            assert refusal.code == "E401"
            disk.mend()

    asyncio.run(test())
