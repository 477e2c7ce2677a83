"""Jobs that learn models among nodes as users run them: planned, approved by policy, run, and verified afterwards."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import pytest

import comine as api
from jobs.kinds.models.document import pack_model
from jobs.report.job_file import job_file
from tests.integration.processes import Organisations, command
from tests.mining.joint.model_jobs_world import PARTIES, TASKS, Rows, Task, job, people, pooled

ROWS = 60


def organisations(folder: Path, rows: Rows, task: Task, partition: str) -> Organisations:
    """A federation whose nodes hold tables beside their baskets; the rows of one lie in blocks."""
    made = Organisations.create(folder, {name: [["a"]] for name in PARTIES})
    spec = job(task, partition=partition)
    for place, party in enumerate(PARTIES):
        if partition == "horizontal":
            own = {name: cells[20 * place : 20 * place + 20] for name, cells in rows.items()}
            ids = "[]"
        else:
            held = [name for number, name in enumerate(spec.columns) if number % 3 == place]
            own = {"id": [f"p{row}" for row in range(ROWS)], **{name: rows[name] for name in held}}
            ids = '"id"'
        with (folder / f"{party}.csv").open("w", newline="", encoding="utf-8") as file:
            csv.writer(file).writerows([list(own), *zip(*own.values(), strict=True)])
        config = folder / f"{party}.toml"
        allowed = config.read_text().replace('tasks = ["itemsets", "rules"]', f"tasks = {json.dumps(TASKS)}")
        dataset = f'[[dataset]]\nname = "people"\nkind = "table"\nsource = "{party}.csv"\nformat = "csv"\nid = {ids}\n'
        in_blocks = partition == "horizontal" and party == "south"
        config.write_text(allowed + dataset + 'engine = "processes"\n' * in_blocks)
    return made


@pytest.mark.slow
@pytest.mark.parametrize(
    ("task", "partition", "recipients"),
    [
        ("naive-bayes", "horizontal", ("coordinator", "south")),
        ("decision-tree", "vertical", ("all",)),
        ("k-means", "horizontal", ("south",)),
    ],
)
def test_a_model_among_nodes(tmp_path: Path, task: Task, partition: str, recipients: tuple[str, ...]) -> None:
    rows = people(ROWS, 6)
    spec = job(task, partition=partition, recipients=recipients)
    made = organisations(tmp_path, rows, task, partition)
    (tmp_path / "job.toml").write_text(job_file(spec), encoding="utf-8")
    try:
        made.start()
        planned = command("job", "plan", "job.toml", "--federation", "federation.toml", "--detail", cwd=tmp_path)
        assert planned.code == 0, planned.err
        limit = "only the first node is counted" if partition == "vertical" else "is not counted"
        assert limit in " ".join(planned.out.split())
        ran = made.run("job.toml")
        assert ran.code == 0, ran.err
    finally:
        made.stop()
    expected = pack_model(pooled(spec, rows))
    result = json.loads((tmp_path / "out/result.json").read_text())
    assert result["n_rows"] == ROWS
    assert (tmp_path / "state/south/blocks/people").exists() == (partition == "horizontal")
    to_coordinator = recipients != ("south",)
    assert (tmp_path / "out/model.json").exists() == to_coordinator
    own = tmp_path / "state" / "south" / "results" / result["job_id"]
    assert pack_model(api.load_model(own)) == expected
    assert (own.parents[2] / "east/results" / result["job_id"]).exists() == (recipients == ("all",))
    assert command("audit", "verify", "out", "state/south", "--ca", "pki/ca.crt", cwd=tmp_path).code == 0
    if not to_coordinator:
        return
    assert pack_model(api.load_model(tmp_path / "out")) == expected
    again = ("job", "result", result["job_id"][:12], "--federation", "federation.toml", "--out", "again")
    assert command(*again, cwd=tmp_path).code == 0
    assert (tmp_path / "again/model.json").read_bytes() == (tmp_path / "out/model.json").read_bytes()
    model = json.loads((tmp_path / "out/model.json").read_text())
    (tmp_path / "out/model.json").write_text(json.dumps({**model, "n_rows": ROWS + 1}))
    verified = command("audit", "verify", "out", "--ca", "pki/ca.crt", cwd=tmp_path)
    assert verified.code != 0
    assert "model.json" in verified.out + verified.err
