"""The page for notifications: to whom it belongs, what it shows, and what scripts it lets in."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path

import httpx2

from console.push.pages import pages
from console.push.subscriptions import Subscriptions
from console.push.vapid import public_of
from tests.console.push.receiver import Receiver
from tests.console.sites import OWN, Board, browser_of, log_in, small_site
from tests.looped import looped

ENDPOINT = "https://fcm.googleapis.com/wp/abc"
FORM = Receiver.new().form(ENDPOINT)


@asynccontextmanager
async def visited(folder: Path) -> AsyncIterator[tuple[httpx2.AsyncClient, Subscriptions]]:
    site = small_site(folder, Board())
    ours = Subscriptions(folder / "push.json", site.accounts)
    async with browser_of(replace(site, pages=(*site.pages, *pages(ours)))) as client:
        yield client, ours


@looped
async def test_people_manage_their_own_browsers_and_see_no_endpoint(tmp_path: Path) -> None:
    async with visited(tmp_path) as (client, ours):
        await log_in(client, "vera")
        page = await client.get("/notifications")
        assert f'data-key="{public_of(ours.key())}"' in page.text
        assert (await client.post("/notifications/subscribe", data=FORM)).headers["location"] == "/notifications"
        (own,) = ours.of("vera")
        page = await client.get("/notifications")
        assert own.id in page.text
        assert ENDPOINT not in page.text
        assert FORM["secret"] not in page.text
        await log_in(client, "adam")
        page = await client.get("/notifications")
        assert own.id not in page.text
        assert (await client.post(f"/notifications/{own.id}/remove")).status_code == 400
        assert ours.of("vera") == [own]
        await log_in(client, "vera")
        assert (await client.post(f"/notifications/{own.id}/remove")).status_code == 303
        assert ours.all() == []


@looped
async def test_no_other_site_and_nobody_else_subscribes_a_browser(tmp_path: Path) -> None:
    async with visited(tmp_path) as (client, ours):
        assert (await client.post("/notifications/subscribe", data=FORM)).headers["location"] == "/login"
        await log_in(client, "vera")
        for foreign in ({"Origin": "http://evil.example"}, {"Origin": "null"}, {"Sec-Fetch-Site": "cross-site"}):
            answer = await client.post("/notifications/subscribe", data=FORM, headers={**OWN, **foreign})
            assert answer.status_code == 403
        wrong = {**FORM, "endpoint": "https://169.254.169.254/latest"}
        assert (await client.post("/notifications/subscribe", data=wrong)).status_code == 400
        assert ours.all() == []


@looped
async def test_the_worker_is_the_consoles_own_file(tmp_path: Path) -> None:
    async with visited(tmp_path) as (client, _):
        worker = await client.get("/sw.js", headers={**OWN, "Sec-Fetch-Dest": "serviceworker"})
        assert worker.status_code == 200
        assert worker.headers["content-type"].startswith("text/javascript")
        assert "default-src 'none'; script-src 'self'" in worker.headers["content-security-policy"]
        assert "fetch" not in worker.text
        answer = await client.get("/sw.js", headers={"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "no-cors"})
        assert answer.status_code == 403
