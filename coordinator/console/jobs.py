"""Jobs: all that the coordinator keeps, and one as it stands at its parties, with what people may do about it."""

from __future__ import annotations

import threading
import time
from functools import partial
from typing import Any, Final

from console.lists import part_of
from console.site import Document, GoOn, Page, Shown, Visit
from coordinator.cli.terminal.steps import Steps
from coordinator.console.desk import Desk
from coordinator.jobs.background import take_up_all
from coordinator.jobs.records.kept import kept
from coordinator.jobs.released import kept_result
from coordinator.jobs.runner import cancel_job, reopen_job, resumption_hindrance
from coordinator.jobs.status import as_data, job_status, listed
from coordinator.member import read_federation
from jobs.documents.job_status import JobDocument
from jobs.report.job_file import job_file
from jobs.report.page import report

PATH: Final = "/jobs"
_OVER: Final = frozenset({"succeeded", "failed", "denied", "cancelled", "expired"})
_WRITING: Final = threading.Lock()  # a report may take the memory of a result


def pages(desk: Desk) -> tuple[Page, ...]:
    """The pages, the list first."""
    one = f"{PATH}/{{job}}"
    return (
        Page(PATH, partial(_list, desk), title="Jobs"),
        Page(one, partial(_show, desk)),
        Page(f"{one}/report", partial(_report, desk)),
        Page(f"{one}/cancel", partial(_cancel, desk), role="approver", acts=True),
        Page(f"{one}/resume", partial(_resume, desk), role="approver", acts=True),
    )


def _list(desk: Desk, visit: Visit) -> Shown:
    store = desk.store()
    take_up_all(store.jobs(), desk.federation)
    found = as_data(desk.calls.run(listed(store, desk.federation)))
    return Shown("jobs.html.j2", {"jobs": part_of(found["jobs"], visit.query), "unreadable": found["unreadable"]})


def _show(desk: Desk, visit: Visit) -> Shown:
    folder, identity, addresses = kept(desk.federation, visit.params["job"])
    take_up_all([folder], desk.federation)
    job = desk.calls.run(job_status(folder, identity, addresses))
    record, seen = folder.record(), job.state if job.state in _OVER else "open"
    content = {
        "job": as_data(job),
        "doing": _doing(job),
        "seen": seen,
        "has_changed": visit.query.get("seen", seen) != seen,
        "goes_on": job.state not in _OVER,
        "hindrance": resumption_hindrance(record, time.time()),
        "file": job_file(record.spec),
    }
    return Shown("job.html.j2", content)


def _doing(job: JobDocument) -> dict[str, str]:
    """By party that does something, what that is and how much of it is done."""
    steps = Steps()
    return {name: steps.line(name, each.step, each.done, each.total) for name, each in job.parties.items() if each.step}


def _report(desk: Desk, visit: Visit) -> Document:
    known = read_federation(desk.federation)
    with _WRITING:
        result: Any = kept_result(desk.store().find(visit.params["job"]), known)
        return Document(report(result).encode())


def _cancel(desk: Desk, visit: Visit) -> GoOn:
    folder, identity, addresses = kept(desk.federation, visit.params["job"])
    if not folder.record().job.over:
        desk.note(folder, "cancelled", visit.person)
        desk.calls.run(cancel_job(folder, identity, addresses, visit.form.get("reason", "")))
    return GoOn(f"{PATH}/{folder.id}")


def _resume(desk: Desk, visit: Visit) -> GoOn:
    folder, _, _ = kept(desk.federation, visit.params["job"])
    reopen_job(folder)
    desk.hand_over(folder, "resumed", visit.person)
    return GoOn(f"{PATH}/{folder.id}")
