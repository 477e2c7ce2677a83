"""Runs of releases at a node: all algorithms, their ends, and who waits for whom."""

from __future__ import annotations

import asyncio
import json
import signal
from pathlib import Path
from typing import Any

import grpc
import pytest

from coordinator.anonymisation.releases import listing_as_data
from tests.examples import in_turn
from tests.integration.anonymization.patients import DATASET, PATIENTS, World, ended, left_over, running, stalled, until
from tests.integration.processes import Organisations
from tests.party.nodes import refused

LEVELS: Any = {"values": [["flu", "cold"], ["fever"], ["cancer"]], "weights": ["0.1", "0.3", "1"]}
ALGORITHMS: list[dict[str, Any]] = [
    {"algorithm": name} for name in ("samarati", "incognito", "optimal", "datafly", "local-recoding", "mondrian")
] + [
    {"algorithm": "mdav", "quasi_identifiers": ["age"]},
    {"algorithm": "condensation", "quasi_identifiers": ["age"], "sensitive": [], "max_suppression": 0},
    {"algorithm": "gpkc", "model": {"k": 5, "p": 2}},
    {"algorithm": "maa-slie", "model": {"k": 5, "p": 2}, "levels": LEVELS},
    {
        "algorithm": "ppir",
        "model": {},
        "quasi_identifiers": ["age"],
        "ppir": {"ranges": {"age": 3}},
    },
    {"model": {"k": 5, "l": [{"kind": "entropy", "value": 2}], "alpha": 0.6, "H": 2, "delta": 9}, "levels": LEVELS},
    {"model": {"k": 5, "t": [{"distance": "hierarchical", "value": 0.5}], "beta": 9}},
]


@pytest.mark.slow
def test_all_algorithms_and_models_arrive_and_are_what_was_asked(tmp_path: Path) -> None:
    names = [each["algorithm"] for each in ALGORITHMS if "algorithm" in each]
    dataset = (
        DATASET.replace('["optimal", "mondrian"]', json.dumps(names))
        .replace('["l"]', '["l", "t", "p", "alpha", "H", "beta", "delta"]')
        .replace("max_releases = 3", "max_releases = 99")
        + 'disease = { builder = "grouping", groups = [{ mild = ["flu", "cold", "fever"], bad = ["cancer"] }] }\n'
        '[dataset.anonymization.levels]\nvalues = [["flu", "cold"], ["fever"], ["cancer"]]\nweights = [0.1, 0.3, 1]\n'
    )
    # A hierarchy ends in one value.
    dataset = dataset.replace('bad = ["cancer"] }]', 'bad = ["cancer"] }, { "*" = ["mild", "bad"] }]')

    async def test() -> None:
        async with running(tmp_path, dataset) as world:
            (listed,) = listing_as_data("north", await world.hub.datasets())["datasets"]
            assert listed["levels"] == LEVELS
            for keys in in_turn(ALGORITHMS, 5):
                certificate = await world.hub.fetch(world.request(**keys), tmp_path / "out")
                assert certificate.algorithm == keys.get("algorithm", "optimal")
                assert certificate.hashes.input is None
                assert certificate.replacement is None or certificate.replacement.omitted is None

    asyncio.run(test())


def test_who_hangs_up_ends_the_run(tmp_path: Path) -> None:
    async def test() -> None:
        async with running(tmp_path) as world:
            stalled(tmp_path)
            runs = world.node.anonymization.releases.runs
            assert runs is not None
            call = world.stub("hub").Anonymize(world.request())
            waiting = asyncio.ensure_future(ended(call))
            (process,) = await until(lambda: list(runs.processes))
            call.cancel()
            with pytest.raises(asyncio.CancelledError):
                await waiting
            await until(lambda: process.returncode is not None and not runs.processes)
            assert process.returncode == -signal.SIGKILL
            await until(lambda: not left_over(tmp_path))
            (tmp_path / "patients.csv").unlink()
            (tmp_path / "patients.csv").write_text(PATIENTS)
            await world.hub.fetch(world.request(), tmp_path / "out")

    asyncio.run(test())


def test_a_dataset_has_one_run_at_a_time_and_a_coordinator_few(tmp_path: Path) -> None:
    async def test() -> None:
        async with running(tmp_path) as world:
            stalled(tmp_path)
            runs = world.node.anonymization.releases.runs
            assert runs is not None
            hub = world.stub("hub")
            calls = [hub.Anonymize(world.request()) for _ in range(4)]
            waiting = [asyncio.ensure_future(ended(call)) for call in calls]
            await until(lambda: len(left_over(tmp_path)) == 4 and runs.processes)
            assert len(runs.processes) == 1
            found = await refused(ended(hub.Anonymize(world.request())))
            assert (found.code, "as many as it may" in found.sentence) == ("E403", True)
            for call in calls:
                call.cancel()
            await asyncio.gather(*waiting, return_exceptions=True)
            await until(lambda: not left_over(tmp_path) and not runs.processes)

    asyncio.run(test())


def test_runs_are_bounded_in_time_and_memory(tmp_path: Path) -> None:
    lines = "".join(f"p{i},n,{i % 60},{'fm'[i % 2]},{'d' * 200}{i}\n" for i in range(250_000))

    async def test() -> None:
        bounded = DATASET.replace("min_k", 'max_memory = 256\nmax_time = "30s"\nmin_k')
        async with running(tmp_path, bounded, "id,name,age,sex,disease\n" + lines) as world:
            found = await refused(ended(world.stub("hub").Anonymize(world.request())))
            assert (found.code, "memory" in found.sentence) == ("E103", True)
        (tmp_path / "north.toml").write_text((tmp_path / "north.toml").read_text().replace('"30s"', '"1s"'))
        stalled(tmp_path)
        again = World(Organisations(tmp_path, {}, world.authority))
        await again.start()
        try:
            found = await refused(ended(again.stub("hub").Anonymize(again.request())))
            assert (found.status, found.code) == (grpc.StatusCode.DEADLINE_EXCEEDED, "E600")
        finally:
            await again.stop()

    asyncio.run(test())


def test_a_node_that_stops_ends_its_runs_and_says_so(tmp_path: Path) -> None:
    async def test() -> None:
        async with running(tmp_path) as world:
            stalled(tmp_path)
            waiting = asyncio.ensure_future(refused(ended(world.stub("hub").Anonymize(world.request()))))
            await until(lambda: world.node.anonymization.releases.runs.processes)
            await world.node.anonymization.stop()
            found = await waiting
            assert (found.code, "is being stopped" in found.sentence) == ("E200", True)

    asyncio.run(test())
