"""`comine party cancel`: what the party's own people do about jobs that were approved, beside the node."""

from __future__ import annotations

import time
from typing import Annotated

import typer

from party.inbox_cli import OPERATOR, AsJson, By, FileBeforeId, JobId, Yes, confirm, write


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
