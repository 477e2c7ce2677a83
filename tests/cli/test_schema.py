"""The published schemas are those of the models, and results and job files meet them."""

from __future__ import annotations

import json
import tomllib
from pathlib import Path

import jsonschema
import pytest

from jobs.schema import NAMES, generate
from tests.cli.conftest import Comine, write_job

ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.parametrize("name", sorted(NAMES))
def test_published_schemas_are_fresh(comine: Comine, name: str) -> None:
    ran = comine("schema", name)
    assert ran.out == generate(name)
    jsonschema.Draft202012Validator.check_schema(json.loads(ran.out))


def test_results_meet_their_schema(comine: Comine, baskets: list[str], tmp_path: Path) -> None:
    schema = json.loads(generate("result"))
    write_job(tmp_path, task="rules", more='[rules]\nmin_confidence = 0.5\nmeasures = ["conviction"]')
    ran = comine("simulate", "job.toml", *baskets, "--json")
    jsonschema.validate(json.loads(ran.out), schema)
    assert comine("simulate", "job.toml", *baskets, "--out", "out").code == 0
    contents = json.loads((tmp_path / "out/result.json").read_text())
    jsonschema.validate(contents, schema)
    assert set(contents["parties"]) == {"north", "south", "east"}
    assert all(costs["bytes_sent"] > 0 and costs["rounds"] > 0 for costs in contents["parties"].values())
    assert all(len(receipt["agrees_with"]) == 2 for receipt in contents["receipts"])
    assert contents["disclosure"]


def test_job_files_meet_their_schema(tmp_path: Path) -> None:
    write_job(tmp_path)
    contents = tomllib.loads((tmp_path / "job.toml").read_text())
    jsonschema.validate(contents, json.loads(generate("job")))
    for recipients in ("all", ["all"]):
        contents["job"]["recipients"] = recipients
        jsonschema.validate(contents, json.loads(generate("job")))
    contents["job"]["recipients"] = []
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(contents, json.loads(generate("job")))


@pytest.mark.parametrize("file", sorted((ROOT / "examples/frequency").glob("*.toml")), ids=lambda path: path.stem)
def test_collections_meet_their_schema(file: Path) -> None:
    jsonschema.validate(tomllib.loads(file.read_text()), json.loads(generate("collection")))


def test_an_unknown_schema_is_a_usage_error(comine: Comine) -> None:
    assert comine("schema", "nonsense").code == 2
