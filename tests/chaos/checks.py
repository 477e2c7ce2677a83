"""What must hold in every simulation."""

from __future__ import annotations

import asyncio
import json
import sqlite3
import traceback
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from typing import Any, Final

from jobs.results.result import Result
from jobs.statement import statement
from link.errors import ComineError, InternalError, UnexpectedMessage
from tests.chaos import clock
from tests.chaos.faults import Fault
from tests.chaos.kinds import PARTIES, SmallJob
from tests.chaos.world import World

_PAGES: Final = Path(__file__).parents[2] / "docs" / "errors"
_OF_ONE: Final = ("kill", "power", "write", "backup", "hang", "full", "clock")  # what others cannot have done
_SERIOUS: Final = ("call failed", "upkeep failed")


def require(holds: object, otherwise: str) -> None:
    """Raises `AssertionError` where something does not hold."""
    if not holds:
        raise AssertionError(otherwise)


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


def clear(error: ComineError) -> None:
    """One sentence, with a code that has a page, which is not that of a fault of comine."""
    require((_PAGES / f"{error.code}.md").exists(), f"{error.code} has no page")
    require(error.message and "\n" not in error.message, f"not one sentence: {error.message!r}")
    require(not isinstance(error, InternalError), f"a fault of comine: {error.message}")


def guilty(error: ComineError, faults: Sequence[Fault]) -> None:
    """Where all that goes wrong does so at one party, no other is blamed."""
    places = {fault.place for fault in faults}
    if len(places) == 1 and places <= {*PARTIES} and all(fault.kind in _OF_ONE for fault in faults):
        named = error.party in (None, *places) or any(place in error.message for place in places)
        require(named, f"{error.party} is blamed for what went wrong at {places}: {error.message}")


def may_not_go_on(error: ComineError) -> None:
    """Another attempt may fail only where a party says that the job cannot go on."""
    clear(error)
    require(isinstance(error, UnexpectedMessage), f"although all is well, the job cannot go on: {error.message}")


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


def all_nodes(world: World, job: SmallJob) -> None:
    """What the nodes have written, and what they have left behind."""
    require(not world.loop.faults, f"nobody has caught {world.loop.faults[:1]}")
    declared = {each.label for each in statement(job.spec).declared}
    for party in PARTIES:
        for line in map(json.loads, world.logs[party].getvalue().splitlines()):
            require(line["event"] not in _SERIOUS, f"{party}: {line}")
        _disclosed(world.folder / party / "audit.log", declared, party)
        _charged(world.folder / party / "node.db", party)
        left = [path.name for path in (world.folder / party).rglob("*.new")]
        require(not left, f"{party} has left {left}")


def _disclosed(log: Path, declared: set[str], party: str) -> None:
    for raw in log.read_bytes().splitlines():
        try:
            entry: dict[str, Any] = json.loads(raw)
        except ValueError:
            continue  # torn by a loss of power, which the log says itself
        for label in entry.get("labels", ()):
            require(label in declared, f"{party} has opened {label!r}, of which the statement says nothing")


def _charged(database: Path, party: str) -> None:
    with closing(sqlite3.connect(database)) as connection:
        (charges,) = connection.execute("SELECT count(*) FROM charges").fetchone()
        (spent,) = connection.execute("SELECT ifnull(sum(starts), 0) FROM spent").fetchone()
        (most,) = connection.execute("SELECT ifnull(sum(attempt), 0) FROM jobs").fetchone()
    require(charges == spent, f"the ledger of {party} has {charges} charges and has counted {spent}")
    require(charges <= most, f"{party} has charged {charges} starts, and there were {most}")
