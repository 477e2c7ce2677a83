"""Collections, releases and results that are held, in a real browser: at night, on a telephone, by keyboard."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from playwright.async_api import Browser, Page

from tests.console.chromium import TELEPHONE, Loop, log_in, look, visitor
from tests.integration.anonymization.conftest import here  # noqa: F401 - a fixture of this folder, too
from tests.party.console.furnished import TABLES, collect, release, write_patients
from tests.party.console.going import begun, held
from tests.party.console.world import PASSWORD, World, texts, world

pytestmark = pytest.mark.slow
like_others = pytest.mark.turn(2, "pages")
LOOK: dict[str, Any] = {"color_scheme": "dark", "viewport": TELEPHONE}


@pytest.fixture(scope="module")
def north(loop: Loop, tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    folder = tmp_path_factory.mktemp("north")
    write_patients(folder)
    with world(loop, folder, TABLES, 'release = "manual"\n') as found:
        yield found


async def press(page: Page, where: str) -> None:
    """Follows a link, or presses a button, by keyboard."""
    await page.locator(where).focus()
    await page.keyboard.press("Enter")


@like_others
def test_collections_are_looked_at(north: World, browser: Browser) -> None:
    async def test() -> None:
        async with visitor(browser, **LOOK) as page:
            await log_in(page, f"{north.url}/collections", "vera", PASSWORD)
            await look(page)
            await press(page, "#collections a")
            await page.locator("#estimates").wait_for()
            await look(page)
            drawn = await page.evaluate("document.getElementById('rounds-chart').chart.getOption().series.length")
            assert drawn == 3 * 6  # dots, intervals and a line of each value
            assert (await texts(page, "#estimates tbody td:first-child"))[0] == "apples"
            assert len(await texts(page, "#course tbody tr")) == 3
            await press(page, "main a[href$='/rounds']")
            await page.locator("#rounds").wait_for()
            await look(page)
            await press(page, "#rounds tbody tr:last-child a")
            await page.locator("#estimates").wait_for()
            assert await page.locator("#rounds-chart").count() == 0

    north.loop.run(collect(north, "purchases", 3, 400))
    north.loop.run(test())


@like_others
@pytest.mark.usefixtures("here")
def test_releases_are_looked_at_and_rows_before_and_after(north: World, browser: Browser) -> None:
    async def test() -> None:
        async with visitor(browser, **LOOK) as page:
            await log_in(page, f"{north.url}/releases", "anna", PASSWORD)
            await look(page)
            await press(page, "#entries tbody tr:last-child a")
            await page.locator(".lattice .chosen").wait_for()
            await look(page)
            await press(page, "main form button")
            await page.locator("#pairs").wait_for()
            assert len(await texts(page, "#pairs tbody")) == 20
            await look(page)
            await page.frame_locator("iframe.report").get_by_text("not for publication").wait_for()
            assert await page.locator(".wide").first.evaluate("each => each.tabIndex") == 0

    for k in (5, 20):
        north.loop.run(release(north, k))
    north.loop.run(test())


@like_others
def test_a_result_that_is_held_is_looked_at(north: World, browser: Browser) -> None:
    async def test(job: str) -> None:
        async with visitor(browser, **LOOK) as page:
            await log_in(page, f"{north.url}/results", "anna", PASSWORD)
            await look(page)
            await press(page, f"#held-{job}")
            await page.locator("#held").wait_for()
            for each in await page.locator("details").all():
                await each.locator("summary").focus()
                await page.keyboard.press("Enter")
                assert await each.evaluate("each => each.open")
            await look(page)

    async def begin() -> str:
        job = await begun(north, name="held for long", itemsets={"min_support": "0.15"})
        await held(north, job)
        return job

    job = north.loop.run(begin())
    north.loop.run(test(job))
