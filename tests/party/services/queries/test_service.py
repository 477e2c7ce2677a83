"""The service over loopback TLS: who may ask, what is answered, and what is left in the logs."""

from __future__ import annotations

import asyncio
import io
import math
import re
import shutil
import threading
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import grpc
import pytest

from coordinator.anonymisation.queries import QueryNode
from jobs.audit.entry import read
from jobs.federation import Federation
from link.pki.authority import Authority
from link.pki.identity import Role
from link.transports.grpc_channel import dial
from party.config import PartyConfig
from party.node.logs import open_log
from party.server import Node
from party.services.queries import service
from party.services.queries.dataset import DatasetQueries, Outcome
from protos.v1 import anonymization_pb2 as pb
from protos.v1.anonymization_pb2_grpc import AnonymizationStub
from tests.errors import fails
from tests.looped import looped
from tests.party.files import write_federation
from tests.party.nodes import refused
from tests.party.services.queries.staff import DATASET, STAFF

pytestmark = pytest.mark.turn(3)


@dataclass
class World:
    """A node, and whoever calls it."""

    folder: Path
    authority: Authority
    node: Node
    address: str
    log: io.StringIO
    channels: list[Any] = field(default_factory=list)

    def caller(self, name: str = "analyst", role: Role = "coordinator") -> Any:
        """Somebody with a good certificate."""
        self.channels.append(dial(self.authority.issue(name, role), "north", self.address))
        return AnonymizationStub(self.channels[-1])

    async def restart(self) -> None:
        await self.node.stop()
        self.node = node_of(self.folder)
        await self.node.start()

    @property
    def events(self) -> list[dict[str, Any]]:
        """What the audit log tells of decisions."""
        return self.told("query-decided")

    def told(self, event: str) -> list[dict[str, Any]]:
        """What the audit log tells of an event."""
        entries = map(read, (self.folder / "state/north/audit.log").read_bytes().splitlines())
        return [dict(entry.fields) for entry in entries if entry.event == event]


def node_of(folder: Path, log: io.StringIO | None = None) -> Node:
    return Node(PartyConfig.load(folder / "north.toml"), open_log("north", io.StringIO() if log is None else log))


@asynccontextmanager
async def running(folder: Path, dataset: str = DATASET) -> AsyncIterator[World]:
    """A node with the table of the staff."""
    authority = write_federation(folder, {"north": [["milk"]]})
    (folder / "staff.csv").write_text(STAFF)
    file = folder / "north.toml"
    file.write_text(file.read_text() + dataset)
    log = io.StringIO()
    node = node_of(folder, log)
    world = World(folder, authority, node, Federation.load(folder / "federation.toml").addresses["north"], log)
    try:
        await node.start()
        yield world
    finally:
        await world.node.stop()
        for channel in world.channels:
            await channel.close()


def asked(query: str, dataset: str = "staff") -> pb.QueryRequest:
    return pb.QueryRequest(dataset=dataset, query=query)


def test_queries_are_answered_denied_and_remembered(tmp_path: Path) -> None:
    async def test() -> None:
        async with running(tmp_path) as world:
            analyst = world.caller()
            found = await analyst.ListDatasets(pb.ListDatasetsRequest())
            (opened,) = found.datasets
            assert (opened.name, list(opened.queries.public)) == ("staff", ["age", "city"])
            assert {each.name: list(each.classes) for each in opened.queries.columns} == {
                "salary": ["sum", "max"],
                "ill": ["count"],
            }
            assert (opened.queries.min_size, opened.queries.HasField("max_queries")) == (2, False)
            reply = await analyst.Query(asked("avg(salary) where city = 'Bern'"))
            assert (reply.number, reply.answer) == (1, 1230 / 4)
            reply = await analyst.Query(asked("sum(salary) where age < 22"))
            assert (reply.number, reply.WhichOneof("decision"), reply.denied) == (2, "denied", pb.SIZE)
            await world.restart()
            analyst = world.caller("other")
            reply = await analyst.Query(asked("sum(salary) where city = 'Bern' and age < 50"))
            assert (reply.number, reply.denied) == (3, pb.DISCLOSURE)
            reply = await analyst.Query(asked("max(salary)"))
            assert reply.denied == pb.CLASS
            assert world.events == [
                {"dataset": "staff", "coordinator": who, "number": number, "query": query, "denied": denied}
                for number, who, query, denied in (
                    (1, "analyst", "avg(salary) where city = 'Bern'", None),
                    (2, "analyst", "sum(salary) where age < 22", "size"),
                    (3, "other", "sum(salary) where city = 'Bern' and age < 50", "disclosure"),
                    (4, "other", "max(salary)", "class"),
                )
            ]
            assert (tmp_path / "state/north/queries.db").stat().st_mode & 0o077 == 0

    asyncio.run(test())


def test_who_may_not_ask_is_told_so_and_nothing_else(tmp_path: Path) -> None:
    async def test() -> None:
        only = DATASET.replace("min_size", 'coordinators = ["hub"]\nmin_size')
        async with running(tmp_path, only) as world:
            analyst = world.caller()
            assert not (await analyst.ListDatasets(pb.ListDatasetsRequest())).datasets
            for dataset in ("staff", "baskets", "nothing"):
                found = await refused(analyst.Query(asked("sum(salary)", dataset)))
                assert (found.status, found.code) == (grpc.StatusCode.PERMISSION_DENIED, "E300")
                assert found.sentence.startswith(
                    f"the policy of north lets 'analyst' ask nothing of a dataset '{dataset}'"
                )
            for name, role in (("phone", "client"), ("south", "party")):
                found = await refused(world.caller(name, role).Query(asked("sum(salary)")))
                assert (found.status, found.code) == (grpc.StatusCode.PERMISSION_DENIED, "E201")
            hub = world.caller("hub")
            found = await refused(hub.Query(asked("sum(city)")))
            assert "lets only 'salary' and 'ill' be aggregated, not 'city' (rule columns)" in found.sentence
            found = await refused(hub.Query(asked("sum(salary) where id = 'p1'")))
            assert "not 'id' (rule public)" in found.sentence
            found = await refused(hub.Query(asked("sum(salary) order by age")))
            assert (found.status, found.code) == (grpc.StatusCode.INVALID_ARGUMENT, "E001")
            assert world.events == []
            told = world.told("query-refused")
            assert [(each["coordinator"], each["dataset"]) for each in told] == [
                ("analyst", "staff"),
                ("analyst", "baskets"),
                ("analyst", "nothing"),
                ("hub", "staff"),
                ("hub", "staff"),
            ]
            assert {each["code"] for each in told} == {"E300"}
            assert "(rule public)" in told[-1]["reason"]

    asyncio.run(test())


def test_a_node_without_the_table_answers_nothing_and_keeps_nothing(tmp_path: Path) -> None:
    async def test() -> None:
        async with running(tmp_path, DATASET.partition("[dataset.queries]")[0]) as world:
            analyst = world.caller()
            assert not (await analyst.ListDatasets(pb.ListDatasetsRequest())).datasets
            assert "ask nothing" in (await refused(analyst.Query(asked("sum(salary)")))).sentence
            assert not (tmp_path / "state/north/queries.db").exists()

    asyncio.run(test())


def test_many_ask_at_once_and_decisions_stand_in_a_row(tmp_path: Path) -> None:
    """Of the two that are harmless alone, and not together, one is answered."""

    async def test() -> None:
        async with running(tmp_path) as world:
            stubs = [world.caller(name) for name in ("a", "b", "c", "d")]
            texts = ["sum(salary) where age >= 21", "sum(salary) where age > 21"] * 2
            replies = await asyncio.gather(*(s.Query(asked(t)) for s, t in zip(stubs, texts, strict=True)))
            assert sorted(reply.number for reply in replies) == [1, 2, 3, 4]
            kinds = [reply.WhichOneof("decision") for reply in replies]
            assert kinds[:2] in (["answer", "denied"], ["denied", "answer"])
            assert kinds[2:] == kinds[:2]

    asyncio.run(test())


def test_who_hangs_up_leaves_a_whole_decision(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    entered, leave = threading.Event(), threading.Event()
    ask = DatasetQueries.ask

    def slow(self: DatasetQueries, *given: Any) -> Outcome:
        entered.set()
        assert leave.wait(60)
        return ask(self, *given)

    async def test() -> None:
        async with running(tmp_path) as world:
            monkeypatch.setattr(DatasetQueries, "ask", slow)
            call = world.caller().Query(asked("sum(salary) where age >= 21"))
            waiting = asyncio.ensure_future(_ended(call))
            assert await asyncio.to_thread(entered.wait, 60)
            call.cancel()
            await waiting
            leave.set()
            reply = await world.caller().Query(asked("sum(salary) where age > 21"))
            assert (reply.number, reply.denied) == (2, pb.DISCLOSURE)

    asyncio.run(test())


async def _ended(call: Any) -> None:
    with pytest.raises(asyncio.CancelledError):
        await call


def test_a_node_that_sends_no_decision_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def test() -> None:
        async with running(tmp_path) as world:
            node = QueryNode(world.authority.issue("analyst", "coordinator"), "north", world.address)
            for reply in ({}, {"answer": math.nan}, {"answer": math.inf}, {"denied": pb.DENIAL_UNSPECIFIED}):
                told = pb.QueryReply(number=1, **reply)
                monkeypatch.setattr(service, "reply", lambda _, told=told: told)
                with fails("E402", party="north") as found:
                    await node.ask("staff", "sum(salary)")
                assert found.value.party == "north"
            await node.close()

    asyncio.run(test())


HUSHED = "north cannot answer from the dataset 'staff' as it is; the log of north has the reason"


@pytest.mark.parametrize(
    ("rows", "reason"),
    [
        (STAFF.replace("Bern,310", "Bern,many"), "the column 'salary' holds cells that are no numbers"),
        (re.sub(r"(\w+,\w+,\w+),\d+,", r"\1,7,", STAFF), "the column 'salary' has no more than two values"),
        (STAFF + "p9,61\n", "line"),
        (STAFF.replace("salary", "wage"), "salary"),
        (STAFF + STAFF.splitlines()[1] + "\n", "id"),
    ],
)
def test_why_nothing_can_be_answered_stays_at_the_node(rows: str, reason: str, tmp_path: Path) -> None:
    """It may tell of cells that audits protect, such as that all have one of two values."""

    async def test() -> None:
        async with running(tmp_path) as world:
            (tmp_path / "staff.csv").write_text(rows)
            for query in ("sum(salary)", "sum(salary) where age >= 60"):
                found = await refused(world.caller().Query(asked(query)))
                assert found.sentence == HUSHED
            assert reason in world.log.getvalue()

    asyncio.run(test())


def test_wrong_data_are_told_to_the_asker(tmp_path: Path) -> None:
    async def test() -> None:
        async with running(tmp_path) as world:
            analyst = world.caller()
            assert (await analyst.Query(asked("sum(salary)"))).number == 1
            staff = tmp_path / "staff.csv"
            staff.write_text(STAFF.replace("p3,34,Bern,310", "p3,34,Bern,311") + "p8,60,Bern,500,0\np9,61,Bern,600,0\n")
            assert (await analyst.Query(asked("sum(salary) where age >= 60"))).answer == 1100
            staff.write_text(STAFF.replace("p3,34,Bern,310", "p3,34,Bern,many"))
            found = await refused(analyst.Query(asked("sum(salary)")))
            assert (found.status, found.code) == (grpc.StatusCode.FAILED_PRECONDITION, "E101")
            assert found.sentence == HUSHED
            file = tmp_path / "north.toml"
            file.write_text(file.read_text().replace('source = "staff.csv"', 'source = "staff.csv"\nid = "city"'))
            staff.write_text(STAFF)
            await world.restart()
            analyst = world.caller()
            found = await refused(analyst.Query(asked("sum(salary)")))
            assert (found.status, found.code) == (grpc.StatusCode.FAILED_PRECONDITION, "E100")
            assert found.sentence == HUSHED
            staff.unlink()
            found = await refused(analyst.Query(asked("sum(salary)")))
            assert found.code == "E101"

    asyncio.run(test())


# -- other settings while it runs ------------------------------------------------------------------------------------
async def reload(world: World, *pairs: tuple[str, str]) -> tuple[str, ...]:
    file = world.folder / "north.toml"
    for before, after in pairs:
        assert before in file.read_text()
        file.write_text(file.read_text().replace(before, after))
    return await world.node.reload(file)


DISCLOSING = "sum(salary) where city = 'Bern' and age < 50"
"""Of one person fewer than everybody in Bern."""


@looped
async def test_a_reload_forgets_no_answer(tmp_path: Path) -> None:
    async with running(tmp_path) as world:
        analyst = world.caller()
        assert (await analyst.Query(asked("avg(salary) where city = 'Bern'"))).HasField("answer")
        for change in (("min_size = 2", "min_size = 3"), ("min_size = 3", "min_size = 2\nmax_queries = 9")):
            assert await reload(world, change) == ("dataset staff changed",)
            assert (await analyst.Query(asked(DISCLOSING))).denied == pb.DISCLOSURE
        without = DATASET.replace("min_size = 2", "min_size = 2\nmax_queries = 9")
        assert await reload(world, (without, "")) == ("dataset staff removed",)
        assert (await refused(analyst.Query(asked(DISCLOSING)))).code == "E300"
        file = tmp_path / "north.toml"
        file.write_text(file.read_text() + without.replace("max_queries = 9", "max_queries = 1"))
        assert await world.node.reload(file) == ("dataset staff added",)
        assert (await analyst.Query(asked(DISCLOSING))).denied == pb.TOO_MANY
        with fails("E100"):
            await reload(world, ('"staff"', '"people"'))


@looped
async def test_a_dataset_may_get_queries_while_the_node_runs(tmp_path: Path) -> None:
    queries = DATASET[DATASET.index("[dataset.queries]") :]
    async with running(tmp_path, DATASET.replace(queries, "")) as world:
        file = tmp_path / "north.toml"
        file.write_text(file.read_text() + queries)
        assert await world.node.reload(file) == ("dataset staff changed",)
        assert (await world.caller().Query(asked("avg(salary) where city = 'Bern'"))).HasField("answer")


@looped
async def test_a_database_that_is_older_than_the_log_is_not_taken_up(tmp_path: Path) -> None:
    """Whoever runs without queries meanwhile would begin without the latest answers."""
    async with running(tmp_path) as world:
        database, copy, file = (tmp_path / name for name in ("state/north/queries.db", "copy.db", "north.toml"))
        await world.caller().Query(asked("avg(salary) where city = 'Bern'"))
        await world.node.stop()
        shutil.copy(database, copy)
        world.node = node_of(tmp_path)
        await world.node.start()
        await world.caller().Query(asked("avg(salary) where city = 'Basel'"))
        await world.node.stop()
        shutil.copy(copy, database)
        file.write_text(file.read_text().replace(DATASET, ""))
        world.node = node_of(tmp_path)
        await world.node.start()
        file.write_text(file.read_text() + DATASET)
        with fails("E100"):
            await world.node.reload(file)
        assert (await refused(world.caller().Query(asked(DISCLOSING)))).code == "E300"


@looped
async def test_who_waits_while_the_rules_change_asks_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A decision that is under way is made and counts; what waits behind it was let in by other rules."""
    begun, go_on = threading.Event(), threading.Event()
    ask = DatasetQueries.ask

    def held(self: DatasetQueries, *rest: Any) -> Outcome:
        begun.set()
        assert go_on.wait(60)
        return ask(self, *rest)

    async with running(tmp_path) as world:
        analyst = world.caller()
        monkeypatch.setattr(DatasetQueries, "ask", held)
        first = asyncio.ensure_future(analyst.Query(asked("avg(salary) where city = 'Bern'")))
        await asyncio.to_thread(begun.wait, 60)
        change = asyncio.ensure_future(reload(world, ("min_size = 2", "min_size = 3")))
        while world.node.settings.config.datasets["staff"].queries.min_size < 3:  # type: ignore[union-attr]  # noqa: ASYNC110
            await asyncio.sleep(0.01)
        waiting = asyncio.ensure_future(analyst.Query(asked(DISCLOSING)))
        while len(world.node.anonymization.deciding) < 2:  # noqa: ASYNC110
            await asyncio.sleep(0.01)
        go_on.set()
        assert (await first).HasField("answer")
        error = await refused(waiting)
        assert (error.code, error.party) == ("E200", "north")
        assert await change
        assert (await analyst.Query(asked(DISCLOSING))).denied == pb.DISCLOSURE
