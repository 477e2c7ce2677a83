"""The inbox of a real node, in a real browser."""

from __future__ import annotations

import asyncio
import re
import threading
from functools import partial
from http.server import BaseHTTPRequestHandler, HTTPServer

import pytest
from playwright.async_api import Browser

from jobs.documents.summary import Entry
from party.policy.inbox_text import summary_entries
from protos.v1 import control_pb2 as control
from tests.console.chromium import TELEPHONE, log_in, look, visitor
from tests.party.console.world import PASSWORD, World, texts
from tests.party.nodes import audited

pytestmark = pytest.mark.slow
like_others = pytest.mark.turn(2, "pages")


def test_a_job_is_shown_as_the_command_shows_it_and_approved(north: World, browser: Browser) -> None:
    async def test() -> None:
        first, later = await north.propose(), await north.propose(itemsets={"min_support": "0.15"}, name="evil <b>")
        async with visitor(browser) as page:
            await log_in(page, north.url, "anna", PASSWORD)
            await look(page)
            await page.locator(f"#job-{first}").click()
            await look(page)
            await page.get_by_role("button", name="Approve").click()
            await page.get_by_text("approved by anna").wait_for()
            assert (await north.comes(first, control.APPROVED)).approval.certificate

            await page.goto(f"{north.url}/inbox/{later}")
            assert await page.locator("h1").inner_text() == "evil <b>"
            shown = await asyncio.to_thread(north.shown, later)
            told = [
                Entry(*pair)
                for pair in zip(*[await texts(page, f".consent {tag}") for tag in ("dt", "dd")], strict=True)
            ]
            assert told == summary_entries(shown)[0]
            changes = {"min_support: 20 % → 15 %", "name: weekly → evil <b>"}
            assert {*await texts(page, "#changes li")} == changes
            for each in await page.locator("details").all():
                await each.evaluate("each => each.open = true")
            assert {*shown["statement"]} <= {*await texts(page, "details li")}
            await look(page)

    north.loop.run(test())
    approved = [entry for entry in audited(north.nodes.folder, "north") if entry["event"] == "approved"]
    assert approved[-1]["fields"]["by"] == "anna"


@like_others
def test_a_job_is_denied_with_the_keyboard_alone_on_a_telephone_by_night(north: World, browser: Browser) -> None:
    async def test() -> None:
        job = await north.propose(name="nightly")
        async with visitor(browser, viewport=TELEPHONE, color_scheme="dark") as page:
            await log_in(page, f"{north.url}/inbox/{job}", "anna", PASSWORD)
            await look(page)
            for _ in range(60):
                await page.keyboard.press("Tab")
                if await page.evaluate("document.activeElement.id") == "reason":
                    break
            await page.keyboard.type("no legal basis")
            await page.keyboard.press("Enter")
            await page.get_by_text("denied by anna").wait_for()
            await page.goto(f"{north.url}/inbox?all=1")
            await look(page)
        event = await north.comes(job, control.DENIED)
        assert "anna at north denied the job: no legal basis" in event.error_message

    north.loop.run(test())


@like_others
def test_more_runs_are_approved_in_advance_and_taken_back(north: World, browser: Browser) -> None:
    async def test() -> None:
        job = await north.propose(name="monthly")
        async with visitor(browser, refused=(400,)) as page:
            await log_in(page, f"{north.url}/inbox/{job}", "anna", PASSWORD)
            await page.locator("summary").first.click()
            await page.locator("#times").fill("3")
            await page.get_by_role("button", name="Approve").click()
            await page.get_by_text("--every is a duration such as 7d").wait_for()
            await page.go_back()
            await page.evaluate("document.querySelector('details').open = true")
            await page.locator("#times").fill("3")
            await page.locator("#every").fill("7d")
            await page.locator("#until").fill(
                await page.evaluate("new Date(Date.now() + 4e9).toISOString().slice(0, 10)")
            )
            await page.get_by_role("button", name="Approve").click()
            await page.get_by_text("anna has approved 3 more runs").wait_for()
            await page.goto(f"{north.url}/inbox")
            await look(page)
            await page.get_by_role("button", name="Take back").click()
            await page.get_by_role("heading", name="Approved in advance").wait_for(state="detached")

    north.loop.run(test())
    assert audited(north.nodes.folder, "north")[-1]["fields"]["by"] == "anna"


@like_others
def test_the_list_stays_up_to_date_by_itself(north: World, browser: Browser) -> None:
    async def test() -> None:
        async with visitor(browser) as page:
            await log_in(page, north.url, "vera", PASSWORD)
            job = await north.propose(name="later")
            await page.evaluate("htmx.trigger('#jobs', 'every 10s')")
            await page.evaluate("htmx.ajax('GET', '/inbox', {target: '#jobs', select: '#jobs', swap: 'outerHTML'})")
            await page.locator(f"#job-{job}").wait_for()

    north.loop.run(test())


@like_others
def test_a_job_may_need_several_people(north: World, browser: Browser) -> None:
    written = north.file.read_text()
    north.file.write_text(written.replace("[policy]", '[policy]\napprovals = 2\nrelease = "manual"'))  # read anew

    async def test() -> None:
        job = await north.propose(name="by two")
        async with visitor(browser, refused=(400,)) as page:
            await log_in(page, f"{north.url}/inbox/{job}", "anna", PASSWORD)
            assert (await texts(page, "#hold"))[0].startswith("What the job finds is held until")
            await page.evaluate("document.querySelector('details').open = true")
            until = await page.evaluate("new Date(Date.now() + 4e9).toISOString().slice(0, 10)")
            for field, text in (("times", "3"), ("every", "7d"), ("until", until)):
                await page.locator(f"#{field}").fill(text)
            await page.get_by_role("button", name="Approve").click()
            told = f"1 of 2 approved, by anna, with 3 more runs, every 7d until {until}"
            await page.locator("#heard").get_by_text(f"{told}.").wait_for()
            # Who has approved is not asked again, and is not heard again by calling the address either.
            assert await page.get_by_role("button", name="Approve").count() == 0
            sent = f"fetch('/inbox/{job}/approve', {{method: 'POST', body: new URLSearchParams()}})"
            assert await page.evaluate(f"{sent}.then(answer => answer.status)") == 400
            await page.goto(f"{north.url}/inbox")
            assert f"awaiting approval, {told}" in await texts(page, "td")
            await page.get_by_role("button", name="Log out").click()
            await log_in(page, f"{north.url}/inbox/{job}", "adam", PASSWORD)
            await look(page)
            assert await page.locator("#every").input_value() == "7d"  # as anna has it
            await page.get_by_role("button", name="Approve").click()
            await page.get_by_text("approved by adam, anna").wait_for()
            await page.get_by_text("adam, anna has approved 3 more runs").wait_for()
            await page.get_by_role("button", name="Take back").click()
            await page.get_by_role("heading", name="Inbox").wait_for()

    try:
        north.loop.run(test())
    finally:
        north.file.write_text(written)


@like_others
def test_who_may_only_look_can_not_decide_by_calling_the_address(north: World, browser: Browser) -> None:
    async def test() -> None:
        job = await north.propose(name="kept")
        async with visitor(browser, refused=(403,)) as page:
            await log_in(page, f"{north.url}/inbox/{job}", "vera", PASSWORD)
            assert await page.get_by_role("button").all_inner_texts() == ["Log out"]
            for act in ("approve", "deny"):
                sent = f"fetch('/inbox/{job}/{act}', {{method: 'POST', body: new URLSearchParams({{reason: 'x'}})}})"
                assert await page.evaluate(f"{sent}.then(answer => answer.status)") == 403
            assert await page.locator("#state").inner_text() == "awaiting approval"
            await page.reload()
            assert await page.locator("#state").inner_text() == "awaiting approval"

    north.loop.run(test())


class _Elsewhere(BaseHTTPRequestHandler):
    """Another site, whose page sends a form to the console as soon as somebody sees it."""

    def __init__(self, target: str, *arguments: object) -> None:
        self._page = f"<form method=post action='{target}'><button>Win</button></form>".encode()
        super().__init__(*arguments)  # type: ignore[arg-type]

    def do_GET(self) -> None:
        self.send_response(200)
        self.send_header("Content-Type", "text/html")
        self.send_header("Content-Length", str(len(self._page)))
        self.end_headers()
        self.wfile.write(self._page)

    def log_message(self, *_: object) -> None:
        """Nothing."""


@like_others
def test_another_site_in_the_same_browser_decides_nothing(north: World, browser: Browser) -> None:
    async def test() -> None:
        job = await north.propose(name="wanted")
        with HTTPServer(("127.0.0.1", 0), partial(_Elsewhere, f"{north.url}/inbox/{job}/approve")) as elsewhere:
            thread = threading.Thread(target=elsewhere.serve_forever, kwargs={"poll_interval": 0.01})
            thread.start()
            try:
                async with visitor(browser, refused=(403, 404)) as page:
                    await log_in(page, f"{north.url}/inbox/{job}", "anna", PASSWORD)
                    # Another port of the same machine is of the same site, so cookies are sent along.
                    for name in ("127.0.0.1", "localhost"):
                        await page.goto(f"http://{name}:{elsewhere.server_port}/")
                        await page.get_by_role("button").click()
                        await page.get_by_text("this was not sent from a page of this console").wait_for()
                    await page.goto(f"{north.url}/inbox/{job}")
                    assert await page.locator("#state").inner_text() == "awaiting approval"
            finally:
                elsewhere.shutdown()
                thread.join()

    north.loop.run(test())


@like_others
def test_a_session_that_was_stolen_ends_when_its_owner_logs_out(north: World, browser: Browser) -> None:
    async def test() -> None:
        async with visitor(browser) as page, visitor(browser) as thief:
            await log_in(page, north.url, "anna", PASSWORD)
            cookies = await page.context.cookies()
            assert [(each["httpOnly"], each["sameSite"]) for each in cookies] == [(True, "Strict")]
            assert await page.evaluate("document.cookie") == ""
            await thief.context.add_cookies(
                [{key: each[key] for key in ("name", "value", "domain", "path")} for each in cookies]
            )
            await thief.goto(f"{north.url}/inbox")
            await thief.locator(".who").wait_for()
            await page.get_by_role("button", name="Log out").click()
            await page.locator("#password").wait_for()
            await thief.goto(f"{north.url}/inbox")
            await thief.locator("#password").wait_for()
            assert re.search(r"/login\?to=/inbox$", thief.url)

    north.loop.run(test())
