"""Peers, audit log and health of a real node, in a real browser; and logging in by a provider."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from playwright.async_api import Browser

from comine.command import run
from tests.console.chromium import TELEPHONE, log_in, look, visitor
from tests.console.provider import CLIENT, SECRET, Provider, provider
from tests.examples import in_turn
from tests.party.console.world import PASSWORD, World, texts, world
from tests.party.files import free_ports

pytestmark = pytest.mark.slow

ANNA = {"email": "anna@north.example", "email_verified": True, "groups": ["deciders"]}


@contextmanager
def printed(capsys: pytest.CaptureFixture[str], *arguments: object) -> Iterator[dict[str, object]]:
    """What a command prints with `--json`."""
    capsys.readouterr()
    assert run([*map(str, arguments), "--json"]) == 0
    yield json.loads(capsys.readouterr().out)


@pytest.fixture(scope="module")
def people() -> Iterator[Provider]:
    with provider() as found:
        found.person = ANNA
        yield found


@pytest.fixture(scope="module")
def north(loop: object, people: Provider, tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    folder = tmp_path_factory.mktemp("north")
    (folder / "console.secret").write_text(SECRET)
    table = f"""[console.oidc]
issuer = "{people.issuer}"
client_id = "{CLIENT}"
client_secret_file = "console.secret"
roles = {{ deciders = "approver" }}
[metrics]
listen = "127.0.0.1:{free_ports(1)[0]}"
"""
    with world(loop, folder, table) as found:  # type: ignore[arg-type]
        yield found


def test_pages_show_what_the_commands_print(north: World, browser: Browser, capsys: pytest.CaptureFixture[str]) -> None:
    job = north.loop.run(north.propose())
    with printed(capsys, "party", "peers", north.file) as peers:
        pass

    def log() -> Any:
        with printed(capsys, "audit", "show", north.file) as found:
            return found["entries"]

    with printed(capsys, "party", "check", north.file) as check:
        pass

    async def test(color_scheme: str, **viewport: object) -> None:
        async with visitor(browser, color_scheme=color_scheme, **viewport) as page:
            await log_in(page, f"{north.url}/peers", "vera", PASSWORD)
            own = await texts(page, "#own td:last-child, #coordinators td:last-child")
            assert own == [peers["certificate"]["fingerprint"], peers["authority"]["fingerprint"]] + [
                each["fingerprint"] for each in peers["coordinators"]
            ]
            assert len(await texts(page, "#members tbody tr")) == 2
            await look(page)
            await page.get_by_role("link", name="Audit log").click()
            rows = await texts(page, "#entries tbody td:last-child")
            entries = await asyncio.to_thread(log)
            assert rows == [" ".join(entry["summary"].split()) for entry in reversed(entries)]
            assert rows[0] == "vera as viewer"
            await look(page)
            await page.locator("#job").fill(job[:8])
            await page.get_by_role("button", name="Show").click()
            assert len(await texts(page, "#entries tbody tr")) == 1
            await page.get_by_role("button", name="Verify the log").click()
            assert (await texts(page, "#verified"))[0].startswith(f"{len(entries)} entries of north hold")
            await page.get_by_text("Nothing was found.").wait_for()
            await look(page)
            await page.get_by_role("link", name="Health").click()
            assert await page.locator("#runs").inner_text() == f"The node of north runs. comine {north.software}."
            found = zip(*[await texts(page, f"#findings td:nth-child({place})") for place in (1, 2, 3)], strict=True)
            assert [*found] == [(each["subject"], each["status"], each["sentence"]) for each in check["checks"]]
            assert await page.locator("#metrics tbody tr").count() > 10
            await look(page)

    for color_scheme, viewport in in_turn([("dark", {"viewport": TELEPHONE}), ("light", {})], 2):
        north.loop.run(test(color_scheme, **viewport))


def test_a_log_that_was_changed_is_found_at_the_console(north: World, browser: Browser) -> None:
    log = north.nodes.folder / "state" / "north" / "audit.log"
    whole = log.read_bytes()

    async def test() -> None:
        async with visitor(browser) as page:
            await log_in(page, f"{north.url}/audit", "vera", PASSWORD)
            log.write_bytes(whole.replace(b'"coordinator":"analyst"', b'"coordinator":"another"', 1))
            await page.get_by_role("button", name="Verify the log").click()
            await page.get_by_role("alert").wait_for()
            assert "findings" in await page.get_by_role("alert").inner_text()

    try:
        north.loop.run(test())
    finally:
        log.write_bytes(whole)


def test_a_person_of_the_provider_decides_under_their_own_name(north: World, browser: Browser) -> None:
    async def test() -> None:
        job = await north.propose(name="by a provider")
        async with visitor(browser) as page:
            await page.goto(north.url)
            await page.get_by_role("link", name="Log in with your organisation").click()
            await page.locator(".who").wait_for()
            assert await page.locator(".who span").inner_text() == "anna@north.example, approver"
            await page.goto(f"{north.url}/inbox/{job}")
            await page.get_by_role("button", name="Approve").click()
            await page.get_by_text("approved by anna@north.example").wait_for()
        shown = await asyncio.to_thread(north.shown, job)
        assert shown["decided_by"] == "anna@north.example"

    north.loop.run(test())
