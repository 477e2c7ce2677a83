"""Jobs under noise that die among nodes: broken off five times they show what one run shows, and are charged once."""

from __future__ import annotations

import asyncio
import json
import sqlite3
import time
from collections.abc import Mapping
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from coordinator.jobs.lifecycle import State
from coordinator.jobs.records.store import Store
from coordinator.jobs.runner import resume_job, run_job
from jobs.audit.checks.verification import verification
from jobs.report.job_file import job_file
from jobs.spec.job import JobSpec
from link.errors import ConfigurationError, PeerError
from link.pki.trust import Trust
from link.version import WIRE_VERSION, software_version
from party.state.journals import Journals
from tests.errors import fails
from tests.examples import in_turn
from tests.integration.faults.failing import unwrap
from tests.integration.faults.test_resume import dies_at
from tests.integration.processes import Organisations, command
from tests.mining.joint.distributed.test_distributed_jobs import job as noisy_job
from tests.mining.joint.hybrid.hybrid_world import ITEMS, PARTIES, baskets, job
from tests.party.nodes import Nodes, running

pytestmark = pytest.mark.slow

DATA = {party: [row for row in baskets(130, place) if row] for place, party in enumerate(PARTIES)}
NOISY = noisy_job(privacy={"epsilon": "6"})
SHUFFLED = job(privacy={"model": "shuffle", "epsilon": "4", "delta": "1e-4", "shufflers": ["south", "east"]})
BUDGETS = {"distributed": ("6", "1e-6"), "shuffle": ("4", "1e-4")}
"""By model, what one job costs."""


def limited(folder: Path, spec: JobSpec) -> None:
    """South has a budget for one such job."""
    epsilon, delta = BUDGETS[spec.privacy.model]
    table, file = f'[dataset.privacy]\nepsilon = "{epsilon}"\ndelta = "{delta}"\n', folder / "south.toml"
    file.write_text(file.read_text().replace("[policy]", f"{table}[policy]"))


def steps(nodes: Nodes, job_id: bytes) -> dict[str, list[bytes]]:
    """By party, the steps that it keeps, and its secrets."""
    found = {}
    for name, node in nodes.nodes.items():
        journals = Journals.beside(node.store, name)
        journal = journals.resume(job_id, f"{software_version()} {WIRE_VERSION}")
        found[name] = [step.pack() for step in journal.steps()]
    return found


@pytest.mark.parametrize(
    ("spec", "lanes"),
    in_turn(
        [
            (NOISY, ("/task/rows", "/task/items", "/task/level-1", "/task/level-2")),
            (SHUFFLED, ("/task/route", "/task/phase-0", "/task/phase-1", "/task/phase-3")),
        ],
        2,
    ),
    ids=lambda value: value.privacy.model if isinstance(value, JobSpec) else "lanes",
)
def test_a_job_that_is_broken_off_again_and_again_shows_nothing_new(
    tmp_path: Path, spec: JobSpec, lanes: tuple[str, ...]
) -> None:
    """The attack: a coordinator and one party break a job after each step, to see noise a second time."""

    async def test() -> None:
        async with running(tmp_path, data=DATA, prepare=lambda _: limited(tmp_path, spec)) as nodes:
            coordinator, store = nodes.authority.issue("analyst", "coordinator"), Store(tmp_path / "jobs")
            seen: dict[str, list[bytes]] = {name: [] for name in PARTIES}
            for number, lane in enumerate(lanes):
                dies_at(nodes, PARTIES[number % 3], lane)
                broken = partial(resume_job, store.jobs()[0]) if number else partial(run_job, spec, store=store)
                with pytest.raises(PeerError):
                    await broken(identity=coordinator, addresses=nodes.addresses)
                unwrap(nodes.nodes[PARTIES[number % 3]])
                if number == 1:  # a node that dies between attempts has what it had
                    await nodes.crash("south")
                    await nodes.restart("south")
                (folder,) = store.jobs()
                for name, kept in steps(nodes, bytes.fromhex(folder.id)).items():
                    both = min(len(kept), len(seen[name]))
                    assert kept[:both] == seen[name][:both], (number, name)
                    seen[name] = max(kept, seen[name], key=len)
            result = await resume_job(folder, coordinator, nodes.addresses)
            assert result.n_rows
            assert (folder.record().job.state, folder.record().job.attempt) == (State.SUCCEEDED, 5)
            for node in nodes.nodes.values():
                (charged,) = node.ledger.of_job(bytes.fromhex(folder.id))
                assert charged.attempt == 1
                assert sum(node.ledger.spent("baskets").values()) == 1
            with fails("E300", party="south"):  # the budget is for one job, and that has spent it
                await run_job(spec, coordinator, nodes.addresses)
            await nodes.crash("north")
            await nodes.restart("north")
            assert len(nodes.nodes["north"].ledger.of_job(bytes.fromhex(folder.id))) == 1
        logs = sorted((tmp_path / "state").glob("*/audit.log"))
        assert verification(logs, [], Trust(nodes.authority.certificate_pem)).findings == []

    asyncio.run(test())


def test_a_party_that_has_lost_its_coins_draws_no_others(tmp_path: Path) -> None:
    async def test() -> None:
        async with running(tmp_path, data=DATA, prepare=lambda _: limited(tmp_path, NOISY)) as nodes:
            coordinator, store = nodes.authority.issue("analyst", "coordinator"), Store(tmp_path / "jobs")
            dies_at(nodes, "south", "/task/items")
            with pytest.raises(PeerError):
                await run_job(NOISY, coordinator, nodes.addresses, store=store)
            unwrap(nodes.nodes["south"])
            (folder,) = store.jobs()
            north = nodes.nodes["north"]
            Journals.beside(north.store, "north").forget(bytes.fromhex(folder.id))
            with pytest.raises(ConfigurationError, match=r"^north: what was kept of job .* is not there"):
                await resume_job(folder, coordinator, nodes.addresses)

    asyncio.run(test())


def _kept(folder: Path, name: str) -> int:
    with closing(sqlite3.connect(f"file:{folder / 'state' / name / 'node.db'}?mode=ro", uri=True)) as database:
        (number,) = database.execute("SELECT count(*) FROM journal WHERE what GLOB 'step *'").fetchone()
    return int(number)


def test_a_shuffler_that_is_killed_and_the_command_that_goes_on(tmp_path: Path) -> None:
    made = Organisations.create(tmp_path, DATA)
    limited(tmp_path, SHUFFLED)
    (tmp_path / "items").write_text("".join(f"{item}\n" for item in ITEMS))
    (tmp_path / "job.toml").write_text(job_file(SHUFFLED), encoding="utf-8")
    federation = ("--federation", "federation.toml")
    try:
        made.start()
        begun = made.begin("job.toml")
        while _kept(tmp_path, "south") < 2:
            assert begun.popen.poll() is None
            time.sleep(0.002)
        made.nodes["south"].kill()
        lost = begun.end()
        assert (lost.code, "south" in lost.sentence) == (20, True)
        made.start("south")
        resumed = command("job", "resume", SHUFFLED.job.name, *federation, "--out", "out", cwd=tmp_path)
        assert resumed.code == 0, resumed.err
    finally:
        made.stop()
    result: Mapping[str, Any] = json.loads((tmp_path / "out/result.json").read_text())
    assert (result["privacy"]["model"], result["n_rows"]) == ("shuffle", sum(map(len, DATA.values())))
    for party in PARTIES:
        told = json.loads(command("party", "budget", f"{party}.toml", "--json", cwd=tmp_path).out)
        (charged,) = told["datasets"][0]["jobs"]
        assert charged["charged"]["epsilon"] == "4"
    folders = [f"state/{party}" for party in PARTIES]
    checked = command("audit", "verify", "out", *folders, "--ca", "pki/ca.crt", cwd=tmp_path)
    assert checked.code == 0, checked.err
