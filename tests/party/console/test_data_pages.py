"""Privacy budgets and datasets of a real node, in a real browser."""

from __future__ import annotations

import contextlib
import json
import time
from collections.abc import Callable, Iterator
from decimal import Decimal
from typing import Any

import pytest
from playwright.async_api import Browser, Page

from comine.command import run
from jobs.privacy_account import Charge
from party.config import PartyConfig
from party.policy.inbox import clock
from party.state.ledger import Entry, Ledger
from party.state.node_database import FILE
from tests.console.chromium import TELEPHONE, Loop, log_in, look, visitor
from tests.party.console.world import PASSWORD, World, world

pytestmark = pytest.mark.slow

BUDGET = '[dataset.privacy]\nepsilon = 4\ndelta = 1e-6\nexact = "refuse"\n'
LOOKS: tuple[dict[str, Any], ...] = ({}, {"color_scheme": "dark", "viewport": TELEPHONE})


@pytest.fixture(scope="module")
def north(loop: Loop, tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    with world(loop, tmp_path_factory.mktemp("north"), BUDGET) as found:
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
    (dataset,) = printed("party", "budget", north.file)["datasets"]
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

    for options in LOOKS:
        north.loop.run(test(**options))


def test_a_dataset_shows_its_rules_and_the_profile_of_the_command(
    north: World, browser: Browser, printed: Callable[..., dict[str, Any]]
) -> None:
    (dataset,) = printed("party", "check", north.file)["datasets"]

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

    for options in LOOKS:
        north.loop.run(test(**options))
