"""Results: those that people have yet to release, and those of jobs that succeeded, with their reports."""

from __future__ import annotations

import time
from functools import partial
from pathlib import Path
from typing import Final

from console.lists import PART, ListPart, number_of
from console.site import Page, Shown, Visit
from party.console.jobs import REPORT
from party.desk import at_desk
from party.state.past import Filter
from protos.v1.control_pb2 import SUCCEEDED

PATH: Final = "/results"


def pages(party_toml: Path) -> tuple[Page, ...]:
    """The page of a node's file."""
    return (Page(PATH, partial(_list, party_toml), title="Results"),)


def _list(party_toml: Path, visit: Visit) -> Shown:
    which = Filter(time.time(), SUCCEEDED)
    with at_desk(party_toml) as desk:
        held, total = desk.results(), desk.store.count_past(which)
        number, parts = number_of(total, visit.query)
        jobs = desk.past(which, (number - 1) * PART, PART)
        here = {job["job_id"] for job in jobs if (desk.result(bytes.fromhex(job["job_id"])) / REPORT).is_file()}
    return Shown("results.html.j2", {"held": held, "jobs": ListPart(jobs, number, parts, total), "here": here})
