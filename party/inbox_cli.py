"""`comine party inbox|status|show|approve|deny|budget`: a person's part, beside the node, whether or not it runs."""

from __future__ import annotations

import contextlib
import re
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from party.policy.standing import Schedule


def _is_file(path: Path) -> Path:
    """Tells who gives a job alone that the node's file goes before it."""
    if re.fullmatch("[0-9a-f]{4,64}", str(path)) and not path.exists():
        from link.errors import UsageError

        raise UsageError(f"{path} looks like a job's id; name the node's file before it, as in party.toml {path}")
    return path


File = Annotated[Path, typer.Argument(metavar="PARTY_TOML", help="The node's file, e.g. north.toml.")]
FileBeforeId = Annotated[
    Path, typer.Argument(metavar="PARTY_TOML", help="The node's file, e.g. north.toml.", callback=_is_file)
]
JobId = Annotated[str, typer.Argument(metavar="JOB", help="The job's id, or its first four digits or more.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON.")]
Detail = Annotated[bool, typer.Option("--detail", help="The whole statement, the policy's rules, all figures.")]
By = Annotated[str, typer.Option("--by", help="Who decides; sent to the others.", show_default=True)]
OPERATOR = "operator"  # the user of this machine is nobody's business
Yes = Annotated[bool, typer.Option("--yes", help="Do not ask again.")]


def inbox(
    party_toml: File,
    all_jobs: Annotated[bool, typer.Option("--all", help="List the jobs that were decided, too.")] = False,
    as_json: AsJson = False,
) -> None:
    """List the jobs that await a decision of this party."""
    from party.desk import at_desk
    from party.policy.inbox_text import list_text, standing_text

    with at_desk(party_toml) as desk:
        contents = desk.inbox(all_jobs=all_jobs)
    ruled = is_terminal()
    write(
        contents,
        as_json,
        lambda: list_text(contents, ruled=ruled) + (standing_text(contents["standing"]) if ruled else ""),
    )


def status(party_toml: File, as_json: AsJson = False) -> None:
    """Show which jobs run at the node and which wait: their coordinators, places in the queue, and memory."""
    from party.desk import at_desk
    from party.status import status_text

    with at_desk(party_toml) as desk:
        contents = desk.status()
    write(contents, as_json, lambda: status_text(contents))


def show(party_toml: FileBeforeId, job: JobId, detail: Detail = False, as_json: AsJson = False) -> None:
    """Show a job: what is asked, who learns what, the worst case and the cost, and what has changed since the last."""
    from party.desk import at_desk
    from party.policy.inbox import find
    from party.policy.inbox_text import show_text

    with at_desk(party_toml) as desk:
        contents = desk.shown(find(desk.store, job))
    write(contents, as_json, lambda: show_text(contents, str(party_toml), detail=detail))


def approve(
    party_toml: FileBeforeId,
    job: JobId,
    by: By = OPERATOR,
    yes: Yes = False,
    standing: Annotated[
        bool, typer.Option("--standing", help="Approve more runs of the very same job in advance.")
    ] = False,
    times: Annotated[int, typer.Option("--times", help="With --standing: how many more runs.")] = 0,
    every: Annotated[
        str, typer.Option("--every", metavar="DURATION", help="With --standing: the least time between two runs.")
    ] = "",
    until: Annotated[str, typer.Option("--until", metavar="DAY", help="With --standing: the last day, UTC.")] = "",
    as_json: AsJson = False,
) -> None:
    """Agree to a job, whose summary is shown first: sign it with the party's key, so that it may be started."""
    from link.errors import UsageError
    from party.policy.standing import Schedule

    if standing != bool(times or every or until):
        raise UsageError("--standing goes with --times, --every and --until, as in --times 12 --every 7d --until DAY")
    schedule = Schedule(times, every, until, time.time()) if standing else None
    _decide(party_toml, job, by, yes, as_json, None, schedule)


def revoke_approval(
    party_toml: FileBeforeId,
    approval: Annotated[
        str, typer.Argument(metavar="ID", help="Of the standing approval, or of its job; four digits or more.")
    ],
    by: By = OPERATOR,
    as_json: AsJson = False,
) -> None:
    """Take back a standing approval at once: runs that have not begun do not begin."""
    from party.desk import at_desk, person
    from party.policy.inbox import find_standing, in_advance

    who = person(by)
    with at_desk(party_toml) as desk:
        found = find_standing(desk.store.standings(), approval)
        with desk.consent() as consent:
            consent.revoke(found.terms.id, who)
        (shown,) = in_advance([each for each in desk.store.standings() if each.terms.id == found.terms.id], time.time())
    contents = {"schema": "comine.standing/1", "party": desk.config.party.name, "standing": shown}
    write(contents, as_json, lambda: f"nothing more is approved in advance of job {shown['job_id']}\n")


def deny(
    party_toml: FileBeforeId,
    job: JobId,
    reason: Annotated[str, typer.Option("--reason", help="Why; sent to its coordinator.")],
    by: By = OPERATOR,
    yes: Yes = False,
    as_json: AsJson = False,
) -> None:
    """Refuse a job, and tell its coordinator why."""
    _decide(party_toml, job, by, yes, as_json, reason)


def budget(
    party_toml: File,
    dataset: Annotated[str | None, typer.Option("--dataset", metavar="NAME", help="Only this dataset.")] = None,
    as_json: AsJson = False,
) -> None:
    """Show what jobs may have cost the records of each dataset, and what is left of its privacy budget."""
    from party.config import PartyConfig
    from party.policy.budget import budget, budget_text
    from party.state.ledger import Ledger
    from party.state.node_database import FILE

    config = PartyConfig.load(party_toml)
    database = config.party.state_dir / FILE
    with contextlib.closing(Ledger.open_beside(database, database)) as ledger:
        shown = budget(config, ledger, dataset, time.time())
    write(shown.model_dump(mode="json", by_alias=True), as_json, lambda: budget_text(shown))


def _decide(
    party_toml: Path, job: str, by: str, yes: bool, as_json: bool, reason: str | None, schedule: Schedule | None = None
) -> None:
    from party.desk import at_desk, check_words, person
    from party.policy.inbox import find
    from party.policy.inbox_text import SHORT, harmless, heard, summary_text

    who = person(by)
    if reason is not None:
        check_words("the reason", reason)
    with at_desk(party_toml) as desk:
        record = find(desk.store, job)
        verb = "approve" if reason is None else "deny"
        more = "" if schedule is None else f", and {schedule.times} more runs of it in advance"
        question = f"{verb} job {record.job_id.hex()[:SHORT]} of {record.coordinator} on {record.dataset}{more}?"
        if not yes and is_terminal():
            typer.echo(summary_text(desk.shown(record)), err=True, nl=False)
        confirm(question, yes)
        desk.decide(record, who, reason=reason, schedule=schedule)
        contents = desk.listed([desk.store.get(record.job_id) or record], time.time())
    shown = contents["jobs"][0]
    how = heard(shown) or f"is {shown['state']} by {shown['decided_by']}"
    write(contents, as_json, lambda: f"job {shown['job_id']} {harmless(how)}\n")


def confirm(question: str, yes: bool) -> None:
    """Asks a person at a terminal once more, unless they said yes beforehand.

    Raises:
        JobCancelled: They say no.
    """
    from link.errors import JobCancelled
    from party.policy.inbox_text import harmless

    if not yes and is_terminal() and not typer.confirm(harmless(question), err=True):
        raise JobCancelled("nothing was decided")


def is_terminal() -> bool:
    """Whether a person can be asked."""
    import sys

    return sys.stdin.isatty() and sys.stdout.isatty()


def write(contents: dict[str, Any], as_json: bool, text: Any) -> None:
    """Prints what a command has found, as JSON or as text."""
    import json

    typer.echo(json.dumps(contents, indent=2, ensure_ascii=False) if as_json else text(), nl=as_json)
