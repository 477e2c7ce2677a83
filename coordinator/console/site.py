"""The console of a coordinator."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from console.settings import ConsoleSection
from console.site import Site
from coordinator.console import comparison, compose, jobs, results
from coordinator.console.calls import Calls
from coordinator.console.desk import Desk
from coordinator.console.settings import accounts_of
from link.logs.structured import Log

_TEMPLATES: Final = Path(__file__).parent / "templates"
_PAGES: Final = (jobs, compose, results, comparison)


def site_of(name: str, federation: Path, settings: ConsoleSection, calls: Calls, log: Log) -> Site:
    """A coordinator's console.

    Args:
        name: The coordinator's.
        federation: The federation file; every page reads it anew, as commands do.
        settings: Where the console answers.
        calls: Where it calls nodes.
        log: Where it reports who enters, who does what, and faults.
    """
    desk = Desk(federation.absolute(), calls, log)
    return Site(
        name=name,
        pages=tuple(page for each in _PAGES for page in each.pages(desk)),
        templates=(_TEMPLATES,),
        accounts=accounts_of(federation),
        log=log,
        settings=settings,
    )
