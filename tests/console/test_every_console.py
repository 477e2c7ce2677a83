"""What holds for every page and act of every console: who may ask for it, and from where."""

from __future__ import annotations

import io
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final

import pytest
from starlette.applications import Starlette
from starlette.routing import Route

from console.app import application
from console.roles import ROLES, Role
from console.settings import ConsoleSection
from console.site import Site
from coordinator.console.calls import Calls
from coordinator.console.log import open_log as open_coordinators_log
from coordinator.console.site import site_of as coordinators_site
from party.config import PartyConfig
from party.console.site import site_of as partys_site
from party.node.logs import open_log
from tests.console.sites import ORIGIN, OWN, PASSWORD, browser_of, log_in
from tests.looped import looped
from tests.party.files import COORDINATOR, write_federation

PEOPLE: Final[dict[str, Role]] = {"vera": "viewer", "anna": "approver", "adam": "administrator"}
OPEN: Final = {
    "/",
    "/login",
    "/logout",
    "/static/palette.css",
    "/sw.js",
}  # to whom has not logged in
LOOKS_BY_FORM: Final = {"/audit/verification"}  # which changes nothing, and costs much


def of_a_party(folder: Path, _: Calls) -> Site:
    (folder / "state" / "north").mkdir(parents=True)
    file = folder / "north.toml"
    return partys_site(PartyConfig.load(file), file, open_log("north", io.StringIO()))


def of_a_coordinator(folder: Path, calls: Calls) -> Site:
    file = folder / "federation.toml"
    file.write_text(file.read_text() + COORDINATOR)
    log = open_coordinators_log("analyst", io.StringIO())
    return coordinators_site("analyst", file, ConsoleSection(), calls, log)


@pytest.fixture(params=[of_a_party, of_a_coordinator])
def site(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Site]:
    write_federation(tmp_path, {"north": [["milk"]], "south": [["milk"]]})
    make: Callable[[Path, Calls], Site] = request.param
    with Calls() as calls:
        found = make(tmp_path, calls)
        for name, role in PEOPLE.items():
            found.accounts.add(name, role, PASSWORD)
        yield found


@looped
async def test_every_route_is_for_who_has_its_role(site: Site) -> None:
    """Also those that nobody has thought of here: what the application answers is asked for, not what it should."""
    pages = {page.path: page for page in site.pages}
    guarded = application(site, (ORIGIN,))
    assert isinstance(guarded.app, Starlette)
    routes = [route for route in guarded.app.routes if isinstance(route, Route)]
    mounts = {route.path for route in guarded.app.routes if not isinstance(route, Route)}
    assert {route.path for route in routes} - pages.keys() == OPEN
    assert all(path.startswith("/static") for path in mounts)
    assert {page.path for page in site.pages if page.acts and page.role == "viewer"} <= LOOKS_BY_FORM
    async with browser_of(site) as client:
        for name in (None, *PEOPLE):
            client.cookies.clear()
            if name is not None:
                await log_in(client, name)
            for route in routes:
                if route.path in OPEN:
                    continue
                page, path = pages[route.path], re.sub(r"\{\w+\}", "0" * 64, route.path)
                answer = await client.request("POST" if page.acts else "GET", path)
                may = name is not None and ROLES.index(PEOPLE[name]) >= ROLES.index(page.role)
                if name is None:
                    assert answer.headers["location"].startswith("/login"), path
                else:
                    assert (answer.status_code != 403) == may, (path, name)
                    assert answer.status_code != 500, (path, name)
                assert answer.headers["x-frame-options"] == "DENY"


@looped
async def test_no_act_is_another_sites_or_anybodys(site: Site) -> None:
    acts = {re.sub(r"\{\w+\}", "0" * 64, page.path): page.role for page in site.pages if page.acts}
    assert len(acts) > 1
    async with browser_of(site) as client:
        for path, role in acts.items():
            assert (await client.post(path)).headers["location"] == "/login"
            await log_in(client, "vera")
            assert (await client.post(path)).status_code == 403 or role == "viewer"
            await log_in(client, "adam")
            for foreign in ({"Origin": "http://evil.example"}, {"Origin": "null"}, {"Sec-Fetch-Site": "same-site"}):
                answer = await client.post(path, headers={**OWN, **foreign})
                assert (answer.status_code, answer.text) == (403, "this was not sent from a page of this console")
            assert (await client.get(path)).status_code in (404, 405, 400)
            await client.post("/logout")
