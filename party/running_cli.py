"""`comine party cancel|results|release|withhold`: what people do about jobs that were approved, beside the node."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Annotated

import typer

from party.inbox_cli import OPERATOR, AsJson, By, File, FileBeforeId, JobId, Yes, confirm, is_terminal, write


def cancel(
    party_toml: FileBeforeId,
    job: JobId,
    reason: Annotated[str, typer.Option("--reason", help="Why; sent to its coordinator and the other parties.")],
    by: By = OPERATOR,
    yes: Yes = False,
    as_json: AsJson = False,
) -> None:
    """End a job that was approved or runs, at once and for good, and tell the others why."""
    from party.desk import at_desk, person
    from party.policy.inbox import find, line
    from party.policy.inbox_text import SHORT, harmless

    who = person(by)
    with at_desk(party_toml) as desk:
        record = find(desk.store, job)
        confirm(f"cancel job {record.job_id.hex()[:SHORT]} of {record.coordinator} on {record.dataset}?", yes)
        shown, name, runs = line(desk.cancel(record, who, reason), time.time()), desk.config.party.name, desk.runs
    later = "" if runs or shown["state"] == "cancelled" else "; its node, which does not run, ends it when it starts"
    contents = {"schema": "comine.cancelled/1", "party": name, "job": shown, "by": who}
    write(contents, as_json, lambda: f"job {shown['job_id']}: {harmless(shown['state'])}{later}\n")


def results(party_toml: File, as_json: AsJson = False) -> None:
    """List what jobs have found that is held until a person releases it, and where it can be seen."""
    from party.desk import at_desk
    from party.policy.inbox_text import SHORT, harmless, held_text

    with at_desk(party_toml) as desk:
        contents = desk.results()

    def text() -> str:
        if not contents["results"]:
            return "nothing is held for release\n"
        lines = list[str]()
        for each in contents["results"]:
            lines += [
                f"{each['job_id'][:SHORT]} {harmless(each['name'])} of {each['coordinator']}",
                *held_text(each["held"]),
            ]
        return "".join(f"{line}\n" for line in lines)

    write(contents, as_json, text)


def release(party_toml: FileBeforeId, job: JobId, by: By = OPERATOR, yes: Yes = False, as_json: AsJson = False) -> None:
    """Release what a job has found, which is shown first: then the job ends at all parties, and hands it over."""
    _decide(party_toml, job, by, yes, as_json, None)


def withhold(
    party_toml: FileBeforeId,
    job: JobId,
    reason: Annotated[str, typer.Option("--reason", help="Why; for this party's audit log alone.")],
    by: By = OPERATOR,
    yes: Yes = False,
    as_json: AsJson = False,
) -> None:
    """Do not release what a job has found: the job ends at all parties, for good, and hands over nothing."""
    _decide(party_toml, job, by, yes, as_json, reason)


def _decide(party_toml: Path, job: str, by: str, yes: bool, as_json: bool, reason: str | None) -> None:
    from party.desk import at_desk, person
    from party.policy.inbox import find, held_of, line
    from party.policy.inbox_text import SHORT, harmless, held_text

    who, verb = person(by), "release" if reason is None else "withhold"
    with at_desk(party_toml) as desk:
        record = find(desk.store, job)
        held = held_of(record, desk.store, time.time())
        if held is not None and not yes and is_terminal():
            typer.echo("".join(f"{each}\n" for each in held_text(held)), err=True, nl=False)
        confirm(f"{verb} the result of job {record.job_id.hex()[:SHORT]} of {record.coordinator}?", yes)
        if reason is None:
            desk.release(record, who)
        else:
            desk.withhold(record, who, reason)
        shown, name = line(record, time.time()), desk.config.party.name
    decided = "released" if reason is None else "withheld"
    contents = {"schema": "comine.release-decided/1", "party": name, "job": shown, "by": who, "decided": decided}
    write(contents, as_json, lambda: f"the result of job {shown['job_id']} is {decided} by {harmless(who)}\n")
