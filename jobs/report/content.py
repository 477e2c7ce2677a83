"""What the report says beside its tables, section by section, ready for the templates."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from google.protobuf.message import DecodeError

from jobs.cut_rows import cut_rows
from jobs.data_kinds import needed_kind
from jobs.kinds.release.table import INSIDER_K
from jobs.report import text
from jobs.report.job_file import job_file
from jobs.report.parameters import parameters
from jobs.report.tables import MOST_ROWS, most_common, top, with_intervals
from jobs.statement import statement
from link.version import software_version
from protos.v1.control_pb2 import Approval, Proposal, Release

if TYPE_CHECKING:
    from jobs.findings import Result
    from jobs.spec import JobSpec
    from mining.joint.spent import Spent

_TOP: Final = 25
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


def content(result: Result, written: datetime) -> dict[str, Any]:
    """All sections of the page; see `templates/report.html.j2` for what becomes of them."""
    spec, model = result.spec, None
    if result.trained is not None:
        from jobs.kinds.models.report import model_section

        model = model_section(result.trained)
    return {
        "job": spec.job,
        "lead": _lead(result),
        "elsewhere": elsewhere(result),
        "found": _found(spec),
        "unsigned": "the number alone" if spec.job.task == "align" else "none: not told the result",
        "simulated": result.simulated,
        "seed": result.seed,
        "recipients": _names(spec.job.recipients),
        "figures": figures(result),
        "facts": _facts(result, written),
        "itemsets": _itemsets(result),
        "rules": _rules(result),
        "model": model,
        "costs": _costs(result),
        "assumptions": None if result.plan is None else result.plan.assumptions,
        "disclosure": _disclosure(spec),
        "consents": _consents(result),
        "receipts": _receipts(result),
        "digests": [
            ("job", result.job_id.hex()),
            ("session", result.session_id.hex()),
            ("specification", spec.digest.hex()),
        ],
        "parameters": _parameters(spec),
        "job_file": job_file(spec),
        "tabular": needed_kind(spec) == "table",
        "written": text.moment(written),
        "software": software_version(),
    }


def figures(result: Result) -> list[tuple[str, str]]:
    """The key figures: what they count, and the number."""
    shown = [_size(result), ("parties", str(len(result.spec.job.parties)))]
    itemsets = "frequent itemsets" if result.estimated is None else "itemsets, estimated"
    for name, table in ((itemsets, result.itemsets_table), ("rules", result.rules_table)):
        if table is not None:
            shown.append((name, text.number(len(table))))
    sent = sum(costs.bytes_sent for costs in result.parties.values())
    longest = max((costs.seconds for costs in result.parties.values()), default=0.0)
    rounds = max((costs.rounds for costs in result.parties.values()), default=0)
    return [
        *shown,
        ("sent between parties", text.size(sent)),
        ("rounds", text.number(rounds)),
        ("running time", text.seconds(longest)),
    ]


def elsewhere(result: Result) -> bool:
    """Whether there is a result that the coordinator does not get."""
    spec = result.spec
    return (
        (spec.mines and result.found is None)
        or (spec.trains and result.trained is None)
        or (spec.anonymizes and result.anonymized is None)
    )


def _lead(result: Result) -> str:
    """What the page is about, under its title."""
    spec, together = result.spec, "mined together; no row left its owner"
    if spec.trains:
        what = {"naive-bayes": "Naive Bayes", "decision-tree": "Decision tree", "k-means": "Clusters"}[spec.job.task]
        over, together = "the columns" if spec.is_vertical else "all rows", "learnt together; no row left its owner"
        what = f"{what} over {over}"
    elif spec.anonymizes:
        what, together = "Anonymised rows", "anonymised together; no row left its owner but in the release"
    elif spec.mines:
        what = f"{'Association rules' if spec.job.task == 'rules' else 'Frequent itemsets'} over all rows"
    else:
        what, together = "Rows in common", "aligned together; no id left its owner"
    return f"{what} of {_names(spec.job.parties)}, {'simulated in one process' if result.simulated else together}."


def _parameters(spec: JobSpec) -> dict[str, Any]:
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


def _size(result: Result) -> tuple[str, str]:
    """The number of rows, or of what stands for them."""
    if result.n_rows is None:
        return "positions of rows", text.number(result.positions or 0)
    spec = result.spec
    what = "transactions" if spec.mines else "rows in common" if spec.is_vertical else "rows"
    noisy = spec.privacy.model == "distributed"  # then the parties add noise to that number, too
    return what, f"about {text.number(result.n_rows)}" if noisy else text.number(result.n_rows)


def _facts(result: Result, written: datetime) -> list[tuple[str, str]]:
    spec = result.spec
    facts = [
        ("parties", _names(spec.job.parties)),
        ("result for", _names(spec.job.recipients)),
        ("dataset", text.visible(spec.job.dataset)),
    ]
    if spec.mines:
        facts += _asked(spec)
    if spec.rules is not None:
        facts.append(("minimum confidence", str(spec.rules.min_confidence)))
    if result.found is not None and not result.found.counted:
        facts.append(("supports", "not disclosed: only which itemsets are frequent"))
    if spec.trains and spec.is_vertical:
        facts.append(("alignment", spec.alignment.mode))
    elif spec.anonymizes:
        facts += _released(result)
    elif not spec.trains:
        facts.append(("strategy" if spec.mines else "mode", result.strategy))
    if result.estimated is not None:
        facts += _cost(result.estimated.spent)
        facts += [("rows that are cut", sentence) for sentence in cut_rows(result)]
    if result.simulated:
        kept = "" if result.seed is None else f", seed {result.seed}: such a run keeps no secrets"
        facts.append(("run", f"simulated, all parties in one process{kept}"))
    agreed = [approval.decided for approval in map(_approval, result.approvals.values()) if approval is not None]
    if agreed:
        facts.append(("agreed", text.unix(max(agreed))))
    return [*facts, ("written", text.moment(written))]


def _found(spec: JobSpec) -> str:
    """What the job finds, in a word."""
    if spec.mines:
        return "itemsets or rules" if spec.job.task == "rules" else "itemsets"
    return "release" if spec.anonymizes else "model"


def _released(result: Result) -> list[tuple[str, str]]:
    """What is released, and how far its columns are generalised."""
    section = result.spec.anonymization
    facts = [("algorithm", section.algorithm), ("k", str(section.model.k))]
    if not result.spec.is_vertical:
        facts.append(("insider k", str(section.insider_k or INSIDER_K)))
        facts.append(("insiders", f"up to {section.insiders} together" if section.insiders > 1 else "each alone"))
    if result.anonymized is None:
        return facts
    published = result.anonymized.table.num_rows
    left_out = result.anonymized.n_rows - published
    node = ", ".join(f"{text.visible(name)} {level}" for name, level in result.anonymized.node.items())
    return [
        *facts,
        ("released rows", text.number(published)),
        ("left out", text.number(left_out)),
        ("levels", node or "one for each region"),
        ("files", "release.csv, release.parquet and certificate.json beside this page"),
    ]


def _asked(spec: JobSpec) -> list[tuple[str, str]]:
    """Which itemsets are asked for."""
    facts, support = [], spec.itemsets.min_support_
    if support is not None:
        threshold = f"{support:,} transactions" if isinstance(support, int) else f"{support} of all transactions"
        facts.append(("minimum support", threshold))
    if spec.itemsets.top_k is not None:
        facts.append(("most frequent", f"the first {spec.itemsets.top_k:,}"))
    return facts


def _cost(spent: Spent) -> list[tuple[str, str]]:
    """What the job has cost each record."""
    delta = f" and δ = {spent.delta:g}" if spent.delta else ""
    facts = [("privacy of a record", f"ε = {spent.epsilon:.4g}{delta} towards whoever sees the result")]
    if spent.local_epsilon is not None and spent.n is not None:
        facts.append(
            (
                "of its report alone",
                f"ε = {spent.local_epsilon:.4g} at most; hidden among {spent.n:,} others' reports at least",
            )
        )
    return [*facts, ("holds by", spent.bound)]


def _itemsets(result: Result) -> dict[str, Any] | None:
    table = result.itemsets_table
    if table is None or result.found is None:
        return None
    numbers = [(entry["values"], entry["counts"]) for entry in table["length"].value_counts().to_pylist()]
    counted = result.found.counted
    return {
        "counted": counted,
        "estimated": result.estimated is not None,
        "total": len(table),
        "shown": min(len(table), MOST_ROWS),
        "lengths": _with_shares(sorted(numbers)),
        "top": top(table, "count" if counted else "length", _TOP),
        "common": [] if counted else _with_shares(most_common(table["itemset"], _TOP)),
    }


def _rules(result: Result) -> dict[str, Any] | None:
    table = result.rules_table
    if table is None or result.found is None:
        return None
    counted = result.found.counted
    table = with_intervals(table)
    measures = list(table.column_names[6:]) if counted else []
    by = "lift" if "lift" in measures else "count"
    return {
        "counted": counted,
        "estimated": result.estimated is not None,
        "total": len(table),
        "shown": min(len(table), MOST_ROWS),
        "measures": measures,
        "by": by,
        "top": top(table, by, _TOP) if counted else table.slice(0, _TOP).to_pylist(),
        "common": [] if counted else _with_shares(most_common(table["consequent"], _TOP)),
    }


def _with_shares(numbers: Sequence[tuple[Any, int]]) -> list[tuple[Any, int, float]]:
    """What is counted, the number, and the number as a share of the greatest."""
    most = max((number for _, number in numbers), default=1)
    return [(what, number, number / most) for what, number in numbers]


def _costs(result: Result) -> dict[str, dict[str, Bar]]:
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
            (line.kind, line.what, [pattern[row] for pattern in patterns]) for row, line in enumerate(stated.learned)
        ],
        "declared": [
            (entry.label, entry.what, _names(sorted(entry.recipients)), f"{entry.maximum:,}", entry.when)
            for entry in stated.declared
        ],
        "beyond": stated.beyond,
        "prose": stated.prose(),
    }


def _consents(result: Result) -> dict[str, Any] | None:
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


def _receipts(result: Result) -> list[tuple[str, list[bool | None], str]]:
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
