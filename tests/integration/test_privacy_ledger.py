"""The privacy ledger of nodes: charged before anything leaves, kept over every kind of death, refused when exceeded."""

from __future__ import annotations

import asyncio
import json
import os
import signal
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from comine.command import run
from coordinator.cli.jobs.plan import show_plan
from coordinator.jobs.planner import plan_job
from jobs.loading import job_of
from jobs.plan.plan import Plan
from jobs.schema import generate
from jobs.spec.job import JobSpec
from protos.v1 import control_pb2 as control
from tests.integration.processes import Organisations, command
from tests.party.nodes import DATA, Nodes, audited, hold, random_rows, refused, running

ITEMS = [f"item{i}" for i in range(8)]
ROWS = {name: random_rows(seed, 400) for seed, name in enumerate(DATA)}
NODES = tuple(DATA)


def private(model: str = "local", epsilon: str = "1", **privacy: Any) -> JobSpec:
    """A job for all parties that mines items by perturbed records."""
    contents = {
        "job": {
            "name": "weekly",
            "task": "itemsets",
            "parties": list(DATA),
            "dataset": "baskets",
            "partition": "hybrid",
        },
        "itemsets": {"top_k": 3, "max_length": 1, "universe": "items.txt", "catalogue": ITEMS},
        "privacy": {"model": model, "epsilon": epsilon, **privacy},
    }
    return job_of(contents, "job.toml", Path())


def limited(folder: Path, table: str, *names: str) -> Callable[[Any], None]:
    """Writes a table `[dataset.privacy]` into the files of nodes, all by default."""

    def change(_: Any) -> None:
        for name in names or NODES:
            file = folder / f"{name}.toml"
            file.write_text(file.read_text().replace("[policy]", f"[dataset.privacy]\n{table}\n[policy]"))

    return change


def ledger(folder: Path, name: str, capsys: pytest.CaptureFixture[str]) -> dict[str, Any]:
    """What `comine party budget --json` prints of the one dataset."""
    capsys.readouterr()
    assert run(["party", "budget", str(folder / f"{name}.toml"), "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    jsonschema.validate(told, json.loads(generate("budget")))
    (dataset,) = told["datasets"]
    return dict(dataset)


async def spend(nodes: Nodes, spec: JobSpec) -> bytes:
    """Runs a job that must succeed."""
    job_id, ends = await nodes.run(spec)
    assert {event.state for event in ends.values()} == {control.SUCCEEDED}, ends
    return job_id


def test_a_job_is_charged_at_every_party_and_refused_where_too_little_is_left(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    async def test() -> bytes:
        table = 'epsilon = 2.5\ndelta = 1e-5\nlocal_epsilon = 20\nperiod = "365d"'
        async with running(tmp_path, data=ROWS, prepare=limited(tmp_path, table)) as nodes:
            job_id = await spend(nodes, private())
            # two further ones are agreed upon while there is enough for either, and then there is enough for one
            (second, approvals), (third, _) = await nodes.agree(private()), await nodes.agree(private())
            await nodes.all(lambda client: client.start(second, approvals))
            await nodes.ends(second)
            late = await refused(nodes.clients["north"].start(third, nodes.forged(third, private())))
            assert (late.code, late.party) == ("E300", "north")
            assert "0.5 of it is left, and with the job 3 would be spent" in late.sentence
            early = await refused(nodes.clients["south"].propose(private(), os.urandom(16)))
            assert (early.code, early.party) == ("E300", "south")
            assert "allows epsilon 2.5 for all jobs on 'baskets' within 365d (rule privacy.epsilon)" in early.sentence
            await spend(nodes, private(epsilon="0.5"))  # to the last
            assert (await refused(nodes.clients["east"].propose(private(epsilon="0.001")))).code == "E300"
        return job_id

    job_id = asyncio.run(test())
    for name in NODES:
        found = ledger(tmp_path, name, capsys)
        assert found["totals"] == {"epsilon": "2.5", "delta": "0.00001", "local_epsilon": "20"}
        assert found["spent"] == {"epsilon": "2.5", "delta": "0", "local_epsilon": "2.5"}
        assert found["left"] == {"epsilon": "0", "delta": "0.00001", "local_epsilon": "17.5"}
        assert found["models"] == {"local": {"starts": 3, "spent": found["spent"]}}
        assert [(job["state"], job["counts"]) for job in found["jobs"]] == [("succeeded", True)] * 3
        assert (found["jobs"][0]["job_id"], found["jobs"][0]["coordinator"]) == (job_id.hex(), "analyst")
        events = [(entry["event"], entry["fields"]) for entry in audited(tmp_path, name)]
        of_first = [(event, fields) for event, fields in events if fields.get("job") == job_id.hex()]
        order = [event for event, _ in of_first]
        assert order.index("started") < order.index("charged") < order.index("session-began")
        (charged,) = [fields for event, fields in of_first if event == "charged"]
        told = {"attempt": 1, "dataset": "baskets", "model": "local", "local_epsilon": "1", "epsilon": "1"}
        assert told.items() <= charged.items()
        assert command("audit", "verify", tmp_path / f"{name}.toml", cwd=tmp_path).code == 0


def test_exact_jobs_are_listed_as_unbounded_or_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    exact = job_of(
        {
            "job": {"name": "weekly", "task": "itemsets", "parties": list(DATA), "dataset": "baskets"},
            "itemsets": {"min_support": "0.2"},
        },
        "job.toml",
        Path(),
    )

    async def test() -> None:
        prepare = limited(tmp_path, 'epsilon = 1\ndelta = 1e-5\nexact = "refuse"', "south")
        async with running(tmp_path, data=ROWS, prepare=prepare) as nodes:
            south = await refused(nodes.clients["south"].propose(exact))
            assert (south.code, "rule privacy.exact" in south.sentence) == ("E300", True)
            job_id = await nodes.clients["north"].propose(exact)
            await nodes.clients["north"].start(job_id, nodes.forged(job_id, exact))
            await nodes.clients["north"].cancel(job_id)

    asyncio.run(test())
    found = ledger(tmp_path, "north", capsys)
    nothing = {"epsilon": None, "delta": None, "local_epsilon": None}
    assert found["models"] == {"exact": {"starts": 1, "spent": nothing}}
    assert [(job["model"], job["charged"]) for job in found["jobs"]] == [("exact", nothing)]
    assert "charged" not in [entry["event"] for entry in audited(tmp_path, "north")]
    assert run(["party", "budget", str(tmp_path / "north.toml"), "--dataset", "baskets"]) == 0
    told = capsys.readouterr().out
    assert "exact   1        unbounded" in told
    assert "epsilon         0       no limit" in told
    assert run(["party", "budget", str(tmp_path / "north.toml"), "--dataset", "visits"]) == 2
    assert "has no dataset 'visits', and never charged one; it has baskets" in capsys.readouterr().err


def test_what_a_job_would_cost_is_shown_before_it_is_approved(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    async def test() -> None:
        def prepare(_: Any) -> None:
            limited(tmp_path, "epsilon = 5\ndelta = 1e-5", "north")(_)
            file = tmp_path / "north.toml"
            file.write_text(file.read_text().replace('approve = "auto"', 'approve = "manual"'))

        async with running(tmp_path, data=ROWS, prepare=prepare) as nodes:
            spec = private("shuffle", delta="1e-6")
            job_id = await nodes.clients["north"].propose(spec)
            argument = [str(tmp_path / "north.toml"), job_id.hex()]
            assert await asyncio.to_thread(run, ["party", "show", *argument, "--detail"]) == 0

    asyncio.run(test())
    told = " ".join(capsys.readouterr().out.split())
    assert "; ε = 1 and δ = 1e-06 of each record's budget" in told
    assert "epsilon 1 and delta 0.000001 towards anyone who sees the result, epsilon 8 towards anyone who sees" in told
    assert "left for all jobs on the dataset: epsilon 5, delta 0.00001" in told
    assert "privacy.epsilon" in told
    assert ledger(tmp_path, "north", capsys)["jobs"] == []  # nothing is charged for a question


def test_a_plan_tells_what_is_charged_and_what_is_left(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    async def test() -> Plan:
        async with running(
            tmp_path, data=ROWS, prepare=limited(tmp_path, "epsilon = 5\ndelta = 1e-5", "north")
        ) as nodes:
            await spend(nodes, private())
            return await plan_job(private("shuffle", delta="1e-6"), nodes.clients["north"].identity, nodes.addresses)

    plan = asyncio.run(test())
    assert plan.privacy is not None
    assert plan.privacy.charge.model_dump() == {"epsilon": "1", "delta": "0.000001", "local_epsilon": "8"}
    left = {name: party.left for name, party in plan.parties.items()}
    assert left["north"] is not None
    assert left["north"].model_dump() == {"epsilon": "4", "delta": "0.00001", "local_epsilon": None}
    assert (left["south"], left["east"]) == (None, None)
    show_plan(plan, detail=True)
    told = " ".join(capsys.readouterr().out.split())
    assert "What it costs each record" in told
    assert "Each party's ledger is charged epsilon 1, delta 0.000001, local epsilon 8" in told
    assert "north has epsilon 4, delta 0.00001 left before the job." in told
    jsonschema.validate(plan.as_data(), json.loads(generate("plan")))


def test_a_plan_is_no_way_around_noise(tmp_path: Path) -> None:
    contents = private("distributed", delta="1e-6").model_dump(mode="json", by_alias=True)
    contents["itemsets"]["min_support"] = "0.1"
    noisy = job_of(contents, "job.toml", Path())

    async def test() -> Plan:
        def prepare(_: Any) -> None:
            limited(tmp_path, 'epsilon = 5\ndelta = 1e-5\nexact = "refuse"', "north")(_)
            for name in ("south", "east"):
                file = tmp_path / f"{name}.toml"
                file.write_text(file.read_text().replace("[policy]", "[dataset.publish]\nrows = 400\n[policy]", 1))

        async with running(tmp_path, data=ROWS, prepare=prepare) as nodes:
            return await plan_job(noisy, nodes.clients["north"].identity, nodes.addresses)

    told = {name: (party.rows_public, party.n_rows) for name, party in asyncio.run(test()).parties.items()}
    assert told == {"north": ("hidden", None), "south": ("rounded", 500), "east": ("rounded", 500)}


def test_a_charge_outlives_the_death_of_the_node_and_is_never_taken_back(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    async def test() -> None:
        table = "epsilon = 1.5\ndelta = 1e-5"
        async with running(tmp_path, data=ROWS, prepare=limited(tmp_path, table)) as nodes:
            release = hold(nodes.nodes["north"])
            job_id = await nodes.begin(private())
            await nodes.crash("north")
            release.set()
            await nodes.restart("north")
            assert {event.state for event in (await nodes.ends(job_id)).values()} == {control.FAILED}
            for name in NODES:  # those that lost their peer have spent it too
                assert (await refused(nodes.clients[name].propose(private(), os.urandom(16)))).code == "E300"

    asyncio.run(test())
    for name in NODES:
        found = ledger(tmp_path, name, capsys)
        assert found["spent"]["epsilon"] == "1"
        assert [job["state"] for job in found["jobs"]] == ["failed"]
        assert "charged" in [entry["event"] for entry in audited(tmp_path, name)]


def test_a_start_that_cannot_be_charged_does_not_begin(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    async def test() -> None:
        async with running(tmp_path, data=ROWS) as nodes:
            job_id, approvals = await nodes.agree(private())
            held = nodes.nodes["north"].ledger
            held.connection.execute("PRAGMA query_only = ON")
            north = nodes.clients["north"]
            told = await refused(north.start(job_id, approvals))
            assert (told.code, told.party) == ("E103", "north") or told.code.startswith("E1")
            held.connection.execute("PRAGMA query_only = OFF")
            await nodes.all(lambda client: client.start(job_id, approvals))  # the job still stands where it stood
            assert {event.state for event in (await nodes.ends(job_id)).values()} == {control.SUCCEEDED}

    asyncio.run(test())
    assert ledger(tmp_path, "north", capsys)["spent"]["epsilon"] == "1"


JOB = """[job]
name = "weekly"
task = "itemsets"
parties = ["north", "south", "east"]
dataset = "baskets"
partition = "hybrid"
[itemsets]
top_k = 3
max_length = 1
universe = "items.txt"
[privacy]
model = "local"
epsilon = 0.7
"""


@pytest.mark.slow
def test_a_process_that_is_killed_right_after_the_start_has_charged(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    made = Organisations.create(tmp_path, ROWS)
    limited(tmp_path, "epsilon = 1\ndelta = 1e-5")(None)
    (tmp_path / "job.toml").write_text(JOB)
    (tmp_path / "items.txt").write_text("".join(f"{item}\n" for item in ITEMS))
    try:
        made.start()
        begun = made.begin("job.toml")
        made.nodes["north"].until("job started")
        made.nodes["north"].send(signal.SIGKILL)
        made.nodes["north"].end()
        made.start("north")  # else, had it only its result to hand over, it would be waited for until the deadline
        lost = begun.end()
        again = made.run("job.toml", "again")
        assert again.code == 30, again
        assert "rule privacy.epsilon" in again.sentence
    finally:
        made.stop()
    found = ledger(tmp_path, "north", capsys)
    assert Decimal(found["spent"]["epsilon"]) == Decimal("0.7")
    assert len(found["jobs"]) == 1
    assert lost.code in (0, 20)  # killed in the midst, or after the last word
    assert "charged" in [entry["event"] for entry in audited(tmp_path, "north")]
