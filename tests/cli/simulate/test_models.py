"""`comine simulate` of jobs that learn models: the result folder, standard output, and what is wrong with a job."""

from __future__ import annotations

import csv
import json
from collections.abc import Mapping
from pathlib import Path

import jsonschema
import pytest

import comine as api
from jobs.report.job_file import job_file
from jobs.schema import generate
from tests.cli.conftest import Comine
from tests.mining.joint.model_jobs_world import PARTIES, TASKS, Rows, Task, job, people

pytestmark = pytest.mark.turn(2)

SHARE = 20  # rows of a party


def write(folder: Path, task: Task, *, partition: str = "horizontal", rows: Rows | None = None) -> list[str]:
    """Writes the tables and `job.toml`; the arguments that name the files."""
    rows = people(3 * SHARE, 4) if rows is None else rows
    spec = job(task, partition=partition)
    (folder / "job.toml").write_text(job_file(spec), encoding="utf-8")
    for place, party in enumerate(PARTIES):
        if partition == "horizontal":
            own: Mapping[str, list[str]] = {
                name: cells[place * SHARE : (place + 1) * SHARE] for name, cells in rows.items()
            }
        else:
            held = [name for number, name in enumerate(spec.columns) if number % 3 == place]
            own = {"id": [f"p{row}" for row in range(3 * SHARE)], **{name: rows[name] for name in held}}
        with (folder / f"{party}.csv").open("w", newline="", encoding="utf-8") as file:
            csv.writer(file).writerows([list(own), *zip(*own.values(), strict=True)])
    return [word for party in PARTIES for word in ("--party", f"{party}={party}.csv")]


@pytest.mark.parametrize("partition", ["horizontal", "vertical"])
@pytest.mark.parametrize("task", TASKS)
def test_the_result_folder(comine: Comine, tmp_path: Path, task: Task, partition: str) -> None:
    ran = comine("simulate", "job.toml", *write(tmp_path, task, partition=partition), "--out", "out")
    assert (ran.code, ran.out) == (0, ""), ran.err
    size = "60 rows" if partition == "horizontal" else "60 rows in common"
    assert f"task {task}: {size} of 3 parties; written to out" in ran.err
    out = tmp_path / "out"
    assert {path.name for path in out.iterdir()} == {"model.json", "result.json", "report.html", "manifest.json"}
    result = json.loads((out / "result.json").read_text())
    jsonschema.validate(result, json.loads(generate("result")))
    assert (result["n_rows"], result["n_itemsets"], result["task"]) == (60, None, task)
    model = json.loads((out / "model.json").read_text())
    jsonschema.validate(model, json.loads(generate("model")))
    assert (model["task"], model["n_rows"]) == (task, 60)
    page = (out / "report.html").read_text()
    assert '<section id="model"' in page
    assert "no row left its owner" not in page  # it was simulated
    assert 'style="' not in page  # which the page's own policy would not apply
    loaded = api.load_model(out)
    assert list(loaded.lines())


def test_a_model_on_standard_output(comine: Comine, tmp_path: Path) -> None:
    parties = write(tmp_path, "decision-tree")
    piped = comine("simulate", "job.toml", *parties)
    assert piped.code == 0
    told = comine("simulate", "job.toml", *parties, "--json")
    assert json.loads(told.out)["model"] == json.loads(piped.out)
    again = comine("simulate", "job.toml", *parties, "--out", "out", "--json")
    assert "model" not in json.loads(again.out)


def test_a_folder_of_another_task_is_replaced_whole(comine: Comine, tmp_path: Path) -> None:
    for task in TASKS:
        assert comine("simulate", "job.toml", *write(tmp_path, task), "--out", "out").code == 0
        assert json.loads((tmp_path / "out/model.json").read_text())["task"] == task


def test_what_is_wrong_is_said_in_a_sentence(comine: Comine, tmp_path: Path) -> None:
    rows = people(3 * SHARE, 4)
    parties = write(tmp_path, "naive-bayes", rows={**rows, "weight": ["heavy", *rows["weight"][1:]]})
    ran = comine("simulate", "job.toml", *parties)
    assert ran.code == 10
    assert '1 row of the column "weight" holds what is no number' in ran.err
    parties = write(tmp_path, "naive-bayes", rows={**rows, "weight": ["1e9", *rows["weight"][1:]]})
    assert comine("simulate", "job.toml", *parties).code == 0  # beyond the bounds is at the bound
    parties = write(tmp_path, "naive-bayes", rows={name: cells for name, cells in rows.items() if name != "town"})
    ran = comine("simulate", "job.toml", *parties)
    assert ran.code == 10
    assert "the data of north have no column 'town', which the job's model takes" in ran.err
    (tmp_path / "job.toml").write_text((tmp_path / "job.toml").read_text().replace('"class"', '"outcome"'))
    ran = comine("simulate", "job.toml", *parties)
    assert ran.code == 10
    assert "names the column 'outcome', of which [columns] says nothing" in ran.err


def test_from_python(tmp_path: Path) -> None:
    import pandas

    rows = people(30, 8)
    frame = pandas.DataFrame(rows)
    result = api.simulate(job("decision-tree", PARTIES[:2]), {"north": frame[:12], "south": frame[12:]})
    assert repr(result) == "Result('test', decision-tree, 2 parties, 30 rows)"
    told = result.model().predict(frame.drop(columns="class"))
    assert (told == frame["class"]).mean() > 0.6
    assert "smoker" in result._repr_html_()
    assert ".model()" in result._repr_html_()
    shown = result.model()._repr_html_()
    assert shown.startswith("<div><b>Decision tree of 3 columns, from 30 rows</b></div><pre>")
    assert "smoker" in shown
