"""The workflows of the hosting service: their schema, zizmor's audits, and what the project asks of them."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.deploy.tools import ROOT, run, tool

FOLDER = ROOT / ".github" / "workflows"
FILES = sorted(FOLDER.glob("*.yml"))
MAKE = re.compile(r"^make ([\w-]+)$")


def read(file: Path) -> dict[str, Any]:
    return yaml.safe_load(file.read_text())


def steps(file: Path) -> list[dict[str, Any]]:
    return [step for job in read(file)["jobs"].values() for step in job["steps"]]


def test_there_are_two() -> None:
    assert [file.name for file in FILES] == ["release.yml", "tests.yml"]


def test_the_service_understands_them() -> None:
    ran = run(tool("check-jsonschema"), "--builtin-schema", "vendor.github-workflows", *FILES)
    assert ran.returncode == 0, ran.stdout


def test_an_auditor_finds_nothing() -> None:
    ran = run(tool("zizmor"), "--offline", "--persona", "pedantic", "--no-progress", ROOT)
    assert ran.returncode == 0, ran.stdout


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_actions_are_pinned_by_commit_and_say_their_version(file: Path) -> None:
    used = re.findall(r"uses: (.*)", file.read_text())
    assert used
    for each in used:
        assert re.fullmatch(r"[\w.-]+/[\w.-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+", each), each


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_jobs_may_read_and_no_more(file: Path) -> None:
    workflow = read(file)
    assert workflow["permissions"] == {}
    for name, job in workflow["jobs"].items():
        expected = {"id-token": "write"} if name == "publish" else {"contents": "read"}
        assert job["permissions"] == expected
        assert job["timeout-minutes"]
    assert "secrets." not in file.read_text()


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_they_run_what_people_run(file: Path) -> None:
    makefile = (ROOT / "Makefile").read_text()
    for step in steps(file):
        if command := step.get("run"):
            target = MAKE.match(command)
            assert target, command
            assert re.search(rf"(?m)^{target[1]}:", makefile), command


def test_every_python_is_tested() -> None:
    (matrix,) = (job["strategy"]["matrix"] for job in read(FOLDER / "tests.yml")["jobs"].values() if "strategy" in job)
    lowest = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["requires-python"].removeprefix(">=")
    assert matrix["python"][0] == lowest
    assert matrix["python"] == ["3.11", "3.12", "3.13", "3.14"]


def test_what_is_published_was_built_without_rights_and_is_attested() -> None:
    jobs = read(FOLDER / "release.yml")["jobs"]
    publish = jobs["publish"]
    assert publish["needs"] == "build"
    assert publish["environment"] == "release"
    *_, last = publish["steps"]
    assert last["with"]["attestations"] is True
    assert not any("run" in step for step in publish["steps"])
    assert not any("password" in step.get("with", {}) for step in publish["steps"])
