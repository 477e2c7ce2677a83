"""The inbox: what awaits a decision, one job with all that is known of it, and the decision itself."""

from __future__ import annotations

import time
from functools import partial
from pathlib import Path
from typing import Any, Final

from console.lists import part_of
from console.site import GoOn, Page, Shown, Visit
from jobs.spec.diff import Change
from jobs.statement import openings
from party.desk import at_desk
from party.jobs.planning.kept_plans import KeptPlans
from party.policy.inbox import find, find_standing
from party.policy.inbox_text import (
    DECISIONS,
    HELD,
    heard,
    parameter_rows,
    plan_lines,
    privacy_lines,
    summary_entries,
    tables,
)
from party.policy.standing import Schedule
from party.state.voices import person as voice_of

PATH: Final = "/inbox"


def pages(party_toml: Path) -> tuple[Page, ...]:
    """The pages of a node's file, the list first."""
    one, plans = f"{PATH}/{{job}}", KeptPlans()
    return (
        Page(PATH, partial(_list, party_toml), title="Inbox"),
        Page(one, partial(_show, party_toml, plans)),
        Page(f"{one}/approve", partial(_approve, party_toml), role="approver", acts=True),
        Page(f"{one}/deny", partial(_deny, party_toml), role="approver", acts=True),
        Page(f"{PATH}/standing/{{standing}}/revoke", partial(_revoke, party_toml), role="approver", acts=True),
    )


def _list(party_toml: Path, visit: Visit) -> Shown:
    all_jobs = visit.query.get("all") == "1"
    with at_desk(party_toml) as desk:
        part = part_of(desk.records(all_jobs=all_jobs), visit.query)
        shown = part._replace(rows=desk.listed(part.rows, time.time())["jobs"])
        standing = [each for each in desk.standings() if each["state"] == "stands"]
    return Shown("inbox.html.j2", {"jobs": shown, "heard": heard, "all_jobs": all_jobs, "standing": standing})


def _show(party_toml: Path, plans: KeptPlans, visit: Visit) -> Shown:
    with at_desk(party_toml, plans) as desk:
        contents = desk.shown(find(desk.store, visit.params["job"]))
    me = voice_of(visit.person.name)
    again = me in {voice_of(by) for by in contents["approvals"]["by"]}
    return Shown("proposal.html.j2", _told(contents) | {"has_approved": again})


def _approve(party_toml: Path, visit: Visit) -> GoOn:
    form = visit.form
    schedule = None
    if times := form.get("times", "").strip():
        number = int(times) if times.isdecimal() else 0  # which the schedule refuses
        schedule = Schedule(number, form.get("every", ""), form.get("until", ""), time.time())
    with at_desk(party_toml) as desk:
        record = find(desk.store, visit.params["job"])
        desk.decide(record, visit.person.name, schedule=schedule)
    return GoOn(f"{PATH}/{record.job_id.hex()}")


def _deny(party_toml: Path, visit: Visit) -> GoOn:
    with at_desk(party_toml) as desk:
        record = find(desk.store, visit.params["job"])
        desk.decide(record, visit.person.name, reason=visit.form.get("reason", ""))
    return GoOn(f"{PATH}/{record.job_id.hex()}")


def _revoke(party_toml: Path, visit: Visit) -> GoOn:
    with at_desk(party_toml) as desk:
        found = find_standing(desk.store.standings(), visit.params["standing"])
        with desk.consent() as consent:
            consent.revoke(found.terms.id, visit.person.name)
    return GoOn(PATH)


def _told(contents: dict[str, Any]) -> dict[str, Any]:
    """A job as its page tells it, from what `comine party show --json` prints."""
    summary, warning = summary_entries(contents)
    changes = contents["changes"]
    return {
        "job": contents,
        "summary": summary,
        "warning": warning,
        "heard": heard(contents),
        "hold": HELD,
        "says": DECISIONS[contents["policy"]["decision"]],
        "changes": None if changes is None else [Change(**each).text for each in changes["changes"]],
        "parameters": list(parameter_rows(tables(contents))),
        "openings": list(openings(contents["disclosure"])),
        "privacy": list(privacy_lines(contents["privacy"])),
        "costs": [] if contents["plan"] is None else list(plan_lines(contents["plan"], contents["party"])),
        "standing": [each for each in contents["standing"] if each["state"] == "stands"],
    }
