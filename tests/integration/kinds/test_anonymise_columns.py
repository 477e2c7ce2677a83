"""Columns of two organisations anonymised among nodes as users run them; the release verifies on its own."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import pytest

from anonymize.fulldomain.optimal import optimal
from anonymize.verifier import verify
from jobs.kinds.release.parameters import joint_anonymisation
from jobs.report.job_file import job_file
from tests.integration.processes import Organisations, command
from tests.mining.joint.anonymisation.anonymisation_jobs_world import RELEASED
from tests.mining.joint.anonymisation.anonymisation_world import PARTIES, hierarchies, people, whole
from tests.mining.joint.anonymisation.vertical_anonymisation_world import COLUMNS, job

TWO = PARTIES[:2]
HOLDERS = dict(zip(COLUMNS, ("north", "south", "north", "south", "north"), strict=True))


@pytest.mark.slow
def test_columns_are_anonymised_among_nodes(tmp_path: Path) -> None:
    cells, spec = people(80, 4), job(TWO, max_suppression="0.05")
    made = Organisations.create(tmp_path, {name: [["a"]] for name in TWO})
    for party in TWO:
        own = {"id": [f"p{row}" for row in range(80)], **{n: cells[n] for n in COLUMNS if HOLDERS[n] == party}}
        with (tmp_path / f"{party}.csv").open("w", newline="", encoding="utf-8") as file:
            csv.writer(file).writerows([list(own), *zip(*own.values(), strict=True)])
        config = tmp_path / f"{party}.toml"
        rules = f'tasks = ["anonymize"]\ncolumns = {RELEASED}'
        allowed = config.read_text().replace('tasks = ["itemsets", "rules"]', rules)
        dataset = f'[[dataset]]\nname = "people"\nkind = "table"\nsource = "{party}.csv"\nformat = "csv"\nid = "id"\n'
        config.write_text(allowed + dataset)
    (tmp_path / "job.toml").write_text(job_file(spec), encoding="utf-8")
    try:
        made.start()
        planned = command("job", "plan", "job.toml", "--federation", "federation.toml", "--detail", cwd=tmp_path)
        assert planned.code == 0, planned.err
        assert "the figures are those of the alignment alone" in " ".join(planned.out.split())
        ran = made.run("job.toml")
        assert ran.code == 0, ran.err
    finally:
        made.stop()
    verified = verify(tmp_path / "out")
    assert verified.ok, verified.failures
    told = json.loads((tmp_path / "out/certificate.json").read_text())
    pooled = optimal(whole(cells), hierarchies(), joint_anonymisation(spec).requirements, max_suppression="0.05")
    assert told["node"] == pooled.node
    assert told["suppressed"] == len(pooled.suppressed)
    assert told["statistics"].keys() >= {"rows_read_by_north", "rows_read_by_south"}
    checked = command("audit", "verify", "out", "state/north", "state/south", "--ca", "pki/ca.crt", cwd=tmp_path)
    assert checked.code == 0, checked.err
