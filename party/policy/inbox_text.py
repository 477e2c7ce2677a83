"""The inbox of a party as text, for people: made from the same data as its JSON."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Final

from jobs.documents.summary import Entry, Summary, lines
from jobs.kinds.registry import read_spec
from jobs.plan import Plan
from jobs.plan.cost import cost
from jobs.report.parameters import parameters
from jobs.spec.diff import Change, value_text
from jobs.statement import openings
from link.files.printable import text_width, wrapped
from link.files.quantities import size

HELD: Final = (
    "What the job finds is held until a person of this party releases it. By then its parties have learned what the "
    "statement says they learn while it runs; beyond that no node hands over anything of the result before, and none "
    "at all if it is withheld."
)
SHORT: Final = 12  # digits of a job id
DECISIONS: Final = {"auto": "it is approved at once", "manual": "a person decides", "refuse": "it is refused"}


def list_text(contents: dict[str, Any], *, ruled: bool) -> str:
    """The list of jobs: columns on a terminal (`ruled`), between tabs in a pipe."""
    heads = ("job", "state", "coordinator", "task", "dataset", "parties", "min_support", "expires", "name")
    rows = [
        (
            job["job_id"][:SHORT],
            ", ".join(filter(None, (job["state"], heard(job)))),
            job["coordinator"],
            job["task"],
            job["dataset"],
            ",".join(job["parties"]),
            job["min_support"],
            _time(job["expiry"]),
            job["name"],
        )
        for job in contents["jobs"]
    ]
    if not ruled:
        return "".join("\t".join(map(harmless, row)) + "\n" for row in (heads, *rows))
    if not rows:
        return f"no job awaits a decision of {contents['party']}; --all lists those that were decided\n"
    return _lines(columns([heads, *rows]))


def standing_text(standings: Sequence[dict[str, Any]]) -> str:
    """Standing approvals that stand, a line each; empty where there are none."""
    return "".join(f"{each}\n" for each in _standing(standings))


def _standing(standings: Sequence[dict[str, Any]]) -> Iterator[str]:
    for each in standings:
        if each["state"] == "stands":
            yield from wrapped(
                f"approved in advance by {each['by']}: {each['times'] - each['used']} of {each['times']} more runs of "
                f"job {each['job_id'][:SHORT]} of {each['coordinator']}, until {_time(each['until'])} UTC; revoke: "
                f"comine party revoke-approval PARTY_TOML {each['id'][:SHORT]}"
            )


def show_text(contents: dict[str, Any], party_toml: str, *, detail: bool) -> str:
    """One job: its summary, and what has changed since the last one; where asked all that is known of it."""
    return _lines(_show(contents, party_toml, detail=detail))


def summary_text(contents: dict[str, Any]) -> str:
    """What a person has to know of a job to decide on it."""
    return _lines([*_summary(contents), "", *_changes(contents["changes"]), ""])


def heard(job: dict[str, Any]) -> str:
    """Who has approved a job that needs several people and awaits others of them; empty of any other."""
    approvals = job["approvals"]
    if job["state"] != "awaiting approval" or approvals["needed"] == 1:
        return ""
    names = f", by {', '.join(approvals['by'])}" if approvals["by"] else ""
    runs = approvals["runs"]
    more = f", with {runs['times']} more runs, every {runs['every']} until {runs['until']}" if runs else ""
    return f"{len(approvals['by'])} of {approvals['needed']} approved{names}{more}"


def harmless(text: object) -> str:
    """The text without what would move a terminal's cursor or change its colours."""
    return "".join(c if c.isprintable() else "\N{REPLACEMENT CHARACTER}" for c in str(text))


def _show(contents: dict[str, Any], party_toml: str, *, detail: bool) -> Iterator[str]:
    job_id = contents["job_id"]
    yield f"{contents['name']}: {contents['state']}, until {_time(contents['expiry'])} UTC"
    yield ""
    yield from _summary(contents)
    yield ""
    yield from _changes(contents["changes"])
    yield from _standing(contents["standing"])
    policy = contents["policy"]
    yield f"What the policy says now: {DECISIONS[policy['decision']]}"
    if policy["refusal"]:
        yield from wrapped(policy["refusal"], "  ")
    if heard(contents):
        yield heard(contents)
    if contents["release"] == "manual":
        yield from wrapped(HELD)
    if contents["held"] is not None:
        yield from held_text(contents["held"])
    if contents["decided"]:
        verb = "denied" if contents["reason"] else "approved"
        reason = f": {contents['reason']}" if contents["reason"] else ""
        yield from wrapped(f"{verb} by {contents['decided_by']} on {_time(contents['decided'])} UTC{reason}")
    if contents["error"] and contents["error"]["message"] != contents["reason"]:
        yield from wrapped(f"ended: {contents['error']['message']} ({contents['error']['code']})")
    if contents["alignment"] is not None:
        yield f"the positions of this party's rows are in {contents['alignment']}"
    if detail:
        yield from _detail(contents)
    if contents["state"] == "awaiting approval":
        yield ""
        for verb, more in (("approve", ""), ("deny", ' --reason "..."')):
            yield f"comine party {verb} {party_toml} {job_id[:SHORT]}{more}"
    if not detail:
        yield ""
        yield f"all else: comine party show {party_toml} {job_id[:SHORT]} --detail"


def held_text(held: dict[str, Any]) -> Iterator[str]:
    """What is held of a job: what was found, where it is, and what was opened on the way."""
    until = f"{_time(held['until'])} UTC"
    then = f"handed over by another attempt of the job, until {until}" if held["lost"] else f"withheld at {until}"
    yield from wrapped(f"held for release since {_time(held['since'])} UTC, {then}")
    yield f"  found: {harmless(held['found'] or 'this party does not learn the result')}"
    if held["n_rows"] is not None:
        yield f"  rows: {held['n_rows']:,}"
    for file in held["files"]:
        yield f"  {harmless(file)}"
    for each in held["opened"]:
        to = ", ".join(each["recipients"])
        yield f"  opened: {each['number']:,} of '{harmless(each['label'])}' ({size(each['size_bytes'])}) to {to}"


def summary_entries(contents: dict[str, Any]) -> tuple[list[Entry], str | None]:
    """The lines of a job's summary, as long as they may be; and what its plan warns of."""
    plan = None if contents["plan"] is None else Plan.from_data(contents["plan"])
    costs = None if plan is None else cost(plan)
    summary = Summary.model_validate(contents["summary"])
    return summary.entries(contents["coordinator"], costs), None if plan is None else plan.warning


def _summary(contents: dict[str, Any]) -> list[str]:
    entries, warning = summary_entries(contents)
    found = lines(entries, text_width())
    return found if warning is None else [*found, "", *wrapped(warning)]


def _changes(changes: dict[str, Any] | None) -> Iterator[str]:
    """A line for each change since the last job that was approved."""
    if changes is None:
        yield "Changes: none to compare with, as no such job was approved before"
        return
    since = f"since job {changes['since'][:SHORT]}, approved on {_time(changes['decided'])} UTC"
    changed = [Change(**each) for each in changes["changes"]]
    yield f"Changes {since}:{'' if changed else ' none'}"
    for each in changed:
        yield from wrapped(each.text, "  ", "    ")


def _detail(contents: dict[str, Any]) -> Iterator[str]:
    yield from _titled("The job", columns([("job id", contents["job_id"]), *parameter_rows(tables(contents))]))
    yield f"  proposed by {contents['coordinator']} on {_time(contents['received'])} UTC"
    yield from _titled("What it discloses", contents["statement"], "- ")
    yield from _titled("What the nodes may open", openings(contents["disclosure"]), "- ")
    yield from _titled("What it may cost each record", privacy_lines(contents["privacy"]), "- ")
    rules = [(rule["rule"], rule["says"], rule["allowed"]) for rule in contents["policy"]["rules"]]
    yield from _titled("The policy", columns(rules))
    if contents["plan"] is not None:
        found = plan_lines(contents["plan"], contents["party"])
        yield from _titled("What it is expected to cost, as computed here", found, "- ")
    earlier = [
        (_time(job["started"]), job["job_id"][:SHORT], job["state"], ",".join(job["parties"]), job["min_support"])
        for job in contents["earlier"]
    ]
    title = f"Earlier jobs on {contents['dataset']}"
    yield from _titled(title, columns(earlier) if earlier else ["none"])


def tables(contents: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """The keys of a job by their tables."""
    return parameters(read_spec(contents["job"], "the job"))


def parameter_rows(tables: dict[str, dict[str, Any]]) -> Iterator[tuple[str, str]]:
    """Every key of a job that has a value."""
    for table, keys in tables.items():
        for key, value in keys.items():
            if key == "catalogue" and value:
                yield f"{table}.{key}", f"{len(value)} items"
            elif value not in (None, [], ""):
                yield f"{table}.{key}", value_text(value)


def privacy_lines(privacy: dict[str, Any]) -> Iterator[str]:
    """The charge of the job, and what is left of the dataset's totals before it."""
    cost, rest = privacy["charge"], privacy["left"]
    if cost["epsilon"] is None:
        yield "nothing bounds what its result reveals of a record: it adds no noise"
    else:
        text = f"epsilon {cost['epsilon']} and delta {cost['delta']} towards anyone who sees the result"
        local = cost["local_epsilon"]
        yield text if local is None else f"{text}, epsilon {local} towards anyone who sees its report as it leaves"
    kept = [f"{name.replace('_', ' ')} {amount}" for name, amount in rest.items() if amount is not None]
    yield f"left for all jobs on the dataset: {', '.join(kept)}" if kept else "no total is set for the dataset"


def plan_lines(plan: dict[str, Any], party: str) -> Iterator[str]:
    """What a job is expected to cost a party."""
    own = plan["parties"][party]
    least = "at least " if plan["is_least"] else ""
    yield f"{least}{size(own['bytes_sent'])} sent, {size(own['bytes_received'])} received, {plan['rounds']} rounds"
    if plan["rounds_at_most"] is not None:
        most = f"{size(own['bytes_sent_at_most'])} sent, {size(own['bytes_received_at_most'])} received"
        yield f"at most {most}, {plan['rounds_at_most']} rounds"
    yield f"{least}{own['seconds']:.2g} s, {size(own['memory_bytes'])} of memory"
    yield from plan["assumptions"]


def _time(clock: str | None) -> str:
    return "" if clock is None else clock[:16].replace("T", " ")


def _titled(title: str, lines: Iterable[str], bullet: str | None = None) -> Iterator[str]:
    """Lines under a title: those of a table as they are, sentences wrapped behind a bullet."""
    yield ""
    yield title
    for line in lines:
        yield from [f"  {line}"] if bullet is None else wrapped(line, f"  {bullet}")


def columns(rows: Iterable[Sequence[str]]) -> list[str]:
    """Rows with their columns under each other; the last one is as long as it is."""
    table = [tuple(map(harmless, row)) for row in rows]
    widths = [max(map(len, column)) for column in zip(*table, strict=True)]
    return ["   ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in table]


def _lines(lines: Iterable[str]) -> str:
    return "".join(harmless(line) + "\n" for line in lines)
