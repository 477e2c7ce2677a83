"""A collection that is deleted leaves nothing behind but what the audit log tells of it."""

from __future__ import annotations

import asyncio
import json
import sqlite3
from pathlib import Path

import pytest

from jobs.collections.spec import labels_of
from ldp.domain import Domain
from party.config import AUDIT_LOG
from party.services.frequency.storage.refusals import WHOLE
from party.services.frequency.storage.store import FILE
from protos.v1 import frequency_pb2 as pb
from tests.party.nodes import refused
from tests.party.services.frequency.nodes import batch, running
from tests.party.services.frequency.specs import spec_of
from tests.party.services.frequency.storage.storing import collection, on_disk, store_in

LABELS = ["a very rare label", "another"]
TABLES = ("collections", "periods", "rounds", "segments", "taken", "refusals")


def test_nothing_is_left_of_a_deleted_collection_and_its_name_is_free(tmp_path: Path) -> None:
    state = tmp_path / "state" / "north"

    async def test() -> None:
        async with running(tmp_path) as world:
            analyst, fleet = world.analyst, world.caller("fleet")
            spec = spec_of(size=2, labelled=True, access={"gateways": {"fleet": 100}})
            first = await analyst.create(spec, labels_of(LABELS))
            reports = batch(first, [LABELS[0]] * 5, domain=Domain.of(LABELS))
            assert [each.counted for each in await fleet.submit(reports, reports)] == [5, 0]
            is_open = await refused(analyst.delete())
            assert (is_open.code, "close it first" in is_open.sentence) == ("E100", True)
            await analyst.close()
            await analyst.delete()
            assert "has no collection 'homepages'" in (await refused(analyst.describe())).sentence
            assert "has no collection 'homepages'" in (await refused(analyst.delete())).sentence
            (late,) = await fleet.submit(reports)
            assert late.status == pb.REFUSED
            with sqlite3.connect(state / FILE) as database:
                for table in TABLES:
                    assert database.execute(f"SELECT count(*) FROM {table}").fetchone() == (0,), table
            for path in state.glob(f"{FILE}*"):
                assert LABELS[0].encode() not in path.read_bytes()

            second = await analyst.create(spec_of(access={"gateways": {"fleet": 100}}))
            assert second.id != first.id
            assert second.counters == pb.Counters()
            await fleet.submit(batch(second, [1] * 3))
            await world.restart()
            assert [each.id for each in (await world.analyst.stub.List(pb.ListCollectionsRequest())).collections] == [
                second.id
            ]
            assert (await world.analyst.estimate()).head.reports == 3

    asyncio.run(test())
    told = map(json.loads, (state / AUDIT_LOG).read_bytes().splitlines())
    (deleted,) = [line["fields"] for line in told if line["event"] == "collection-deleted"]
    assert deleted == {"collection": "homepages", "by": "analyst"}


def test_what_is_refused_while_a_collection_is_deleted_is_nobody_elses(tmp_path: Path) -> None:
    store = store_in(tmp_path)
    store.create(collection())
    store.close_collection("homepages", 2.0)
    store.refuse("homepages", None, "malformed", 7)
    ((row,),) = on_disk(tmp_path, "SELECT row FROM collections")
    store.delete_collection("homepages")
    store.writer.refuse((row, WHOLE), "malformed", 3)  # on its way since before
    store.create(collection())
    assert store.counters("homepages").malformed == 0
    store.close()
    store = store_in(tmp_path)
    assert store.counters("homepages").malformed == 0
    assert on_disk(tmp_path, "SELECT count(*) FROM refusals") == [(0,)]
    store.close()


def test_an_open_collection_is_not_deleted(tmp_path: Path) -> None:
    store = store_in(tmp_path)
    store.create(collection())
    with pytest.raises(RuntimeError, match="close a collection before"):
        store.delete_collection("homepages")
    assert len(store.collections()) == 1
    store.close()
