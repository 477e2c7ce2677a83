"""A node whose databases beside `node.db` were replaced by older copies, emptied or removed: it is never silent."""

from __future__ import annotations

import asyncio
import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from jobs.audit.service_events import QueryDecided, ReleaseRefused
from link.errors import ComineError
from party.config import PartyConfig
from party.node.logs import open_log
from party.server import Node
from party.services.anonymization.releases import Releases
from tests.errors import fails
from tests.party.services.frequency import nodes as frequency
from tests.party.services.frequency.specs import spec_of
from tests.party.services.shuffler import nodes as shuffler

pytestmark = pytest.mark.turn(3)

FILES = {"frequency": "frequency.db", "shuffler": "shuffler.db"}
WEEKLY = {"length": "1h", "grace": "0s", "start": "2020-01-01T00:00:00+00:00"}
T0 = 1_577_836_800.0


class Died(BaseException):
    """Something that was about to be written."""


async def _of_frequency(folder: Path) -> None:
    """A collection of one round and one of hourly rounds; copies of the state before and after each step."""
    clock = [T0 + 60.0]
    async with frequency.running(folder, now=lambda: clock[0]) as world:
        analyst, state = world.analyst, folder / "state/north"

        def keep(name: str) -> None:
            shutil.copytree(state, folder / "kept" / name)

        keep("begun")
        once = await analyst.create(spec_of(access={"submit": "any"}))
        hourly = await analyst.create(spec_of(name="hourly", window=WEEKLY, access={"submit": "any"}))
        keep("created")
        for number in range(3):
            phone = world.caller(f"phone{number}")
            for which in (once, hourly):
                await phone.submit(frequency.batch(which, [number], seed=number))
            if number == 1:
                await analyst.estimate()
                await analyst.estimate("hourly")
                keep("two")
        await analyst.estimate()
        keep("three")  # of the round that goes on, one report more was read
        clock[0] += 3600
        await analyst.describe("hourly")
        while (await analyst.describe("hourly")).rounds_ended < 1:
            (hourly,) = (each for each in world.node.frequency.running.collections.all() if each.name == "hourly")
            await hourly.advance()
        keep("ended")
        await analyst.close()
        keep("killed")


async def _of_shuffler(folder: Path) -> None:
    async with shuffler.running(folder, ["north"]) as world:
        route = shuffler.route_for(["north"])
        state = folder / "state/north"

        def keep(name: str) -> None:
            shutil.copytree(state, folder / "kept" / name)

        keep("begun")
        sealed = await world.sealed(route, range(30))
        keep("created")
        fleet, analyst = world.caller("fleet"), world.analyst()
        await fleet.submit(sealed[:4])
        keep("two")
        await fleet.submit(sealed[4:10])
        keep("three")
        await analyst.flush()
        keep("ended")
        await fleet.submit(sealed[10:20])
        await analyst.flush()
        await analyst.retire()
        keep("killed")


@pytest.fixture(scope="module", params=sorted(FILES))
def played(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> tuple[str, Path]:
    folder = tmp_path_factory.mktemp(request.param)
    asyncio.run({"frequency": _of_frequency, "shuffler": _of_shuffler}[request.param](folder))
    return FILES[request.param], folder


@pytest.fixture
def place(played: tuple[str, Path], tmp_path: Path) -> tuple[str, Path]:
    """The folder of a node that was killed at the end."""
    file, folder = played
    shutil.copytree(folder, tmp_path, dirs_exist_ok=True)
    as_of(tmp_path, "killed")
    return file, tmp_path


def as_of(folder: Path, name: str, *files: str) -> None:
    """Brings the state folder, or some files of it, to what it was."""
    state = folder / "state/north"
    if not files:
        shutil.rmtree(state)
        shutil.copytree(folder / "kept" / name, state)
    for file in files:
        for path in state.glob(f"{file}*"):
            path.unlink()
        for path in (folder / "kept" / name).glob(f"{file}*"):
            shutil.copy(path, state / path.name)


def started(folder: Path) -> Node:
    return Node(PartyConfig.load(folder / "north.toml"), open_log("north"))


def events(folder: Path) -> list[dict[str, Any]]:
    lines = (folder / "state/north/audit.log").read_text().splitlines()
    return [json.loads(line) for line in lines]


def lost(folder: Path) -> list[str]:
    return [line for line in (folder / "state/north/audit.log").read_text().splitlines() if '-lost"' in line]


@pytest.mark.parametrize("without", ["", "node.db"])
@pytest.mark.parametrize("copy", ["created", "two"])
def test_an_older_copy_keeps_the_node_from_starting(place: tuple[str, Path], copy: str, without: str) -> None:
    file, folder = place
    as_of(folder, copy, file)
    for path in (folder / "state/north").glob(f"{without}*" if without else "none"):
        path.unlink()
    for _ in range(2):
        with fails("E100"):
            started(folder)
    as_of(folder, "killed", file)
    asyncio.run(started(folder).stop())
    assert lost(folder) == []


def test_an_older_copy_is_seen_after_many_starts(place: tuple[str, Path]) -> None:
    """What stands in the log before the last start counts, too."""
    file, folder = place
    for _ in range(3):
        asyncio.run(_stopped(started(folder)))
    as_of(folder, "two", file)
    with fails("E100"):
        started(folder)


async def _stopped(node: Node) -> None:
    await node.start()
    await node.stop()


@pytest.mark.parametrize("copy", ["begun", "gone", "empty"])
def test_what_is_lost_as_a_whole_is_told_once_in_both_logs(place: tuple[str, Path], copy: str) -> None:
    file, folder = place
    state = folder / "state/north"
    if copy == "begun":
        as_of(folder, copy, file)
    else:
        for path in state.glob(f"{file}*"):
            path.unlink()
        if copy == "empty":
            (state / file).write_bytes(b"")
    for _ in range(2):
        asyncio.run(_stopped(started(folder)))
    assert len(lost(folder)) == (2 if file == "frequency.db" else 1)


@pytest.mark.parametrize("copy", ["created", "two", "three", "ended", "killed"])
def test_a_node_that_was_killed_at_any_time_starts_again(place: tuple[str, Path], copy: str) -> None:
    _, folder = place
    as_of(folder, copy)
    asyncio.run(_stopped(started(folder)))
    asyncio.run(_stopped(started(folder)))
    assert lost(folder) == []


@pytest.mark.parametrize("die", ["round", "batch"])
def test_a_node_that_died_between_the_log_and_the_database_starts_again(
    tmp_path: Path, die: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The log tells of an end before it is in the database."""

    async def of_frequency() -> None:
        async with frequency.running(tmp_path) as world:
            once = await world.analyst.create(spec_of(access={"submit": "any"}))
            await world.caller("phone").submit(frequency.batch(once, [1]))
            store = world.node.frequency.running.store  # type: ignore[union-attr]
            with monkeypatch.context() as patch:
                patch.setattr(store, "end_round", dies)
                with pytest.raises(Exception):  # noqa: B017, PT011 - as gRPC tells it
                    await world.analyst.close()
                shutil.copytree(tmp_path / "state/north", tmp_path / "kept/killed")

    async def of_shuffler() -> None:
        async with shuffler.running(tmp_path, ["north"]) as world:
            sealed = await world.sealed(shuffler.route_for(["north"]), range(9))
            await world.caller("fleet").submit(sealed)
            store = world.nodes["north"].shuffler.running.store  # type: ignore[union-attr]
            with monkeypatch.context() as patch:
                patch.setattr(store, "depart", dies)
                with pytest.raises(Exception):  # noqa: B017, PT011 - as gRPC tells it
                    await world.analyst().flush()
                shutil.copytree(tmp_path / "state/north", tmp_path / "kept/killed")

    def dies(*_: Any) -> None:
        raise ComineError("the process dies")

    asyncio.run(of_frequency() if die == "round" else of_shuffler())
    as_of(tmp_path, "killed")
    assert any(("round-ended" if die == "round" else "batch-closed") in str(each) for each in events(tmp_path))
    asyncio.run(_stopped(started(tmp_path)))
    assert lost(tmp_path) == []


# -- queries and releases ---------------------------------------------------------------------------------------------
def _fail(releases: Releases) -> None:
    releases.fail("baskets", b"asked", "analyst")


def _leave(releases: Releases) -> None:
    releases.fail("baskets", b"asked", "analyst")
    releases.admit("baskets", b"rows", b"asked", "analyst", 9)


@pytest.mark.parametrize("counted", [_fail, _leave])
def test_older_counts_of_releases_are_seen(tmp_path: Path, counted: Callable[[Releases], None]) -> None:
    frequency.write_federation(tmp_path, {"north": [["milk"]]})
    asyncio.run(_stopped(started(tmp_path)))
    shutil.copytree(tmp_path / "state/north", tmp_path / "kept/early")
    node = started(tmp_path)
    counted(node.releases)
    refused = ReleaseRefused(
        dataset="baskets", coordinator="analyst", code="E300", reason="no", number=node.releases.head
    )
    node.audit.append(refused)
    asyncio.run(_stopped(node))
    shutil.copytree(tmp_path / "state/north", tmp_path / "kept/killed")
    as_of(tmp_path, "early", "releases.db")
    with fails("E100"):
        started(tmp_path)
    as_of(tmp_path, "killed", "releases.db")
    asyncio.run(started(tmp_path).stop())


def test_older_answers_to_queries_are_seen(tmp_path: Path) -> None:
    frequency.write_federation(tmp_path, {"north": [["milk"]]})
    (tmp_path / "staff.csv").write_text("id,age,salary\n" + "".join(f"{n},{n % 9},{n * 7}\n" for n in range(40)))
    file = tmp_path / "north.toml"
    file.write_text(
        file.read_text()
        + '[[dataset]]\nname = "staff"\nkind = "table"\nsource = "staff.csv"\nformat = "csv"\nid = ["id"]\n'
        + '[dataset.queries]\npublic = ["age"]\ncolumns = { salary = ["sum"] }\nmin_size = 3\n'
    )
    node = started(tmp_path)
    log = node.anonymization.answers
    assert log is not None
    shutil.copytree(tmp_path / "state/north", tmp_path / "kept/early")
    auditor = log.auditor("staff", "salary")
    number = log.decided(auditor, "analyst", "sum(salary)", "sum", "size", 0)
    node.audit.append(
        QueryDecided(dataset="staff", coordinator="analyst", number=number, query="sum(salary)", denied="size")
    )
    asyncio.run(_stopped(node))
    as_of(tmp_path, "early", "queries.db")
    with fails("E100"):
        started(tmp_path)
