"""Jobs and results of a real node, in a real browser: live, held, released, withheld, cancelled."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.async_api import Browser

from link.files.quantities import size
from party.desk import at_desk
from protos.v1 import control_pb2 as control
from tests.console.chromium import TELEPHONE, Loop, answered, log_in, look, visitor
from tests.party.console.going import begun, held, proposed, started
from tests.party.console.world import PASSWORD, World, texts, world
from tests.party.nodes import audited, hold

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def north(loop: Loop, tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    folder = tmp_path_factory.mktemp("north")
    with world(loop, folder, policy='approvals = 2\nrelease = "manual"\n') as found:
        yield found


def desk_of(north: World, what: str) -> dict[str, Any]:
    """What `comine party status` or `results` prints with `--json`."""
    with at_desk(north.file) as desk:
        found: dict[str, Any] = getattr(desk, what)()
        return found


def test_two_people_approve_a_job_and_release_what_it_has_found(north: World, browser: Browser) -> None:
    async def test() -> None:
        job, approval = await proposed(north, name="two eyes")
        async with visitor(browser, refused=(400,)) as page, visitor(browser) as other:
            await log_in(page, f"{north.url}/inbox/{job}", "anna", PASSWORD)
            await page.get_by_role("button", name="Approve").click()
            await page.get_by_text("1 of 2 approved, by anna.").wait_for()
            assert await page.get_by_role("button", name="Approve").count() == 0
            assert await answered(page, f"/inbox/{job}/approve") == 400
            await page.goto(f"{north.url}/inbox")
            await page.get_by_text("awaiting approval, 1 of 2 approved, by anna").wait_for()
            await log_in(other, f"{north.url}/inbox/{job}", "adam", PASSWORD)
            await other.get_by_role("button", name="Approve").click()
            await other.get_by_text("approved by adam, anna").wait_for()
            await started(north, job, approval)
            await held(north, job)

            await page.get_by_role("link", name="Results").click()
            (result,) = (await asyncio.to_thread(desk_of, north, "results"))["results"]
            row = (await texts(page, "#waiting tbody tr"))[0]
            assert result["held"]["found"] in row
            assert f" {result['held']['n_rows']} " in row
            await look(page)
            await page.locator(f"#held-{job}").click()
            shown = await texts(page, "#held dd")
            assert shown[:3] == [result["held"]["found"], str(result["held"]["n_rows"]), "all"]
            opened = [
                [each["label"], str(each["number"]), str(each["size_bytes"])] for each in result["held"]["opened"]
            ]
            cells = await texts(page, "#opened td")
            assert [cells[place : place + 3] for place in range(0, len(cells), 4)] == opened
            for each in await page.locator("details").all():
                await each.evaluate("each => each.open = true")
            (table,) = [file for file in result["held"]["files"] if file.endswith("itemsets.csv")]
            lines = await asyncio.to_thread(Path(table).read_text)
            assert await page.locator("table.found tbody tr").count() >= min(20, lines.count("\n") - 1)
            await look(page)

            ended = asyncio.create_task(north.nodes.ends(bytes.fromhex(job)))
            await page.get_by_role("button", name="Release").click()
            assert {event.state for event in (await ended).values()} == {control.SUCCEEDED}
            await page.goto(f"{north.url}/results")
            await page.get_by_text("Nothing is held for release.").wait_for()
            await page.get_by_role("link", name="Report of job").click()
            report = page.frame_locator("iframe.report")
            await report.locator("h1").first.wait_for()
            await look(page)
            await page.get_by_role("link", name="on a page of its own").click()
            await page.locator("h1").first.wait_for()
            assert await page.evaluate("origin") == "null"

    north.loop.run(test())
    events = [entry for entry in audited(north.nodes.folder, "north") if entry["event"] == "hold-released"]
    assert events[-1]["fields"]["by"] == "anna"


def test_a_job_is_watched_and_cancelled_by_night_on_a_telephone_by_keyboard(north: World, browser: Browser) -> None:
    async def test() -> None:
        go_on = hold(north.nodes.nodes["south"])
        job = await begun(north, name="too long", itemsets={"min_support": "0.15"})
        try:
            async with visitor(browser, viewport=TELEPHONE, color_scheme="dark") as page:
                await log_in(page, f"{north.url}/jobs", "anna", PASSWORD)
                await page.locator(".progress").wait_for()  # the page goes on by itself until the node has noted it
                (now,) = (await asyncio.to_thread(desk_of, north, "status"))["jobs"]
                told = await texts(page, ".progress dd")
                sent = now["running"]["peers"]["south"]
                assert told[1:3] == [
                    f"{now['running'][key][:16].replace('T', ' ')} UTC" for key in ("since", "deadline")
                ]
                assert told[3] == f"{size(sent['bytes_sent'])} sent, {size(sent['bytes_received'])} received"
                await look(page)
                await page.locator(f"#job-{job}").focus()
                await page.keyboard.press("Enter")
                await page.locator("#reason").wait_for()
                await look(page)
                for _ in range(40):
                    await page.keyboard.press("Tab")
                    if await page.evaluate("document.activeElement.id") == "reason":
                        break
                await page.keyboard.type("wrong data")
                await page.keyboard.press("Enter")
                await page.locator("#error").wait_for()
                assert await page.locator("#state").inner_text() == "cancelled"
                assert "anna at north cancelled the job: wrong data" in await page.locator("#error").inner_text()
                await page.goto(f"{north.url}/jobs/history?state=cancelled")
                assert await page.locator("#past tbody tr").count() == 1
                await look(page)
        finally:
            go_on.set()

    north.loop.run(test())


def test_what_is_held_is_withheld_and_who_only_looks_can_not_decide(north: World, browser: Browser) -> None:
    async def test() -> None:
        go_on = hold(north.nodes.nodes["south"])
        job = await begun(north, name="unwanted", itemsets={"min_support": "0.18"})
        async with visitor(browser, refused=(403,)) as page, visitor(browser) as other:
            await log_in(page, f"{north.url}/jobs/{job}", "vera", PASSWORD)
            go_on.set()
            await held(north, job)
            await page.get_by_role("link", name="Show the page anew").click()
            await page.locator("#held").wait_for()
            assert await page.get_by_role("button").all_inner_texts() == ["Log out"]
            for act in ("release", "withhold", "cancel"):
                assert await answered(page, f"/jobs/{job}/{act}", reason="x") == 403
            await log_in(other, f"{north.url}/jobs/{job}", "anna", PASSWORD)
            await other.locator("#why").fill("too few rows")
            await other.keyboard.press("Enter")
            await page.get_by_role("link", name="Show the page anew").click()
            await page.get_by_text("north withholds the result of this job").wait_for()
        shown = await asyncio.to_thread(north.shown, job)
        assert (shown["state"], shown["error"]["code"]) == ("failed", "E301")

    north.loop.run(test())
    events = [entry for entry in audited(north.nodes.folder, "north") if entry["event"] == "hold-withheld"]
    assert (events[-1]["fields"]["by"], events[-1]["fields"]["reason"]) == ("anna", "too few rows")
