"""`comine console`: a coordinator's console, where it answers, and its accounts."""

from __future__ import annotations

import json
import signal
import urllib.request
from pathlib import Path

import pytest

from comine.command import run
from coordinator.console.settings import ConsoleFile
from link.pki.authority import write_identity
from tests.errors import fails
from tests.integration.processes import Process
from tests.party.files import COORDINATOR, free_ports, write_federation

PASSWORD = "correct horse battery"


@pytest.fixture
def federation(tmp_path: Path) -> Path:
    authority = write_federation(tmp_path, {"north": [["milk"]], "south": [["milk"]]})
    write_identity(authority.issue("analyst", "coordinator"), tmp_path / "pki")
    file = tmp_path / "federation.toml"
    file.write_text(file.read_text() + COORDINATOR)
    (tmp_path / "password").write_text(f"{PASSWORD}\n")
    return file


def user(federation: Path, *arguments: object) -> int:
    return run(["console", "user", *map(str, arguments), "--federation", str(federation)])


def test_accounts_are_made_listed_and_removed(federation: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = federation.with_name("password")
    assert user(federation, "add", "anna", "--role", "approver", "--password-file", file) == 0
    assert user(federation, "add", "anna", "--password-file", file) == 2
    assert user(federation, "remove", "vera") == 2
    assert "comine console user list" in capsys.readouterr().err
    assert user(federation, "list", "--json") == 0
    assert json.loads(capsys.readouterr().out)["accounts"] == [{"name": "anna", "role": "approver"}]
    held = federation.parent / "jobs" / "console.json"
    assert (held.stat().st_mode & 0o777, held.parent.stat().st_mode & 0o777) == (0o600, 0o700)
    assert user(federation, "remove", "anna") == 0


def test_a_federation_file_without_a_coordinator_has_no_console(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write_federation(tmp_path, {"north": [["milk"]], "south": [["milk"]]})
    assert user(tmp_path / "federation.toml", "list") == 10
    assert run(["console", "--federation", str(tmp_path / "federation.toml")]) == 10
    assert capsys.readouterr().err.count("[coordinator]") == 2


def test_its_settings_are_those_of_a_nodes_console_in_a_file_of_its_own(tmp_path: Path) -> None:
    file = tmp_path / "console.toml"
    file.write_text('[console]\nlisten = "console.example:443"\ncertificate = "pki/a.crt"\nkey = "pki/a.key"\n')
    found = ConsoleFile.load(file)
    assert (found.origins(443), found.key) == (("https://console.example",), tmp_path / "pki" / "a.key")
    file.write_text('[console]\nlisten = "192.0.2.1:8470"\n')
    with fails("E100"):
        ConsoleFile.load(file)


def test_the_console_runs_until_it_is_told_to_stop(federation: Path) -> None:
    settings = federation.with_name("console.toml")
    settings.write_text(f'[console]\nlisten = "127.0.0.1:{free_ports(1)[0]}"\n')
    process = Process("console", "--settings", settings, cwd=federation.parent)
    try:
        address = process.until("the console of analyst is at ").rpartition(" ")[2]
        assert "comine console user add" in process.until("nobody can log in yet")
        with urllib.request.urlopen(address, timeout=60) as answer:
            assert b"Log in" in answer.read()
        process.send(signal.SIGTERM)
        assert process.end().code == 0
    finally:
        process.kill()
