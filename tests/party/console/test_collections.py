"""Pages of collections of a node that runs: what a coordinator reads of them, and no open round."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import numpy as np

from coordinator.frequency.listing import listed
from coordinator.frequency.reading import read
from coordinator.frequency.service import FrequencyNode
from jobs.collections.estimates import Asked, largest_first
from jobs.collections.reading import as_data, collection_as_data
from jobs.collections.spec import labels_of
from ldp.domain import Domain
from party.config import PartyConfig
from party.console import collections
from party.services.frequency.beside import collections_of
from protos.v1.frequency_pb2 import FrequencyRequest
from tests.errors import fails
from tests.party.console.content import content
from tests.party.services.frequency.nodes import POLICY, batch, running
from tests.party.services.frequency.specs import spec_of

T0 = 1_800_000_000.0
LABELS = ("milk", "evil <b>", "tea", "jam")
ACCESS = {"gateways": {"fleet": 100_000}}
ONE = "/collections/{collection}"


def test_they_show_what_a_coordinator_reads_of_rounds_that_have_ended(tmp_path: Path) -> None:
    clock = [T0]
    values, domain = np.repeat(np.arange(4), [60, 40, 20, 10]), Domain.of(LABELS)
    pages = collections.pages(tmp_path / "north.toml")

    async def test() -> None:
        async with running(tmp_path, f"{POLICY}\nmin_reports = 100", now=lambda: clock[0]) as world:
            analyst, fleet = world.analyst, world.caller("fleet")
            spec = spec_of(size=4, labelled=True, window={"length": "1h"}, access=ACCESS)
            await analyst.create(spec, labels_of(LABELS))
            for number in range(4):  # the third has too few reports, and the last goes on
                created = await analyst.describe()
                sent = values[:20] if number == 2 else np.roll(values, number)
                labels = [LABELS[code] for code in sent]
                await fleet.submit(batch(created, labels, domain=domain, sequence=number, seed=number))
                clock[0] += 3600 * (number < 3)
            node = FrequencyNode(analyst.identity, "north", world.address)
            described = await node.describe("homepages")
            request = FrequencyRequest(collection="homepages", round=1)
            reading = await read(node, described, request, Asked(), history=True)
            await node.close()
            listing = await listed(analyst.identity, {"north": world.address})

            with collections_of(PartyConfig.load(tmp_path / "north.toml")) as kept:
                assert kept is not None
                found = kept.reading("homepages", None)
                assert found is not None
                assert as_data(found) == as_data(reading)
                assert [each.stored.number for each in kept.ended("homepages")] == [2, 1, 0]
            (shown,) = content(pages, "/collections", {})["collections"].rows
            assert {key: shown[key] for key in collection_as_data(*listing.collections[0])} == collection_as_data(
                *listing.collections[0]
            )
            assert shown["spends"] == "1"
            one = content(pages, ONE, {}, collection="homepages")
            assert list(one["values"].rows) == largest_first(reading.rows)
            assert [row[1] for row in one["rounds"]] == ["130", "130"]
            assert "ε = 1" in one["facts"][0]
            rounds = content(pages, f"{ONE}/rounds", {}, collection="homepages")["rounds"].rows
            assert [(row["number"], row["reports"], row["shown"]) for row in rounds] == [
                (2, 20, False),
                (1, 130, True),
                (0, 130, True),
            ]
            for query, code in (({"round": "3"}, "E100"), ({"round": "2"}, "E300"), ({"round": "x"}, "E001")):
                with fails(code):
                    content(pages, ONE, query, collection="homepages")
            with fails("E100"):
                content(pages, ONE, {}, collection="elsewhere")

    asyncio.run(test())
    asked: dict[str, Any] = {"collection": "homepages"}
    assert content(pages, ONE, {"round": "0"}, **asked)["reports"] == 130  # the node has stopped


def test_a_node_without_the_service_has_none(tmp_path: Path) -> None:
    async def test() -> None:
        async with running(tmp_path, None):
            pages = collections.pages(tmp_path / "north.toml")
            found = content(pages, "/collections", {})
            assert (found["collections"].total, found["serves"]) == (0, False)
            with fails("E001"):
                content(pages, ONE, {}, collection="homepages")

    asyncio.run(test())
