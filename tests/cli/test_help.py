"""The help of every command, as it was last agreed; `COMINE_SNAPSHOTS=write` writes it anew."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path

import pytest

from link.errors import BY_CODE
from tests.cli.conftest import Comine

SNAPSHOTS = Path(__file__).parent / "help"
COMMANDS = [
    "",
    "anonymize",
    "anonymize explore",
    "anonymize hide-rules",
    "anonymize risk",
    "anonymize run",
    "anonymize verify",
    "audit",
    "audit show",
    "audit verify",
    "compare",
    "console",
    "docs",
    "doctor",
    "explain",
    "federation",
    "federation new",
    "frequency",
    "frequency create",
    "frequency delete",
    "frequency estimate",
    "frequency export",
    "frequency loadtest",
    "frequency simulate",
    "frequency submit",
    "frequency watch",
    "job",
    "job new",
    "job plan",
    "job run",
    "party",
    "pki",
    "pki init",
    "pki issue",
    "pki request",
    "pki revoke",
    "pki show",
    "pki sign",
    "query",
    "quickstart",
    "schema",
    "shuffle",
    "shuffle collect",
    "shuffle create",
    "shuffle submit",
    "simulate",
    "support-bundle",
]
HEAVY = {"numpy", "pyarrow", "grpc", "pydantic", "rich", "duckdb", "cryptography", "asyncio"}


@pytest.mark.parametrize("command", COMMANDS)
def test_help_is_as_agreed(comine: Comine, command: str) -> None:
    ran = comine(*command.split(), "--help")
    assert (ran.code, ran.err) == (0, "")
    snapshot = SNAPSHOTS / f"{'-'.join(['comine', *command.split()])}.txt"
    if os.environ.get("COMINE_SNAPSHOTS") == "write":
        snapshot.write_text(ran.out)
    assert ran.out == snapshot.read_text()


def test_help_loads_nothing_heavy() -> None:
    script = "import sys; from comine.command import run; run(['--help']); print(*sys.modules, file=sys.stderr)"
    loaded = subprocess.run([sys.executable, "-c", script], check=True, capture_output=True, text=True).stderr.split()
    assert not HEAVY & set(loaded)


def test_import_loads_nothing_heavy_and_offers_the_public_names() -> None:
    script = "import sys, comine; print(*sys.modules); comine.simulate, comine.Result, comine.Federation"
    loaded = subprocess.run([sys.executable, "-c", script], check=True, capture_output=True, text=True).stdout.split()
    assert not HEAVY & set(loaded)


def test_the_version(comine: Comine) -> None:
    assert comine("--version").out == f"comine {version('comine')}\n"


@pytest.mark.parametrize("code", sorted(BY_CODE))
def test_every_error_code_is_explained(comine: Comine, code: str) -> None:
    ran = comine("explain", code.lower())
    assert ran.code == 0
    assert re.match(rf"# {code}: .+\n\nExit code {BY_CODE[code].exit_code}\.\n", ran.out)
    assert "## Typical causes\n" in ran.out
    assert "## What to do\n" in ran.out


def test_an_explanation_as_json(comine: Comine) -> None:
    contents = json.loads(comine("explain", "E101", "--json").out)
    assert contents.pop("page") == comine("explain", "E101").out
    assert contents == {
        "schema": "comine.explain/1",
        "code": "E101",
        "exit_code": 10,
        "title": "A data file cannot be used",
    }


def test_an_unknown_code_names_those_that_exist(comine: Comine) -> None:
    ran = comine("explain", "E999")
    assert ran.code == 2
    assert "E101" in ran.err


@pytest.mark.parametrize("words", [["nonsense"], ["simulate"], ["job", "run"], ["simulate", "job.toml", "--bogus"]])
def test_a_wrong_command_line_exits_2(comine: Comine, words: list[str]) -> None:
    ran = comine(*words)
    assert ran.code == 2
    assert ran.out == ""
    assert "Usage: comine" in ran.err
