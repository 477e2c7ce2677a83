"""A job under distributed noise among nodes as users run them: run, charged at every party, and verified afterwards."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from jobs.report.job_file import job_file
from tests.integration.processes import Organisations, command
from tests.mining.joint.distributed.test_distributed_jobs import job
from tests.mining.joint.hybrid.hybrid_world import PARTIES, baskets


@pytest.mark.slow
@pytest.mark.parametrize("partition", ["horizontal", "hybrid"])
def test_noisy_supports_among_nodes(tmp_path: Path, partition: str) -> None:
    made = Organisations.create(tmp_path, {party: baskets(500, place) for place, party in enumerate(PARTIES)})
    spec = job(partition, "rules", rules={"min_confidence": "0.5"}, job={"recipients": ["all"]})
    (tmp_path / "job.toml").write_text(job_file(spec), encoding="utf-8")
    made.complete("job.toml")
    result = json.loads((tmp_path / "out/result.json").read_text())
    assert (result["strategy"], result["simulated"], result["estimated"]) == ("level-wise", False, True)
    assert (result["privacy"]["model"], result["privacy"]["epsilon"]) == ("distributed", 2.0)
    assert pq.read_table(tmp_path / "out/itemsets.parquet").num_rows
    assert pq.read_table(tmp_path / "out/rules.parquet").column_names[-2:] == ["low", "high"]
    signed = (tmp_path / "out/estimates.json").read_bytes()
    for party in PARTIES:
        own = tmp_path / "state" / party / "results" / result["job_id"]
        assert not own.exists() or (own / "estimates.json").read_bytes() == signed
        told = json.loads(command("party", "budget", f"{party}.toml", "--json", cwd=tmp_path).out)
        (dataset,) = told["datasets"]
        (charged,) = dataset["jobs"]
        assert (charged["job_id"], charged["charged"]["epsilon"]) == (result["job_id"], "2")
    checked = command(
        "audit", "verify", "out", *(f"state/{party}" for party in PARTIES), "--ca", "pki/ca.crt", cwd=tmp_path
    )
    assert checked.code == 0, checked.err
