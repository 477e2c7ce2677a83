"""Jobs and results of a coordinator, in a real browser: watched, cancelled, resumed, and who did it."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest
from playwright.async_api import Browser, Page

from tests.console.chromium import TELEPHONE, answered, log_in, look, texts, visitor
from tests.coordinator.console.world import PARTIES, PASSWORD, World
from tests.party.nodes import hold, weekly

pytestmark = pytest.mark.slow
FEW = {"universe": "items", "catalogue": [f"item{number}" for number in range(8)], "max_length": 1}


async def stands(page: Page, state: str) -> None:
    """Returns once the page says that the job has come to a state, which it does by itself."""
    await page.locator(f"#state:text-is('{state}')").wait_for()


def test_jobs_are_watched_as_commands_show_them_and_their_results_compared(hub: World, browser: Browser) -> None:
    spec: dict[str, Any] = {"parties": list(PARTIES), "deadline": "100s"}

    async def test() -> None:
        job = await hub.submit(weekly(**spec, name="evil <b>", itemsets={**FEW, "min_support": "0.2"}))
        async with visitor(browser, refused=(400, 403)) as page:
            await log_in(page, hub.url, "vera", PASSWORD)
            line = (await asyncio.to_thread(hub.printed, "job", "list"))["jobs"][0]
            cells = await texts(page, "#jobs tbody tr:first-child td")
            assert cells[0] == f"{line['name']} {job[:12]}"
            assert cells[2:] == [line["task"], "north, south", line["state"], "north"]
            await page.locator(f"#job-{job}").click()
            await stands(page, "awaiting-approval")
            shown = (await asyncio.to_thread(hub.printed, "job", "status", job))["parties"]
            rows = await texts(page, "#parties tbody tr")
            for row, (party, each) in zip(rows, shown.items(), strict=True):
                assert row.startswith(f"{party} {each['state']} ")
                assert row.endswith(each["waits_for"] or "–")
            assert await page.get_by_role("button").all_inner_texts() == ["Log out"]
            assert await texts(page, "header nav a") == ["Jobs", "Results"]
            acts = [f"/compose/{act}" for act in ("check", "text", "file", "plan", "submit")]
            for act in (f"/jobs/{job}/cancel", f"/jobs/{job}/resume", *acts):
                assert await answered(page, act, reason="x") == 403
            await hub.approve(job)
            await page.locator("#anew").click()
            await page.frame_locator("iframe.report").locator("h1").first.wait_for()
            assert await page.locator("#state").inner_text() == "succeeded"
            await look(page)
            later = await hub.submit(weekly(**spec, name="later", itemsets={**FEW, "min_support": "0.7"}))
            await page.goto(f"{hub.url}/jobs/{later}")
            await hub.approve(later)
            await page.locator("#anew").click()
            await page.set_viewport_size(TELEPHONE)
            await page.emulate_media(color_scheme="dark")
            await page.goto(f"{hub.url}/results/compare?{job}=on")
            await page.get_by_text("Choose between 2 and 8 results to compare").wait_for()
            await page.goto(f"{hub.url}/results")
            await look(page)
            await compare(page, hub, job, later)
            await look(page)
            await page.goto(f"{hub.url}/jobs/{job}/report")
            await page.locator("h1").first.wait_for()
            assert await page.evaluate("origin") == "null"

    hub.loop.run(test())


async def compare(page: Page, hub: World, *jobs: str) -> None:
    """Compares the results of two jobs with the keyboard; the second has found less."""
    for job in jobs:
        await page.locator(f"input[name='{job}']").focus()
        await page.keyboard.press("Space")
    await page.get_by_role("button", name="Compare").focus()
    await page.keyboard.press("Enter")
    await page.locator("#runs").wait_for()
    assert await texts(page, ".asked li") == ["name: evil <b> → later", "min_support: 20 % → 70 %"]
    (step,) = (await asyncio.to_thread(hub.printed, "job", "compare", *jobs))["steps"]
    (table,) = step["tables"]
    results = [(await asyncio.to_thread(hub.printed, "job", "result", job))["itemsets"] for job in jobs]
    first, second = ({tuple(each["itemset"]) for each in result} for result in results)
    gone = len(first - second)
    told = f"{len(second)} in both with the same figures; 0 appeared, {gone} vanished, 0 changed."
    assert await texts(page, ".same") == [told]
    assert (step["asked"], table["same"], table["vanished"]["number"]) == (
        ["name: evil <b> → later", "min_support: 20 % → 70 %"],
        len(second),
        gone,
    )
    assert {*await texts(page, "details td:first-child")} == {", ".join(each) for each in first - second}


def test_a_job_is_cancelled_and_resumed_by_keyboard_on_a_telephone_by_night(hub: World, browser: Browser) -> None:
    async def test() -> str:
        go_on = hold(hub.nodes.nodes["south"])
        job = await hub.submit(name="too early")
        await hub.approve(job)
        async with visitor(browser, viewport=TELEPHONE, color_scheme="dark") as page:
            await log_in(page, f"{hub.url}/jobs/{job}", "anna", PASSWORD)
            await page.locator("#parties").get_by_text("running").first.wait_for()
            await look(page)
            for _ in range(40):
                await page.keyboard.press("Tab")
                if await page.evaluate("document.activeElement.id") == "reason":
                    break
            await page.keyboard.type("wrong <b> data")
            await page.keyboard.press("Enter")
            await stands(page, "cancelled")
            assert "wrong <b> data" in await page.locator("#error").inner_text()
            go_on.set()
            await page.get_by_role("button", name="Resume the job").focus()
            await page.keyboard.press("Enter")
            await page.locator("iframe.report, #anew").first.wait_for()
            await page.goto(f"{hub.url}/jobs")
            await look(page)
        return job

    job = hub.loop.run(test())
    acts = hub.printed("job", "status", job)["acts"]
    assert [(act["what"], act["by"]) for act in acts] == [("cancelled", "anna"), ("resumed", "anna")]
    logged = [line for line in map(json.loads, hub.log.getvalue().splitlines()) if line.get("job") == job]
    assert [(line["event"], line["person"]) for line in logged] == [("job cancelled", "anna"), ("job resumed", "anna")]
