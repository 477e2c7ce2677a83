"""What a shuffler tells the node's audit log, and what it may take of the node's disk."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from crypto.primitives.sealed import public_key_of
from ldp.shuffling.onion import wrap
from party.services.shuffler import policy
from party.services.shuffler.store import FILE, ShufflerStore
from protos.v1 import shuffle_pb2 as pb
from tests.integration.processes import command
from tests.party.nodes import refused
from tests.party.services.shuffler.nodes import COLLECTOR_KEY, POLICY, World, numbered, numbers, route_for, running


def told(world: World, name: str) -> list[tuple[str, dict[str, Any]]]:
    """What the audit log has of routes."""
    lines = (world.folder / "state" / name / "audit.log").read_text().splitlines()
    entries = [(entry["event"], entry["fields"]) for entry in map(json.loads, lines)]
    return [(event, fields) for event, fields in entries if "route" in fields]


def test_the_audit_log_tells_what_became_of_batches_and_never_of_reports(tmp_path: Path) -> None:
    async def test() -> None:
        async with running(tmp_path) as world:
            route = route_for()
            sealed = await world.sealed(route, range(12))
            fleet, analyst = world.caller("fleet"), world.analyst()
            await fleet.submit([*sealed[:8], sealed[0], b"short"])
            await analyst.flush()
            (found,) = await world.opened(route, 1)
            assert sorted(numbers(found.reports)) == list(range(8))
            await world.analyst("south").collect(after=1)  # which says that it has kept the first
            await fleet.submit(sealed[8:])  # too few for a batch
            await analyst.retire()
            await analyst.retire()  # says nothing more
            for name in ("north", "south"):
                assert command("audit", "verify", f"{name}.toml", cwd=tmp_path).code == 0
            north, south = told(world, "north"), told(world, "south")
            created = {"route": "weekly", "coordinator": "analyst", "document_digest": route.digest.hex()}
            batch = {"route": "weekly", "batch": 1}
            assert north == [
                ("route-created", created),
                ("batch-closed", {**batch, "received": 10, "dropped": 2, "withheld": 0, "forwarded": 8}),
                ("batch-forwarded", {**batch, "to": "south", "reports": 8}),
                ("route-retired", {"route": "weekly", "by": "analyst", "discarded": 4}),
            ]
            assert south == [
                ("route-created", created),
                ("batch-closed", {**batch, "received": 8, "dropped": 0, "withheld": 0, "forwarded": 8}),
                ("batch-forwarded", {**batch, "to": "coordinator/analyst", "reports": 8}),
            ]

    asyncio.run(test())


def test_what_is_discarded_since_too_few_are_left_is_told(tmp_path: Path) -> None:
    async def test() -> None:
        async with running(tmp_path) as world:
            route = route_for()
            keys = await world.create(route)
            # only the first layer is good: the second shuffler cannot read two of six, and four are too few
            bad = wrap(numbered(range(2)), route, [keys[0], public_key_of(COLLECTOR_KEY)])
            good = wrap(numbered(range(2, 6)), route, keys)
            await world.caller("fleet").submit([*bad, *good])
            await world.analyst().flush()
            await world.batches(route, 1)
            (closed,) = [fields for event, fields in told(world, "south") if event == "batch-closed"]
            counts = {"received": 6, "dropped": 2, "withheld": 4, "forwarded": 0}
            assert closed == {"route": "weekly", "batch": 1, **counts}

    asyncio.run(test())


@pytest.mark.slow
def test_beyond_max_disk_nothing_is_taken_and_what_waits_still_leaves(tmp_path: Path) -> None:
    table = f"{POLICY}\nmax_disk = {1 << 20}"

    async def test() -> None:
        async with running(tmp_path, ["north"], policy=table) as world:
            route = route_for(["north"])
            fleet, analyst = world.caller("fleet"), world.analyst()
            taken = 0
            store = world.nodes["north"].shuffler.running.store  # type: ignore[union-attr]
            store.most_bytes //= 4  # less than policies may say, so that few reports fill it
            while not store.is_full:
                sealed = await world.sealed(route, range(taken, taken + 400))
                taken += len(await fleet.submit(sealed, step=400))
                assert taken < 5_000, "the disk was never full"
            more = await world.sealed(route, range(taken, taken + 400))
            refusal = await refused(fleet.submit(more))
            assert (refusal.code, refusal.party) == ("E103", "north")
            assert (
                "the routes of north take as much of the disk as its policy allows (rule max_disk)" in refusal.sentence
            )
            other = await refused(analyst.create(route_for(["north"], name="other", id=bytes(16))))
            assert "rule max_disk" in other.sentence
            await analyst.flush()
            (found,) = await world.opened(route, 1)
            assert sorted(numbers(found.reports)) == list(range(taken))
            await analyst.collect(after=1)
            assert set(await fleet.submit(more[:10])) == {pb.TAKEN}  # there is room again

    asyncio.run(test())


def test_beyond_max_memory_no_report_is_taken_until_a_route_is_retired(tmp_path: Path) -> None:
    table = f"{POLICY}\nmax_memory = 1024"

    async def test() -> None:
        async with running(tmp_path, ["north"], policy=table) as world:
            first, second = route_for(["north"]), route_for(["north"], name="other", id=bytes(16))
            fleet, analyst = world.caller("fleet"), world.analyst()
            await fleet.submit(await world.sealed(first, range(40)))
            more = await world.sealed(second, range(10))
            refusal = await refused(fleet.submit(more, "other"))
            assert (refusal.code, refusal.party) == ("E103", "north")
            assert "(rule max_memory)" in refusal.sentence
            await analyst.flush()
            await refused(fleet.submit(more, "other"))  # what has left may come again
            await analyst.retire()
            assert set(await fleet.submit(more, "other")) == {pb.TAKEN}

    asyncio.run(test())


def test_a_second_shuffler_without_room_gets_the_batch_later(tmp_path: Path) -> None:
    async def test() -> None:
        async with running(tmp_path) as world:
            route = route_for()
            sealed = await world.sealed(route, range(10))
            store = world.nodes["south"].shuffler.running.store  # type: ignore[union-attr]
            store.most_bytes = 1
            await world.caller("fleet").submit(sealed)
            await world.analyst().flush()
            async with asyncio.timeout(60):
                while '"event": "batch not forwarded"' not in world.logs["north"].getvalue():  # noqa: ASYNC110
                    await asyncio.sleep(0.05)
            assert "rule max_disk" in world.logs["north"].getvalue()
            store.most_bytes = 1 << 30
            (found,) = await world.opened(route, 1)
            assert sorted(numbers(found.reports)) == list(range(10))

    asyncio.run(test())


def test_the_bound_is_of_what_is_used_and_not_of_the_file(tmp_path: Path) -> None:
    store = ShufflerStore.open(tmp_path / FILE, most_bytes=1)
    assert store.is_full
    store.close()
    store = ShufflerStore.open(tmp_path / FILE)
    assert not store.is_full
    store.close()
    assert policy.ShufflerSection().max_disk == 10 << 30
