"""Privacy budgets and datasets of a real node, in a real browser."""

from __future__ import annotations

import asyncio
import contextlib
import json
import time
from collections.abc import Callable, Iterator
from decimal import Decimal
from typing import Any

import pytest
import tomlkit
from playwright.async_api import Browser, Page

from comine.command import run
from jobs.audit.log import AuditLog
from jobs.audit.service_events import QueryDecided, QueryRefused, ReleaseRefused, TableReleased
from jobs.federation import Federation
from jobs.privacy_account import Charge
from party.config import AUDIT_LOG, PartyConfig
from party.node.reloader import Reloader
from party.policy.inbox import clock
from party.services.anonymization.releases import FILE as RELEASES
from party.services.anonymization.releases import Releases
from party.state.ledger import Entry, Ledger
from party.state.node_database import FILE
from party.state.reloads import Reloads
from tests.console.chromium import TELEPHONE, Loop, log_in, look, visitor
from tests.examples import in_turn
from tests.party.console.world import PASSWORD, World, world

pytestmark = pytest.mark.slow
like_others = pytest.mark.turn(2, "pages")

BUDGET = '[dataset.privacy]\nepsilon = 4\ndelta = 1e-6\nexact = "refuse"\n'
PEOPLE = """
[[dataset]]
name = "people"
kind = "table"
source = "people.csv"
format = "csv"
[dataset.anonymization]
columns = { age = ["quasi_identifiers"] }
min_k = 2
algorithms = ["mondrian"]
max_releases = 3
[dataset.queries]
public = ["age"]
columns = { salary = ["sum"] }
min_size = 2
"""
LOOKS: tuple[dict[str, Any], ...] = ({}, {"color_scheme": "dark", "viewport": TELEPHONE})


@pytest.fixture(scope="module")
def north(loop: Loop, tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    folder = tmp_path_factory.mktemp("north")
    people = [f"{number},{30 + number % 5},{number * number}\n" for number in range(40)]
    (folder / "people.csv").write_text("id,age,salary\n" + "".join(people))
    with world(loop, folder, BUDGET + PEOPLE) as found:
        yield found


@pytest.fixture
def printed(capsys: pytest.CaptureFixture[str]) -> Callable[..., dict[str, Any]]:
    """What a command prints with `--json`."""

    def found(*arguments: object) -> dict[str, Any]:
        capsys.readouterr()
        assert run([*map(str, arguments), "--json"]) == 0
        contents: dict[str, Any] = json.loads(capsys.readouterr().out)
        return contents

    return found


async def texts(page: Page, where: str) -> list[str]:
    return [" ".join(text.split()) for text in await page.locator(where).all_inner_texts()]


@like_others
def test_budgets_show_what_the_command_prints(
    north: World, browser: Browser, printed: Callable[..., dict[str, Any]]
) -> None:
    database = PartyConfig.load(north.file).party.state_dir / FILE
    now = time.time()
    costs = [Charge("central", None, Decimal(epsilon), Decimal("1e-8")) for epsilon in ("0.5", "0.25")]
    with contextlib.closing(Ledger.open_beside(database, database)) as ledger:
        for number in range(60):
            started = now - 86_400 * (60 - number)
            job = number.to_bytes(32, "big")
            ledger.record(Entry(job, 1, started, "baskets", "evil <b>", "analyst", costs[number > 0]))
    dataset, _ = printed("party", "budget", north.file)["datasets"]
    spent = float(dataset["spent"]["epsilon"])

    async def test(**options: Any) -> None:
        async with visitor(browser, **options) as page:
            await log_in(page, f"{north.url}/budgets", "vera", PASSWORD)
            cell = f"#budgets td:text-is('{dataset['spent']['epsilon']} of {dataset['totals']['epsilon']}')"
            await page.locator(cell).wait_for()
            await look(page)
            await page.get_by_role("link", name="baskets").click()
            told = [await texts(page, f"#totals tbody td:nth-child({place})") for place in (2, 3)]
            keys = ("epsilon", "delta", "local_epsilon")
            assert told == [
                [dataset["spent"][key] for key in keys],
                ["no limit" if dataset["left"][key] is None else dataset["left"][key] for key in keys],
            ]
            rows = await texts(page, "#ledger tbody td:nth-child(5)")
            await page.get_by_role("link", name="Older").focus()
            await look(page)
            drawn = await page.evaluate("document.getElementById('line-0').chart.getOption().series.at(-1).data")
            assert drawn[0][1] == 0.5
            assert drawn[-1][1] == spent
            await page.keyboard.press("Enter")
            await page.get_by_text("2 of 2").wait_for()
            rows += await texts(page, "#ledger tbody td:nth-child(5)")
            assert rows == [each["charged"]["epsilon"] for each in reversed(dataset["jobs"])]
            started = clock(now - 86_400 * 60)
            assert started is not None
            assert started[:16].replace("T", " ") in (await texts(page, "#ledger tbody td:first-child"))[-1]

    for options in in_turn(LOOKS, 2):
        north.loop.run(test(**options))


@like_others
def test_a_dataset_shows_its_rules_and_the_profile_of_the_command(
    north: World, browser: Browser, printed: Callable[..., dict[str, Any]]
) -> None:
    dataset, _ = printed("party", "check", north.file)["datasets"]

    async def test(**options: Any) -> None:
        async with visitor(browser, refused=(400,), **options) as page:
            await log_in(page, f"{north.url}/datasets", "vera", PASSWORD)
            await look(page)
            await page.get_by_role("link", name="baskets", exact=True).click()
            rules = dict(zip(*[await texts(page, f"#rules td:nth-child({place})") for place in (1, 2)], strict=True))
            assert {"min_support": "0.1", "approve": "manual", "epsilon": "4"}.items() <= rules.items()
            await look(page)
            await page.get_by_role("link", name="Read the data").focus()
            await page.keyboard.press("Enter")
            await page.locator("#profile").wait_for()
            told = dict(zip(await texts(page, "#profile dt"), await texts(page, "#profile dd"), strict=True))
            assert told.pop("counted in") == dataset["engine"]
            row_items = dataset["profile"].pop("row_items")
            assert told.pop("row items") == ", ".join(f"{name} {value}" for name, value in row_items.items())
            assert told == {key.replace("_", " "): str(value) for key, value in dataset["profile"].items()}
            dataset["profile"]["row_items"] = row_items
            await look(page)
            await page.goto(f"{north.url}/datasets/elsewhere")
            await page.get_by_text("has no such dataset").wait_for()

    for options in in_turn(LOOKS[::-1], 2):
        north.loop.run(test(**options))


@like_others
def test_releases_and_queries_are_those_of_the_audit_log(
    north: World, browser: Browser, printed: Callable[..., dict[str, Any]]
) -> None:
    config = PartyConfig.load(north.file)
    state, of = config.party.state_dir, {"dataset": "people", "coordinator": "analyst"}
    released = TableReleased(
        **of,
        request=b"r" * 32,
        algorithm="mondrian",
        k=5,
        columns=("age",),
        rows=2,
        certificate=b"c" * 32,
        report=False,
        number=1,
    )
    events = (
        released,
        ReleaseRefused(**of, code="E300", reason="too many <b>", number=1),
        QueryDecided(**of, number=1, query="sum(salary) where age >= 30", denied="size"),
        QueryRefused(**of, code="E300", reason="nobody may ask that"),
    )
    log = AuditLog.open(state / AUDIT_LOG, config.tls.identity(Federation.load(config.party.federation).pins))
    log.append(*events)
    log.close()
    with contextlib.closing(Releases.open_beside(state / FILE, state / RELEASES, "north")) as releases:
        releases.admit("people", b"d" * 32, b"r" * 32, "analyst", 3)
    told = [entry["summary"] for entry in reversed(printed("audit", "show", north.file)["entries"])]

    async def test(**options: Any) -> None:
        async with visitor(browser, **options) as page:
            await log_in(page, f"{north.url}/releases", "vera", PASSWORD)
            assert (await texts(page, "#counted td"))[:3] == ["people", "1", "up to 3"]
            rows = await texts(page, "#entries td:nth-child(3)")
            assert [row.removeprefix("Refused: ") for row in rows] == told[2:4]
            await look(page)
            await page.get_by_role("link", name="Queries").click()
            assert await texts(page, "#entries td:nth-child(3)") == told[:2]
            assert await texts(page, "#entries td:nth-child(4)") == ["not asked of the auditor", "denied: size"]
            await look(page)

    for options in in_turn(LOOKS, 2):
        north.loop.run(test(**options))


@like_others
def test_an_administrator_changes_a_rule_and_the_node_takes_it_up(north: World, browser: Browser) -> None:
    north.file.write_text(tomlkit.dumps(tomlkit.parse(north.file.read_text())))  # datasets one after the other
    node = north.nodes.nodes["north"]
    reloader = Reloader(node.reload, north.file, Reloads.beside(node.store), asyncio.Event(), north.site.log)

    async def test(support: str, **options: Any) -> None:
        async with reloader, visitor(browser, refused=(403,), **options) as page:
            await log_in(page, f"{north.url}/datasets/baskets", "adam", PASSWORD)
            await page.get_by_role("link", name="Change the rules of baskets").click()
            await page.get_by_text("Rules that are not written").first.click()
            await look(page)
            field = page.get_by_label("min_support", exact=True)
            await field.focus()
            await page.keyboard.press("Control+A")
            await page.keyboard.type("2")
            await page.keyboard.press("Enter")
            await page.get_by_text("must be a fraction").wait_for()
            await look(page)
            await field.focus()
            await page.keyboard.press("Control+A")
            await page.keyboard.type(support)
            await page.keyboard.press("Enter")
            await page.locator("#changed").wait_for()
            marked = " looser" if support == "0.05" else ""
            assert f"+ min_support = {support}{marked}" in await texts(page, "#lines li")
            await look(page)
            await page.get_by_role("button", name="Write it as adam").focus()
            await page.keyboard.press("Enter")
            await page.locator("#answer").wait_for()
            assert await texts(page, "#main li") == ["dataset baskets changed"]
            await look(page)
            assert str(node.settings.config.policy_of("baskets").min_support) == support
            await page.get_by_role("button", name="Log out").click()
            await log_in(page, f"{north.url}/policy", "anna", PASSWORD)
            await page.get_by_text("this needs an administrator").wait_for()

    for support, options in zip(("0.15", "0.05"), LOOKS, strict=True):
        north.loop.run(test(support, **options))
