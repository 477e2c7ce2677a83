"""The public Python API."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import jsonschema
import pytest

import comine
from coordinator.cli.terminal.present import present
from jobs.plan import Plan as PlanDocument
from jobs.schema import generate
from link.pki.authority import write_identity
from mining.data.transactions import Transactions
from mining.reference.pooled import brute_force
from tests.cli.conftest import ROWS, write_job
from tests.cli.job.test_job import nodes, person
from tests.coordinator.nodes import Script
from tests.errors import fails
from tests.party.nodes import running, weekly

pytestmark = pytest.mark.turn(3)

JOB = {
    "job": {"name": "weekly", "task": "rules", "parties": list(ROWS), "dataset": "baskets"},
    "itemsets": {"min_support": 0.2},
    "rules": {"min_confidence": 0.5},
}
EXPECTED = brute_force([row for rows in ROWS.values() for row in rows], 2)


def found(result: comine.Result) -> dict[frozenset[str], int]:
    frame = result.itemsets()
    return {frozenset(items): count for items, count in zip(frame["itemset"], frame["count"], strict=True)}


def test_a_job_as_a_mapping_and_data_of_every_kind(tmp_path: Path) -> None:
    (tmp_path / "east.dat").write_text("".join(" ".join(row) + "\n" for row in ROWS["east"]))
    data = {
        "north": (iter(row) for row in ROWS["north"]),
        "south": Transactions.from_rows(ROWS["south"]),
        "east": tmp_path / "east.dat",
    }
    result = comine.simulate(JOB, data, seed=3)
    assert found(result) == EXPECTED
    assert (result.n_rows, result.simulated, result.seed) == (9, True, 3)
    assert set(result.parties) == set(ROWS)
    assert (result.rules()["confidence"] >= 0.5).all()
    assert any(line.get("kind") == "result" for line in result.disclosure)
    assert "weekly" in repr(result)
    result.save(tmp_path / "out")
    assert (tmp_path / "out" / "rules.csv").is_file()


def test_a_job_file_inside_a_running_event_loop(tmp_path: Path) -> None:
    write_job(tmp_path)

    async def notebook() -> comine.Result:
        return comine.simulate(str(tmp_path / "job.toml"), ROWS)

    assert found(asyncio.run(notebook())) == EXPECTED


@pytest.mark.parametrize(
    ("data", "code"),
    [
        ({**ROWS, "east": ["bread milk"]}, "E101"),
        ({**ROWS, "east": [["bread", 7.5]]}, "E101"),
        ({**ROWS, "east": [7]}, "E101"),
        ({**ROWS, "east": 7}, "E101"),
        ({"north": ROWS["north"]}, "E100"),
        ({**ROWS, "west": []}, "E100"),
        ({**ROWS, "east": "nowhere.dat"}, "E101"),
    ],
)
def test_wrong_data_is_told_in_one_sentence(data: Any, code: str) -> None:
    with fails(code):
        comine.simulate(JOB, data)


@pytest.mark.parametrize("job", [None, 7, [JOB]])
def test_a_job_of_the_wrong_type_is_told_in_one_sentence(job: Any) -> None:
    with fails("E100"):
        comine.simulate(job, ROWS)


def test_a_federation_file(tmp_path: Path) -> None:
    with fails("E100"):
        comine.Federation.connect(tmp_path / "federation.toml")
    (tmp_path / "federation.toml").write_text('[federation]\nname = "f"\n[[party]]\nname = "north"\naddress = "h:1"\n')
    with fails("E100"):
        comine.Federation.connect(tmp_path / "federation.toml")


def test_a_result_that_went_to_others_is_told_of(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    spec = {**JOB, "job": {**JOB["job"], "recipients": ["north", "east"]}}
    elsewhere = replace(comine.simulate(spec, ROWS), finding=None)
    present(elsewhere, tmp_path / "out", as_json=False)
    told = capsys.readouterr()
    assert told.out == ""
    assert told.err.startswith(
        "mined 9 transactions of 3 parties; the result is at north, east; the account is written"
    )
    assert not (tmp_path / "out" / "itemsets.csv").exists()
    with fails("E100"):
        elsewhere.itemsets()


def test_public_names() -> None:
    assert {"simulate", "Federation", "Result", "ComineError"} <= set(dir(comine))
    assert comine.__version__
    with pytest.raises(AttributeError):
        _ = comine.nonsense


def test_a_job_submitted_from_a_notebook(tmp_path: Path) -> None:
    with nodes(tmp_path, south={"manual": True}) as made:
        federation = comine.Federation.connect(tmp_path / "federation.toml")

        async def notebook() -> comine.JobHandle:
            return federation.submit(tmp_path / "job.toml")

        job = asyncio.run(notebook())
        assert (job.status().state, job.status().waits_for) == ("awaiting-approval", ["south"])
        with fails("E600") as caught:
            job.result(timeout=0.2)
        assert caught.value.exit_code == 60
        assert job._repr_html_() == f"<b>w</b> <code>{job.id[:12]}</code> awaiting-approval<br>waits for south"
        person(made, "south", Script.approve)
        assert job.result().n_rows == 9
        assert repr(federation.job("w")) == f"JobHandle('w', {job.id[:12]}, succeeded)"


def test_a_submitted_job_is_cancelled_from_python(tmp_path: Path) -> None:
    with nodes(tmp_path, south={"manual": True}):
        job = comine.Federation.connect(tmp_path / "federation.toml").submit(tmp_path / "job.toml")
        job.cancel("no need")
        with fails("E500") as caught:
            job.result()
        assert caught.value.exit_code == 50


def from_python(folder: Path, act: Callable[[comine.Federation], None], *, policy: str = "") -> None:
    """What a program does with running nodes, in a thread of its own."""

    async def test() -> None:
        async with running(folder, policy=policy) as made:
            write_identity(made.clients["north"].identity, folder)
            file = folder / "federation.toml"
            mine = '[coordinator]\nca = "pki/ca.crt"\ncertificate = "analyst.crt"\nkey = "analyst.key"\n'
            file.write_text(file.read_text() + mine)
            await asyncio.to_thread(lambda: act(comine.Federation.connect(file)))

    asyncio.run(test())


def test_a_plan_that_the_next_result_is_compared_with(tmp_path: Path) -> None:
    def act(federation: comine.Federation) -> None:
        job = weekly().model_copy(update={"job": weekly().job.model_copy(update={"name": "<i>"})})
        assert federation.jobs() == []
        assert "<tr><th>north</th><td><code>127.0.0.1:" in federation._repr_html_()
        plan = federation.plan(job)
        assert federation.jobs() == []  # nothing was proposed
        assert isinstance(plan, PlanDocument)
        jsonschema.validate(plan.as_data(), json.loads(generate("plan")))
        assert plan.spec_digest == job.digest.hex()
        shown = plan._repr_html_()
        assert "<bdi>&lt;i&gt;</bdi>" in shown
        for words in (
            "<td>worst case</td>",
            "<td>north</td>",
            "Who learns what",
            "The figures rest on this",
            f"{plan.rounds} rounds",
        ):
            assert words in shown
        assert f"{plan.rounds} rounds" in repr(plan)
        result = federation.run(job)
        assert result.plan is not None
        assert result.plan.as_data() == plan.as_data()
        assert [handle.id for handle in federation.jobs()] == [result.job_id.hex()]
        assert federation.jobs()[0].result().n_rows == result.n_rows

    from_python(tmp_path, act)


def test_a_plan_of_a_job_that_would_be_refused(tmp_path: Path) -> None:
    def act(federation: comine.Federation) -> None:
        with fails("E300") as caught:
            federation.plan(weekly())
        assert caught.value.exit_code == 30
        with fails("E100") as caught:
            federation.plan(JOB | {"job": {**JOB["job"], "parties": ["north", "west"]}})
        assert caught.value.exit_code == 10

    from_python(tmp_path, act, policy="min_support = 0.5")


def test_jobs_are_listed_newest_first_but_for_those_that_cannot_be_read(tmp_path: Path) -> None:
    with nodes(tmp_path):
        federation = comine.Federation.connect(tmp_path / "federation.toml")
        ids = [federation.run(tmp_path / "job.toml").job_id.hex() for _ in range(3)]
    (tmp_path / "jobs" / ids[1] / "state.json").write_text("{}")
    assert [job.id for job in federation.jobs()] == [ids[2], ids[0]]


def test_the_example_in_the_documentation(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    page = Path(__file__).parents[2] / "docs" / "tasks" / "plan.md"
    (example,) = re.findall(r"```python\n(.*?)```", page.read_text(), re.DOTALL)
    write_job(tmp_path)
    monkeypatch.chdir(tmp_path)
    from_python(tmp_path, lambda _: exec(example, {}))
    assert re.match(r"[0-9,]+ bytes in [0-9]+ rounds, [0-9.]+ s\n\{'north': [0-9]+, ", capsys.readouterr().out)
