"""A job that dies goes on from the last step that all parties have kept, in a session of its own."""

from __future__ import annotations

import asyncio
import csv
import json
import random
import sqlite3
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from coordinator.cli.terminal.live import notes
from coordinator.jobs.driver import Driver
from coordinator.jobs.lifecycle import Job, Problem, State
from coordinator.jobs.records.store import JobFolder, Store
from coordinator.jobs.retrying import RETRIES
from coordinator.jobs.runner import draft, resume_job, run_job
from jobs.audit.checks.verification import verification
from jobs.audit.events import Ended, Event
from jobs.loading import job_of
from jobs.results.result import Result
from jobs.spec.job import JobSpec
from link.core import Transport
from link.errors import JobCancelled, PeerError
from link.journal import Journal, Step
from link.pki.authority import Authority
from link.pki.trust import Trust
from link.transcripts.receipts import LANE as RECEIPTS
from link.version import WIRE_VERSION, software_version
from mining.reference.pooled import brute_force
from party.server import Node
from party.state.journals import Journals
from protos.v1.control_pb2 import StartRequest
from protos.v1.link_pb2 import Frame
from tests.errors import fails
from tests.examples import in_turn
from tests.integration.faults.failing import Passing, unwrap, wrap
from tests.integration.processes import Organisations, command
from tests.jobs.results.made import supports
from tests.party.nodes import Nodes, crash, hold, refused, running, weekly

pytestmark = pytest.mark.slow
like_others = pytest.mark.turn(3, "what a job goes on from")

COLUMNS = {"north": ("n1", "n2"), "south": ("s1", "s2"), "east": ("e1",)}
LEAST = 20
_random = random.Random(3)
CELLS = {
    f"p{number}": {column: _random.choice("xxxy") for columns in COLUMNS.values() for column in columns}
    for number in range(80)
}
EXPECTED = brute_force(([f"{column}={cell}" for column, cell in row.items()] for row in CELLS.values()), LEAST)


def spec_of(**itemsets: Any) -> JobSpec:
    contents = {
        "job": {
            "name": "columns",
            "task": "itemsets",
            "parties": list(COLUMNS),
            "dataset": "people",
            "partition": "vertical",
        },
        "itemsets": {"min_support": LEAST, **itemsets},
    }
    return job_of(contents, "the test", Path())


def write_table(folder: Path, name: str, people: Sequence[str] = tuple(CELLS)) -> None:
    lines = [",".join((person, *(CELLS[person][column] for column in COLUMNS[name]))) for person in people]
    (folder / f"{name}.csv").write_text("\n".join([",".join(("id", *COLUMNS[name])), *lines]) + "\n")


def add_tables(folder: Path) -> None:
    """Every node holds a table of its own columns beside its baskets."""
    for name in COLUMNS:
        write_table(folder, name)
        with (folder / f"{name}.toml").open("a") as config:
            config.write(
                f'[[dataset]]\nname = "people"\nkind = "table"\nsource = "{name}.csv"\nformat = "csv"\nid = "id"\n'
            )


@asynccontextmanager
async def federation(folder: Path, task: str = "rules") -> AsyncIterator[Nodes]:
    def tables(_: Authority) -> None:
        add_tables(folder)
        for name in COLUMNS:
            file = folder / f"{name}.toml"
            file.write_text(file.read_text().replace('"rules"', f'"{task}"'))

    async with running(folder, data={name: [["a"]] for name in COLUMNS}, prepare=tables) as made:
        yield made


def dies_at(nodes: Nodes, name: str, lane: str) -> None:
    """The node dies where it would send its first frame on a lane whose path holds `lane`."""

    def wrapper(inner: Transport) -> Transport:
        def look(frame: Frame) -> None:
            if lane in frame.lane:
                raise PeerError(f"the node of {name} was killed", party=name)

        return Passing(inner, look)

    wrap(nodes.nodes[name], wrapper)


def listen(nodes: Nodes) -> list[str]:
    """The lanes of all frames that leave a node from now on."""
    lanes: list[str] = []
    for node in nodes.nodes.values():
        wrap(node, lambda inner: Passing(inner, lambda frame: lanes.append(frame.lane)))
    return lanes


async def lose(nodes: Nodes, spec: JobSpec | None = None, lane: str = "/level-3") -> JobFolder:
    """A job in which south dies on a lane, as the coordinator keeps it."""
    store, known = Store(nodes.folder / "jobs"), spec_of() if spec is None else spec
    dies_at(nodes, "south", lane)
    with pytest.raises(PeerError):
        await run_job(known, analyst(nodes), nodes.addresses, store=store)
    unwrap(nodes.nodes["south"])
    return store.jobs()[0]


def analyst(nodes: Nodes) -> Any:
    return nodes.authority.issue("analyst", "coordinator")


def test_a_job_that_loses_a_party_goes_on_by_itself_and_says_so(tmp_path: Path, capsys: Any) -> None:
    async def test() -> None:
        async with federation(tmp_path) as nodes:
            store, show = Store(nodes.folder / "jobs"), notes()
            dies_at(nodes, "south", "/level-3")

            def moved(job: Job) -> None:
                show(job)
                if job.retried and "open" in vars(nodes.nodes["south"].link):
                    unwrap(nodes.nodes["south"])

            result = await run_job(
                spec_of(), analyst(nodes), nodes.addresses, store=store, on_move=moved, retries=RETRIES
            )
            assert supports(result) == EXPECTED
            job = store.jobs()[0].record().job
            assert (job.attempt, job.retried, job.lost) == (2, 1, "the node of south was killed")

    asyncio.run(test())
    said = capsys.readouterr().err
    assert "the node of south was killed; the job goes on by itself, in attempt 2" in said
    assert said.index("lost at ") < said.index("resumed at ")


async def resume(nodes: Nodes, folder: JobFolder) -> Result:
    return await resume_job(folder, analyst(nodes), nodes.addresses)


def journal_of(node: Node, folder: JobFolder) -> Journal:
    journals = Journals.beside(node.store, node.name)
    return journals.resume(bytes.fromhex(folder.id), f"{software_version()} {WIRE_VERSION}")


def steps_of(node: Node, folder: JobFolder) -> Sequence[Step]:
    some = Journals.beside(node.store, node.name).read(bytes.fromhex(folder.id), "*")
    return journal_of(node, folder).steps() if some else ()


def kept(nodes: Nodes, folder: JobFolder) -> dict[str, list[int]]:
    """By party, the lengths of the levels that it keeps."""
    found = {}
    for name, node in nodes.nodes.items():
        named = [step.called for step in steps_of(node, folder)]
        found[name] = [int(called.split()[-1]) for called in named if called.startswith("itemsets of")]
    return found


def everywhere(*lengths: int) -> dict[str, list[int]]:
    return {name: list(lengths) for name in COLUMNS}


@like_others
@pytest.mark.parametrize("level", in_turn([2, 3, 4], 3))
def test_a_job_that_dies_in_a_level_goes_on_there(tmp_path: Path, level: int) -> None:
    assert max(map(len, EXPECTED)) >= 4

    async def test() -> None:
        async with federation(tmp_path) as nodes:
            folder = await lose(nodes, lane=f"/level-{level}")
            assert kept(nodes, folder) == everywhere(*range(1, level))
            lanes = listen(nodes)
            result = await resume(nodes, folder)
            assert supports(result) == EXPECTED
            assert result.n_rows == len(CELLS)
            assert not any(f"/level-{k}" in lane for lane in lanes for k in range(1, level))
            assert any(f"/level-{level}" in lane for lane in lanes)
            assert "/task/items" not in lanes
            assert not any("/intersection" in lane for lane in lanes)
            assert kept(nodes, folder) == everywhere()  # wiped
            record = folder.record()
            assert (record.job.state, record.job.attempt) == (State.SUCCEEDED, 2)
            with fails("E001"):
                await resume(nodes, folder)
            approvals = [record.approvals[name] for name in COLUMNS]
            request = StartRequest(job_id=record.id, attempt=3, approvals=approvals)
            assert "has ended (succeeded)" in (await refused(nodes.clients["north"].stub.Start(request))).sentence
        logs = sorted((tmp_path / "state").glob("*/audit.log"))
        checked = verification(logs, [], Trust(nodes.authority.certificate_pem))
        assert (len(logs), checked.findings) == (3, [])

    asyncio.run(test())


@like_others
def test_a_job_that_dies_after_its_alignment_goes_on_with_it(tmp_path: Path) -> None:
    async def test() -> None:
        async with federation(tmp_path) as nodes:
            folder = await lose(nodes, lane="/task/items")
            assert kept(nodes, folder) == everywhere()
            lanes = listen(nodes)
            assert supports(await resume(nodes, folder)) == EXPECTED
            assert "/task/items" in lanes
            assert not any("/intersection" in lane for lane in lanes)

    asyncio.run(test())


VALUES = {column: {"values": ["x", "y"]} for column in ("n1", "s2", "e1")}
RELEASED = {
    "quasi_identifiers": ["n1", "s1"],
    "model": {"k": 3},
    "hierarchies": {name: [["x", "*"], ["y", "*"]] for name in ("n1", "s1")},
    "sensitive": [],
}
AFTER_ROWS: list[tuple[str, dict[str, Any], str]] = [
    ("align", {}, f"/{RECEIPTS}"),
    ("naive-bayes", {"naive_bayes": {"target": "e1", "attributes": ["n1", "s2"]}, "columns": VALUES}, "/task/model"),
    ("anonymize", {"anonymize": RELEASED}, "/task/anonymisation"),
]


@like_others
@pytest.mark.parametrize(("task", "tables", "lane"), in_turn(AFTER_ROWS, 3))
def test_what_does_not_mine_goes_on_with_its_alignment_too(
    task: str, tables: dict[str, Any], lane: str, tmp_path: Path
) -> None:
    job = {"name": task, "task": task, "parties": list(COLUMNS), "dataset": "people", "partition": "vertical"}
    spec = job_of({"job": job, **tables}, "the test", Path())

    async def test() -> None:
        async with federation(tmp_path, task) as nodes:
            folder = await lose(nodes, spec, lane)
            lanes = listen(nodes)
            again = await resume(nodes, folder)
            assert any(lane in each for each in lanes)
            assert not any("/intersection" in each for each in lanes)
            assert again.n_rows == len(CELLS)

    asyncio.run(test())


@pytest.mark.parametrize("in_order", in_turn([False, True], 2))
def test_a_node_that_was_started_again_goes_on_with_the_others(tmp_path: Path, in_order: bool) -> None:
    """After the death of its process, or once its operator has stopped it, as all others are told."""

    async def test() -> None:
        async with federation(tmp_path) as nodes:
            reached = asyncio.Event()

            def look(frame: Frame) -> None:
                if "/level-3" in frame.lane:
                    reached.set()

            wrap(nodes.nodes["east"], lambda inner: Passing(inner, look))
            store = Store(tmp_path / "jobs")
            running_ = asyncio.create_task(run_job(spec_of(), analyst(nodes), nodes.addresses, store=store))
            await reached.wait()
            await (nodes.nodes["east"].stop() if in_order else nodes.crash("east"))
            with pytest.raises(JobCancelled if in_order else PeerError) as ended:
                await running_
            assert ended.value.party == "east"
            assert not in_order or "cancelled at east: its node is stopping" in ended.value.message
            await nodes.restart("east")
            (folder,) = store.jobs()
            assert kept(nodes, folder)["east"] == [1, 2]
            lanes = listen(nodes)
            assert supports(await resume(nodes, folder)) == EXPECTED
            assert not any("/level-2" in lane for lane in lanes)

    asyncio.run(test())


@like_others
def test_rules_without_supports_follow_in_another_attempt(tmp_path: Path) -> None:
    spec = job_of(
        {
            "job": {
                "name": "columns",
                "task": "rules",
                "parties": list(COLUMNS),
                "dataset": "people",
                "partition": "vertical",
            },
            "itemsets": {"min_support": LEAST, "disclose": "frequent"},
            "rules": {"min_confidence": "0.75"},
        },
        "the test",
        Path(),
    )

    async def test() -> None:
        async with federation(tmp_path) as nodes:
            folder = await lose(nodes, spec)
            again = (await resume(nodes, folder)).tables.get("rules")
            straight = (await run_job(spec, analyst(nodes), nodes.addresses)).tables.get("rules")
            assert again is not None
            assert len(again)
            assert again.equals(straight)

    asyncio.run(test())


@like_others
def test_randomness_is_dealt_anew(tmp_path: Path) -> None:
    spec = spec_of(engine="replicated")
    two = spec.model_copy(update={"job": spec.job.model_copy(update={"parties": ("north", "south")})})

    async def test() -> None:
        async with federation(tmp_path) as nodes:
            again = await resume(nodes, await lose(nodes, two))
            straight = await run_job(two, analyst(nodes), nodes.addresses)
            assert supports(again) == supports(straight)

    asyncio.run(test())


@like_others
def test_an_attempt_that_dies_too_is_followed_by_another(tmp_path: Path) -> None:
    async def test() -> None:
        async with federation(tmp_path) as nodes:
            folder = await lose(nodes, lane="/level-2")
            dies_at(nodes, "south", "/level-4")
            with pytest.raises(PeerError):
                await resume(nodes, folder)
            unwrap(nodes.nodes["south"])
            assert kept(nodes, folder) == everywhere(1, 2, 3)
            assert supports(await resume(nodes, folder)) == EXPECTED
            assert folder.record().job.attempt == 3

    asyncio.run(test())


def test_an_attempt_is_begun_once(tmp_path: Path) -> None:
    async def test() -> None:
        async with federation(tmp_path) as nodes:
            folder = await lose(nodes)
            record, north = folder.record(), nodes.clients["north"]
            approvals = [record.approvals[name] for name in COLUMNS]

            async def start(attempt: int) -> Any:
                request = StartRequest(job_id=record.id, attempt=attempt, approvals=approvals)
                return await refused(north.stub.Start(request))

            assert "started at north before" in (await start(1)).sentence
            assert "5 attempts" in (await start(6)).sentence
            await north.start(record.id, approvals, attempt=2)  # north alone: it waits for the others in vain
            assert (await start(2)).code == "E401"
            await north.cancel(record.id)
            assert "started at north before" in (await start(2)).sentence
            await crash(nodes.nodes["north"])
            await nodes.restart("north")
            assert "started at north before" in (await start(2)).sentence

    asyncio.run(test())


@like_others
def test_an_attempt_that_still_runs_somewhere_is_ended_before_the_next(tmp_path: Path) -> None:
    """The coordinator died, and holds the job to be lost; the parties know nothing of that."""

    async def test() -> None:
        async with federation(tmp_path) as nodes:
            release = [hold(node) for node in nodes.nodes.values()]
            store, started = Store(tmp_path / "jobs"), asyncio.Event()
            record = draft(spec_of(), analyst(nodes), 600)
            folder = store.create(record)

            def tell(job: Job) -> None:
                if job.state is State.RUNNING:
                    started.set()

            driver = asyncio.ensure_future(
                Driver(record, analyst(nodes), nodes.addresses, folder=folder, on_move=tell).drive()
            )
            await started.wait()
            driver.cancel()
            await asyncio.gather(driver, return_exceptions=True)
            record.job = record.job._replace(state=State.FAILED, problem=Problem("E200", "it was lost"))
            folder.save(record)
            folder.unlock()
            for event in release:
                event.set()
            assert supports(await resume(nodes, folder)) == EXPECTED

    asyncio.run(test())


@like_others
def test_a_job_that_is_cancelled_while_it_ends_is_told_as_ended_by_the_log(tmp_path: Path) -> None:
    async def test() -> None:
        async with federation(tmp_path) as nodes:
            north, ending, go = nodes.nodes["north"], asyncio.Event(), asyncio.Event()
            record = north.audit.record

            async def slow(*events: Event) -> None:
                if isinstance(events[0], Ended):
                    ending.set()
                    await go.wait()
                await record(*events)

            north.audit.record = slow  # type: ignore[method-assign]
            losing = asyncio.create_task(lose(nodes))
            await ending.wait()
            (job,) = north.host.jobs
            assert job.task is not None
            job.task.cancel()
            await asyncio.sleep(0)
            go.set()
            folder = await losing
            assert supports(await resume(nodes, folder)) == EXPECTED
        logs = sorted((tmp_path / "state").glob("*/audit.log"))
        assert verification(logs, [], Trust(nodes.authority.certificate_pem)).findings == []

    asyncio.run(test())


def test_rows_that_have_changed_end_the_attempt_and_the_job_goes_on_once_they_are_back(tmp_path: Path) -> None:
    async def test() -> None:
        async with federation(tmp_path) as nodes:
            folder = await lose(nodes)
            before = kept(nodes, folder)
            assert before != everywhere()
            write_table(tmp_path, "east", tuple(CELLS)[:-1])
            with fails("E101", party="east") as caught:
                await resume(nodes, folder)
            assert (caught.value.exit_code, caught.value.party) == (10, "east")
            assert kept(nodes, folder) == before
            with fails("E101", party="east"):
                await resume(nodes, folder)
            (tmp_path / "east.csv").unlink()
            with fails("E101", party="east"):
                await resume(nodes, folder)
            write_table(tmp_path, "east")
            assert supports(await resume(nodes, folder)) == EXPECTED

    asyncio.run(test())


def test_a_party_that_kept_something_else_is_named(tmp_path: Path) -> None:
    async def test() -> None:
        async with federation(tmp_path) as nodes:
            folder = await lose(nodes)
            journal = journal_of(nodes.nodes["east"], folder)
            place, two = next((n, each) for n, each in enumerate(journal.steps()) if each.called == "itemsets of 2")
            journal.keep(place, replace(two, known=replace(two.known, public=two.known.public[1:])))
            with fails("E400") as caught:
                await resume(nodes, folder)
            assert caught.value.exit_code == 40
            assert "east" in caught.value.message

    asyncio.run(test())


@like_others
def test_a_job_over_rows_goes_on_and_one_that_nobody_lost_does_not(tmp_path: Path) -> None:
    async def test() -> None:
        async with federation(tmp_path) as nodes:
            store = Store(tmp_path / "jobs")
            dies_at(nodes, "south", "/level-1")
            with pytest.raises(PeerError):
                await run_job(weekly(itemsets={"min_support": 1}), analyst(nodes), nodes.addresses, store=store)
            unwrap(nodes.nodes["south"])
            lanes = listen(nodes)
            assert supports(await resume(nodes, store.jobs()[0])) == {frozenset({"a"}): len(COLUMNS)}
            assert "/task/rows" not in lanes  # the number of rows was kept
            spec = spec_of()
            unknown = spec.model_copy(update={"job": spec.job.model_copy(update={"dataset": "nowhere"})})
            with fails("E100"):
                await run_job(unknown, analyst(nodes), nodes.addresses, store=store)
            with fails("E001"):
                await resume(nodes, store.jobs()[0])

    asyncio.run(test())


@like_others
def test_a_proposal_that_has_expired_leaves_nothing_behind(tmp_path: Path) -> None:
    async def test() -> None:
        async with federation(tmp_path) as nodes:
            folder = await lose(nodes)
            record = folder.record()
            for name in COLUMNS:
                with closing(sqlite3.connect(tmp_path / "state" / name / "node.db")) as database, database:
                    database.execute("UPDATE jobs SET expiry = ?", (int(time.time()) - 1,))
            await crash(nodes.nodes["north"])
            await nodes.restart("north")
            assert kept(nodes, folder)["north"] == []
            record.job = record.job._replace(expires=time.time() - 1)
            folder.save(record)
            with fails("E001"):
                await resume(nodes, folder)

    asyncio.run(test())


def steps_kept(folder: Path, name: str) -> int:
    """How many steps the node of a party keeps, as its database tells another process."""
    database = sqlite3.connect(f"file:{folder / 'state' / name / 'node.db'}?mode=ro", uri=True)
    try:
        (number,) = database.execute("SELECT count(*) FROM journal WHERE what GLOB 'step *'").fetchone()
        return int(number)
    finally:
        database.close()


BASKETS = [list("abcdefgh")] * 9 + [list("abcd")] * 3  # at each party, so that there are eight levels
OVER: dict[str, tuple[str, str, int, dict[frozenset[str], int]]] = {
    "columns": ("people", 'partition = "vertical"', LEAST, EXPECTED),
    "rows": ("baskets", "", 25, brute_force(BASKETS * len(COLUMNS), 25)),
}


@pytest.mark.parametrize("over", in_turn(OVER, 2))
def test_a_node_that_is_killed_and_the_command_that_goes_on(over: str, tmp_path: Path) -> None:
    dataset, partition, least, expected = OVER[over]
    made = Organisations.create(tmp_path, dict.fromkeys(COLUMNS, BASKETS))
    add_tables(tmp_path)
    job = f"""[job]
name = "resumed"
task = "itemsets"
parties = {json.dumps(list(COLUMNS))}
dataset = "{dataset}"
{partition}
[itemsets]
min_support = {least}
"""
    (tmp_path / "job.toml").write_text(job)
    federation_file = ("--federation", "federation.toml")
    try:
        made.start()
        begun = made.begin("job.toml")
        while steps_kept(tmp_path, "south") < 3:
            assert begun.popen.poll() is None
            time.sleep(0.002)
        made.nodes["south"].kill()
        lost = begun.end()
        assert lost.code == 20
        assert "south" in lost.sentence
        refused_ = command("job", "result", "resumed", *federation_file, cwd=tmp_path)
        assert refused_.code == 20
        made.start("south")
        assert steps_kept(tmp_path, "south") >= 3
        resumed = command("job", "resume", "resumed", *federation_file, "--out", "out", cwd=tmp_path)
        assert resumed.code == 0, resumed.err
        assert [steps_kept(tmp_path, name) for name in COLUMNS] == [0, 0, 0]
        again = command("job", "resume", "resumed", *federation_file, cwd=tmp_path)
        assert (again.code, "cannot be resumed: it has succeeded" in again.sentence) == (2, True)
    finally:
        made.stop()
    with (tmp_path / "out" / "itemsets.csv").open() as file:
        found = {frozenset(json.loads(row["itemset"])): int(row["count"]) for row in csv.DictReader(file)}
    assert found == expected
    folders = [f"state/{name}" for name in COLUMNS]
    verified = command("audit", "verify", "out", *folders, "--ca", "pki/ca.crt", cwd=tmp_path)
    assert verified.code == 0, verified
