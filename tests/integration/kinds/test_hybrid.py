"""Jobs that mine perturbed records among nodes as users run them: run, handed out, and verified afterwards."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from jobs.report.job_file import job_file
from tests.integration.processes import Organisations, command
from tests.mining.joint.hybrid.hybrid_world import ITEMS, PARTIES, baskets, job

ROWS = 400
PRIVACY = {
    "local": {"model": "local", "epsilon": "4"},
    "shuffle": {"model": "shuffle", "epsilon": "1.5", "delta": "1e-6", "shufflers": ["south", "east"]},
}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("model", "recipients"), [("local", ["coordinator"]), ("shuffle", ["all"]), ("shuffle", ["south"])]
)
def test_perturbed_records_among_nodes(tmp_path: Path, model: str, recipients: list[str]) -> None:
    made = Organisations.create(tmp_path, {party: baskets(ROWS, place) for place, party in enumerate(PARTIES)})
    rules = {"min_confidence": "0.1"}
    spec = job(privacy=PRIVACY[model], job={"recipients": recipients, "task": "rules"}, rules=rules)
    (tmp_path / "items").write_text("".join(f"{item}\n" for item in ITEMS))
    (tmp_path / "job.toml").write_text(job_file(spec), encoding="utf-8")
    made.complete("job.toml")
    result = json.loads((tmp_path / "out/result.json").read_text())
    assert (result["strategy"], result["simulated"]) == ("svsm", False)
    own = tmp_path / "state/south/results" / result["job_id"]
    if "coordinator" in recipients or "all" in recipients:
        assert (result["estimated"], result["privacy"]["model"]) == (True, model)
        assert pq.read_table(tmp_path / "out/itemsets.parquet").column_names[-3:] == ["deviation", "low", "high"]
        assert pq.read_table(tmp_path / "out/rules.parquet").column_names[-2:] == ["low", "high"]
        signed = (tmp_path / "out/estimates.json").read_bytes()
        assert not own.exists() or (own / "estimates.json").read_bytes() == signed
    else:
        assert (result["estimated"], result["privacy"]) == (None, None)
        assert not (tmp_path / "out/estimates.json").exists()
    assert own.exists() == ("coordinator" not in recipients)
    checked = command(
        "audit", "verify", "out", *(f"state/{party}" for party in PARTIES), "--ca", "pki/ca.crt", cwd=tmp_path
    )
    assert checked.code == 0, checked.err
    if own.exists() and "all" in recipients:
        for name in ("estimates.json", "itemsets.csv", "rules.csv"):
            assert not _still_verifies(tmp_path, name), name


def _still_verifies(folder: Path, name: str) -> bool:
    """Whether a result with one digit changed is taken for what was signed."""
    path = folder / "out" / name
    contents = path.read_bytes()
    place = max(contents.rfind(b"1"), contents.rfind(b"2"))
    path.write_bytes(contents[:place] + b"3" + contents[place + 1 :])
    code = command("audit", "verify", "out", "--ca", "pki/ca.crt", cwd=folder).code
    path.write_bytes(contents)
    return code == 0
