"""What a hostile client can do harms no one but, where it is not refused, the estimate."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import grpc
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from crypto.primitives.randomness import Randomness
from jobs.collections.mechanism import mechanism_of_round
from ldp.domain import Domain
from link.errors import InputDataError, LimitExceeded
from link.pki.authority import Authority
from link.pki.identity import Role
from party.node.limits import MemoryLimit, Streams
from party.services.frequency.service import IN_FLIGHT, MAX_STREAMS, MEMORY_BYTES, QUEUE_BYTES
from party.services.frequency.submission import MAX_BATCH_BYTES
from protos.v1 import frequency_pb2 as pb
from tests.party.nodes import refused
from tests.party.services.frequency.nodes import batch, running
from tests.party.services.frequency.specs import spec_of

FLEET = {"gateways": {"fleet": 1_000_000, "small": 10}}
RNG = Randomness.from_seed(4)


def changed(original: pb.ReportBatch, **changes: Any) -> pb.ReportBatch:
    """The same batch but for some fields."""
    copy = pb.ReportBatch()
    copy.CopyFrom(original)
    for name, value in changes.items():
        setattr(copy, name, value)
    return copy


def test_wrong_batches_are_refused_and_the_stream_goes_on(tmp_path: Path) -> None:
    async def test() -> None:
        async with running(tmp_path) as world:
            analyst, fleet = world.analyst, world.caller("fleet")
            created = await analyst.create(spec_of(access=FLEET))
            other = await analyst.create(spec_of(name="other", epsilon="2.0", access=FLEET))
            good = batch(created, [1] * 20)
            foreign = batch(other, [1] * 20)
            header, body = good.reports[:29], good.reports[29:]
            wrong = [
                (changed(good, reports=b""), pb.MALFORMED),
                (changed(good, reports=RNG.bytes(20)), pb.MALFORMED),
                (changed(good, reports=RNG.bytes(500)), pb.FOREIGN),
                (changed(good, reports=good.reports[:-1]), pb.MALFORMED),
                (changed(good, reports=good.reports + b"\0"), pb.MALFORMED),
                (changed(good, reports=header + b"\xff" * len(body)), pb.MALFORMED),  # values outside the domain
                (changed(good, reports=header[:21] + b"\xff" * 8 + body), pb.MALFORMED),  # 2^64 - 1 reports
                (changed(good, pseudonyms=b""), pb.MALFORMED),
                (changed(good, pseudonyms=good.pseudonyms[:-1]), pb.MALFORMED),
                (changed(good, pseudonyms=good.pseudonyms[:-16]), pb.MALFORMED),
                (changed(good, pseudonyms=good.pseudonyms + bytes(16)), pb.MALFORMED),
                (changed(good, reports=foreign.reports), pb.FOREIGN),
                (changed(good, round=1), pb.EARLY),
                (changed(good, round=(1 << 64) - 1), pb.EARLY),
                (changed(good, collection=""), pb.REFUSED),
                (changed(good, collection="nothing"), pb.REFUSED),
                (changed(good, collection="x" * 100_000), pb.REFUSED),
                (changed(good, collection="'; DROP TABLE rounds; --"), pb.REFUSED),
            ]
            sent = [changed(each, sequence=place) for place, (each, _) in enumerate(wrong)]
            receipts = await fleet.submit(*sent, good)
            expected = [(place, status, 0) for place, (_, status) in enumerate(wrong)]
            assert [(r.sequence, r.status, r.counted) for r in receipts[:-1]] == expected
            assert all(r.message and len(r.message) < 300 for r in receipts[:-1])
            assert receipts[-1].counted == 20
            told = (await analyst.describe()).counters
            assert (told.counted, told.foreign, told.early) == (20, 40, 40)
            assert told.malformed > 100
            assert (await analyst.describe("other")).counters.counted == 0
            assert "call failed" not in world.log.getvalue()

    asyncio.run(test())


@given(data=st.binary(max_size=200))
def test_random_bytes_never_break_a_mechanism(data: bytes) -> None:
    for name in ("grr", "olh", "oue", "ss", "hr", "dbitflip", "rappor", "1bit-mean"):
        spec = spec_of(mechanism=name)
        size = spec.collection.size
        mechanism = mechanism_of_round(spec, None if size is None else Domain(size))
        for prefix in (
            b"",
            b"LDPR\x01" + mechanism.fingerprint,
            b"LDPR\x01" + mechanism.fingerprint + b"\1" + bytes(7),
        ):
            try:
                reports = mechanism.read(prefix + data)
            except InputDataError:
                continue
            assert mechanism.tally(reports).shape == mechanism.tally_shape


def test_a_batch_beyond_all_bounds_ends_its_stream_alone(tmp_path: Path) -> None:
    async def test() -> None:
        async with running(tmp_path) as world:
            analyst, fleet = world.analyst, world.caller("fleet")
            created = await analyst.create(spec_of(access=FLEET))
            good = batch(created, [1] * 20)
            call = fleet.stub.Submit(iter([good, changed(good, reports=bytes(MAX_BATCH_BYTES))]))
            receipts = aiter(call)
            assert (await anext(receipts)).counted == 20
            refusal = await refused(anext(receipts))
            assert (refusal.status, refusal.code) == (grpc.StatusCode.INVALID_ARGUMENT, "E403")
            assert "at most 4 MiB" in refusal.sentence
            with pytest.raises(grpc.aio.AioRpcError) as caught:  # gRPC itself refuses what is longer than any message
                await fleet.submit(changed(good, reports=bytes(17 << 20)))
            assert caught.value.code() == grpc.StatusCode.RESOURCE_EXHAUSTED
            (receipt,) = await fleet.submit(batch(created, [1], seed=3))
            assert receipt.counted == 1

    asyncio.run(test())


def test_pseudonyms_that_are_made_up_count_once_and_harm_nobody_else(tmp_path: Path) -> None:
    async def test() -> None:
        async with running(tmp_path) as world:
            analyst = world.analyst
            created = await analyst.create(spec_of(access=FLEET))
            liar, phone, small = world.caller("liar"), world.caller("phone"), world.caller("small")
            honest = batch(created, [3], seed=7)
            stolen = changed(batch(created, [1] * 500), pseudonyms=honest.pseudonyms * 500)
            receipts = await liar.submit(stolen, *(batch(created, [1] * 50, seed=seed) for seed in range(20, 40)))
            assert sum(r.counted for r in receipts) == 1
            assert list(receipts[0].statuses).count(pb.COUNTED) == 1
            assert {r.status for r in receipts[1:]} == {pb.OVER_QUOTA}
            (receipt,) = await phone.submit(honest)  # with the pseudonym that the liar has sent
            assert receipt.counted == 1
            receipts = await small.submit(batch(created, [1] * 8, seed=8), batch(created, [1] * 8, seed=9))
            assert [r.counted for r in receipts] == [8, 2]
            assert list(receipts[1].statuses) == [pb.COUNTED] * 2 + [pb.OVER_QUOTA] * 6
            assert (await analyst.estimate()).head.reports == 12

    asyncio.run(test())


def test_a_certificate_has_only_so_many_streams(tmp_path: Path) -> None:
    async def test() -> None:
        async with running(tmp_path) as world:
            analyst, flood, phone = world.analyst, world.caller("flood"), world.caller("phone")
            created = await analyst.create(spec_of())
            done = asyncio.Event()

            async def endless() -> AsyncIterator[pb.ReportBatch]:
                yield pb.ReportBatch(collection="homepages")
                await done.wait()

            calls = [flood.stub.Submit(endless()) for _ in range(4 * MAX_STREAMS)]
            answers = await asyncio.gather(*(anext(aiter(call)) for call in calls), return_exceptions=True)
            held = [answer for answer in answers if isinstance(answer, pb.BatchReceipt)]
            assert len(held) == MAX_STREAMS
            for answer in answers:
                if not isinstance(answer, pb.BatchReceipt):
                    assert isinstance(answer, grpc.aio.AioRpcError)
                    assert f"'flood' has {MAX_STREAMS} streams open" in str(answer.details())
            (receipt,) = await phone.submit(batch(created, [2]))
            assert receipt.counted == 1
            done.set()
            for call in calls:
                call.cancel()
            for _ in range(200):  # they are given back
                await asyncio.sleep(0.01)
                if not world.node.frequency.submitting.open:
                    break
            (receipt,) = await flood.submit(batch(created, [2], seed=5))
            assert receipt.counted == 1

    asyncio.run(test())


class Context:
    """What the service asks of a call."""

    def __init__(self, role: Role, name: str) -> None:
        self.certificate = Authority.create().issue(name, role).certificate_pem

    def auth_context(self) -> dict[str, list[bytes]]:
        """What TLS has verified."""
        return {"x509_pem_cert": [self.certificate]}


def test_who_takes_no_receipts_is_read_no_further(tmp_path: Path) -> None:
    async def test() -> None:
        async with running(tmp_path) as world:
            created = await world.analyst.create(spec_of(access=FLEET))
            read = 0

            async def flood() -> AsyncIterator[pb.ReportBatch]:
                nonlocal read
                for seed in range(200):
                    read += 1
                    yield batch(created, [1] * 5, sequence=seed, seed=seed)

            stream = world.node.frequency.Submit(flood(), Context("client", "fleet"))  # type: ignore[arg-type]
            first = await anext(stream)
            for _ in range(50):
                await asyncio.sleep(0.005)
            assert (first.sequence, first.counted) == (0, 5)
            assert read <= IN_FLIGHT + 2
            rest = [receipt.sequence async for receipt in stream]
            assert rest == list(range(1, 200))

    asyncio.run(test())


def test_who_watches_slowly_gets_the_newest_estimate(tmp_path: Path) -> None:
    async def test() -> None:
        async with running(tmp_path) as world:
            created = await world.analyst.create(spec_of(access=FLEET))
            fleet = world.caller("fleet")
            request = pb.WatchFrequencyRequest(what=pb.FrequencyRequest(collection="homepages"), every=float("nan"))
            watch = world.node.frequency.Watch(request, Context("coordinator", "analyst"))  # type: ignore[arg-type]
            await fleet.submit(batch(created, [1] * 10))
            assert (await anext(watch)).head.reports == 10
            for seed in range(1, 30):
                await fleet.submit(batch(created, [1] * 10, seed=seed))
            assert (await anext(watch)).head.reports == 300
            await watch.aclose()  # type: ignore[attr-defined]
            assert not world.node.frequency.watching.open

    asyncio.run(test())


def test_a_cut_stream_loses_nothing_that_was_acknowledged_and_counts_nothing_twice(tmp_path: Path) -> None:
    async def test() -> None:
        async with running(tmp_path) as world:
            analyst = world.analyst
            created = await analyst.create(spec_of(access=FLEET))
            sent = [batch(created, [seed % 8] * 30, sequence=seed, seed=seed) for seed in range(60)]
            acknowledged = 0
            for cut in (1, 7, 20):
                fleet = world.caller("fleet")
                call = fleet.stub.Submit(iter(sent))
                receipts = aiter(call)
                with contextlib.suppress(asyncio.CancelledError):
                    for _ in range(cut):
                        acknowledged = max(acknowledged, (await anext(receipts)).sequence + 1)
                call.cancel()
                await fleet.channel.close()
                assert (await analyst.describe()).counters.counted >= 30 * acknowledged
            receipts_again = await world.caller("fleet").submit(*sent)
            assert {r.status for r in receipts_again} <= {pb.COUNTED, pb.DUPLICATE}
            assert (await analyst.estimate()).head.reports == 1800

    asyncio.run(test())


def test_a_node_that_stops_has_on_disk_what_it_acknowledged(tmp_path: Path) -> None:
    async def test() -> None:
        async with running(tmp_path) as world:
            created = await world.analyst.create(spec_of(window={"length": "1h"}, access=FLEET))
            sent = [batch(created, [seed % 8] * 30, sequence=seed, seed=seed) for seed in range(400)]
            acknowledged: list[int] = []
            enough = asyncio.Event()

            async def send() -> None:
                async for receipt in world.caller("fleet").stub.Submit(iter(sent)):
                    acknowledged.append(receipt.sequence)
                    if len(acknowledged) == 20:
                        enough.set()

            sending = asyncio.create_task(send())
            await enough.wait()
            await world.restart()
            await asyncio.gather(sending, return_exceptions=True)
            told = await world.analyst.describe()
            assert [round_.number for round_ in told.rounds] == [0]
            assert told.counters.counted >= 30 * len(acknowledged)
            again = await world.caller("fleet").submit(*sent)
            assert {again[place].status for place in acknowledged} == {pb.DUPLICATE}
            assert (await world.analyst.estimate()).head.reports == 30 * 400

    asyncio.run(test())


def test_who_has_reported_takes_bounded_memory_until_the_period_ends(tmp_path: Path) -> None:
    async def test() -> None:
        async with running(tmp_path, policy="max_epsilon = 8\nmax_memory = 200_000") as world:
            analyst, fleet = world.analyst, world.caller("fleet")
            created = await analyst.create(spec_of(access=FLEET))
            for seed in range(2):
                (receipt,) = await fleet.submit(batch(created, np.ones(4000, np.int64), seed=seed))
                assert receipt.counted == 4000
            refusal = await refused(fleet.submit(batch(created, np.ones(4000, np.int64), seed=2)))
            assert (refusal.status, refusal.code) == (grpc.StatusCode.RESOURCE_EXHAUSTED, "E103")
            assert "(rule max_memory)" in refusal.sentence
            assert (await analyst.close()).counters.counted == 8000
            other = await analyst.create(spec_of(access=FLEET, name="other"))
            (receipt,) = await fleet.submit(batch(other, np.ones(4000, np.int64)))
            assert receipt.counted == 4000

    asyncio.run(test())


def test_a_full_disk_is_told_and_nothing_is_lost(tmp_path: Path) -> None:
    async def test() -> None:
        async with running(tmp_path, policy=f"max_epsilon = 8\nmax_disk = {1 << 20}") as world:
            analyst, fleet = world.analyst, world.caller("fleet")
            created = await analyst.create(spec_of(access=FLEET))
            counted = 0

            async def all_counted() -> None:
                nonlocal counted
                for seed in range(40):
                    (receipt,) = await fleet.submit(batch(created, np.ones(4000, np.int64), seed=seed))
                    counted += receipt.counted

            refusal = await refused(all_counted())
            assert (refusal.status, refusal.code) == (grpc.StatusCode.RESOURCE_EXHAUSTED, "E103")
            assert "(rule max_disk)" in refusal.sentence
            assert counted >= 4000
            assert (await analyst.estimate()).head.reports == counted
            assert (await analyst.close()).counters.counted == counted

    asyncio.run(test())


def test_a_reader_cannot_ask_for_too_much(tmp_path: Path) -> None:
    async def test() -> None:
        async with running(tmp_path) as world:
            analyst = world.analyst
            spec = spec_of(mechanism="rappor", epsilon="2.0", parameters={"bits": 16, "cohorts": 2})
            created = await analyst.create(spec)
            await world.caller("phone").submit(batch(created, ["a"]))

            async def asked(candidates: bytes) -> Any:
                return await analyst.estimate(candidates=candidates)

            many = b"".join(b"%d\n" % each for each in range(20_001))
            assert "20,000 candidates at most" in (await refused(asked(many))).sentence
            assert (await refused(asked(b"x" * (5 << 20)))).code == "E403"
            assert "not UTF-8" in (await refused(asked(b"\xff\n"))).sentence
            await analyst.create(spec_of(name="plain"))
            for what in ({"post_processing": "magic"}, {"candidates": b"a\n"}, {"round": 7}):
                await world.caller("phone").submit(batch(await analyst.describe("plain"), [1]))
                assert (await refused(analyst.estimate("plain", **what))).code.startswith("E1")

    asyncio.run(test())


def test_what_waits_for_room_is_bounded_for_each_certificate(tmp_path: Path) -> None:
    async def test() -> None:
        async with running(tmp_path) as world:
            analyst, honest = world.analyst, world.caller("honest")
            created = await analyst.create(spec_of(access={"gateways": {"flood": 1_000_000}}))
            service = world.node.frequency
            held = await service.memory.take(MEMORY_BYTES)
            large = changed(batch(created, [1]), collection="x" * (3 << 20))
            streams = []
            for _ in range(MAX_STREAMS):
                streams.append(world.caller("flood").stub.Submit(iter([large]), wait_for_ready=True))
            answers = [asyncio.create_task(anext(aiter(each))) for each in streams]
            most = QUEUE_BYTES // large.ByteSize()
            done: set[asyncio.Task[pb.BatchReceipt]] = set()
            while len(done) < MAX_STREAMS - most:
                done, _ = await asyncio.wait(answers, return_when=asyncio.FIRST_COMPLETED, timeout=0.05)
            assert service.queue.waiting["flood"] == most * large.ByteSize()
            for each in done:
                with pytest.raises(grpc.aio.AioRpcError, match="'flood' has 32 MiB of reports waiting at north"):
                    await each
            waits = asyncio.create_task(honest.submit(batch(created, [3])))
            while service.queue.waiting["honest"] == 0:  # noqa: ASYNC110 (nobody is told)
                await asyncio.sleep(0.01)
            service.memory.give(held)
            assert [receipt.status for receipt in await waits] == [pb.COUNTED]
            rest = [await each for each in answers if each not in done]
            assert [receipt.status for receipt in rest] == [pb.REFUSED] * most
            assert not +service.queue.waiting

    asyncio.run(test())


def test_streams_are_counted_by_name() -> None:
    streams = Streams(2, "north")
    with streams.one("a"), streams.one("a"), streams.one("b"), pytest.raises(LimitExceeded), streams.one("a"):
        pass
    with streams.one("a"):
        assert dict(streams.open) == {"a": 1}
    assert not streams.open


@given(
    sizes=st.lists(st.integers(0, 12), min_size=1, max_size=40),
    cancelled=st.sets(st.integers(0, 39)),
    seed=st.integers(),
)
def test_batches_never_take_more_room_than_there_is(sizes: list[int], cancelled: set[int], seed: int) -> None:
    async def test() -> None:
        room, taken, finished = MemoryLimit(10), 0, 0

        async def one(size: int) -> None:
            nonlocal taken, finished
            size = await room.take(size)
            taken += size
            try:
                assert taken <= 10
                await asyncio.sleep(0)
            finally:
                taken -= size
                room.give(size)
            finished += 1

        tasks = [asyncio.create_task(one(size)) for size in sizes]
        await asyncio.sleep(0)
        for place in cancelled:
            if place < len(tasks):
                tasks[place].cancel()
                if seed % 2:
                    await asyncio.sleep(0)
        results = await asyncio.gather(*tasks, return_exceptions=True)
        assert not [each for each in results if isinstance(each, AssertionError)]
        assert room.idle
        assert finished >= len(sizes) - len(cancelled)

    asyncio.run(test())
