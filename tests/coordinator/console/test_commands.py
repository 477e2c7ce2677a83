"""`comine console`: a coordinator's console, where it answers, and its accounts."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from comine.command import run
from console.site import Site
from coordinator.console.settings import ConsoleFile
from link.pki.authority import write_identity
from tests.errors import fails
from tests.party.files import COORDINATOR, write_federation

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


def test_the_console_of_a_coordinator_is_served_where_its_settings_say(
    federation: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    served = list[tuple[Site, str]]()
    monkeypatch.setattr("console.serving.serve_site", lambda *given: served.append(given))
    settings = federation.with_name("console.toml")
    settings.write_text('[console]\nlisten = "127.0.0.1:8471"\n')
    assert run(["console", "--federation", str(federation), "--settings", str(settings)]) == 0
    assert run(["console", "serve", "--federation", str(federation)]) == 0
    (own, add), (plain, _) = served
    assert (own.name, own.settings.port, plain.settings.listen) == ("analyst", 8471, "127.0.0.1:8470")
    assert run([*add.split()[1:], "--password-file", str(federation.with_name("password"))]) == 0
    assert own.lets_anybody_in()
