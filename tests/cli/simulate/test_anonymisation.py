"""`comine simulate` of jobs that anonymise: the result folder, standard output, and what verifies it."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any

import jsonschema

from jobs.report.job_file import job_file
from jobs.schema import generate
from tests.cli.conftest import Comine
from tests.mining.joint.anonymisation.anonymisation_jobs_world import job
from tests.mining.joint.anonymisation.anonymisation_world import PARTIES, people


def write(folder: Path, **changes: Any) -> list[str]:
    """Writes the tables and `job.toml`; the arguments that name the files."""
    cells = people(60, 4)
    (folder / "job.toml").write_text(job_file(job(**changes)), encoding="utf-8")
    for place, party in enumerate(PARTIES[:3]):
        own = {name: column[20 * place : 20 * place + 20] for name, column in cells.items()}
        with (folder / f"{party}.csv").open("w", newline="", encoding="utf-8") as file:
            csv.writer(file).writerows([list(own), *zip(*own.values(), strict=True)])
    return [word for party in PARTIES[:3] for word in ("--party", f"{party}={party}.csv")]


def test_the_result_folder(comine: Comine, tmp_path: Path) -> None:
    ran = comine("simulate", "job.toml", *write(tmp_path), "--out", "out")
    assert (ran.code, ran.out) == (0, ""), ran.err
    assert "task anonymize: 60 rows of 3 parties; 60 are released and 0 left out; written to out" in ran.err
    result = json.loads((tmp_path / "out" / "result.json").read_text())
    jsonschema.validate(result, json.loads(generate("result")))
    assert (result["n_rows"], result["n_itemsets"], result["strategy"]) == (60, None, "optimal")
    verified = comine("anonymize", "verify", "out")
    assert verified.code == 0, verified.out + verified.err


def test_the_rows_on_standard_output(comine: Comine, tmp_path: Path) -> None:
    ran = comine("simulate", "job.toml", *write(tmp_path, algorithm="mondrian"))
    assert ran.code == 0, ran.err
    assert ran.out.splitlines()[0] == "age,town,sex,ill,note"
    assert len(ran.out.splitlines()) == 61


def test_what_cannot_be_met_is_told(comine: Comine, tmp_path: Path) -> None:
    ran = comine("simulate", "job.toml", *write(tmp_path, model={"k": 61}))
    assert ran.code == 10
    assert "all parties together have 60 rows, and every class needs 61" in " ".join(ran.err.split())
    assert "Traceback" not in ran.err
