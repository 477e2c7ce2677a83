"""The public Python API."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import comine
from coordinator.cli.present import present
from mining.reference.pooled import brute_force
from mining.transactions import Transactions
from tests.cli.conftest import ROWS, write_job
from tests.cli.test_job import nodes, person
from tests.unit.coordinator.nodes import Script

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
    ("data", "sentence"),
    [
        ({**ROWS, "east": ["bread milk"]}, "row 1 of east"),
        ({**ROWS, "east": [["bread", 7]]}, "row 1 of east"),
        ({**ROWS, "east": [7]}, "row 1 of east"),
        ({**ROWS, "east": 7}, "the data of east is neither .* but of type int"),
        ({"north": ROWS["north"]}, "'south'"),
        ({**ROWS, "west": []}, "'west' is not a party"),
        ({**ROWS, "east": "nowhere.dat"}, "east"),
    ],
)
def test_wrong_data_is_told_in_one_sentence(data: Any, sentence: str) -> None:
    with pytest.raises(comine.ComineError, match=sentence):
        comine.simulate(JOB, data)


@pytest.mark.parametrize("job", [None, 7, [JOB]])
def test_a_job_of_the_wrong_type_is_told_in_one_sentence(job: Any) -> None:
    with pytest.raises(comine.ComineError, match="a job is the path of a job file or its contents"):
        comine.simulate(job, ROWS)


def test_a_federation_file(tmp_path: Path) -> None:
    with pytest.raises(comine.ComineError, match="does not exist"):
        comine.Federation.connect(tmp_path / "federation.toml")
    (tmp_path / "federation.toml").write_text('[federation]\nname = "f"\n[[party]]\nname = "north"\naddress = "h:1"\n')
    with pytest.raises(comine.ComineError, match="coordinator"):
        comine.Federation.connect(tmp_path / "federation.toml")


def test_a_result_that_went_to_others_is_told_of(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    spec = {**JOB, "job": {**JOB["job"], "recipients": ["north", "east"]}}
    elsewhere = replace(comine.simulate(spec, ROWS), found=None)
    present(elsewhere, tmp_path / "out", as_json=False)
    told = capsys.readouterr()
    assert told.out == ""
    assert told.err.startswith(
        "mined 9 transactions of 3 parties; the result is at north, east; the account is written"
    )
    assert not (tmp_path / "out" / "itemsets.csv").exists()
    with pytest.raises(comine.ComineError, match="the recipients of this job are north, east"):
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
        with pytest.raises(comine.ComineError, match=r"goes on after 0\.2 s; it waits for south") as caught:
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
        with pytest.raises(comine.ComineError, match="no need") as caught:
            job.result()
        assert caught.value.exit_code == 50
