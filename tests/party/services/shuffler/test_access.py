"""Who may do what at a running shuffler, how much of it, and what shufflers believe of each other."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import grpc
import numpy as np
import pytest

from ldp.shuffling.collecting import Collecting
from ldp.shuffling.route import Route
from ldp.shuffling.statement import sign_statement
from party.config import PartyConfig
from party.node.methods import METHODS
from party.services.shuffler.policy import ShufflerSection, check_route
from party.services.shuffler.service import MOST_OVER
from protos.v1 import shuffle_pb2 as pb
from protos.v1.shuffle_pb2 import BatchStatement
from tests.errors import fails
from tests.looped import looped
from tests.party.nodes import refused
from tests.party.services.shuffler.nodes import COLLECTOR_KEY, Caller, World, numbers, route_for, running

pytestmark = pytest.mark.turn(3)


def test_a_retired_route_takes_nothing_and_has_no_keys(tmp_path: Path) -> None:
    async def test() -> None:
        async with running(tmp_path, ["north"]) as world:
            route = route_for(["north"])
            sealed = await world.sealed(route, range(30))
            analyst, fleet = world.analyst(), world.caller("fleet")
            await fleet.submit(sealed[:10])
            stands = await analyst.retire()
            assert (stands.retired, stands.unsent, stands.HasField("key")) == (True, 1, False)
            (receipt,) = [
                each async for each in fleet.stub.Submit(iter([pb.SealedReports(route="weekly", reports=[b"x"])]))
            ]
            assert (receipt.fate, receipt.taken) == (pb.NOT_TAKEN, 0)
            assert receipt.message == "the route 'weekly' is retired; no report of it is taken any more"
            await world.restart("north")
            assert (await world.analyst().retire()).retired
            (found,) = await world.opened(route, 1)
            assert sorted(numbers(found.reports)) == list(range(10))
            (stored,) = world.nodes["north"].shuffler.running.store.routes()
            assert (stored.key, stored.tag_key) == (b"", b"")

    asyncio.run(test())


def test_a_route_that_is_over_is_on_the_disk_alone(tmp_path: Path) -> None:
    """Nobody fills a node's memory with retired routes; and who asks for one is told what it was told before."""

    async def nothing_in_memory(world: World) -> None:
        for node in world.nodes.values():
            running = node.shuffler.running
            while running.pools or running.forwarder.tasks:  # noqa: ASYNC110 - nobody tells
                await asyncio.sleep(0.05)
            assert (running.timers, len(running.over) <= MOST_OVER) == ({}, True)

    async def test() -> None:
        async with running(tmp_path) as world:
            route = route_for(every=3600.0)
            sealed = await world.sealed(route, range(9))
            fleet, peer = world.caller("fleet"), world.caller("north", "party", "south")
            await fleet.submit(sealed)
            await world.analyst().retire()
            await world.batches(route, 1)
            await world.analyst("south").retire()
            assert (await world.analyst("south").collect(after=1)) == []
            for number in range(2 * MOST_OVER):
                created = await world.analyst().create(route_for(["north"], name=f"empty-{number}", every=3600.0))
                assert (await world.analyst().retire(f"empty-{number}")).document == created.document
            for _ in range(2):
                await nothing_in_memory(world)
                stands = await world.analyst().describe()
                assert (stands.document, stands.retired, stands.next_batch) == (route.document(), True, 2)
                assert (await world.analyst().create(route)).retired
                assert (
                    "another route 'weekly'" in (await refused(world.analyst().create(route_for(minimum=9)))).sentence
                )
                (receipt,) = [
                    each async for each in fleet.stub.Submit(iter([pb.SealedReports(route="weekly", reports=[b"x"])]))
                ]
                assert (receipt.fate, "is retired" in receipt.message) == (pb.NOT_TAKEN, True)
                head = pb.BatchHead(route=route.digest, batch=1, reports=1)
                again = peer.forward(pb.BatchPart(head=head, reports=bytes(route.sealed_size(1)), last=True))
                assert "again with other reports in it" in (await refused(again)).sentence
                for name in world.nodes:
                    await world.restart(name)

    asyncio.run(test())


def test_a_party_may_collect_and_report(tmp_path: Path) -> None:
    async def test() -> None:
        async with running(tmp_path) as world:
            route = route_for(collector="party/north", senders=("party/south",), minimum=2)
            sealed = await world.sealed(route, range(9))
            assert await world.caller("south", "party").submit(sealed[:1]) == [pb.TAKEN]
            (receipt,) = await called(world.caller("phone"), "Submit")
            assert receipt.fate == pb.NOT_TAKEN
            assert await world.caller("fleet").submit(sealed[1:]) == [pb.TAKEN] * 8
            await world.analyst().flush()
            north = world.caller("north", "party", "south")
            while True:
                if batches := await north.collect():
                    break
                await asyncio.sleep(0.05)
            ((head, reports),) = batches
            collecting = Collecting(route, COLLECTOR_KEY, world.authority.issue("reader", "client").trust)
            assert sorted(numbers(collecting.open(1, reports, head.statements).reports)) == list(range(9))
            assert "party/north to collect" in (await refused(called(world.analyst("south"), "Collect"))).sentence

    asyncio.run(test())


REQUESTS: dict[str, Any] = {
    "Create": pb.CreateRouteRequest(),
    "Describe": pb.DescribeRouteRequest(route="weekly"),
    "Flush": pb.FlushRequest(route="weekly"),
    "Retire": pb.RetireRouteRequest(route="weekly"),
    "Collect": pb.CollectRequest(route="weekly"),
    "Submit": pb.SealedReports(route="weekly"),
    "Forward": pb.BatchPart(),
}


async def called(caller: Caller, method: str) -> Any:
    request = REQUESTS[method]
    call = getattr(caller.stub, method)(iter([request]) if method in ("Submit", "Forward") else request)
    return [part async for part in call] if hasattr(call, "__aiter__") else await call


def test_every_method_has_its_roles(tmp_path: Path) -> None:
    assert set(METHODS["comine.v1.Shuffler"]) == set(pb.DESCRIPTOR.services_by_name["Shuffler"].methods_by_name)

    async def test() -> None:
        async with running(tmp_path) as world:
            await world.create(route_for())
            callers = {"client": world.caller("phone"), "party": world.caller("south", "party"), "coordinator": None}
            callers["coordinator"] = world.caller("other", "coordinator")
            for method, (allowed, _) in METHODS["comine.v1.Shuffler"].items():
                for role, caller in callers.items():
                    assert caller is not None
                    if role not in allowed:
                        assert (await refused(called(caller, method))).code == "E201"
            other, south = callers["coordinator"], callers["party"]
            assert other is not None
            assert south is not None
            for method in ("Flush", "Retire"):
                assert "created by analyst, who alone" in (await refused(called(other, method))).sentence
            for caller in (other, south):
                assert (await refused(called(caller, "Collect"))).sentence == (
                    "the route 'weekly' is for coordinator/analyst to collect"
                )
            assert (await refused(world.analyst().collect())).sentence == "the route 'weekly' is collected at south"
            assert "a batch of a route that north does not have" in (await refused(called(south, "Forward"))).sentence
            assert (await refused(called(other, "Submit"))).sentence == (
                "north answers this to parties and clients only, and other is a coordinator"
            )
            (receipt,) = await called(world.caller("phone", node="south"), "Submit")
            assert receipt.message == "reports for the route 'weekly' go to north, not to south"
            (receipt,) = await called(south, "Submit")
            assert receipt.message == "'party/south' may not report to the route 'weekly'"
            assert "begin at north" in (await refused(world.analyst("south").flush())).sentence
            assert "no route 'none'" in (await refused(world.caller("phone").describe("none"))).sentence

    asyncio.run(test())


def test_a_node_without_the_table_says_that_the_shuffler_is_off(tmp_path: Path) -> None:
    async def test() -> None:
        async with running(tmp_path, ["north"], policy=None) as world:
            off = "the shuffler of north is off; its operator turns it on by a [shuffler] table in party.toml"
            for method in ("Create", "Describe", "Flush", "Retire", "Collect"):
                assert (await refused(called(world.analyst(), method))).sentence == off
            assert (await refused(called(world.caller("phone"), "Submit"))).sentence == off
            assert not (tmp_path / "state" / "north" / "shuffler.db").exists()

    asyncio.run(test())


def test_creation_is_idempotent_and_checked(tmp_path: Path) -> None:
    async def test() -> None:
        async with running(tmp_path, ["north"]) as world:
            analyst, route = world.analyst(), route_for(["north"])
            created = await analyst.create(route)
            assert (await analyst.create(route)).key.key == created.key.key
            assert (tmp_path / "state" / "north" / "shuffler.db").stat().st_mode & 0o777 == 0o600
            for wrong, words in (
                (route_for(["north"], size=9), "another route 'weekly' already"),
                (route_for(["south"]), "north is no shuffler of the route"),
                (route_for(["north", "west"], name="x"), "does not know the shuffler 'west'"),
            ):
                assert words in (await refused(analyst.create(wrong))).sentence
            other = world.caller("other", "coordinator")
            assert "another route" in (await refused(other.create(route))).sentence
            log = (tmp_path / "state" / "north" / "audit.log").read_text()
            assert log.count('"route-created"') == 1  # or what it tells of the route would begin anew
            await world.restart("north")
            assert (await world.analyst().create(route)).key.key == created.key.key

    asyncio.run(test())


@pytest.mark.parametrize(
    ("policy", "route"),
    [
        ({"create": ["boss"]}, {}),
        ({"min_batch": 6}, {}),
        (
            {"max_batch": 9},
            {"maximum": 10},
        ),
        (
            {"gateways": ["party/north"]},
            {},
        ),
        ({"max_size": 7}, {}),
        ({"max_routes": 3}, {}),
    ],
)
def test_a_policy_refuses_and_names_its_rule(policy: dict[str, Any], route: dict[str, Any]) -> None:
    section = ShufflerSection.model_validate({"min_batch": 2, "gateways": ["client/fleet"], **policy})
    with fails("E300"):
        check_route(section, route_for(**route), "analyst", "north", running=3)
    allowing = ShufflerSection.model_validate({"min_batch": 2, "gateways": ["client/fleet"]})
    check_route(allowing, route_for(**route), "analyst", "north", running=3)


def test_a_wrong_table_is_told(tmp_path: Path) -> None:
    from tests.party.files import party_toml

    file = tmp_path / "north.toml"
    file.write_text(party_toml("north") + "[shuffler]\nmin_batch = 1\n")
    with fails("E100"):
        PartyConfig.load(file)


async def batch_from_north(world: World, route: Route, n: int = 6) -> tuple[pb.BatchHead, Any]:
    """A batch as an honest first shuffler makes it, which has not reached the second one."""
    world.nodes["north"].shuffler.running.forwarder.begin = lambda pool, over: None  # type: ignore[method-assign]
    sealed = await world.sealed(route, range(n))
    await world.caller("fleet").submit(sealed)
    await world.analyst().flush(route.name)
    store = world.nodes["north"].shuffler.running.store
    head = store.head(1, 1)
    assert head is not None
    return head, np.frombuffer(store.part(1, 1, 0) or b"", np.uint8).reshape(n, -1)


def restated(world: World, head: pb.BatchHead, reports: Any, **changes: Any) -> pb.BatchHead:
    """The head of a batch that the first shuffler has changed, with a statement that fits what it sends."""
    from ldp.shuffling.batch import digest

    said = BatchStatement.FromString(head.statements[0].statement)
    said.received = said.forwarded = len(reports)
    said.output = digest(reports)
    for name, value in changes.items():
        setattr(said, name, value)
    signed = sign_statement(said, world.authority.issue("north"))
    return pb.BatchHead(route=head.route, batch=said.batch, reports=len(reports), statements=[signed])


def test_the_second_shuffler_believes_nothing_of_the_first(tmp_path: Path) -> None:
    async def test() -> None:
        async with running(tmp_path) as world:
            route = route_for(maximum=100)
            head, reports = await batch_from_north(world, route)
            north = world.caller("north", "party", "south")
            data = reports.tobytes()
            east = world.caller("east", "party", "south")
            whole = pb.BatchPart(head=head, reports=data, last=True)
            assert "east is not before south" in (await refused(east.forward(whole))).sentence
            cases: list[tuple[tuple[pb.BatchPart, ...], str]] = [
                ((pb.BatchPart(head=head, reports=data[:-1], last=True),), "cut, or longer"),
                ((pb.BatchPart(head=head, reports=data + b"x", last=True),), "cut, or longer"),
                ((pb.BatchPart(head=head, reports=data),), "is cut"),
                ((pb.BatchPart(head=head, reports=data[::-1], last=True),), "not of the reports that came with it"),
                (
                    (pb.BatchPart(head=pb.BatchHead(route=head.route, batch=1, reports=6), reports=data, last=True),),
                    "without all",
                ),
                ((pb.BatchPart(head=pb.BatchHead(route=head.route, batch=1, reports=101)),), "at most 100"),
                (
                    (pb.BatchPart(head=restated(world, head, reports, batch=2), reports=data, last=True),),
                    "batch 1 is next",
                ),
            ]
            for parts, words in cases:
                refusal = await refused(north.forward(*parts))
                assert (refusal.status, words in refusal.sentence) == (grpc.StatusCode.INVALID_ARGUMENT, True), words
                assert refusal.party in ("north", "east")
            few = reports[:4]
            small = pb.BatchPart(head=restated(world, head, few), reports=few.tobytes(), last=True)
            assert "fewer reports than 5" in (await refused(north.forward(small))).sentence
            # Reports that it copies to follow them are dropped, and their number is told.
            twice = np.concatenate([reports, reports[:3]])
            copied = pb.BatchPart(head=restated(world, head, twice), reports=twice.tobytes(), last=True)
            assert [each.batch for each in await north.forward(copied)] == [1]
            (found,) = await world.opened(route, 1)
            assert sorted(numbers(found.reports)) == list(range(6))
            assert (found.statements[1].replayed, found.statements[1].forwarded) == (3, 6)
            # The same again is answered as before, and forwarded once; another batch under its number is refused.
            assert [each.batch for each in await north.forward(copied)] == [1]
            assert "again with other reports" in (await refused(north.forward(whole))).sentence
            # A report of an earlier batch is known in a later one.
            later = pb.BatchPart(head=restated(world, head, reports, batch=2), reports=data, last=True)
            assert [each.batch for each in await north.forward(later)] == [2]
            assert len(await world.batches(route, 2)) == 2
            _, second = await world.opened(route, 2)
            assert (second.statements[1].replayed, len(second.reports)) == (6, 0)

    asyncio.run(test())


@pytest.mark.parametrize("reports", [[bytes(1 << 20)] * 5, [b""] * 100_000], ids=["long", "many"])
def test_messages_have_a_limit(tmp_path: Path, reports: list[bytes]) -> None:
    async def test() -> None:
        async with running(tmp_path, ["north"]) as world:
            await world.create(route_for(["north"]))
            call = world.caller("phone").stub.Submit(iter([pb.SealedReports(route="weekly", reports=reports)]))

            async def answers() -> list[Any]:
                return [each async for each in call]

            refusal = await refused(answers())
            assert (refusal.code, "at most 4 MiB" in refusal.sentence) == ("E403", True)

    asyncio.run(test())


@looped
async def test_rules_change_while_the_node_runs(tmp_path: Path) -> None:
    async with running(tmp_path, ["north"]) as world:
        await world.create(route_for(["north"]))
        file = tmp_path / "north.toml"
        file.write_text(file.read_text().replace("min_batch = 2", "min_batch = 9"))
        assert await world.nodes["north"].reload(file) == ("[shuffler]",)
        found = await refused(world.analyst().create(route_for(["north"], name="next")))
        assert (found.code, "(rule min_batch)" in found.sentence) == ("E300", True)
        assert not (await world.analyst().create(route_for(["north"]))).retired
