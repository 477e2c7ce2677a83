"""Jobs: those that run or wait, those that have ended, and one with what people may do about it."""

from __future__ import annotations

import csv
import time
from collections.abc import Iterator, Mapping
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any, Final, NamedTuple
from urllib.parse import urlencode

from console.lists import PART, ListPart, number_of
from console.site import Document, GoOn, Page, Shown, Visit
from jobs.statement import statement
from link.errors import UsageError
from party.desk import at_desk
from party.jobs.job import ENDS
from party.policy.consent import spec_of
from party.policy.inbox import find, words
from party.policy.inbox_text import HELD
from party.state.past import Filter
from protos.v1.control_pb2 import JobState

PATH: Final = "/jobs"
REPORT: Final = "report.html"
MOST_ROWS: Final = 20  # of a table that is held; the file has all
MOST_SIGNS: Final = 200  # of a cell
_OF_ENDS: Final = {words(JobState.Name(state)): state for state in sorted(ENDS)}
_GOING: Final = frozenset({"approved", "running", "releasing"})


class Table(NamedTuple):
    """The beginning of a table that is held.

    Attributes:
        name: Of its file.
        columns: Their names.
        rows: The first ones, as they are in the file.
        whole: Whether these are all.
    """

    name: str
    columns: list[str]
    rows: list[list[str]]
    whole: bool


def pages(party_toml: Path) -> tuple[Page, ...]:
    """The pages of a node's file, the list first."""
    one = f"{PATH}/{{job}}"
    return (
        Page(PATH, partial(_live, party_toml), title="Jobs"),
        Page(f"{PATH}/history", partial(_history, party_toml)),
        Page(one, partial(_show, party_toml)),
        Page(f"{one}/report", partial(_report, party_toml)),
        Page(f"{one}/cancel", partial(_cancel, party_toml), role="approver", acts=True),
        Page(f"{one}/release", partial(_release, party_toml), role="approver", acts=True),
        Page(f"{one}/withhold", partial(_withhold, party_toml), role="approver", acts=True),
    )


def _live(party_toml: Path, _: Visit) -> Shown:
    with at_desk(party_toml) as desk:
        return Shown("jobs.html.j2", {"now": desk.status()})


def _history(party_toml: Path, visit: Visit) -> Shown:
    asked = {name: visit.query.get(name, "") for name in ("state", "coordinator", "dataset")}
    which = Filter(time.time(), _OF_ENDS.get(asked["state"]), asked["coordinator"], asked["dataset"])
    with at_desk(party_toml) as desk:
        total = desk.store.count_past(which)
        number, parts = number_of(total, visit.query)
        jobs = ListPart(desk.past(which, (number - 1) * PART, PART), number, parts, total)
        datasets = sorted(each.name for each in desk.config.dataset)
    given = {name: value for name, value in asked.items() if value}
    base = f"{PATH}/history?{urlencode(given)}{'&' if given else ''}"
    content = {"jobs": jobs, "asked": asked, "base": base, "ends": list(_OF_ENDS), "datasets": datasets}
    return Shown("history.html.j2", content)


def _show(party_toml: Path, visit: Visit) -> Shown:
    with at_desk(party_toml) as desk:
        record = find(desk.store, visit.params["job"])
        job, spec, runs = desk.course(record), spec_of(record), desk.runs
        has_report = (desk.result(record.job_id) / REPORT).is_file()
    held, seen = job["held"], _mark(job)
    content = {
        "job": job,
        "runs": runs,
        "seen": seen,
        "has_changed": visit.query.get("seen", seen) != seen,
        "going": job["state"] in _GOING,
        "tables": [] if held is None else list(_tables(held)),
        "leaves": [] if held is None else [HELD, *statement(spec).prose()],
        "recipients": spec.job.recipients,
        "has_report": has_report,
    }
    return Shown("job.html.j2", content)


def _report(party_toml: Path, visit: Visit) -> Document:
    with at_desk(party_toml) as desk:
        record = find(desk.store, visit.params["job"])
        file = desk.result(record.job_id) / REPORT
    try:
        return Document(file.read_bytes())
    except OSError:
        raise UsageError(
            f"there is no report of job {record.job_id.hex()[:12]} at this node; only recipients of a result have one"
        ) from None


def _cancel(party_toml: Path, visit: Visit) -> GoOn:
    with at_desk(party_toml) as desk:
        record = find(desk.store, visit.params["job"])
        desk.cancel(record, visit.person.name, visit.form.get("reason", ""))
    return _to(record.job_id)


def _release(party_toml: Path, visit: Visit) -> GoOn:
    with at_desk(party_toml) as desk:
        record = find(desk.store, visit.params["job"])
        desk.release(record, visit.person.name)
    return _to(record.job_id)


def _withhold(party_toml: Path, visit: Visit) -> GoOn:
    with at_desk(party_toml) as desk:
        record = find(desk.store, visit.params["job"])
        desk.withhold(record, visit.person.name, visit.form.get("reason", ""))
    return _to(record.job_id)


def _to(job_id: bytes) -> GoOn:
    return GoOn(f"{PATH}/{job_id.hex()}")


def _mark(job: Mapping[str, Any]) -> str:
    """What a page that is looked at may be behind of, so that its forms fit no more."""
    return "held" if job["held"] is not None else job["state"].replace(" ", "-")


def _tables(held: Mapping[str, Any]) -> Iterator[Table]:
    """The beginnings of the tables that are held; of files that are gone, or have cells of great length, nothing."""
    for path in map(Path, held["files"]):
        if path.suffix != ".csv":
            continue
        try:
            with path.open(encoding="utf-8", newline="") as file:
                lines = [[cell[:MOST_SIGNS] for cell in line] for line in islice(csv.reader(file), MOST_ROWS + 2)]
        except (OSError, csv.Error):
            continue
        yield Table(path.name, lines[0] if lines else [], lines[1 : MOST_ROWS + 1], len(lines) <= MOST_ROWS + 1)
