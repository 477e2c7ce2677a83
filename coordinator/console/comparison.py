"""Results of several runs beside each other, as `comine job compare --json` prints them."""

from __future__ import annotations

import threading
from functools import partial
from typing import Final

from console.site import Page, Shown, Visit
from coordinator.console.desk import Desk
from coordinator.jobs.run_comparison import compared
from coordinator.member import read_federation

PATH: Final = "/results/compare"
_READING: Final = threading.Lock()  # they may take much memory together


def pages(desk: Desk) -> tuple[Page, ...]:
    """The page, which the list of results leads to."""
    return (Page(PATH, partial(_compare, desk)),)


def _compare(desk: Desk, visit: Visit) -> Shown:
    folders = [folder for folder in desk.store().jobs() if folder.id in visit.query][::-1]  # the oldest first
    with _READING:
        found = compared(folders, read_federation(desk.federation)).model_dump(mode="json", by_alias=True)
    names = list(dict.fromkeys(name for run in found["runs"] for name in run["figures"]))
    return Shown("comparison.html.j2", {"runs": found["runs"], "names": names, "steps": found["steps"]})
