"""Open rounds whose reports an earlier version read otherwise: the node starts without their collections."""

from __future__ import annotations

import asyncio
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from ldp.oracles.hadamard_response import HadamardResponse
from party.services.frequency.storage import folding
from party.services.frequency.storage.store import FILE
from protos.v1 import frequency_pb2 as pb
from tests.party.nodes import refused
from tests.party.services.frequency.nodes import World, batch, running
from tests.party.services.frequency.specs import spec_of

ACCESS = {"gateways": {"fleet": 1000}}
BLOCKS = spec_of(mechanism="hr", size=3000, epsilon="4.0", access=ACCESS)
PLAIN = spec_of(name="plain", access=ACCESS)


def tables(folder: Path, table: str) -> int:
    with closing(sqlite3.connect(folder / "state/north" / FILE)) as database:
        return int(database.execute(f"SELECT count(*) FROM {table}").fetchone()[0])


async def upgraded(
    world: World, monkeypatch: pytest.MonkeyPatch, *, saved: bool
) -> tuple[pb.Collection, pb.Collection]:
    """A node whose collections have reports of the version before: in a tally, or as they came."""
    with monkeypatch.context() as earlier:
        earlier.setattr(HadamardResponse, "mapping", 1)
        if saved:
            earlier.setattr(folding, "SAVE_SEGMENTS", 1)
        blocks, plain = [await world.analyst.create(spec) for spec in (BLOCKS, PLAIN)]
        for collection in (blocks, plain):
            (receipt,) = await world.caller("fleet").submit(batch(collection, [1] * 50))
            assert receipt.counted == 50
        while saved and tables(world.folder, "segments"):  # noqa: ASYNC110 (another thread saves the tally)
            await asyncio.sleep(0.05)
    await world.restart()
    return blocks, plain


@pytest.mark.parametrize("saved", [True, False])
def test_a_node_starts_without_a_collection_whose_reports_are_of_another_version(
    tmp_path: Path, saved: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def test() -> None:
        async with running(tmp_path) as world:
            blocks, plain = await upgraded(world, monkeypatch, saved=saved)
            assert "collection left out" in world.log.getvalue()
            analyst, fleet = world.analyst, world.caller("fleet")
            found = await analyst.stub.List(pb.ListCollectionsRequest())
            assert [(each.name, each.state) for each in found.collections] == [
                ("plain", pb.OPEN),
                ("homepages", pb.LEFT_OUT),
            ]
            assert not (
                await world.caller("stranger", "coordinator").stub.List(pb.ListCollectionsRequest())
            ).collections
            ours, theirs = batch(plain, [1] * 10, seed=1), batch(plain, [1] * 10, seed=1, sequence=2)
            theirs.collection = blocks.name
            (counted, left_out) = await fleet.submit(ours, theirs)
            assert (counted.counted, (await analyst.estimate("plain")).head.reports) == (10, 60)
            words = "are of another version of comine"
            assert left_out.status == pb.REFUSED
            for sentence in (left_out.message, (await refused(analyst.describe())).sentence):
                assert words in sentence
            assert "already; take another name" in (await refused(analyst.create(BLOCKS))).sentence
            other = world.caller("other", "coordinator")
            assert "who alone may delete it" in (await refused(other.delete())).sentence

            await analyst.delete()
            assert "has no collection" in (await refused(analyst.describe())).sentence
            assert tables(tmp_path, "rounds") == 1
            again = await analyst.create(BLOCKS)
            (receipt,) = await fleet.submit(batch(again, [2] * 20))
            assert receipt.counted == 20
            await world.restart()
            assert (await world.analyst.estimate()).head.reports == 20

    asyncio.run(test())


def test_a_collection_that_was_left_out_is_there_in_the_version_that_began_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def test() -> None:
        async with running(tmp_path) as world:
            await upgraded(world, monkeypatch, saved=True)
            monkeypatch.setattr(HadamardResponse, "mapping", 1)
            await world.restart()
            assert (await world.analyst.estimate()).head.reports == 50

    asyncio.run(test())


def test_a_collection_that_was_left_out_counts_for_the_most_that_may_be_open(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def test() -> None:
        async with running(tmp_path, policy="max_epsilon = 8\nmax_collections = 2") as world:
            await upgraded(world, monkeypatch, saved=False)
            refusal = await refused(world.analyst.create(spec_of(name="third")))
            assert "(rule max_collections)" in refusal.sentence

    asyncio.run(test())


def test_rounds_that_ended_in_another_version_say_so_and_hinder_no_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of two windows the first is of the version before; the collection goes on."""
    clock = [1_800_000_000.0]

    async def test() -> None:
        async with running(tmp_path, now=lambda: clock[0]) as world:
            spec = spec_of(mechanism="hr", size=3000, epsilon="4.0", access=ACCESS, window={"length": "1h"})
            with monkeypatch.context() as earlier:
                earlier.setattr(HadamardResponse, "mapping", 1)
                created = await world.analyst.create(spec)
                assert (await world.caller("fleet").submit(batch(created, [1] * 50)))[0].counted == 50
                clock[0] += 3600
                assert (await world.analyst.describe()).rounds_ended == 1
                clock[0] += 600
                with closing(sqlite3.connect(tmp_path / "state/north" / FILE)) as database, database:
                    database.execute("DELETE FROM rounds WHERE ended IS NULL")  # nobody has reported in it
            await world.restart()
            analyst = world.analyst
            clock[0] += 3600
            created = await analyst.describe()
            assert (await world.caller("fleet").submit(batch(created, [2] * 20, seed=1)))[0].counted == 20
            number = created.rounds[0].number
            assert (await analyst.estimate()).head.round.number == number
            clock[0] += 3600
            assert (await analyst.describe()).rounds_ended == 2
            call = analyst.stub.Estimate(pb.FrequencyRequest(collection="homepages", round=0))
            refusal = await refused(_read(call))
            assert refusal.sentence == (
                "north: round 0 of the collection 'homepages' is of another version of comine, which read its reports "
                "otherwise; only that version can read it, and rounds of this version are not affected"
            )
            files = await analyst.export(states=True)
            assert sorted(files) == ["collection.json", "estimates.csv", f"round-{number}.state"]
            await analyst.close()
            what = pb.FrequencyRequest(collection="homepages")
            watch = analyst.stub.Watch(pb.WatchFrequencyRequest(what=what, first=0))
            assert [part.head.round.number for part in await _read(watch) if part.HasField("head")] == [number]

    asyncio.run(test())


async def _read(call: Any) -> list[pb.EstimatePart]:
    return [part async for part in call]
