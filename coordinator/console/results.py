"""Results: the jobs that succeeded, with their reports."""

from __future__ import annotations

from functools import partial
from typing import Final

from console.lists import part_of
from console.site import Page, Shown, Visit
from coordinator.console.desk import Desk
from coordinator.jobs.status import as_data, job_list

PATH: Final = "/results"


def pages(desk: Desk) -> tuple[Page, ...]:
    """The page."""
    return (Page(PATH, partial(_list, desk), title="Results"),)


def _list(desk: Desk, visit: Visit) -> Shown:
    found = [job for job in as_data(job_list(desk.store()))["jobs"] if job["state"] == "succeeded"]
    return Shown("results.html.j2", {"jobs": part_of(found, visit.query)})
