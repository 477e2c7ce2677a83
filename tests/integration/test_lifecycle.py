"""The life of jobs among real processes: people decide, drivers and nodes die, and jobs end in every phase.

South decides by hand, north and east by policy. Whatever happens in a test, the jobs of the next ones must succeed,
and one at the very end.
"""

from __future__ import annotations

import json
import os
import re
import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from tests.examples import in_turn
from tests.integration.processes import Organisations, Process, Ran, comine, command
from tests.party.nodes import DATA

pytestmark = pytest.mark.slow

SIZES = {"long": 2_000, "middle": 400}  # items of each party: their union takes far longer than a test; or a second
OVER = {"succeeded", "failed", "denied", "cancelled", "expired"}
PATIENCE_S = 90.0


@pytest.fixture(scope="module")
def world(real_groups: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Organisations]:
    folder = tmp_path_factory.mktemp("life")
    made = Organisations.create(folder, DATA)
    for name in DATA:
        file = folder / f"{name}.toml"
        publish = (
            '[dataset.publish]\nrows = 200\nitems = 100\n[dataset.publish.frequent]\n"0.1" = [100]\n"0.01" = [200]\n'
        )
        file.write_text(file.read_text().replace("[policy]", publish + "[policy]", 1))
        for size, items in SIZES.items():
            source = f"{name}-{size}.dat"
            (folder / source).write_text("".join(f"{name}{i}\n" for i in range(items)))
            more = f'[[dataset]]\nname = "{size}"\nkind = "transactions"\nsource = "{source}"\nformat = "basket"\n'
            file.write_text(file.read_text().replace("[policy]", more + "[policy]"))
    south = folder / "south.toml"
    south.write_text(south.read_text().replace('approve = "auto"', 'approve = "manual"'))
    try:
        made.start()
        yield made
        last_job(made)
    finally:
        for job_id in known_jobs(made):
            if state_of(made, job_id) not in OVER:  # a test has failed
                job("cancel", job_id, world=made)
        made.stop()


@pytest.fixture(autouse=True)
def no_drafts(world: Organisations) -> Iterator[None]:
    """After the test no draft of a result is left."""
    yield
    assert not list(world.folder.glob(".*"))


def last_job(world: Organisations) -> None:
    world.job("last.toml")
    process = Process("job", "run", "last.toml", "--out", "last", cwd=world.folder)
    decide(world, process.until("for the approval of south") and latest(world))
    ran = process.end()
    assert (ran.code, ran.out) == (0, ""), ran.err


def job(*words: object, world: Organisations) -> Ran:
    return command("job", *words, cwd=world.folder)


def latest(world: Organisations) -> str:
    """The id of the job that was proposed last."""
    return str(json.loads(job("list", "--json", world=world).out)["jobs"][0]["job_id"])


def status(world: Organisations, job_id: str) -> dict[str, Any]:
    ran = job("status", job_id, "--json", world=world)
    assert ran.code == 0, ran.err
    return dict(json.loads(ran.out))


def decide(
    world: Organisations, job_id: str, *words: str, then: str = "", act: Callable[[], None] | None = None
) -> None:
    """What the person at south does; and what happens as soon as the job is in the state `then`."""
    verb, *more = words or ("approve", "--yes", "--by", "sue")
    decision = ("party", verb, "south.toml", job_id[:8], *more)
    if not then:
        ran = command(*decision, cwd=world.folder)
    else:
        person = Process(*decision, cwd=world.folder)
        try:
            until(world, job_id, then)
            if act is not None:
                act()
        finally:
            ran = person.end()
    assert ran.code == 0, ran.err


def submit(world: Organisations, *more: str, dataset: str = "baskets") -> str:
    file = world.job()
    if dataset in SIZES:
        file = world.job(min_support="1", more='universe = "all-items"\nmax_length = 1')
        file.write_text(file.read_text().replace('"baskets"', f'"{dataset}"'))
    ran = comine("job", "submit", file, *more, cwd=world.folder)  # whose child drives the job
    assert ran.code == 0, ran.err
    assert "for the approval of south" in ran.err
    return ran.out.strip()


def known_jobs(world: Organisations) -> list[str]:
    return [file.parent.name for file in (world.folder / "jobs").glob("*/state.json")]


def state_of(world: Organisations, job_id: str) -> str:
    """As the coordinator's folder says, without a command's start-up."""
    return str(json.loads((world.folder / "jobs" / job_id / "state.json").read_text())["state"])


def until(world: Organisations, job_id: str, *states: str) -> None:
    end = time.monotonic() + PATIENCE_S
    while state_of(world, job_id) not in states:
        assert time.monotonic() < end, state_of(world, job_id)
        threading.Event().wait(0.01)


def driver_of(world: Organisations, job_id: str) -> int:
    """The process that drives a job in the background, once it has taken over from the command that started it."""
    end = time.monotonic() + PATIENCE_S
    while True:
        pid = int((world.folder / "jobs" / job_id / "lock").read_text())
        with suppress(OSError):
            if b"drive" in Path(f"/proc/{pid}/cmdline").read_bytes():
                return pid
        assert time.monotonic() < end
        threading.Event().wait(0.01)


def n_rows(world: Organisations, job_id: str) -> int:
    ran = job("result", job_id, "--out", "taken", world=world)
    assert (ran.code, ran.out) == (0, ""), ran.err
    return int(json.loads((world.folder / "taken" / "result.json").read_text())["n_rows"])


def test_submit_watch_detach_approve_and_come_back(world: Organisations) -> None:
    job_id = submit(world, "--out", "out", "--plan")
    assert re.fullmatch(r"[0-9a-f]{64}", job_id)
    inbox = json.loads(command("party", "inbox", "south.toml", "--json", cwd=world.folder).out)
    assert job_id in json.dumps(inbox)
    watch = Process("job", "watch", job_id[:8], cwd=world.folder)
    watch.until("for the approval of south")
    watch.send(signal.SIGINT)
    ran = watch.end()
    assert (ran.code, ran.out) == (0, "")
    assert f"comine job watch {job_id[:12]}" in ran.err
    seen = status(world, job_id)
    assert (seen["state"], seen["waits_for"], seen["driven"]) == ("awaiting-approval", ["south"], True)
    assert {name: party["state"] for name, party in seen["parties"].items()} == {
        "north": "approved",
        "south": "awaiting-approval",
        "east": "approved",
    }
    decide(world, job_id)
    assert job("watch", "weekly", world=world).code == 0
    contents = json.loads((world.folder / "out" / "result.json").read_text())
    assert contents["job_id"] == job_id
    assert set(contents["plan"]) == set(DATA)
    assert {consent["party"] for consent in contents["consents"]["approvals"]} == set(DATA)
    assert status(world, job_id)["parties"]["south"]["approved_by"] == "sue"
    page = Path(job("report", job_id, world=world).out.strip())
    assert page.stat().st_size > 10_000


def test_a_person_denies(world: Organisations) -> None:
    job_id = submit(world)
    watch = Process("job", "watch", job_id, cwd=world.folder)
    watch.until("for the approval of south")
    decide(world, job_id, "deny", "--reason", "not this month", "--by", "sue")
    ran = watch.end()
    assert ran.code == 30
    assert "south" in ran.err
    assert "not this month" in ran.err
    assert state_of(world, job_id) == "denied"


def test_a_driver_killed_while_people_think_is_replaced(world: Organisations) -> None:
    job_id = submit(world)
    os.kill(driver_of(world, job_id), signal.SIGKILL)
    decide(world, job_id)
    assert job("watch", job_id, world=world).code == 0
    assert n_rows(world, job_id) == sum(map(len, DATA.values()))


def test_a_driver_killed_in_the_midst_of_the_job_is_replaced(world: Organisations) -> None:
    job_id = submit(world, dataset="middle")
    driver = driver_of(world, job_id)
    decide(world, job_id, then="running", act=lambda: os.kill(driver, signal.SIGKILL))
    assert state_of(world, job_id) == "running"
    ran = job("watch", job_id, world=world)
    assert ran.code == 0, ran.err
    assert n_rows(world, job_id) == SIZES["middle"] * len(DATA)


def test_a_job_run_that_was_killed_is_found_by_the_list(world: Organisations) -> None:
    world.job()
    process = Process("job", "run", "job.toml", cwd=world.folder)
    process.until("for the approval of south")
    (job_id,) = (known for known in known_jobs(world) if state_of(world, known) == "awaiting-approval")
    process.kill()
    decide(world, job_id)  # the nodes have not noticed
    ran = job("list", "--json", world=world)
    assert f"the job {job_id[:12]} had no driver and is taken up again" in ran.err
    assert job("watch", job_id, world=world).code == 0


@pytest.mark.parametrize("number", in_turn([signal.SIGTERM, signal.SIGKILL], 2))
def test_a_node_that_is_restarted_between_approval_and_start(world: Organisations, number: signal.Signals) -> None:
    job_id = submit(world)
    north = world.nodes["north"]
    north.send(number)
    north.popen.wait()
    north.kill()
    decide(world, job_id)
    until(world, job_id, "approved")
    world.start("north")
    assert job("watch", job_id, world=world).code == 0


def test_cancelling_while_people_think(world: Organisations) -> None:
    job_id = submit(world, "--out", "cancelled")
    ran = job("cancel", job_id[:8], "--reason", "no need", world=world)
    assert ran.code == 0, ran.err
    assert job("watch", job_id, world=world).code == 50
    inbox = command("party", "inbox", "south.toml", "--json", cwd=world.folder).out
    assert job_id not in inbox
    assert not (world.folder / "cancelled").exists()


@pytest.mark.parametrize("driven", in_turn([True, False], 2))
def test_cancelling_while_the_job_runs(world: Organisations, driven: bool) -> None:
    seen = {name: len(node.lines) for name, node in world.nodes.items()}
    job_id = submit(world, "--out", "cancelled", dataset="long")
    decide(world, job_id, then="running")
    if not driven:
        os.kill(driver_of(world, job_id), signal.SIGKILL)
    ran = job("cancel", job_id, world=world)
    assert ran.code == 0, ran.err
    for name, node in world.nodes.items():
        node.until('"job cancelled"', '"job failed"', after=seen[name])
    ran = job("watch", job_id, world=world)
    assert ran.code == 50
    assert not (world.folder / "cancelled").exists()
    assert job("result", job_id, world=world).code == 50


def test_what_is_not_decided_expires_with_the_name_of_who_did_not(world: Organisations) -> None:
    job_id = submit(world, "--expires", "5s")
    ran = job("watch", job_id, world=world)
    assert ran.code == 60
    assert "before south had decided" in ran.err
    assert state_of(world, job_id) == "expired"
