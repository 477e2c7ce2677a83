"""Results of several runs beside each other: what was asked otherwise, and what was found otherwise."""

from __future__ import annotations

import threading
from functools import partial
from typing import Any, Final

from console.site import Page, Shown, Visit
from coordinator.console.desk import Desk
from coordinator.jobs.released import kept_result
from coordinator.jobs.status import as_data, job_list
from coordinator.member import read_federation
from jobs.results.changes import changes
from jobs.results.result import Result
from jobs.spec.diff import diff
from link.errors import UsageError

PATH: Final = "/results/compare"
MOST: Final = 8  # results
_READING: Final = threading.Lock()  # they may take much memory together


def pages(desk: Desk) -> tuple[Page, ...]:
    """The page, which the list of results leads to."""
    return (Page(PATH, partial(_compare, desk)),)


def _compare(desk: Desk, visit: Visit) -> Shown:
    store, known = desk.store(), read_federation(desk.federation)
    jobs = [job for job in as_data(job_list(store))["jobs"] if job["job_id"] in visit.query][::-1]
    if not 2 <= len(jobs) <= MOST:
        raise UsageError(f"choose between 2 and {MOST} results to compare")
    with _READING:
        results: list[Result] = [kept_result(store.find(job["job_id"]), known) for job in jobs]
        runs = [{**job, **_figures(result)} for job, result in zip(jobs, results, strict=True)]
        steps = [
            {
                "before": jobs[place],
                "after": jobs[place + 1],
                "asked": [change.text for change in diff(results[place].spec, results[place + 1].spec)],
                "tables": changes(results[place].tables, results[place + 1].tables),
            }
            for place in range(len(jobs) - 1)
        ]
    names = list(dict.fromkeys(name for run in runs for name in run["figures"]))
    return Shown("comparison.html.j2", {"runs": runs, "names": names, "steps": steps})


def _figures(result: Result) -> dict[str, Any]:
    """What a report says of a result in numbers."""
    found = [] if result.finding is None else result.finding.figures(result.spec)
    return {"n_rows": result.n_rows, "figures": dict(found)}
