"""What must hold in every simulation."""

from __future__ import annotations

import asyncio
import json
import sqlite3
import traceback
from collections.abc import Mapping, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any, Final

from jobs.audit.checks.across import compare, journals
from jobs.audit.checks.verify import check_log
from jobs.results.result import Result
from jobs.statement import statement
from link.errors import (
    ComineError,
    ConfigurationError,
    DeadlineExceeded,
    ProtocolViolation,
    ResourceError,
    UnexpectedMessage,
)
from tests.chaos import clock
from tests.chaos.demands import clear, require
from tests.chaos.faults import Fault
from tests.chaos.kinds import PARTIES, SmallJob
from tests.chaos.world import World

_OF_ONE: Final = ("kill", "power", "write", "backup", "rot", "hang", "full", "clock")  # what others cannot have done
_SERIOUS: Final = ("call failed", "upkeep failed")


def now() -> float:
    """Unix seconds by a clock that is right."""
    return clock.unix()


def packed(result: Result) -> bytes:
    """What a job found, as bytes."""
    found = b"" if result.finding is None else result.finding.canonical().pack()
    return f"{result.n_rows} {result.positions} ".encode() + found


def places(error: BaseException) -> list[str]:
    """Where an error arose."""
    return traceback.format_exception(error)


def outcome(found: Result | ComineError, job: SmallJob, expected: bytes) -> None:
    """The exact result, or a clear error."""
    if isinstance(found, ComineError):
        clear(found)
    elif job.exact:
        require(packed(found) == expected, "the result is not that of the rows of all parties")


def guilty(error: ComineError, faults: Sequence[Fault]) -> None:
    """Where all that goes wrong does so at one party, no other is blamed."""
    places = {fault.place for fault in faults}
    if len(places) == 1 and places <= {*PARTIES} and all(fault.kind in _OF_ONE for fault in faults):
        named = error.party in (None, *places) or any(place in error.message for place in places)
        require(named, f"{error.party} is blamed for what went wrong at {places}: {error.message}")


def may_not_go_on(error: ComineError, world: World, faults: Sequence[Fault]) -> None:
    """Another attempt may fail only where a party says that the job cannot go on, or something was damaged."""
    clear(error)
    flipped = any(fault.kind == "flip" for fault in faults)  # so what was kept is not what was sent, or not its result
    damaged = world.damaged or flipped
    says_so = isinstance(error, UnexpectedMessage) or (damaged and isinstance(error, ConfigurationError))
    says_so |= flipped and isinstance(error, ProtocolViolation)
    clocks = {fault.place for fault in faults if fault.kind == "clock"}
    says_so |= isinstance(error, DeadlineExceeded) and bool(clocks)
    # Who took the job for expired, by a clock that was set far forward, has forgotten it.
    says_so |= isinstance(error, ConfigurationError) and any(place in error.message for place in clocks)
    require(says_so, f"although all is well, the job cannot go on: {error.message}")


async def settled(world: World, within_s: float) -> None:
    """All nodes are done with what has ended."""
    until = world.loop.now + within_s
    while any(_busy(world, party) for party in PARTIES):
        left = {party: _busy(world, party) for party in PARTIES}
        require(world.loop.now < until, f"there is still something open: {left}")
        await asyncio.sleep(0.5)


def _busy(world: World, party: str) -> str:
    host = world.nodes[party].host
    running = [job.id.hex()[:6] for job in host.jobs if job.task is not None and not job.task.done()]
    open_ = [job_id.hex()[:6] for job_id in world.nodes[party].link.jobs]
    return " ".join((*running, *open_))


def all_nodes(world: World, job: SmallJob, faults: Sequence[Fault]) -> None:
    """What the nodes have sent and written, and what they have left behind."""
    require(not world.loop.faults, f"nobody has caught {world.loop.faults[:1]}")
    world.transcripts.check(statement(job.spec).declared)
    for party in PARTIES:
        full = any(fault.kind == "full" and fault.place == party for fault in faults)
        for line in map(json.loads, world.logs[party].getvalue().splitlines()):
            require(foreseen(line, full=full), f"{party}: {line}")
        _charged(world.folder / party / "node.db", party)
        left = [path.name for path in (world.folder / party).rglob("*.new")]
        require(not left, f"{party} has left {left}")
    _logs(world, faults)


def foreseen(line: Mapping[str, Any], *, full: bool) -> bool:
    """Whether a line of a node's log tells of nothing serious, or of what its disk is to blame for.

    Upkeep writes to the job database as the node starts and then every hour. On a full disk it cannot, which who runs
    the node has to learn; it comes to what it has left an hour later.

    Args:
        line: As parsed.
        full: Whether the node's disk was full at some time.
    """
    lacks_room = line["event"] == "upkeep failed" and line.get("code") == ResourceError.code
    return line["event"] not in _SERIOUS or (full and lacks_room)


def _logs(world: World, faults: Sequence[Fault]) -> None:
    """The audit logs of all nodes verify, by themselves and against each other."""
    trust = world.template.hub.trust
    checked = [check_log(world.folder / party / "audit.log", trust) for party in PARTIES]
    found, findings = journals(checked)
    findings = [each for log in checked for each in log.findings] + findings + compare(found)
    if any(fault.kind == "flip" for fault in faults):
        return  # accounts of what was flipped differ, and who wrote them is not to blame
    excused = {*world.damaged, *(fault.place for fault in faults if fault.kind in ("clock", "power", "write", "full"))}
    wrong = [each for each in findings if not any(p in (each.file.parent.name, *each.what.split()) for p in excused)]
    require(not wrong, "; ".join(map(str, wrong[:2])))


def _charged(database: Path, party: str) -> None:
    with closing(sqlite3.connect(database)) as connection:
        (charges,) = connection.execute("SELECT count(*) FROM charges").fetchone()
        (spent,) = connection.execute("SELECT ifnull(sum(starts), 0) FROM spent").fetchone()
        (most,) = connection.execute("SELECT ifnull(sum(attempt), 0) FROM jobs").fetchone()
    require(charges == spent, f"the ledger of {party} has {charges} charges and has counted {spent}")
    require(charges <= most, f"{party} has charged {charges} starts, and there were {most}")
