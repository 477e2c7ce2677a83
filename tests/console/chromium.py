"""Chromium, driven as a person drives it; fails where the browser complains of anything."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Coroutine, Iterator
from contextlib import asynccontextmanager, contextmanager
from typing import Any, Final, TypeVar

from axe_playwright_python.async_playwright import Axe
from playwright.async_api import Browser, BrowserContext, Page, async_playwright

from tests.browser import CHROMIUM

T = TypeVar("T")

TELEPHONE: Final = {"width": 390, "height": 844}
_WAIT_S: Final = 60.0  # generous: machines are shared
_SERIOUS: Final = ("serious", "critical")


class Loop:
    """An event loop in a thread of its own: a browser and nodes go on there while a test stands still."""

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever)
        self._thread.start()

    def run(self, task: Coroutine[Any, Any, T]) -> T:
        """What a coroutine returns."""
        return asyncio.run_coroutine_threadsafe(task, self._loop).result(2 * _WAIT_S)

    def begin(self, task: Coroutine[Any, Any, object]) -> None:
        """Lets a coroutine go on by itself."""
        asyncio.run_coroutine_threadsafe(task, self._loop)

    def close(self) -> None:
        """Ends it."""
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()


@contextmanager
def chromium(loop: Loop) -> Iterator[Browser]:
    """One browser, for all tests of a run."""
    playwright = loop.run(async_playwright().start())
    try:
        launched = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox", "--disable-gpu"])
        browser = loop.run(launched)
        yield browser
        loop.run(browser.close())
    finally:
        loop.run(playwright.stop())


@asynccontextmanager
async def visitor(browser: Browser, *, refused: tuple[int, ...] = (), **options: Any) -> AsyncIterator[Page]:
    """A page of a browser that knows nothing yet.

    Args:
        browser: The browser.
        refused: Answers that are meant, of which the browser complains nevertheless.
        options: Of Playwright's contexts.
    """
    context: BrowserContext = await browser.new_context(**options)
    context.set_default_timeout(_WAIT_S * 1000)
    complaints = list[str]()
    try:
        page = await context.new_page()
        page.on("console", lambda told: complaints.append(f"{told.type}: {told.text}"))
        page.on("pageerror", lambda error: complaints.append(str(error)))
        yield page
    finally:
        await context.close()
    meant = tuple(f"the server responded with a status of {status}" for status in refused)
    unmeant = [each for each in complaints if not any(words in each for words in meant)]
    assert not unmeant, unmeant


async def look(page: Page) -> None:
    """Looks at a page as axe-core does, and at whether it fits into its window.

    The frame of a report has an origin of its own, so that axe-core cannot talk to it; reports are looked at elsewhere.
    """
    found = await Axe().run(page, options={"iframes": False, "resultTypes": ["violations"]})
    serious = [each for each in found.response["violations"] if each["impact"] in _SERIOUS]
    assert not serious, [(each["id"], [node["html"] for node in each["nodes"]]) for each in serious]
    wide, window = await page.evaluate("[document.documentElement.scrollWidth, window.innerWidth]")
    assert wide <= window


async def texts(page: Page, where: str) -> list[str]:
    """What stands in some elements, each in one line."""
    return [" ".join(text.split()) for text in await page.locator(where).all_inner_texts()]


async def answered(page: Page, path: str, **form: str) -> int:
    """The status with which a console answers a form that a page of it sends."""
    sent = f"fetch('{path}', {{method: 'POST', body: new URLSearchParams({form})}})"
    return int(await page.evaluate(f"{sent}.then(answer => answer.status)"))


async def log_in(page: Page, url: str, name: str, password: str) -> None:
    """Logs in with the keyboard alone."""
    await page.goto(url)
    await page.locator("#name").focus()
    await page.keyboard.type(name)
    await page.keyboard.press("Tab")
    await page.keyboard.type(password)
    await page.keyboard.press("Enter")
    await page.locator(".who").wait_for()
