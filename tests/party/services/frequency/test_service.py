"""The frequency service over loopback TLS: what honest callers get."""

from __future__ import annotations

import asyncio
import csv
import io
import json
from collections.abc import AsyncIterable
from pathlib import Path

import numpy as np
import pytest

from crypto.primitives.randomness import Randomness
from jobs.collections.spec import labels_of
from ldp.aggregator import Aggregator
from ldp.consistency import consistent
from ldp.domain import Domain
from ldp.estimate import Estimate
from ldp.frequency_oracle import FrequencyOracle
from protos.v1 import frequency_pb2 as pb
from tests.party.nodes import refused
from tests.party.services.frequency.nodes import batch, mechanism, running
from tests.party.services.frequency.specs import spec_of

pytestmark = pytest.mark.turn(3)

FLEET = {"gateways": {"fleet": 1_000_000}}


def values_of(n: int, seed: int = 1, size: int = 8) -> np.ndarray:
    """Values of clients, of which small numbers are frequent."""
    drawn = Randomness.from_seed(seed).integers(size * size, n)
    return np.sqrt(drawn.astype(np.float64)).astype(np.int64)


@pytest.mark.parametrize("name", ["grr", "olh", "oue", "hr", "dbitflip", "auto"])
def test_estimates_are_those_of_the_reports_that_were_sent(tmp_path: Path, name: str) -> None:
    async def test() -> None:
        async with running(tmp_path) as world:
            analyst, fleet = world.analyst, world.caller("fleet")
            created = await analyst.create(spec_of(mechanism=name, access=FLEET))
            assert (created.name, created.node, created.creator) == ("homepages", "north", "analyst")
            assert created.state == pb.OPEN
            sent = [batch(created, values_of(700, seed), sequence=seed, seed=seed) for seed in range(5)]
            receipts = await fleet.submit(*sent)
            assert [(r.sequence, r.status, r.counted) for r in receipts] == [(s, pb.COUNTED, 700) for s in range(5)]
            found = await analyst.estimate()
            oracle = mechanism(created.rounds[0])
            expected = Aggregator(oracle)
            for each in sent:
                expected.add(oracle.read(each.reports))
            estimate = expected.estimate()
            assert isinstance(estimate, Estimate)
            np.testing.assert_array_equal(found.counts, estimate.counts)
            np.testing.assert_array_equal(found.variances, estimate.variances)
            assert not found.codes.size
            head = found.head
            assert (head.reports, head.values, head.final, head.kind) == (3500, 8, False, "counts")
            assert head.counters.counted == 3500
            assert found.last == [True]
            best = await analyst.estimate(most=3, post_processing="norm-sub")
            assert isinstance(oracle, FrequencyOracle)
            processed = consistent(estimate, oracle, "norm-sub").counts
            np.testing.assert_array_equal(best.codes, np.argsort(-processed, kind="stable")[:3])
            np.testing.assert_array_equal(best.counts, processed[best.codes])

    asyncio.run(test())


def test_a_report_that_is_sent_again_is_counted_once_also_after_a_restart(tmp_path: Path) -> None:
    async def test() -> None:
        async with running(tmp_path) as world:
            analyst, fleet = world.analyst, world.caller("fleet")
            created = await analyst.create(spec_of(access=FLEET))
            first, second = (batch(created, values_of(100, seed), seed=seed) for seed in (1, 2))
            await fleet.submit(first)
            again = await fleet.submit(first, second)
            assert [(r.status, r.counted) for r in again] == [(pb.DUPLICATE, 0), (pb.COUNTED, 100)]
            await world.restart()
            (receipt,) = await world.caller("fleet").submit(second)
            assert receipt.status == pb.DUPLICATE
            told = await world.analyst.describe()
            assert (told.id, told.counters.counted, told.counters.duplicate) == (created.id, 200, 200)
            mixed = batch(created, values_of(100, 3), seed=3)
            both = pb.ReportBatch(
                collection="homepages",
                round=0,
                pseudonyms=mixed.pseudonyms[:-32] + first.pseudonyms[:32],
                reports=mixed.reports,
            )
            (receipt,) = await world.caller("fleet").submit(both)
            assert list(receipt.statuses) == [pb.COUNTED] * 98 + [pb.DUPLICATE] * 2
            assert receipt.counted == 98

    asyncio.run(test())


def test_labels_go_apart_from_the_specification(tmp_path: Path) -> None:
    labels = [f"page {i} é" for i in range(3000)]

    async def test() -> None:
        async with running(tmp_path) as world:
            analyst, phone = world.analyst, world.caller("phone")
            spec = spec_of(size=3000, labelled=True, mechanism="hr")
            created = await analyst.create(spec, labels_of(labels))
            parts = [part.labels async for part in phone.stub.Domain(pb.DomainRequest(collection="homepages"))]
            assert b"".join(parts) == labels_of(labels)
            told = await phone.describe()
            assert told.domain_digest == created.domain_digest
            assert not told.HasField("counters")
            domain = Domain.of(labels)
            (receipt,) = await phone.submit(batch(told, ["page 7 é"], domain=domain))
            assert receipt.status == pb.COUNTED
            assert len((await analyst.estimate()).counts) == 3000
            wrong = await refused(
                analyst.create(spec_of(name="other", size=3000, labelled=True), labels_of(labels[1:]))
            )
            assert "has 3,000 values, but 2,999 labels came" in wrong.sentence

    asyncio.run(test())


def test_open_domains_means_and_texts(tmp_path: Path) -> None:
    async def test() -> None:
        async with running(tmp_path) as world:
            analyst, fleet = world.analyst, world.caller("fleet")
            sfp = await analyst.create(
                spec_of(name="words", mechanism="sfp", epsilon="8.0", text_bytes=2, k=2, access=FLEET)
            )
            await fleet.submit(batch(sfp, ["hi"] * 6000 + ["yo"] * 3000))
            found = await analyst.estimate("words")
            assert found.head.kind == "found"
            assert [value for value, _, _ in found.found] == ["hi", "yo"]
            mean = await analyst.create(
                spec_of(name="speed", mechanism="1bit-mean", parameters={"low": 0, "high": 10}, access=FLEET)
            )
            await fleet.submit(batch(mean, [4.0] * 5000))
            found = await analyst.estimate("speed")
            assert (found.head.kind, len(found.counts)) == ("mean", 1)
            assert abs(found.counts[0] - 4) < 6 * np.sqrt(found.variances[0]) < 2
            rappor = await analyst.create(
                spec_of(
                    name="sites", mechanism="rappor", epsilon="4.0", parameters={"bits": 64, "cohorts": 8}, access=FLEET
                )
            )
            await fleet.submit(batch(rappor, ["a.example"] * 3000 + ["b.example"] * 1000))
            found = await analyst.estimate("sites", candidates=b"c.example\nb.example\na.example\n")
            assert found.head.kind == "found"
            assert [value for value, _, _ in found.found[:2]] == ["a.example", "b.example"]
            assert (
                await refused(read_all(analyst.stub.Estimate(pb.FrequencyRequest(collection="sites"))))
            ).sentence.endswith("give candidates")

    asyncio.run(test())


async def read_all(call: AsyncIterable[pb.EstimatePart]) -> list[pb.EstimatePart]:
    """All parts of an answer."""
    return [part async for part in call]


def test_windows_follow_each_other_and_take_late_reports_within_their_grace(tmp_path: Path) -> None:
    async def test() -> None:
        clock = [1_800_000_000.0]
        async with running(tmp_path, now=lambda: clock[0]) as world:
            analyst, fleet = world.analyst, world.caller("fleet")
            created = await analyst.create(spec_of(window={"length": "1h", "grace": "10m"}, access=FLEET))
            early = pb.ReportBatch(collection="homepages", round=1, pseudonyms=bytes(16), reports=b"")
            (receipt,) = await fleet.submit(early)
            assert (receipt.status, receipt.message) == (
                pb.EARLY,
                "round 1 of the collection 'homepages' has not begun",
            )
            clock[0] += 3600 + 60
            told = await analyst.describe()
            assert [r.number for r in told.rounds] == [0, 1]
            late_but_in_grace = batch(created, values_of(50), seed=1)
            now = batch(told, values_of(70), round_=1, seed=1)
            receipts = await fleet.submit(late_but_in_grace, now)
            assert [r.counted for r in receipts] == [50, 70]
            clock[0] += 600
            (receipt,) = await fleet.submit(batch(created, values_of(10), seed=2))
            assert receipt.status == pb.LATE
            told = await analyst.describe()
            assert ([r.number for r in told.rounds], told.rounds_ended) == ([1], 1)
            assert (told.counters.late, told.counters.early) == (10, 1)
            assert (await analyst.estimate()).head.reports == 70
            ended = (await analyst.estimate(round=0)).head
            assert (ended.final, ended.reports, ended.at) == (True, 50, clock[0])
            closed = await analyst.close()
            assert (closed.state, list(closed.rounds), closed.rounds_ended) == (pb.CLOSED, [], 2)
            (receipt,) = await fleet.submit(batch(told, values_of(10), seed=3))
            assert (receipt.status, receipt.message) == (pb.REFUSED, "the collection 'homepages' is closed")
            assert (await analyst.estimate(round=1)).head.final

    asyncio.run(test())


def test_a_search_finds_what_is_frequent_round_by_round(tmp_path: Path) -> None:
    async def test() -> None:
        clock = [1_800_000_000.0]
        async with running(tmp_path, now=lambda: clock[0]) as world:
            analyst, fleet = world.analyst, world.caller("fleet")
            spec = spec_of(
                mechanism="prefix-extending",
                epsilon="6.0",
                text_bytes=2,
                k=2,
                parameters={"groups": 2},
                window={"length": "1h", "periods": 1},
                access=FLEET,
            )
            told = await analyst.create(spec)
            assert [(r.number, r.period, r.purpose) for r in told.rounds] == [(0, 0, "prefixes")]
            await fleet.submit(batch(told, ["hi"] * 2000 + ["yo"] * 1000, seed=1))
            so_far = await analyst.estimate()
            assert {value[0] for value, _, _ in so_far.found} == {"h", "y"}
            assert all(value.endswith("…") for value, _, _ in so_far.found)
            clock[0] += 3600
            told = await analyst.describe()
            assert [(r.number, r.period) for r in told.rounds] == [(1, 0)]
            (receipt,) = await fleet.submit(batch(told, ["hi"] * 10, seed=1))
            assert (receipt.counted, receipt.status) == (0, pb.DUPLICATE)  # a client reports once in a search
            await fleet.submit(batch(told, ["hi"] * 2000 + ["yo"] * 1000, seed=2))
            clock[0] += 3600
            told = await analyst.describe()
            assert told.state == pb.CLOSED
            found = await analyst.estimate()
            assert [value for value, _, _ in found.found] == ["hi", "yo"]
            assert found.head.final

    asyncio.run(test())


def test_continual_release_publishes_and_repeats(tmp_path: Path) -> None:
    async def test() -> None:
        clock = [1_800_000_000.0]
        async with running(tmp_path, now=lambda: clock[0]) as world:
            analyst, fleet = world.analyst, world.caller("fleet")
            spec = spec_of(epsilon="6.0", window={"length": "10s"}, continual={"method": "lba", "w": 2}, access=FLEET)
            await analyst.create(spec)
            request = pb.WatchFrequencyRequest(what=pb.FrequencyRequest(collection="homepages"), every=0.01)
            watched = asyncio.create_task(read_all(analyst.stub.Watch(request)))
            seen = []
            for tick in range(24):
                told = await analyst.describe()
                for place, round_ in enumerate(told.rounds):
                    value = 0 if tick < 12 else 5
                    await fleet.submit(batch(told, [value] * 4000, round_=place, seed=round_.number))
                clock[0] += 2.5
                if tick > 3:
                    found = await analyst.estimate()
                    seen.append((int(found.counts.argmax()), found.head.fresh))
            assert seen[0] == (0, True)
            assert (0, False) in seen
            assert seen[-1][0] == 5
            assert {round_.purpose for round_ in told.rounds} <= {"dissimilarity", "publication"}
            await analyst.close()
            heads = [part.head for part in await watched]
            assert all(head.final for head in heads)
            assert {head.fresh for head in heads} == {True, False}
            steps = [head.round.step for head in heads]
            assert steps == sorted(set(steps))  # one release a step

    asyncio.run(test())


def test_a_watch_tells_the_newest_and_ends_with_the_collection(tmp_path: Path) -> None:
    async def test() -> None:
        async with running(tmp_path) as world:
            analyst, fleet = world.analyst, world.caller("fleet")
            created = await analyst.create(spec_of(access=FLEET))
            request = pb.WatchFrequencyRequest(what=pb.FrequencyRequest(collection="homepages"), every=0.01)
            call = analyst.stub.Watch(request)
            await fleet.submit(batch(created, values_of(100), seed=0))
            parts = aiter(call)
            first = await anext(parts)
            assert (first.head.reports, first.last) == (100, True)
            for seed in range(1, 40):  # far more often than it is told
                await fleet.submit(batch(created, values_of(100), seed=seed))
            await analyst.close()
            heads = [part.head async for part in parts]
            assert (heads[-1].reports, heads[-1].final) == (4000, True)
            assert len(heads) < 40
            told = [(head.reports, head.final) for head in heads]
            assert told == sorted(set(told))

    asyncio.run(test())


@pytest.mark.parametrize(
    ("first", "told"), [(None, [3, 4]), (0, [0, 1, 3, 4]), (2, [3, 4]), (4, [4]), (10**18, [4])], ids=str
)
def test_a_watch_that_begins_late_tells_what_it_missed(tmp_path: Path, first: int | None, told: list[int]) -> None:
    """Round 2 has no report; the watch begins in round 4."""
    clock = [1_800_000_000.0]

    async def test() -> None:
        async with running(tmp_path, now=lambda: clock[0]) as world:
            analyst, fleet = world.analyst, world.caller("fleet")
            created = await analyst.create(spec_of(window={"length": "1h"}, access=FLEET))
            for number in range(5):
                if number != 2:
                    (receipt,) = await fleet.submit(batch(created, values_of(10), seed=number))
                    assert receipt.counted == 10
                clock[0] += 3600 if number < 4 else 0
                created = await analyst.describe()
            what = pb.FrequencyRequest(collection="homepages")
            call = analyst.stub.Watch(pb.WatchFrequencyRequest(what=what, every=0.01, first=first))
            heads = []
            async for part in call:
                heads.append(part.head)
                if not part.head.final:
                    await analyst.close()
            assert [(head.round.number, head.final) for head in heads] == [
                *((number, True) for number in told[:-1]),
                (4, False),
                (4, True),
            ]

    asyncio.run(test())


def test_an_export_is_complete_and_its_states_merge(tmp_path: Path) -> None:
    async def test() -> None:
        clock = [1_800_000_000.0]
        async with running(tmp_path, now=lambda: clock[0]) as world:
            analyst, fleet = world.analyst, world.caller("fleet")
            labels = ["plain", 'a "quoted", one', "ünïcode", "d"]
            spec = spec_of(size=4, labelled=True, window={"length": "1h"}, access=FLEET)
            told = await analyst.create(spec, labels_of(labels))
            domain = Domain.of(labels)
            await fleet.submit(batch(told, labels * 30, domain=domain))
            clock[0] += 3600
            told = await analyst.describe()
            await fleet.submit(batch(told, labels * 20, domain=domain))
            files = await analyst.export(states=True)
            assert sorted(files) == ["collection.json", "estimates.csv", "round-0.state", "round-1.state"]
            table = list(csv.DictReader(io.StringIO(files["estimates.csv"].decode())))
            assert [(row["round"], row["value"]) for row in table] == [(str(n), v) for n in (0, 1) for v in labels]
            oracle = mechanism(told.rounds[0], domain)
            states = [Aggregator.from_bytes(files[f"round-{n}.state"], oracle) for n in (0, 1)]
            assert [len(state) for state in states] == [120, 80]
            estimate = states[0].estimate()
            assert isinstance(estimate, Estimate)
            assert [float(row["estimate"]) for row in table[:4]] == estimate.counts.tolist()
            low, high = estimate.intervals()
            np.testing.assert_allclose([float(row["low"]) for row in table[:4]], low)
            np.testing.assert_allclose([float(row["high"]) for row in table[:4]], high)
            assert {row["final"] for row in table[:4]} == {"true"}
            assert {row["final"] for row in table[4:]} == {"false"}
            assert len(states[0].merge(states[1])) == 200
            content = json.loads(files["collection.json"])
            assert (content["schema"], content["state"], len(content["rounds"])) == ("comine.collection/1", "open", 2)
            assert content["counters"]["counted"] == 200
            assert sorted(await analyst.export()) == ["collection.json", "estimates.csv"]

    asyncio.run(test())


def test_old_rounds_are_forgotten_but_for_their_numbers(tmp_path: Path) -> None:
    async def test() -> None:
        clock = [1_800_000_000.0]
        async with running(tmp_path, now=lambda: clock[0]) as world:
            analyst, fleet = world.analyst, world.caller("fleet")
            told = await analyst.create(spec_of(window={"length": "1h", "retention": "2h"}, access=FLEET))
            await fleet.submit(batch(told, values_of(50)))
            for _ in range(5):
                clock[0] += 3600
                told = await analyst.describe()
            assert told.counters.counted == 50
            gone = await refused(read_all(analyst.stub.Estimate(pb.FrequencyRequest(collection="homepages", round=0))))
            assert gone.sentence == "the collection 'homepages' at north has no round 0, or not any more"

    asyncio.run(test())
