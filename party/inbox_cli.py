"""`comine party inbox|status|show|approve|deny|budget`: a person's part, beside the node, whether or not it runs."""

from __future__ import annotations

import contextlib
import re
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from party.config import PartyConfig
    from party.policy.consent import Consent
    from party.policy.judge import Judge
    from party.policy.standing import Schedule
    from party.state.store import Record, Store


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
    from party.policy.inbox import in_advance, listed
    from party.policy.inbox_text import list_text, standing_text
    from protos.v1.control_pb2 import AWAITING_APPROVAL

    with _opened(party_toml) as (config, store, _):
        now = time.time()
        records = store.all() if all_jobs else store.within([AWAITING_APPROVAL])
        shown = [record for record in records if all_jobs or record.expiry > now]
        contents = listed(config.party.name, shown, now) | {"standing": in_advance(store.standings(), now)}
    ruled = is_terminal()
    _write(
        contents,
        as_json,
        lambda: list_text(contents, ruled=ruled) + (standing_text(contents["standing"]) if ruled else ""),
    )


def status(party_toml: File, as_json: AsJson = False) -> None:
    """Show which jobs run at the node and which wait: their coordinators, places in the queue, and memory."""
    from party.jobs.queue_note import FILE, noted
    from party.state.database import is_locked
    from party.state.node_database import FILE as DATABASE
    from party.status import status, status_text
    from protos.v1.control_pb2 import APPROVED, AWAITING_APPROVAL, RELEASING, RUNNING

    with _opened(party_toml) as (config, store, _):
        state, now = config.party.state_dir, time.time()
        records = [
            record
            for record in store.within([RUNNING, RELEASING, APPROVED, AWAITING_APPROVAL])
            if record.state in (RUNNING, RELEASING) or record.expiry > now
        ]
        contents = status(config.party.name, records, noted(state / FILE), now, runs=is_locked(state / DATABASE))
    _write(contents, as_json, lambda: status_text(contents))


def show(party_toml: FileBeforeId, job: JobId, detail: Detail = False, as_json: AsJson = False) -> None:
    """Show a job: what is asked, who learns what, the worst case and the cost, and what has changed since the last."""
    from party.policy.inbox import find
    from party.policy.inbox_text import show_text

    with _opened(party_toml) as (config, store, judge):
        contents = _shown(config, find(store, job), store, judge)
    _write(contents, as_json, lambda: show_text(contents, str(party_toml), detail=detail))


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
    from party.policy.inbox import find_standing, in_advance

    who = _person(by)
    with _opened(party_toml) as (config, store, judge):
        found = find_standing(store.standings(), approval)
        with _consent(config, store, judge) as consent:
            consent.revoke(found.terms.id, who)
        (shown,) = in_advance([each for each in store.standings() if each.terms.id == found.terms.id], time.time())
    contents = {"schema": "comine.standing/1", "party": config.party.name, "standing": shown}
    _write(contents, as_json, lambda: f"nothing more is approved in advance of job {shown['job_id']}\n")


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
    _write(shown.model_dump(mode="json", by_alias=True), as_json, lambda: budget_text(shown))


def _decide(
    party_toml: Path, job: str, by: str, yes: bool, as_json: bool, reason: str | None, schedule: Schedule | None = None
) -> None:
    from link.errors import JobCancelled
    from party.policy.inbox import find, listed
    from party.policy.inbox_text import SHORT, harmless, summary_text

    who = _person(by)
    if reason is not None:
        _check_words("the reason", reason)
    with _opened(party_toml) as (config, store, judge):
        record = find(store, job)
        verb = "approve" if reason is None else "deny"
        more = "" if schedule is None else f", and {schedule.times} more runs of it in advance"
        question = f"{verb} job {record.job_id.hex()[:SHORT]} of {record.coordinator} on {record.dataset}{more}?"
        if not yes and is_terminal():
            typer.echo(summary_text(_shown(config, record, store, judge)), err=True, nl=False)
            if not typer.confirm(harmless(question), err=True):
                raise JobCancelled("nothing was decided")
        with _consent(config, store, judge) as consent:
            if reason is None:
                consent.approve(record, who, schedule)
            else:
                consent.deny(record, who, reason)
        contents = listed(config.party.name, [store.get(record.job_id) or record], time.time())
    shown = contents["jobs"][0]
    _write(contents, as_json, lambda: f"job {shown['job_id']} is {shown['state']} by {harmless(shown['decided_by'])}\n")


@contextmanager
def _opened(party_toml: Path) -> Iterator[tuple[PartyConfig, Store, Judge]]:
    """The node's file, its jobs and its policy, for reading."""
    from jobs.federation import Federation
    from party.config import PartyConfig
    from party.data.shared_sources import alike
    from party.policy.judge import Judge
    from party.services.anonymization.releases import FILE as RELEASES
    from party.services.anonymization.releases import Releases
    from party.state import companions
    from party.state.ledger import Ledger
    from party.state.node_database import FILE
    from party.state.store import Store

    config = PartyConfig.load(party_toml)
    federation = Federation.load(config.party.federation)
    config.check_federation(federation)
    with contextlib.ExitStack() as stack:
        state, members = config.party.state_dir, tuple(federation.addresses)
        database = state / FILE
        store = stack.enter_context(contextlib.closing(Store.open_beside(database, database)))
        ledger = stack.enter_context(contextlib.closing(Ledger.open_beside(database, database)))
        companions.check(store, state, config.party.name)  # what follows makes a new one in the place of a lost one
        releases = Releases.open_beside(database, state / RELEASES, config.party.name, alike(config.dataset))
        yield config, store, Judge(config, members, store, ledger, stack.enter_context(contextlib.closing(releases)))


@contextmanager
def _consent(config: PartyConfig, store: Store, judge: Judge) -> Iterator[Consent]:
    """The party's own hand: its key and its audit log."""
    from jobs.audit.log import AuditLog
    from jobs.federation import Federation
    from party.config import AUDIT_LOG
    from party.identity import check_identity
    from party.policy.consent import Consent

    identity = config.tls.identity(Federation.load(config.party.federation).pins)
    check_identity(identity, config)
    audit = AuditLog.open(config.party.state_dir / AUDIT_LOG, identity)
    try:
        yield Consent(judge, identity, store, audit)
    finally:
        audit.close()


def _shown(config: PartyConfig, record: Record, store: Store, judge: Judge) -> dict[str, Any]:
    """All that a person needs to decide on a job."""
    from party.jobs.alignments import FOLDER, Alignments
    from party.policy.inbox import shown

    alignment = Alignments(config.party.state_dir / FOLDER).find(record.job_id)
    return shown(config.party.name, record, store, judge, _plan(config, record), alignment, time.time())


def _plan(config: PartyConfig, record: Record) -> dict[str, Any] | None:
    """What the job would cost, as computed here; None where its data cannot be read now."""
    from link.errors import ComineError
    from party.jobs.estimate import local_plan
    from party.policy.consent import spec_of

    try:
        return local_plan(config, spec_of(record)).as_data()
    except ComineError:
        return None


def _person(by: str) -> str:
    from link.errors import UsageError

    _check_words("--by", by)
    if by == "policy":
        raise UsageError("'policy' is how a node signs by itself; say who decides with --by NAME")
    return by


def _check_words(what: str, text: str) -> None:
    from link.errors import UsageError

    if not (0 < len(text) <= 200 and text.isprintable() and text.strip()):
        raise UsageError(f"{what} must have 1 to 200 printable characters")


def is_terminal() -> bool:
    """Whether a person can be asked."""
    import sys

    return sys.stdin.isatty() and sys.stdout.isatty()


def _write(contents: dict[str, Any], as_json: bool, text: Any) -> None:
    import json

    typer.echo(json.dumps(contents, indent=2, ensure_ascii=False) if as_json else text(), nl=as_json)
