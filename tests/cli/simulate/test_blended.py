"""`comine simulate` of blended jobs: a table with intervals, what it cost, and a report."""

from __future__ import annotations

import json
from pathlib import Path

import jsonschema
import pyarrow.parquet as pq

from jobs.schema import generate
from tests.cli.conftest import Comine
from tests.mining.joint.hybrid.hybrid_world import PARTIES, baskets

JOB = """[job]
name = "blended"
task = "itemsets"
parties = ["north", "south", "east"]
dataset = "baskets"
partition = "hybrid"
[itemsets]
top_k = 3
max_length = 1
[privacy]
model = "blended"
epsilon = 2.0
delta = 1e-6
opted_in = ["south"]
"""


def test_items_with_intervals(comine: Comine, tmp_path: Path) -> None:
    (tmp_path / "job.toml").write_text(JOB)
    for place, party in enumerate(PARTIES):
        rows = [row for row in baskets(1500, place) if row]
        (tmp_path / f"{party}.dat").write_text("".join(f"{' '.join(row)}\n" for row in rows))
    given = [word for name in PARTIES for word in ("--party", f"{name}={name}.dat")]
    ran = comine("simulate", "job.toml", *given, "--out", "out", "--seed", "4")
    assert ran.code == 0, ran.err
    assert "3 itemsets, estimated with 95 % intervals, of " in ran.err
    table = pq.read_table(tmp_path / "out/itemsets.parquet").to_pylist()
    assert [row["itemset"] for row in table] == [["a"], ["b"], ["c"]]
    assert all(0 <= row["low"] <= row["support"] <= row["high"] <= 1 for row in table)
    contents = json.loads((tmp_path / "out/result.json").read_text())
    jsonschema.validate(contents, json.loads(generate("result")))
    assert contents["strategy"] == "blended"
    assert contents["privacy"] | {"bound": ""} == {
        "model": "blended",
        "local_epsilon": 2.0,
        "epsilon": 2.0,
        "delta": 1e-6,
        "n": None,
        "bound": "",
    }
    page = (tmp_path / "out/report.html").read_text()
    assert "people of south trust their own party" in page
    (tmp_path / "job.toml").write_text(JOB.replace("max_length = 1", ""))
    refused = comine("simulate", "job.toml", *given)
    assert refused.code == 10
    assert "finds single items; set task" in refused.err
