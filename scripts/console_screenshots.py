"""Makes the pictures of a node's console in the documentation anew, from two nodes at work: `make screenshots`.

The nodes are those of the tests: python scripts/console_screenshots.py [FOLDER]
"""

from __future__ import annotations

import contextlib
import sys
import tempfile
import time
from decimal import Decimal
from pathlib import Path
from typing import Any, Final

ROOT: Final = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))  # for the tests, which are installed nowhere

from playwright.async_api import Browser  # noqa: E402

from jobs.privacy_account import Charge  # noqa: E402
from party.config import PartyConfig  # noqa: E402
from party.services.anonymization.kept import KeptReleases  # noqa: E402
from party.state.ledger import Entry, Ledger  # noqa: E402
from party.state.node_database import FILE  # noqa: E402
from tests.console.chromium import CHROMIUM, Loop, chromium, log_in, visitor  # noqa: E402
from tests.party.console.furnished import TABLES, collect, release, write_patients  # noqa: E402
from tests.party.console.going import begun, held  # noqa: E402
from tests.party.console.world import PASSWORD, World, world  # noqa: E402

BUDGET: Final = '[dataset.privacy]\nepsilon = 4\ndelta = 1e-6\nperiod = "90d"\n'
SIZE: Final = {"width": 1200, "height": 860}
BEFORE: Final = {  # what is done on a page before it is taken
    "held": "document.querySelector('details').open = true",  # the first rows
    "release": "document.querySelector('#levels').previousElementSibling.scrollIntoView()",
}
DAY_S: Final = 86_400


def take(folder: Path) -> None:
    """Writes all pictures into a folder, each by day and by night."""
    if CHROMIUM is None:
        raise SystemExit("the pictures need Chromium, and it is not installed")
    loop = Loop()
    try:
        with contextlib.ExitStack() as end:
            files = Path(end.enter_context(tempfile.TemporaryDirectory()))
            write_patients(files)
            browser = end.enter_context(chromium(loop))
            north = end.enter_context(world(loop, files, BUDGET + TABLES, 'release = "manual"\n'))
            paths = loop.run(_furnish(north))
            for scheme in ("light", "dark"):
                loop.run(_pictures(north, browser, paths, folder, scheme))
    finally:
        loop.close()


async def _furnish(north: World) -> dict[str, str]:
    """Lets the node come to have something to show; by the names of pictures the paths of pages."""
    _charge(north)
    await collect(north, "purchases", 8, 3000)
    for k in (5, 10, 20):
        await release(north, k)
    running = await begun(north, name="weekly baskets", itemsets={"min_support": "0.15"})
    await held(north, running)
    waiting = await north.propose(name="monthly baskets")
    state = PartyConfig.load(north.file).party.state_dir
    kept = KeptReleases(state).all()[1].certificate.digest
    return {
        "inbox": "/inbox",
        "job": f"/inbox/{waiting}",
        "held": f"/jobs/{running}",
        "budget": "/budgets/baskets",
        "release": f"/releases/{kept}",
        "collection": "/collections/purchases",
    }


def _charge(north: World) -> None:
    """The ledger of a month."""
    database = PartyConfig.load(north.file).party.state_dir / FILE
    now = time.time()
    with contextlib.closing(Ledger.open_beside(database, database)) as ledger:
        for number in range(12):
            cost = Charge("central", None, Decimal("0.25"), Decimal("4e-8"))
            started = now - 3 * DAY_S * (12 - number)
            ledger.record(Entry(number.to_bytes(32, "big"), 1, started, "baskets", "weekly baskets", "analyst", cost))


async def _pictures(north: World, browser: Browser, paths: dict[str, str], folder: Path, scheme: Any) -> None:
    async with visitor(browser, viewport=SIZE, color_scheme=scheme) as page:
        await log_in(page, north.url, "anna", PASSWORD)
        for name, path in paths.items():
            await page.goto(f"{north.url}{path}", wait_until="load")
            await page.evaluate(BEFORE.get(name, "document.activeElement.blur()"))
            await page.screenshot(path=folder / f"console-{name}-{scheme}.png")


if __name__ == "__main__":
    take(Path(sys.argv[1]) if len(sys.argv) > 1 else ROOT / "docs" / "images")
