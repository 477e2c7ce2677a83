"""`comine party console`: the console beside a node and within it, and its accounts."""

from __future__ import annotations

import asyncio
import importlib.util
import io
import json
import signal
import socket
import urllib.error
import urllib.request
from pathlib import Path

import pytest

from comine.command import run
from party.config import PartyConfig
from party.console.hosting import hosted
from party.node.logs import open_log
from party.server import Node
from tests.errors import fails
from tests.integration.processes import Process
from tests.party.files import free_ports, write_federation

PASSWORD = "correct horse battery"


@pytest.fixture
def north(tmp_path: Path) -> Path:
    write_federation(tmp_path, {"north": [["milk"]], "south": [["milk"]]})
    (tmp_path / "state" / "north").mkdir(parents=True)
    (tmp_path / "password").write_text(f"{PASSWORD}\n")
    with (tmp_path / "north.toml").open("a") as file:
        file.write(f'[console]\nlisten = "127.0.0.1:{free_ports(1)[0]}"\n')
    return tmp_path / "north.toml"


def user(*arguments: object) -> int:
    return run(["party", "console", "user", *map(str, arguments)])


def test_accounts_are_made_listed_and_removed(north: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = north.with_name("password")
    assert user("add", north, "anna", "--role", "approver", "--password-file", file) == 0
    assert user("add", north, "vera", "--password-file", file) == 0
    assert capsys.readouterr().out == "anna can log in as approver\nvera can log in as viewer\n"
    assert user("add", north, "vera", "--password-file", file) == 2
    assert user("add", north, "vera", "--role", "root", "--password-file", file) == 2
    assert user("add", north, "bert") == 2
    assert user("add", north, "bert", "--password-file", north.parent) == 10
    told = capsys.readouterr().err
    for words in ("already", "--role is one of viewer, approver, administrator", "no terminal", "cannot be read"):
        assert words in told
    assert user("add", north, "vera", "--role", "approver", "--password-file", file, "--force", "--by", "anna") == 0
    assert user("remove", north, "vera") == 0
    assert user("remove", north, "vera", "--by", "policy") == 2
    capsys.readouterr()
    assert user("list", north, "--json") == 0
    listed = json.loads(capsys.readouterr().out)
    assert listed == {"schema": "comine.accounts/1", "accounts": [{"name": "anna", "role": "approver"}]}
    assert run(["audit", "show", str(north)]) == 0
    told = [line.split("account-", 1)[1].split() for line in capsys.readouterr().out.splitlines() if "account-" in line]
    assert [" ".join(words) for words in told] == [
        "added anna as approver, by operator",
        "added vera as viewer, by operator",
        "changed vera, approver, before viewer, by anna",
        "removed vera, by operator",
    ]
    asyncio.run(starts(north))  # with a log that was begun before it
    assert PASSWORD not in (north.parent / "state" / "north" / "console.json").read_text()


def test_a_node_runs_its_console_itself(north: Path) -> None:
    log = io.StringIO()
    config = PartyConfig.load(north)
    assert config.console is not None

    async def test() -> None:
        async with hosted(config, north, open_log("north", log)):
            assert b"Log in" in await asyncio.to_thread(answered, f"http://{config.console.listen}/")
        with pytest.raises(urllib.error.URLError):
            await asyncio.to_thread(answered, f"http://{config.console.listen}/")

    asyncio.run(test())
    told = [json.loads(line)["event"] for line in log.getvalue().splitlines()]
    assert told == ["console ready", "console without accounts"]


def test_a_node_without_the_table_has_no_console(north: Path) -> None:
    async def test() -> None:
        async with hosted(PartyConfig.load(north).model_copy(update={"console": None}), north, open_log("north")):
            pass

    asyncio.run(test())


def test_a_port_that_is_taken_and_packages_that_are_missing_are_told(
    north: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = PartyConfig.load(north)
    assert config.console is not None

    async def test() -> None:
        async with hosted(config, north, open_log("north", io.StringIO())):
            pass

    with socket.socket() as taken:
        taken.bind(("127.0.0.1", config.console.port))
        taken.listen()
        with fails("E103"):
            asyncio.run(test())
    monkeypatch.setattr("console.extra.find_spec", lambda name: importlib.util.find_spec("nothing_of_that_name"))
    with fails("E100"):
        asyncio.run(test())


def test_the_console_beside_a_node_runs_until_it_is_told_to_stop(north: Path) -> None:
    process = Process("party", "console", north, cwd=north.parent)
    try:
        address = process.until("the console of north is at ").rpartition(" ")[2]
        assert "party console user add" in process.until("nobody can log in yet")
        assert b"Log in" in answered(address)
        process.send(signal.SIGTERM)
        assert process.end().code == 0
    finally:
        process.kill()


async def starts(path: Path) -> None:
    node = Node(PartyConfig.load(path), open_log("north", io.StringIO()))
    await node.start()
    await node.stop()


def answered(address: str) -> bytes:
    with urllib.request.urlopen(address, timeout=60) as answer:
        found: bytes = answer.read()
        return found
