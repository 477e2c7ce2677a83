"""The page for notifications in a real browser: by keyboard, at night, on a telephone, with and without a push service.

Chromium without a screen refuses all notifications and reaches no push service. So the permission, the subscription and
what would be shown are the test's own; the page, its script and the worker are as they are. What a real push service
and a real screen do is not tested.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator

import pytest
from playwright.async_api import Browser, Page

from console.push.base64url import written
from party.config import PartyConfig
from party.console.site import subscriptions_of
from party.services.notices.pushes import told
from tests.console.chromium import TELEPHONE, Loop, log_in, look, visitor
from tests.console.push.receiver import Receiver
from tests.examples import in_turn
from tests.party.console.world import PASSWORD, World, world

pytestmark = pytest.mark.slow

SETTINGS = 'push = true\npush_contact = "mailto:it@north.example"\n'
ENDPOINT = "https://fcm.googleapis.com/wp/test"
BROWSER = Receiver.new()
MANAGER = """([endpoint, key, secret]) => {
  const plain = (text) => atob(text.replaceAll("-", "+").replaceAll("_", "/"));
  const bytes = (text) => Uint8Array.from(plain(text), (each) => each.charCodeAt(0)).buffer;
  const subscription = {
    endpoint,
    getKey: (name) => bytes(name === "auth" ? secret : key),
    unsubscribe: async () => { sessionStorage.removeItem("subscribed"); return true; },
  };
  Object.assign(PushManager.prototype, {
    subscribe: async ({ userVisibleOnly, applicationServerKey }) => {
      if (!userVisibleOnly || applicationServerKey.length !== 87) throw new Error("refused");
      sessionStorage.setItem("subscribed", applicationServerKey);
      return subscription;
    },
    getSubscription: async () => {
      const owner = sessionStorage.getItem("subscribed");
      return owner === null ? null : { ...subscription, options: { applicationServerKey: bytes(owner) } };
    },
  });
}"""

SHOW = """() => {
  self.shown = new Promise((resolve) => {
    self.registration.showNotification = async (title, { body, data }) => resolve([title, body, data]);
  });
}"""


@pytest.fixture(scope="module")
def north(loop: Loop, tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    with world(loop, tmp_path_factory.mktemp("north"), SETTINGS) as found:
        yield found


def permission(answer: str) -> str:
    return f"Object.defineProperty(Notification, 'permission', {{ get: () => '{answer}' }})"


async def with_a_push_service(page: Page) -> None:
    """As if the browser reached one, and people had allowed notifications."""
    given = json.dumps([ENDPOINT, written(BROWSER.point), written(BROWSER.secret)])
    await page.add_init_script(f"({MANAGER})({given})")
    await page.add_init_script(permission("granted"))


async def says(page: Page, words: str) -> None:
    await page.locator("#state").get_by_text(words).wait_for()


def test_a_person_has_this_browser_told_and_stops_it(north: World, browser: Browser) -> None:
    async def test(color_scheme: str, **viewport: object) -> None:
        ours = subscriptions_of(PartyConfig.load(north.file))
        async with visitor(browser, color_scheme=color_scheme, **viewport) as page:
            await with_a_push_service(page)
            await log_in(page, f"{north.url}/notifications", "vera", PASSWORD)
            await says(page, "tells you nothing yet")
            await look(page)
            await page.get_by_role("button", name="Tell me in this browser").focus()
            await page.keyboard.press("Enter")
            await says(page, "This browser tells you what awaits you.")
            (own,) = await asyncio.to_thread(ours.of, "vera")
            assert own.endpoint == ENDPOINT
            assert await page.locator("#browsers .this").is_visible()
            assert not await page.locator("#subscribe").is_visible()
            await look(page)
            await page.get_by_role("button", name="Stop the one").focus()
            await page.keyboard.press("Enter")
            await says(page, "tells you nothing yet")
            assert await asyncio.to_thread(ours.all) == []

    for color_scheme, viewport in in_turn([("dark", {"viewport": TELEPHONE}), ("light", {})], 2):
        north.loop.run(test(color_scheme, **viewport))


def test_the_worker_shows_what_the_node_tells(north: World, browser: Browser) -> None:
    """By the developers' protocol, in the place of a push service and of the decryption."""

    async def test() -> None:
        async with visitor(browser) as page:
            session = await page.context.new_cdp_session(page)
            found: asyncio.Queue[str] = asyncio.Queue()

            def registered(event: dict[str, list[dict[str, str]]]) -> None:
                for each in event["registrations"]:
                    found.put_nowait(each["registrationId"])

            session.on("ServiceWorker.workerRegistrationUpdated", registered)
            await session.send("ServiceWorker.enable")
            await log_in(page, f"{north.url}/notifications", "vera", PASSWORD)
            await page.evaluate("navigator.serviceWorker.register('/sw.js').then(() => navigator.serviceWorker.ready)")
            (worker,) = page.context.service_workers
            await worker.evaluate(SHOW)
            message = told({"event": "inbox", "job": {"job_id": "5f0c12ab" + "0" * 56}}).decode()
            pushed = {"origin": north.url, "registrationId": await found.get(), "data": message}
            await session.send("ServiceWorker.deliverPushMessage", pushed)
            shown = await worker.evaluate("self.shown")
            assert shown == ["comine", "A job awaits a decision: 5f0c12ab", "/inbox/5f0c12ab"]

    north.loop.run(test())


def test_a_browser_that_cannot_says_so_and_names_the_hook(north: World, browser: Browser) -> None:
    async def test() -> None:
        async with visitor(browser) as page:
            await page.add_init_script("delete window.PushManager")
            await log_in(page, f"{north.url}/notifications", "vera", PASSWORD)
            await says(page, "by a command or a webhook")
            assert not await page.locator("#subscribe").is_visible()

    north.loop.run(test())


def test_who_has_refused_is_told_and_so_is_whoever_reaches_no_push_service(north: World, browser: Browser) -> None:
    async def test() -> None:
        async with visitor(browser) as page:
            await log_in(page, f"{north.url}/notifications", "vera", PASSWORD)
            await says(page, "You have refused notifications of this site")
            assert not await page.locator("#subscribe").is_visible()
            await look(page)
            await page.add_init_script("PushManager.prototype.subscribe = async () => { throw new Error('network'); }")
            await page.add_init_script(permission("granted"))
            await page.reload()
            await page.get_by_role("button", name="Tell me in this browser").click()
            await says(page, "could not reach its push service")
            assert await page.locator("#browsers").count() == 0

    north.loop.run(test())
