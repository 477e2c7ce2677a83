"""A job is composed, planned, saved and submitted in a real browser, and checked while somebody types."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from playwright.async_api import Browser

from coordinator.console.compose import read_job
from tests.console.chromium import TELEPHONE, answered, log_in, look, texts, visitor
from tests.coordinator.console.world import PASSWORD, World

pytestmark = pytest.mark.slow


def test_a_job_is_composed_from_what_the_parties_say(hub: World, browser: Browser, tmp_path: Path) -> None:
    async def test() -> None:
        async with visitor(browser, refused=(400,)) as page:
            await log_in(page, f"{hub.url}/compose", "anna", PASSWORD)
            rows = await texts(page, "#said tbody tr")
            assert rows == [f"{name} baskets (transactions) itemsets, rules" for name in ("north", "south")]
            await look(page)
            await page.locator("#kind").select_option("itemsets horizontal exact")
            await page.get_by_role("button", name="Go on").click()
            await page.get_by_text("Fits south").wait_for()
            await page.locator("[id='itemsets.min_support']").fill("0,25")
            await page.get_by_text("a number has a point in place of a comma").wait_for()
            await page.locator("[id='job.dataset']").fill("receipts")
            await page.locator("[id='itemsets.min_support']").fill("0.25")
            await page.get_by_text("North has no dataset 'receipts'").wait_for()
            await page.locator("[id='job.dataset']").fill("baskets")
            await page.locator("[id='itemsets.max_length']").fill("1")
            await page.locator("[id='job.name']").fill("evil <b>")
            await page.locator("#written").get_by_text("evil <b>").wait_for()
            await page.get_by_text("The job can be submitted.").wait_for()
            await look(page)
            async with page.expect_download() as saved:
                await page.get_by_role("button", name="Save").click()
            await (await saved.value).save_as(tmp_path / "job.toml")
            await page.get_by_role("button", name="Plan", exact=True).click()
            await page.locator("#costs").wait_for()
            told = await texts(page, "#costs tbody td:first-child, .consent dd")
            await look(page)
            assert read_job(await page.locator("#file").input_value()).job.name == "evil <b>"
            await page.get_by_role("button", name="Submit").click()
            await page.locator("#acts").get_by_text("anna submitted it").wait_for()
            job = page.url.rpartition("/")[2]
            (act,) = (await asyncio.to_thread(hub.printed, "job", "status", job))["acts"]
            assert (act["what"], act["by"]) == ("submitted", "anna")
            await page.get_by_role("button", name="Cancel the job").click()
            await page.locator("#state:text-is('cancelled')").wait_for()
            assert await page.locator("#hindrance").inner_text() == "It cannot be resumed: north had not approved it."
            assert await answered(page, f"/jobs/{job}/resume") == 400
        spec = read_job((tmp_path / "job.toml").read_text())
        assert (spec.job.name, spec.job.parties) == ("evil <b>", ("north", "south"))
        assert spec.itemsets_ is not None
        assert (str(spec.itemsets_.min_support), spec.itemsets_.max_length) == ("0.25", 1)
        plan = await asyncio.to_thread(hub.printed, "job", "plan", str(tmp_path / "job.toml"))
        assert told[-2:] == list(plan["parties"])
        assert {f"by {plan['coordinator']}: {plan['summary']['asked']}", plan["summary"]["worst"]} <= {*told}

    hub.loop.run(test())


def test_another_job_like_it_is_written_by_keyboard_on_a_telephone_by_night(hub: World, browser: Browser) -> None:
    async def test() -> None:
        job = await hub.submit(name="weekly")
        async with visitor(browser, viewport=TELEPHONE, color_scheme="dark") as page:
            await log_in(page, f"{hub.url}/compose/like/{job}", "anna", PASSWORD)
            file = page.locator("#file")
            assert (
                read_job(await file.input_value()).digest.hex()
                == (await asyncio.to_thread(hub.printed, "job", "status", job))["spec_digest"]
            )
            await look(page)
            await file.fill((await file.input_value()).replace('"south"]', '"west"]'))
            await page.get_by_text("is no party of the federation").wait_for()
            await page.get_by_role("button", name="Submit").focus()
            await page.keyboard.press("Enter")
            await page.locator("#refused").get_by_text("the federation has only").wait_for()
            await page.locator("#file").fill((await page.locator("#file").input_value()).replace("west", "south"))
            await page.locator("#expires").fill("soon")
            await page.get_by_role("button", name="Submit").click()
            await page.locator("#refused").get_by_text("needs a duration").wait_for()

    hub.loop.run(test())
