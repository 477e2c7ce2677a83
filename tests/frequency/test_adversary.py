"""What a new user, a hostile client and an auditor try beyond the other tests."""

from __future__ import annotations

import asyncio
from pathlib import Path

import grpc
import pytest

from client.budget import Budget
from ldp.domain import Domain
from ldp.registry import oracle
from link.errors import LimitExceeded
from party.frequency.service import MAX_STREAMS
from protos.v1 import frequency_pb2 as pb
from tests.client.devices import KEY, device
from tests.client.node import BEGIN, LABELS, Direct, Kept, Node, announced
from tests.client.node import spec_of as described
from tests.frequency.nodes import batch, running
from tests.frequency.specs import spec_of
from tests.frequency.test_hostile import Context

FLEET = {"gateways": {"fleet": 1_000_000}}


def test_a_watch_begins_with_the_latest_round_that_has_reports(tmp_path: Path) -> None:
    async def test() -> None:
        now = 1_800_000_000.0
        async with running(tmp_path, now=lambda: now) as world:
            analyst, fleet = world.analyst, world.caller("fleet")
            created = await analyst.create(spec_of(window={"length": "10s"}, access=FLEET))
            await fleet.submit(batch(created, [1] * 30))
            for _ in range(4):  # rounds that nobody reports to
                now += 10
                told = await analyst.describe()
            assert told.rounds_ended == 4
            request = pb.WatchFrequencyRequest(what=pb.FrequencyRequest(collection="homepages"))
            watch = analyst.stub.Watch(request)
            part = await asyncio.wait_for(anext(aiter(watch)), 20)
            assert (part.head.round.number, part.head.reports, part.head.final) == (0, 30, True)
            watch.cancel()

    asyncio.run(test())


def test_rounds_without_reports_take_no_room_on_the_disk(tmp_path: Path) -> None:
    async def test() -> None:
        now = BEGIN
        async with running(tmp_path, now=lambda: now) as world:
            analyst = world.analyst
            await analyst.create(spec_of(mechanism="olh", size=1 << 20, window={"length": "1s"}))
            for _ in range(5):
                now += 1
                await analyst.describe()
            assert (await analyst.describe()).rounds_ended == 5
            with pytest.raises(grpc.aio.AioRpcError, match="no report yet"):
                await analyst.estimate(round=2)
            assert world.node._frequency._running is not None
            assert world.node._frequency._running.store.used_bytes < 1 << 20

    asyncio.run(test())


@pytest.mark.parametrize("number", [7, (1 << 63) - 1, (1 << 64) - 1])
def test_no_number_of_a_round_is_a_fault_of_the_node(tmp_path: Path, number: int) -> None:
    async def test() -> None:
        async with running(tmp_path) as world:
            created = await world.analyst.create(spec_of())
            await world.caller("phone").submit(batch(created, [1]))
            with pytest.raises(grpc.aio.AioRpcError, match=f"has no round {number}, or not any more"):
                await world.analyst.estimate(round=number)

    asyncio.run(test())


def test_labels_that_nobody_reads_are_fetched_by_a_few_at_once(tmp_path: Path) -> None:
    async def test() -> None:
        async with running(tmp_path) as world:
            labels = "".join(f"{number:0100d}\n" for number in range(10_000)).encode()
            await world.analyst.create(spec_of(mechanism="olh", size=10_000, labelled=True), labels)
            service, request = world.node._frequency, pb.DomainRequest(collection="homepages")
            unread = [service.Domain(request, Context("client", "hostile")) for _ in range(MAX_STREAMS + 1)]  # type: ignore[arg-type]
            for call in unread[:-1]:
                await anext(call)
            with pytest.raises(LimitExceeded, match=f"'hostile' has {MAX_STREAMS} streams open"):
                await anext(unread[-1])
            honest = world.caller("phone").stub.Domain(request)
            assert b"".join([part.labels async for part in honest]) == labels
            for call in unread:
                await call.aclose()  # type: ignore[attr-defined]
            assert not service._fetching._open

    asyncio.run(test())


def test_a_node_cannot_hasten_the_steps_of_continual_release(tmp_path: Path) -> None:
    mechanism = oracle("grr", Domain(4, LABELS), 1.0)
    spec = described("grr", 1.0, "1h", continual={"method": "lsp", "w": 20, "users": None})
    spec["window"]["start"] = "2000-01-01T00:00:00+00:00"
    kept = Kept("homepages", mechanism, spec, LABELS)
    kept.rounds, node = [], Node(kept)
    phone = device(tmp_path, node, budget=Budget(epsilon=1000))

    def asked(number: int, step: int) -> bool:
        times = {"opens": node.now - 60, "closes": node.now + 3540}
        kept.rounds = [(announced(mechanism, number, step=step, **times), mechanism)]
        phone.follow(Direct(node), "homepages")  # type: ignore[arg-type]
        return phone.report(KEY, "north").reported

    assert asked(0, 0)
    node.now += 1
    assert not any(asked(number, 20 * number) for number in range(1, 10))
    node.now += 19 * 3600
    assert not asked(20, 19)  # the window of steps is not over
    assert asked(21, 20)
    node.now += 40 * 3600
    assert asked(61, 40)
