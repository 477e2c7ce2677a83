"""Readers who poll: what they are told of a round that goes on does not hang on any report, however often they ask.

The creator of a collection sees its rounds as they stand; whoever is named under `[access] read` adds up what it may.
"""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from party.services.frequency.storage.records import COUNTERS
from protos.v1 import frequency_pb2 as pb
from tests.party.nodes import refused
from tests.party.services.frequency.nodes import Caller, World, batch, running
from tests.party.services.frequency.specs import spec_of

pytestmark = pytest.mark.turn(3)

T0 = 1_800_000_000.0
ACCESS = {"read": ["reader"], "gateways": {"fleet": 100_000}}
HOURLY = {"length": "1h", "grace": "30m"}
KINDS: dict[str, dict[str, Any]] = {
    "once": {},
    "windows": {"window": HOURLY},
    "search": {"mechanism": "prefix-extending", "text_bytes": 2, "k": 2, "window": {"length": "1h"}},
    "continual": {"window": {"length": "1h"}, "continual": {"method": "lbu", "w": 2}},
    "mean": {"mechanism": "1bit-mean", "parameters": {"low": 0, "high": 1}},
}


async def told(reader: Caller, *rounds: int) -> list[Any]:
    """All that a reader can ask for, as it comes over the wire."""
    found: list[Any] = [
        (await reader.stub.List(pb.ListCollectionsRequest())).SerializeToString(deterministic=True),
        (await reader.describe()).SerializeToString(deterministic=True),
        *[sorted((await reader.export(states=states)).items()) for states in (False, True)],
    ]
    asked: list[dict[str, Any]] = [{}, *({"round": number} for number in rounds), {"most": 1}]
    for what in (*asked, {"post_processing": "norm-sub"}):
        call = reader.stub.Estimate(pb.FrequencyRequest(collection="homepages", **what))
        try:
            found.append([part.SerializeToString(deterministic=True) async for part in call])
        except Exception as error:
            found.append(str(error.details()))  # type: ignore[attr-defined]
    return found


async def reported(world: World, analyst: Caller, number: int, name: str, *, late: bool = True) -> None:
    """One report more in the open round; and one each that is refused for every reason that there is."""
    fleet = world.caller("fleet")
    created = await analyst.describe()
    value: Any = {"search": "ab", "mean": 0.5}.get(name, number % 8)
    good = batch(created, [value], seed=number, round_=len(created.rounds) - 1)
    (receipt,) = await fleet.submit(good)
    assert receipt.counted == 1
    broken = pb.ReportBatch(collection="homepages", round=good.round, pseudonyms=bytes(16), reports=bytes(30))
    await fleet.submit(good, broken)
    for which in (0, 10**6) if late else ():
        again = pb.ReportBatch.FromString(good.SerializeToString())
        again.round = which
        await fleet.submit(again)


@pytest.mark.parametrize("name", KINDS)
def test_a_reader_who_polls_after_every_report_learns_nothing_of_it(tmp_path: Path, name: str) -> None:
    clock = [T0]

    async def test() -> None:
        async with running(tmp_path, now=lambda: clock[0]) as world:
            analyst, reader = world.analyst, world.caller("reader", "coordinator")
            await analyst.create(spec_of(access=ACCESS, **KINDS[name]))
            if name == "windows":  # one round that has ended, which is told of
                await reported(world, analyst, 50, name, late=False)
                clock[0] += 2 * 3600
                await analyst.describe()
            before = await told(reader, 0, 1, 2)
            for number in range(6):
                await reported(world, analyst, number, name)
                assert await told(reader, 0, 1, 2) == before
            await world.restart()
            assert (await analyst.describe()).counters.counted == (7 if name == "windows" else 6)
            assert await told(reader, 0, 1, 2) == before

    asyncio.run(test())


def test_a_reader_who_sends_reports_itself_finds_no_number_that_one_more_changes(tmp_path: Path) -> None:
    """By reports of its own it could bring a rough number to where the next one of somebody else changes it."""

    async def test() -> None:
        async with running(tmp_path) as world:
            analyst, reader = world.analyst, world.caller("reader", "coordinator")
            created, fleet = await analyst.create(spec_of(access=ACCESS)), world.caller("fleet")
            before = (await reader.describe()).counters
            for number, size in enumerate((*range(95, 105), *[1] * 20, 200, 2000, 40_000)):
                reports = batch(created, [1] * size, seed=number)
                await fleet.submit(reports, reports)
                assert (await reader.describe()).counters == before == pb.Counters()
                exported = json.loads((await reader.export())["collection.json"])
                assert (set(exported["counters"].values()), exported["rounds"]) == ({0}, [])
            total = (await analyst.describe()).counters
            assert total.counted == total.duplicate > 40_000
            await analyst.close()
            for counters in ((await reader.estimate()).head.counters, (await reader.describe()).counters):
                assert counters == pb.Counters(counted=total.counted)

    asyncio.run(test())


def test_a_watching_reader_is_told_of_rounds_that_have_ended(tmp_path: Path) -> None:
    """Also of one that it has chosen, which goes on when the watch begins."""
    clock = [T0]

    async def test() -> None:
        async with running(tmp_path, now=lambda: clock[0]) as world:
            analyst, reader = world.analyst, world.caller("reader", "coordinator")
            await analyst.create(spec_of(access=ACCESS, window={"length": "1h"}))
            what = pb.FrequencyRequest(collection="homepages")
            chosen = pb.FrequencyRequest(collection="homepages", round=1)
            watches = [reader.stub.Watch(pb.WatchFrequencyRequest(what=each, every=0.01)) for each in (what, chosen)]
            own = analyst.stub.Watch(pb.WatchFrequencyRequest(what=what, every=0.01))
            parts = aiter(own)
            for round_ in range(2):
                for number in range(3):
                    await reported(world, analyst, 10 * round_ + number, "once", late=False)
                    assert not (await anext(parts)).head.final  # by then a reader could have been told, too
                clock[0] += 3600
                while not (await anext(parts)).head.final:
                    pass
            await analyst.close()
            heads = [[part.head async for part in watch] for watch in watches]
            assert [[(head.round.number, head.reports, head.final) for head in each] for each in heads] == [
                [(0, 3, True), (1, 3, True)],
                [(1, 3, True)],
            ]

    asyncio.run(test())


def test_only_its_creator_is_told_of_a_round_that_goes_on(tmp_path: Path) -> None:
    async def test() -> None:
        async with running(tmp_path) as world:
            analyst, reader = world.analyst, world.caller("reader", "coordinator")
            created = await analyst.create(spec_of(access=ACCESS))
            sentence = (
                "round 0 of the collection 'homepages' at north goes on, and until it has ended only analyst, who "
                "created the collection, may read it; read it then, or another round"
            )
            for seed in range(3):
                call = reader.stub.Estimate(pb.FrequencyRequest(collection="homepages", round=0))
                refusal = await refused(read(call))
                assert (refusal.code, refusal.sentence) == ("E300", sentence)
                call = reader.stub.Estimate(pb.FrequencyRequest(collection="homepages"))
                refusal = await refused(read(call))
                assert refusal.sentence == "the collection 'homepages' at north has no round with reports yet"
                await world.caller("phone").submit(batch(created, [3], seed=seed))
                assert (await analyst.estimate()).head.reports == 1
            await analyst.close()
            assert (await reader.estimate()).counts.tolist() == (await analyst.estimate()).counts.tolist()

    asyncio.run(test())


async def read(call: Any) -> list[pb.EstimatePart]:
    return [part async for part in call]


def test_what_is_read_of_a_deleted_collection_is_not_held_against_another_of_its_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An estimate may take long; meanwhile its collection may be deleted, and created anew with no report."""

    async def test() -> None:
        async with running(tmp_path) as world:
            analyst = world.analyst
            created = await analyst.create(spec_of(access=ACCESS))
            await world.caller("fleet").submit(batch(created, [3] * 20))
            service = world.node.frequency
            answer = service.answer

            async def slowly(*arguments: Any) -> Any:
                found = await answer(*arguments)
                await analyst.close()
                await analyst.delete()
                await analyst.create(spec_of(access=ACCESS))
                return found

            with monkeypatch.context() as patch:
                patch.setattr(service, "answer", slowly)
                refusal = await refused(read(analyst.stub.Estimate(pb.FrequencyRequest(collection="homepages"))))
                assert refusal.sentence == "north has no collection 'homepages'; see: comine frequency list"
            await world.restart()  # the log tells nothing of the new collection that it does not know
            assert (await analyst.describe()).counters == pb.Counters(**dict.fromkeys(COUNTERS, 0))

    asyncio.run(test())
