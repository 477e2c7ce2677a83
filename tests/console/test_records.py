"""What a console records of who comes and goes, and of what account it knows nothing."""

from __future__ import annotations

import asyncio
import io
import queue
import socket
from pathlib import Path

import httpx2
import pytest

from console import connections, refusals
from console.accounts import Accounts
from console.refusals import Refusals
from console.server import running
from jobs.audit.console_events import (
    AccountAdded,
    AccountChanged,
    AccountRemoved,
    ConsoleEntered,
    ConsoleLeft,
    ConsoleRefused,
)
from jobs.audit.events import Event
from link.errors import ResourceError
from tests.console.sites import PASSWORD, Board, browser_of, log_in, small_site
from tests.errors import fails
from tests.looped import looped
from tests.party.files import free_ports


@looped
async def test_who_comes_and_goes_is_recorded(tmp_path: Path) -> None:
    found: list[Event] = []
    async with browser_of(small_site(tmp_path, Board(), record=found.append)) as client:
        await log_in(client, "vera")
        await client.get("/board")
        await client.post("/logout")
        await client.post("/logout")  # of nobody any more
        await log_in(client, "adam")
    assert found == [
        ConsoleEntered(by="vera", role="viewer", provider=False),
        ConsoleLeft(by="vera"),
        ConsoleEntered(by="adam", role="administrator", provider=False),
    ]


@looped
async def test_logins_that_fail_are_recorded_as_a_number(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(refusals, "PERIOD_S", 0.0)
    found: queue.Queue[Event] = queue.Queue()
    async with browser_of(small_site(tmp_path, Board(), record=found.put)) as client:
        await log_in(client, "vera", "wrong")
        assert await asyncio.to_thread(found.get, timeout=60) == ConsoleRefused(number=1, waited=0)


@looped
async def test_they_are_recorded_together_and_at_the_end() -> None:
    found: list[Event] = []

    async def record(event: Event) -> None:
        found.append(event)

    counted = Refusals(record)
    for number in range(100):
        counted.count(waited=number >= 10)
    await counted.close()
    await counted.close()
    assert found == [ConsoleRefused(number=100, waited=90)]
    assert str(found[0]) == "100 logins, 90 of them too often"


def test_a_console_that_ends_records_what_it_has_counted(tmp_path: Path) -> None:
    found: list[Event] = []
    site = small_site(tmp_path, Board(), record=found.append, listen=f"127.0.0.1:{free_ports(1)[0]}")
    with running(site) as url:
        answer = httpx2.post(f"{url}/login", data={"name": "nobody"}, headers={"Origin": url})
        assert answer.status_code == 403
    assert found == [ConsoleRefused(number=1, waited=0)]


@looped
async def test_a_log_that_cannot_be_written_keeps_nobody_from_looking(tmp_path: Path) -> None:
    log = io.StringIO()

    def full(event: Event) -> None:
        raise ResourceError("the audit log cannot be written")

    async with browser_of(small_site(tmp_path, Board(), log=log, record=full)) as client:
        assert (await log_in(client, "vera")).status_code == 303
        assert (await client.get("/board")).status_code == 200
    assert "console fault" in log.getvalue()


def test_changes_of_accounts_are_recorded_before_they_are_made(tmp_path: Path) -> None:
    found: list[Event] = []
    accounts = Accounts(tmp_path / "console.json", record=found.append)
    accounts.add("anna", "viewer", PASSWORD, by="root")
    accounts.add("anna", "approver", PASSWORD, replace=True)
    with fails("E001"):
        accounts.add("anna", "administrator", PASSWORD)
    accounts.remove("anna", by="root")
    assert found == [
        AccountAdded(by="root", account="anna", role="viewer"),
        AccountChanged(by="operator", account="anna", role="approver", before="viewer"),
        AccountRemoved(by="root", account="anna"),
    ]

    def full(event: Event) -> None:
        raise ResourceError("the audit log cannot be written")

    accounts = Accounts(tmp_path / "console.json", record=full)
    with pytest.raises(ResourceError):
        accounts.add("bert", "administrator", PASSWORD)
    assert accounts.people() == []


def test_a_head_that_does_not_come_ends_its_connection(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connections, "HEAD_S", 0.05)
    site = small_site(tmp_path, Board(), listen=f"127.0.0.1:{free_ports(1)[0]}")
    head = f"GET /login HTTP/1.1\r\nHost: {site.settings.listen}\r\n".encode()
    with running(site):
        for sent in (b"", head):
            with socket.create_connection((site.settings.host, site.settings.port), timeout=60) as slow:
                slow.sendall(sent)
                assert ends(slow) == b""
        with socket.create_connection((site.settings.host, site.settings.port), timeout=60) as slow:
            slow.sendall(head + b"\r\n")
            assert slow.recv(1 << 16).startswith(b"HTTP/1.1 200")
            slow.sendall(head)  # the second one on the same connection
            assert b"HTTP/1.1" not in ends(slow)
        with socket.create_connection((site.settings.host, site.settings.port), timeout=60) as long:
            long.sendall(head + b"X: " + b"x" * 20_000)
            assert ends(long).startswith(b"HTTP/1.1 400")


def ends(connection: socket.socket) -> bytes:
    """What comes until the other side ends the connection."""
    found = b""
    try:
        while part := connection.recv(1 << 16):
            found += part
    except ConnectionResetError:
        pass
    return found
