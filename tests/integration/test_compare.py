"""`comine compare` among nodes: every model is a job of its own, on which each party decides."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from jobs.report.job_file import job_file
from tests.integration.processes import Organisations, command
from tests.mining.joint.hybrid.hybrid_world import ITEMS, PARTIES, baskets, job

ROWS = 400


@pytest.mark.slow
def test_models_among_nodes(tmp_path: Path) -> None:
    rows = {party: [row for row in baskets(ROWS, place) if row] for place, party in enumerate(PARTIES)}
    made = Organisations.create(tmp_path, rows)
    privacy = {"model": "blended", "epsilon": "2", "delta": "1e-6", "opted_in": ["south"]}
    spec = job(privacy=privacy, itemsets={"top_k": 3, "min_support": "0.1", "max_length": 1})
    (tmp_path / "items").write_text("".join(f"{item}\n" for item in ITEMS))
    text = job_file(spec).replace('"blended"', '"shuffle"')  # opted_in is for one of the models compared
    (tmp_path / "job.toml").write_text(text, encoding="utf-8")
    words = (
        "compare",
        "job.toml",
        "--federation",
        "federation.toml",
        "--models",
        "distributed,blended",
        "--out",
        "out",
    )
    try:
        made.start()
        ran = command(*words, cwd=tmp_path)
        assert ran.code == 0, ran.err
    finally:
        made.stop()
    contents = json.loads((tmp_path / "out/compare.json").read_text())
    assert (contents["simulated"], contents["seeds"], contents["not_run"]) == (False, None, [])
    assert [each["model"] for each in contents["models"]] == ["exact", "distributed", "blended"]
    assert (contents["n_rows"], contents["true_itemsets"]) == (sum(map(len, rows.values())), 3)
    listed = command("job", "list", "--federation", "federation.toml", "--json", cwd=tmp_path)
    assert len(json.loads(listed.out)["jobs"]) == 3
