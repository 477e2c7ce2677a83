"""What the report says beside its tables, section by section, ready for the templates."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, Final, NamedTuple

from google.protobuf.message import DecodeError

from jobs.documents.summary import Entry
from jobs.kinds.registry import kind_of
from jobs.plan.cost import about
from jobs.report import text
from jobs.report.job_file import job_file
from jobs.report.parameters import parameters
from jobs.results.record import ResultRecord, cautions
from jobs.spec.job import JobSpec
from jobs.statement import statement
from jobs.summary import summary
from link.files.quantities import size
from link.version import software_version
from protos.v1.control_pb2 import Approval, Proposal, Release

_UNPLANNED: Final[Mapping[str, float | None]] = {"predicted": None, "ratio": None}
_LONG: Final = frozenset({("itemsets", "catalogue"), ("anonymize", "hierarchies")})  # too long for a table
_MEASURES: Final = ("bytes_sent", "bytes_received", "rounds", "seconds")


class Bar(NamedTuple):
    """A number beside what was planned, and both as shares of the greatest of their column.

    Attributes:
        value: The number.
        share: Of the greatest number or plan among the parties.
        planned: What the plan said; None where there was none.
        planned_share: Of the same greatest.
        ratio: Planned by actual.
    """

    value: float
    share: float
    planned: float | None
    planned_share: float
    ratio: float | None


def content(result: ResultRecord, written: datetime) -> dict[str, Any]:
    """All sections of the page; see `templates/report.html.j2` for what becomes of them."""
    spec, kind = result.spec, kind_of(result.spec)
    sections: dict[str, Any] = {"itemsets": None, "rules": None, "model": None}
    if result.finding is not None:
        sections |= result.finding.sections(spec)
    return {
        **sections,
        "job": spec.job,
        "lead": _lead(result),
        "elsewhere": result.is_elsewhere,
        "found": "itemsets or rules" if spec.rules is not None else kind.finds,
        "unsigned": "the number alone" if kind.finds is None else "none: does not get the result",
        "simulated": result.simulated,
        "seed": result.seed,
        "recipients": _names(spec.job.recipients),
        "figures": figures(result),
        "facts": _facts(result, written),
        "costs": _costs(result),
        "assumptions": None if result.plan is None else result.plan.assumptions,
        "summary": entries(result),
        "disclosure": _disclosure(spec),
        "consents": _consents(result),
        "receipts": _receipts(result),
        "digests": [
            ("job", result.job_id.hex()),
            ("session", result.session_id.hex()),
            ("specification", spec.digest.hex()),
        ],
        "parameters": shown_parameters(spec),
        "job_file": job_file(spec),
        "tabular": kind.data == "table",
        "written": text.moment(written),
        "software": software_version(),
    }


def entries(result: ResultRecord) -> list[Entry]:
    """The summary by which the parties agreed, with what the job has cost."""
    asked = _consents(result)
    sent = sum(costs.bytes_sent for costs in result.parties.values())
    longest = max((costs.seconds for costs in result.parties.values()), default=0.0)
    return summary(result.spec).entries(None if asked is None else asked["coordinator"], about(sent, longest))


def figures(result: ResultRecord) -> list[tuple[str, str]]:
    """The key figures: what they count, and the number."""
    shown = [_size(result), ("parties", str(len(result.spec.job.parties)))]
    if result.finding is not None:
        shown += [(name, text.number(number)) for name, number in result.finding.figures(result.spec)]
    sent = sum(costs.bytes_sent for costs in result.parties.values())
    longest = max((costs.seconds for costs in result.parties.values()), default=0.0)
    rounds = max((costs.rounds for costs in result.parties.values()), default=0)
    return [
        *shown,
        ("sent between parties", size(sent)),
        ("rounds", text.number(rounds)),
        ("running time", text.seconds(longest)),
    ]


def _lead(result: ResultRecord) -> str:
    """What the page is about, under its title."""
    what, together = kind_of(result.spec).lead(result.spec)
    done = "simulated in one process" if result.simulated else together
    return f"{what} of {_names(result.spec.job.parties)}, {done}."


def shown_parameters(spec: JobSpec) -> dict[str, Any]:
    """The job's tables; what a column means in one line."""
    tables = {
        name: {key: value for key, value in keys.items() if (name, key) not in _LONG}
        for name, keys in parameters(spec).items()
    }
    tables["columns"] = {
        name: "; ".join(
            f"{key} {', '.join(map(text.visible, value)) if isinstance(value, list) else value}"
            for key, value in column.items()
        )
        for name, column in tables["columns"].items()
    }
    return tables


def _size(result: ResultRecord) -> tuple[str, str]:
    """The number of rows, or of what takes its place."""
    if result.n_rows is None:
        return "positions of rows", text.number(result.positions or 0)
    kind = kind_of(result.spec)
    number = text.number(result.n_rows)
    return kind.rows_called(result.spec), f"about {number}" if kind.noisy_rows else number


def _facts(result: ResultRecord, written: datetime) -> list[tuple[str, str]]:
    spec = result.spec
    facts = [
        ("parties", _names(spec.job.parties)),
        ("result for", _names(spec.job.recipients)),
        ("dataset", text.visible(spec.job.dataset)),
    ]
    facts += [*kind_of(spec).asks(spec), *kind_of(spec).facts(spec, result.strategy)]
    if result.finding is not None:
        facts += result.finding.facts(spec)
    facts += [("rows that are cut", sentence) for sentence in cautions(result)]
    if result.simulated:
        kept = "" if result.seed is None else f", seed {result.seed}: such a run keeps no secrets"
        facts.append(("run", f"simulated, all parties in one process{kept}"))
    agreed = [approval.decided for approval in map(_approval, result.approvals.values()) if approval is not None]
    if agreed:
        facts.append(("agreed", text.unix(max(agreed))))
    return [*facts, ("written", text.moment(written))]


def _costs(result: ResultRecord) -> dict[str, dict[str, Bar]]:
    """Per party and measure what it cost beside what was planned."""
    compared: Mapping[str, Any] = {} if result.plan is None else result.plan.compare(result.parties)
    rows: dict[str, dict[str, Bar]] = {}
    for measure in _MEASURES:
        values = {party: float(getattr(costs, measure)) for party, costs in result.parties.items()}
        found = {party: compared[party][measure] if party in compared else _UNPLANNED for party in values}
        most = max([*values.values(), *(entry["predicted"] or 0.0 for entry in found.values())], default=0.0) or 1.0
        for party, value in values.items():
            planned, ratio = found[party]["predicted"], found[party]["ratio"]
            rows.setdefault(party, {})[measure] = Bar(value, value / most, planned, (planned or 0.0) / most, ratio)
    return rows


def _disclosure(spec: JobSpec) -> dict[str, Any]:
    stated = statement(spec)
    everyone = list(
        dict.fromkeys(["coordinator", *spec.job.parties, *(n for line in stated.learned for n in line.who)])
    )
    patterns: dict[tuple[bool, ...], list[str]] = {}
    for name in everyone:
        patterns.setdefault(tuple(name in line.who for line in stated.learned), []).append(name)
    return {
        "adversary": stated.adversary,
        "collusion": stated.collusion,
        "who": [_names(names) for names in patterns.values()],
        "lines": [
            (line.kind, line.what, line.detail, [pattern[row] for pattern in patterns])
            for row, line in enumerate(stated.learned)
        ],
        "declared": [
            (entry.label, entry.what, _names(sorted(entry.recipients)), f"{entry.maximum:,}", entry.when)
            for entry in stated.declared
        ],
        "beyond": stated.beyond,
        "prose": stated.exact_prose(),
    }


def _consents(result: ResultRecord) -> dict[str, Any] | None:
    """Who asked, and who agreed when; the signatures were checked before the job began."""
    if result.proposal is None:
        return None
    proposal = Proposal()
    try:
        proposal.ParseFromString(result.proposal.proposal)
    except DecodeError:
        return None
    approvals = {party: _approval(signed) for party, signed in result.approvals.items()}
    coordinators = {approval.coordinator for approval in approvals.values() if approval is not None}
    return {
        "coordinator": text.visible(", ".join(sorted(coordinators)) or "the coordinator"),
        "expiry": text.unix(proposal.expiry),
        "approvals": [
            (party, "—", "—") if found is None else (party, _decider(found.by), text.unix(found.decided))
            for party, found in ((party, approvals.get(party)) for party in result.spec.job.parties)
        ],
    }


def _approval(signed: Any) -> Approval | None:
    approval = Approval()
    try:
        approval.ParseFromString(signed.approval)
    except DecodeError:
        return None
    return approval


def _decider(by: str) -> str:
    return "its policy" if by == "policy" else text.visible(by)


def _receipts(result: ResultRecord) -> list[tuple[str, list[bool | None], str]]:
    """Per signer: whether each party has the same record (None for the signer itself), and the result's digest."""
    return [
        (
            signer,
            [None if peer == signer else peer in receipt.agrees_with for peer in result.spec.job.parties],
            _result_digest(receipt.release),
        )
        for signer, receipt in result.receipts.items()
    ]


def _result_digest(body: bytes) -> str:
    release = Release()
    try:
        release.ParseFromString(body)
    except DecodeError:
        return ""
    return release.result_digest.hex()


def _names(names: Sequence[str]) -> str:
    return ", ".join(names)
