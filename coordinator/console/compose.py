"""Composing a job: from what its parties say of themselves, checked while it is written, planned and submitted."""

from __future__ import annotations

import os
import time
from functools import partial
from pathlib import Path
from typing import Any, Final, NamedTuple

from console.site import GoOn, Page, Saved, Shown, Visit
from coordinator.cli.jobs.plan import costs, in_all, sections
from coordinator.cli.terminal.duration import duration
from coordinator.console.desk import Desk
from coordinator.console.form import fields_of, values_of, written
from coordinator.jobs.descriptions import Asked, ask, misfits
from coordinator.jobs.planner import plan_job
from coordinator.jobs.runner import submit_job
from coordinator.member import load_federation, read_federation
from jobs.federation import is_party_name
from jobs.kinds.key import Key
from jobs.kinds.packages import BUILT_IN, added
from jobs.kinds.registry import kind_of
from jobs.loading import job_of
from jobs.plan import Plan
from jobs.plan.cost import cost
from jobs.report.job_file import job_file
from jobs.spec.job import UNIVERSES, JobSpec
from jobs.spec.toml import parse_toml
from link.errors import ComineError, ConfigurationError, UsageError

PATH: Final = "/compose"
RETRIES: Final = 3  # as of `comine job submit`
EXPIRES: Final = "7d"
_WHERE: Final = "the job"
_PARTY: Final = "party."
_NOWHERE: Final = Path(os.devnull)  # where a job that comes from a browser finds no file
_LOOKED_AT: Final = 50  # jobs, the newest
_OFFERED: Final = 8  # values of one field
_FRESH_S: Final = 60.0  # for which what parties say of themselves is good while somebody types


class _Written(NamedTuple):
    """What somebody has written.

    Attributes:
        text: The job file.
        faults: What is wrong with it, a sentence each.
        fits: What each party would say to it, by what it says of itself, where nothing is wrong.
    """

    text: str
    faults: list[str]
    fits: list[str]


class _Parties:
    """What the parties of the federation say of themselves."""

    def __init__(self, desk: Desk) -> None:
        self._desk = desk
        self._asked, self._when = Asked({}, {}), -_FRESH_S

    def said(self, *, now: bool = False) -> Asked:
        """It, as it was a moment ago, or as it is `now`."""
        if now or time.monotonic() - self._when >= _FRESH_S:
            known, identity = load_federation(self._desk.federation)
            self._asked = self._desk.calls.run(ask(identity, known.addresses))
            self._when = time.monotonic()
        return self._asked


def pages(desk: Desk) -> tuple[Page, ...]:
    """The pages: what a job is to be about, its form, and what becomes of it."""
    parties = _Parties(desk)
    return (
        Page(PATH, partial(_begin, desk, parties), role="approver", title="New job"),
        Page(f"{PATH}/job", partial(_form, desk, parties), role="approver"),
        Page(f"{PATH}/like/{{job}}", partial(_like, desk, parties), role="approver"),
        Page(f"{PATH}/text", partial(_text, parties), role="approver", acts=True),
        Page(f"{PATH}/check", partial(_check, parties), role="approver", acts=True),
        Page(f"{PATH}/file", _file, role="approver", acts=True),
        Page(f"{PATH}/plan", partial(_plan, desk, parties), role="approver", acts=True),
        Page(f"{PATH}/submit", partial(_submit, desk, parties), role="approver", acts=True),
    )


def _begin(desk: Desk, parties: _Parties, _: Visit) -> Shown:
    asked, names = parties.said(now=True), list(read_federation(desk.federation).addresses)
    datasets = sorted({(data.name, data.kind) for said in asked.descriptions.values() for data in said.datasets})
    tasks = dict[str, list[Key]]()
    for key in (*BUILT_IN, *added()):
        tasks.setdefault(key.task, []).append(key)
    said = {
        name: {
            "silent": asked.silent.get(name, ""),
            "datasets": [] if each is None else [(data.name, data.kind) for data in each.datasets],
            "tasks": [] if each is None else list(each.tasks),
        }
        for name in names
        for each in (asked.descriptions.get(name),)
    }
    return Shown("compose.html.j2", {"said": said, "datasets": datasets, "tasks": tasks})


def _form(desk: Desk, parties: _Parties, visit: Visit) -> Shown:
    key, names, dataset = _key(visit.query), _named(visit.query), visit.query.get("dataset", "")
    fields = fields_of(key, names, dataset)
    filled = {field.name: field.value for field in fields}
    judged = _judged(parties, written(key, names, filled))
    content = {
        "key": key,
        "parties": names,
        "fields": fields,
        "expires": EXPIRES,
        "earlier": _earlier(desk, key, dataset),
    }
    return Shown("form.html.j2", {**content, **_told(judged, has_fields=True)})


def _earlier(desk: Desk, key: Key, dataset: str) -> dict[str, list[str]]:
    """By field, what earlier jobs of this coordinator had there that were of the same task and dataset.

    Parties tell nobody which columns and items they have; who has asked for some before, may be offered them again.
    """
    found = dict[str, dict[str, None]]()
    for folder in desk.store().jobs()[:_LOOKED_AT]:
        try:
            spec = folder.record().spec
            if (spec.job.task, spec.job.dataset) != (key.task, dataset):
                continue
            values = values_of(job_file(spec))
        except (ComineError, ValueError):  # of another version, or written in another way than by lines
            continue
        for name, value in values.items():
            found.setdefault(name, {})[value] = None
    return {name: list(values)[:_OFFERED] for name, values in found.items()}


def _like(desk: Desk, parties: _Parties, visit: Visit) -> Shown:
    """The file of an earlier job, to be changed."""
    return _as_text(parties, job_file(desk.store().find(visit.params["job"]).record().spec, whole=True))


def _text(parties: _Parties, visit: Visit) -> Shown:
    return _as_text(parties, _file_of(visit))


def _check(parties: _Parties, visit: Visit) -> Shown:
    return Shown("found.html.j2", _told(_judged(parties, _file_of(visit)), has_fields="file" not in visit.form))


def _file(visit: Visit) -> Saved:
    return Saved("job.toml", _file_of(visit).encode())


def _plan(desk: Desk, parties: _Parties, visit: Visit) -> Shown:
    """What `comine job plan` shows; by a form alone, since parties count plans."""
    text = _file_of(visit)
    try:
        spec = read_job(text)
        known, identity = load_federation(desk.federation)
        plan = desk.calls.run(plan_job(spec, identity, known.select(spec.job.parties)))
    except ComineError as error:
        return _as_text(parties, text, error.message)
    desk.store().save_plan(spec.digest, plan.as_data())
    return Shown("plan.html.j2", {"file": text, "expires": visit.form.get("expires", EXPIRES), **_planned(plan)})


def _submit(desk: Desk, parties: _Parties, visit: Visit) -> Shown | GoOn:
    text, by = _file_of(visit), visit.person.name
    try:
        spec, expires_s = (
            read_job(text),
            duration(visit.form.get("expires", "").strip() or EXPIRES, "the time to think"),
        )
        known, identity = load_federation(desk.federation)
        submitted = submit_job(
            spec,
            identity,
            known.select(spec.job.parties),
            desk.store(),
            expires_s=expires_s,
            retries=RETRIES,
            by=by,
        )
        folder = desk.calls.run(submitted)
    except ComineError as error:
        return _as_text(parties, text, error.message)
    desk.log.info("job submitted", job=folder.id, person=by)
    desk.drive(folder)
    return GoOn(f"/jobs/{folder.id}")


def read_job(text: str) -> JobSpec:
    """A job that was written in a browser, which may name no file of this machine.

    Raises:
        ConfigurationError: Something in it is missing, unknown or wrong.
    """
    contents = parse_toml(text.encode(errors="replace"), _WHERE)
    _check_names_no_file(contents)
    return job_of(contents, _WHERE, _NOWHERE)


def _check_names_no_file(contents: dict[str, Any]) -> None:
    itemsets, release = (contents.get(table) for table in ("itemsets", "anonymize"))
    given = itemsets if isinstance(itemsets, dict) else {}
    if given.get("universe", UNIVERSES[0]) not in UNIVERSES and "catalogue" not in given:
        raise ConfigurationError(
            f"{_WHERE}: [itemsets] universe: the console reads no files; write the items into the catalogue"
        )
    hierarchies = release.get("hierarchies") if isinstance(release, dict) else None
    for name, entry in hierarchies.items() if isinstance(hierarchies, dict) else ():
        if isinstance(entry, str) or (isinstance(entry, dict) and "file" in entry):
            raise ConfigurationError(
                f"{_WHERE}: [anonymize.hierarchies] {name}: the console reads no files; write its rows as lists"
            )


def _judged(parties: _Parties, text: str) -> _Written:
    """The job file's own checks, and whether the parties would take it by what they say of themselves."""
    try:
        spec = read_job(text)
    except ComineError as error:
        return _Written(text, [error.message.removeprefix(f"{_WHERE}: ")], [])
    asked, job = parties.said(), spec.job
    faults, fits = list[str](), list[str]()
    for name in job.parties:
        if (said := asked.descriptions.get(name)) is None:
            faults.append(asked.silent.get(name, f"{name} is no party of the federation"))
            continue
        found = misfits(name, said, task=job.task, parties=job.parties, dataset=job.dataset, kind=kind_of(spec).data)
        faults += found
        if not found:
            fits.append(f"fits {name}, by what it says of itself; its policy decides on the whole job")
    return _Written(text, faults, fits)


def _told(found: _Written, *, has_fields: bool) -> dict[str, Any]:
    return {**found._asdict(), "has_fields": has_fields}


def _as_text(parties: _Parties, text: str, refused: str = "") -> Shown:
    return Shown(
        "text.html.j2", {"refused": refused, "expires": EXPIRES, **_told(_judged(parties, text), has_fields=False)}
    )


def _file_of(visit: Visit) -> str:
    """The job file of a form: as it was written, or of its fields."""
    if "file" in visit.form:
        return visit.form["file"].replace("\r\n", "\n")
    return written(_key(visit.form), _named(visit.form), visit.form)


def _key(form: Any) -> Key:
    """The kind of job that was chosen, as `TASK PARTITION MODEL`."""
    chosen = form.get("kind", "").split(" ")
    found = next((key for key in (*BUILT_IN, *added()) if list(key) == chosen), None)
    if found is None:
        raise UsageError("choose the kind of job on the page for new jobs")
    return found


def _named(form: Any) -> list[str]:
    """The parties that were chosen."""
    found = [name.removeprefix(_PARTY) for name in form if name.startswith(_PARTY)]
    if not all(map(is_party_name, found)):
        raise UsageError("choose the parties on the page for new jobs")
    return found


def _planned(plan: Plan) -> dict[str, Any]:
    heads, rows = costs(plan)
    return {
        "plan": plan.as_data(),
        "summary": [] if plan.summary is None else plan.summary.entries(plan.coordinator, cost(plan)),
        "heads": heads,
        "rows": rows,
        "in_all": in_all(plan),
        "sections": sections(plan),
        "alternatives": [(each.name, ", ".join(each.change), each.in_short) for each in plan.alternatives],
    }
