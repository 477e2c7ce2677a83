"""What a new user, a hostile client and an auditor try beyond the other tests."""

from __future__ import annotations

import asyncio
import threading
from pathlib import Path

import grpc
import pytest

from client.budget import Budget
from ldp.domain import Domain
from ldp.registry import oracle
from party.services.frequency.service import MAX_STREAMS
from party.services.frequency.storage.records import StoredRound
from party.services.frequency.storage.store import FrequencyStore
from protos.v1 import frequency_pb2 as pb
from tests.client.devices import KEY, device
from tests.client.node import BEGIN, LABELS, Direct, Kept, Node, announced
from tests.client.node import spec_of as described
from tests.errors import fails
from tests.party.nodes import refused
from tests.party.services.frequency.nodes import batch, running
from tests.party.services.frequency.specs import spec_of
from tests.party.services.frequency.test_hostile import Context

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
            assert world.node.frequency.running is not None
            assert world.node.frequency.running.store.used_bytes < 1 << 20

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
            service, request = world.node.frequency, pb.DomainRequest(collection="homepages")
            unread = [service.Domain(request, Context("client", "hostile")) for _ in range(MAX_STREAMS + 1)]  # type: ignore[arg-type]
            for call in unread[:-1]:
                await anext(call)
            with fails("E403"):
                await anext(unread[-1])
            honest = world.caller("phone").stub.Domain(request)
            assert b"".join([part.labels async for part in honest]) == labels
            for call in unread:
                await call.aclose()  # type: ignore[attr-defined]
            assert not service.fetching.open

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


def test_no_collection_grows_beyond_the_disk_that_the_policy_gives(tmp_path: Path) -> None:
    most = 1 << 20

    async def test() -> None:
        now = BEGIN
        async with running(tmp_path, policy=f"max_epsilon = 8\nmax_disk = {most}", now=lambda: now) as world:
            analyst = world.analyst
            spec = spec_of(
                size=1 << 13, window={"length": "10s", "retention": "400s"}, continual={"method": "lbu", "w": 3}
            )
            await analyst.create(spec)
            assert world.node.frequency.running is not None
            store = world.node.frequency.running.store

            async def passed(steps: int) -> int:
                nonlocal now
                for _ in range(steps):
                    now += 10
                    ended = (await analyst.describe()).rounds_ended
                return ended

            # Every step without a report leaves a release, 128 KiB; those of 400 s before are forgotten.
            assert await passed(30) < 30
            assert store.is_full
            assert store.used_bytes < most + (1 << 18)
            assert (await refused(analyst.create(spec_of(name="other")))).sentence.endswith(
                "take as much of the disk as its policy allows (rule max_disk); delete some that are closed"
            )
            assert len((await analyst.estimate()).counts) == 1 << 13
            now += 500
            before = (await analyst.describe()).rounds_ended
            assert not store.is_full
            assert await passed(3) > before
            await analyst.close()
            await analyst.delete()
            assert (await analyst.create(spec_of(name="other"))).rounds

    asyncio.run(test())


def test_what_tells_nothing_is_not_read_to_find_the_latest_round(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def test() -> None:
        now = BEGIN
        async with running(tmp_path, now=lambda: now) as world:
            analyst, phone = world.analyst, world.caller("phone")
            created = await analyst.create(spec_of(mechanism="olh", size=1 << 16, window={"length": "1s"}))
            await phone.submit(batch(created, [3]))
            for _ in range(8):
                now += 1
                await analyst.describe()
            read: list[int] = []
            whole = FrequencyStore.round

            def noted(store: FrequencyStore, name: str, number: int) -> StoredRound | None:
                read.append(number)
                return whole(store, name, number)

            monkeypatch.setattr(FrequencyStore, "round", noted)
            assert (await analyst.estimate()).head.round.number == 0
            assert read == [0]

    asyncio.run(test())


def test_refusals_of_ended_rounds_are_counted_off_the_event_loop(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    threads: list[str] = []
    refuse = FrequencyStore.refuse

    def noted(store: FrequencyStore, name: str, number: int | None, reason: str, n: int) -> None:
        threads.append(threading.current_thread().name)
        refuse(store, name, number, reason, n)

    async def test() -> None:
        now = BEGIN
        async with running(tmp_path, now=lambda: now) as world:
            analyst, phone = world.analyst, world.caller("phone")
            created = await analyst.create(spec_of(window={"length": "1h"}))
            now += 3600
            monkeypatch.setattr(FrequencyStore, "refuse", noted)
            (receipt,) = await phone.submit(batch(created, [3, 4]))
            assert receipt.status == pb.LATE
            assert (await analyst.describe()).counters.late == 2

    asyncio.run(test())
    assert [name.startswith("frequency-disk") for name in threads] == [True]
