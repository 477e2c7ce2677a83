"""Runs commands inside the test's process, in a folder of their own."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import pytest

from comine.command import run

JOB = """[job]
name = "weekly-baskets"
task = "{task}"
parties = ["north", "south", "east"]
dataset = "baskets"
[itemsets]
min_support = {min_support}
{more}
"""

ANONYMIZE = """[anonymize]
source = "people.csv"
quasi_identifiers = ["age", "town"]
sensitive = ["illness"]
algorithm = "mondrian"
[anonymize.model]
k = 2
"""
ROWS = {
    "north": [["bread", "milk"], ["bread", "milk", "tea"]],
    "south": [["bread"], ["milk", "tea"], ["bread", "milk"], ["jam"]],
    "east": [["bread", "milk", "jam"], ["tea"], ["bread", "tea"]],
}


class Ran(NamedTuple):
    """How a command ended."""

    code: int
    out: str
    err: str


Comine = Callable[..., Ran]


@pytest.fixture
def comine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Comine:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "100")
    monkeypatch.delenv("COMINE_DEBUG", raising=False)

    def command(*arguments: object) -> Ran:
        capsys.readouterr()
        code = run([str(argument) for argument in arguments])
        captured = capsys.readouterr()
        assert "Traceback" not in captured.err
        return Ran(code, captured.out, captured.err)

    return command


@pytest.fixture
def baskets(tmp_path: Path) -> list[str]:
    """Writes `ROWS` as basket files and `job.toml`; the arguments that name the files."""
    write_job(tmp_path)
    for name, rows in ROWS.items():
        (tmp_path / f"{name}.dat").write_text("".join(" ".join(row) + "\n" for row in rows))
    return [word for name in ROWS for word in ("--party", f"{name}={name}.dat")]


def write_job(folder: Path, *, task: str = "itemsets", min_support: str = "0.2", more: str = "") -> None:
    (folder / "job.toml").write_text(JOB.format(task=task, min_support=min_support, more=more))
