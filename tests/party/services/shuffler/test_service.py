"""Reports through running shufflers over TLS: what arrives, and what is dropped and counted."""

from __future__ import annotations

import asyncio
from collections import Counter
from pathlib import Path

import grpc
import numpy as np

from ldp.shuffling.onion import wrap
from protos.v1 import shuffle_pb2 as pb
from tests.party.nodes import refused
from tests.party.services.shuffler.nodes import numbers, route_for, running
from tests.party.services.shuffler.test_store import store_of


def test_reports_pass_two_shufflers_and_only_the_analyst_reads_them(tmp_path: Path) -> None:
    async def test() -> None:
        async with running(tmp_path) as world:
            route = route_for()
            sealed = await world.sealed(route, range(200))
            fates = await world.caller("fleet").submit(sealed, step=30)
            assert Counter(fates) == {pb.TAKEN: 200}
            await world.analyst().flush()
            (found,) = await world.opened(route, 1)
            assert sorted(numbers(found.reports)) == list(range(200))
            assert numbers(found.reports) != list(range(200))
            first, second = found.statements
            assert (first.received, first.forwarded, second.received, second.forwarded) == (200, 200, 200, 200)
            assert (first.senders, first.largest, second.input) == (1, 200, first.output)
            assert not first.input

    asyncio.run(test())


def test_what_is_no_new_good_report_is_dropped_and_counted(tmp_path: Path) -> None:
    async def test() -> None:
        async with running(tmp_path) as world:
            route = route_for()
            keys = await world.create(route)
            good = await world.sealed(route, range(20))
            foreign = await world.sealed(route_for(name="other"), [1])
            swapped = wrap(np.zeros((1, 8), np.uint8), route, keys[::-1])  # for the shufflers in another order
            inside = wrap(np.zeros((1, 8), np.uint8), route, [keys[0], keys[0]])  # good for the first one only
            damaged = good[19:].copy()
            damaged[0, -1] ^= 1
            sent = [
                *good[:10],
                *good[5:7],  # replayed within the message
                good[10, :-1],
                np.append(good[11], np.uint8(0)),
                b"",
                *foreign,
                *swapped,
                *damaged,
                *inside,
                *good[12:15],
            ]
            fleet = world.caller("fleet")
            fates = await fleet.submit(sent)
            assert fates == [
                *[pb.TAKEN] * 10,
                *[pb.REPLAYED] * 2,
                *[pb.WRONG_SIZE] * 3,
                *[pb.UNREADABLE] * 3,
                *[pb.TAKEN] * 4,
            ]
            assert await fleet.submit(good[:3]) == [pb.REPLAYED] * 3
            await world.analyst().flush()
            (found,) = await world.opened(route, 1)
            assert sorted(numbers(found.reports)) == [*range(10), 12, 13, 14]
            first, second = found.statements
            assert (first.received, first.replayed, first.wrong_size, first.unreadable) == (25, 5, 3, 3)
            assert (first.forwarded, second.received, second.unreadable, second.forwarded) == (14, 14, 1, 13)
            # What was taken before is known in later batches, and after a new start of the node, too.
            await world.restart("north")
            fleet = world.caller("fleet")
            assert await fleet.submit(good[:12]) == [pb.REPLAYED] * 10 + [pb.TAKEN] * 2

    asyncio.run(test())


def test_a_client_has_one_report_in_a_batch_and_a_gateway_its_clients(tmp_path: Path) -> None:
    async def test() -> None:
        async with running(tmp_path) as world:
            route = route_for(gateways=(("client/fleet", 4),))
            sealed = await world.sealed(route, range(30))
            phone, fleet = world.caller("phone"), world.caller("fleet")
            assert await phone.submit(sealed[:3]) == [pb.TAKEN, pb.OVER_SHARE, pb.OVER_SHARE]
            assert await phone.submit(sealed[1:2]) == [pb.OVER_SHARE]
            assert (await refused(world.analyst().flush())).sentence == (
                "fewer than 5 reports wait for the route 'weekly' at north, and a batch has as many at least"
            )
            assert await fleet.submit(sealed[3:9]) == [pb.TAKEN] * 4 + [pb.OVER_SHARE] * 2
            await world.restart("north")
            assert await world.caller("fleet").submit(sealed[9:10]) == [pb.OVER_SHARE]
            await world.analyst().flush()
            (found,) = await world.opened(route, 1)
            (first, _) = found.statements
            assert (first.forwarded, first.over_share, first.senders, first.largest) == (5, 6, 2, 4)
            # A new batch, a new share; what was over the share was not taken, so it is no replay.
            assert await world.caller("phone").submit(sealed[1:3]) == [pb.TAKEN, pb.OVER_SHARE]

    asyncio.run(test())


def test_many_at_once_are_taken_once(tmp_path: Path) -> None:
    """The same reports on several streams at the same time, and a sender that goes away."""

    async def test() -> None:
        async with running(tmp_path, ["north"]) as world:
            route = route_for(["north"])
            sealed = await world.sealed(route, range(300))
            fleet = [world.caller("fleet") for _ in range(4)]
            call = fleet[0].stub.Submit(iter([pb.SealedReports(route="weekly", reports=[bytes(r) for r in sealed])]))
            await asyncio.sleep(0.02)
            call.cancel()
            every = await asyncio.gather(*(each.submit(sealed, step=7) for each in fleet))
            taken = np.array(every) == pb.TAKEN
            assert taken.sum(axis=0).max() == 1
            assert set(np.array(every).ravel().tolist()) <= {pb.TAKEN, pb.REPLAYED}
            await world.analyst().flush()
            (found,) = await world.opened(route, 1)
            assert sorted(numbers(found.reports)) == list(range(300))

    asyncio.run(test())


def test_a_batch_has_a_maximum(tmp_path: Path) -> None:
    async def test() -> None:
        async with running(tmp_path, ["north"]) as world:
            route = route_for(["north"], maximum=10)
            sealed = await world.sealed(route, range(20))
            fleet = world.caller("fleet")
            await fleet.submit(sealed[:8])
            refusal = await refused(fleet.submit(sealed[8:12]))
            assert (refusal.status, refusal.code) == (grpc.StatusCode.RESOURCE_EXHAUSTED, "E103")
            assert await fleet.submit(sealed[8:10]) == [pb.TAKEN] * 2
            assert (
                "as a batch may have (10); send these after it has left"
                in (await refused(fleet.submit(sealed[10:]))).sentence
            )
            await world.analyst().flush()
            assert await fleet.submit(sealed[10:]) == [pb.TAKEN] * 10

    asyncio.run(test())


def test_who_asks_after_each_report_does_not_see_it_come(tmp_path: Path) -> None:
    """Only the first shuffler knows when; the route's creator, who may send some itself, is told when to flush."""

    async def test() -> None:
        async with running(tmp_path) as world:
            route = route_for(minimum=400)
            sealed = await world.sealed(route, range(330))
            fleet, analyst = world.caller("fleet"), world.analyst()
            stands, refusals, sent = list[tuple[int, pb.ShuffleRoute]](), set[str](), 0
            for step in (*[1] * 12, 85, *[1] * 6, 27, 60, *[1] * 4, 120, *[1] * 8):
                await fleet.submit(sealed[sent : (sent := sent + step)])
                stands.append((sent, await analyst.describe()))
                refusals.add((await refused(analyst.flush())).sentence)
            assert len(refusals) == 1
            for _, each in stands:
                assert each.waiting == 0
                each.ClearField("key")  # signed anew each time
            assert len({each.SerializeToString() for _, each in stands}) == 1

    asyncio.run(test())


def test_batches_leave_at_their_time_when_they_have_enough(tmp_path: Path) -> None:
    async def test() -> None:
        async with running(tmp_path) as world:
            route = route_for(every=1)
            sealed = await world.sealed(route, range(11))
            fleet, analyst = world.caller("fleet"), world.analyst()
            await fleet.submit(sealed[:4])
            await asyncio.sleep(1.2)
            stands = await analyst.describe()
            assert (store_of(world).waiting(1).senders.total(), stands.next_batch) == (4, 1)
            await fleet.submit(sealed[4:])
            (found,) = await world.opened(route, 1)
            assert sorted(numbers(found.reports)) == list(range(11))
            stands = await world.caller("phone").describe()
            assert (stands.waiting, stands.next_batch) == (0, 2)

    asyncio.run(test())


def test_a_later_shuffler_withholds_what_is_too_little_and_says_so(tmp_path: Path) -> None:
    async def test() -> None:
        async with running(tmp_path) as world:
            route = route_for()
            keys = await world.create(route)
            fleet = world.caller("fleet")
            await fleet.submit(await world.sealed(route, range(4)))
            await fleet.submit(wrap(np.zeros((3, 8), np.uint8), route, [keys[0], keys[0]]))
            await world.analyst().flush()
            (found,) = await world.opened(route, 1)
            assert len(found.reports) == 0
            second = found.statements[1]
            assert (second.received, second.unreadable, second.withheld, second.forwarded) == (7, 3, 4, 0)

    asyncio.run(test())


def test_one_shuffler_alone_and_three_of_them(tmp_path: Path) -> None:
    async def test() -> None:
        async with running(tmp_path, ["north", "south", "east"]) as world:
            for name, shufflers in (("one", ["east"]), ("three", ["south", "east", "north"])):
                route = route_for(shufflers, name=name)
                sealed = await world.sealed(route, range(10))
                await world.caller("fleet", node=shufflers[0]).submit(sealed, name)
                await world.analyst(shufflers[0]).flush(name)
                (found,) = await world.opened(route, 1)
                assert sorted(numbers(found.reports)) == list(range(10))
                assert [each.shuffler for each in found.statements] == shufflers

    asyncio.run(test())


def test_collected_batches_are_forgotten(tmp_path: Path) -> None:
    async def test() -> None:
        async with running(tmp_path, ["north"]) as world:
            route = route_for(["north"])
            sealed = await world.sealed(route, range(20))
            analyst, fleet = world.analyst(), world.caller("fleet")
            for start in (0, 10):
                await fleet.submit(sealed[start : start + 10])
                await analyst.flush()
            two = await analyst.collect()
            again = await analyst.collect()
            assert [head.batch for head, _ in two] == [1, 2]
            assert all(np.array_equal(a, b) for (_, a), (_, b) in zip(two, again, strict=True))
            assert [head.batch for head, _ in await analyst.collect(after=1)] == [2]
            assert [head.batch for head, _ in await analyst.collect()] == [2]
            assert await analyst.collect(after=99) == []
            assert (await analyst.describe()).unsent == 0

    asyncio.run(test())


def test_nothing_tells_when_or_by_whom_a_report_was_sent(tmp_path: Path) -> None:
    """Beside the audit of calls, what leaves and what stays after a batch holds no sender and no arrival time."""

    async def test() -> None:
        async with running(tmp_path) as world:
            route = route_for(gateways=())
            sealed = await world.sealed(route, range(6))
            for i in range(6):
                await world.caller(f"device-{i}-of-somebody").submit(sealed[i : i + 1])
            await world.analyst().flush()
            await world.batches(route, 1)

    asyncio.run(test())
    for name in ("north", "south"):
        files = [path for path in (tmp_path / "state" / name).iterdir() if path.name.startswith("shuffler")]
        assert files
        for path in files:
            assert b"of-somebody" not in path.read_bytes(), path
