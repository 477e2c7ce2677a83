"""What holds for every act of every console: who may ask for it, and from where."""

from __future__ import annotations

import io
import re
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from console.settings import ConsoleSection
from console.site import Site
from coordinator.console.calls import Calls
from coordinator.console.log import open_log as open_coordinators_log
from coordinator.console.site import site_of as coordinators_site
from party.config import PartyConfig
from party.console.site import site_of as partys_site
from party.node.logs import open_log
from tests.console.sites import OWN, PASSWORD, browser_of, log_in
from tests.looped import looped
from tests.party.files import COORDINATOR, write_federation


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
        found.accounts.add("vera", "viewer", PASSWORD)
        found.accounts.add("adam", "administrator", PASSWORD)
        yield found


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
