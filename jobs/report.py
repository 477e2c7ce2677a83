"""`report.html`: one self-contained page about a job, for people."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

import pyarrow.compute as pc

from jobs.findings import Result
from jobs.html import Content, Markup, escaped, table, tag
from jobs.statement import statement

_TOP: Final = 50
_POINTS: Final = 1000
_STYLE: Final = Path(__file__).with_name("report.css")
_WIDTH, _HEIGHT, _MARGIN = 640, 360, 48


def report(result: Result) -> str:
    """The page; everything that came from files or parties is escaped."""
    title = f"{result.spec.job.name}: comine report"
    head = [
        Markup('<meta charset="utf-8"><meta name="viewport" content="width=device-width">'),
        tag("title", title),
        tag("style", Markup(_STYLE.read_text(encoding="utf-8"))),
    ]
    body = [
        tag("h1", result.spec.job.name),
        tag("p", _subtitle(result), class_="note"),
        _facts(result),
        _itemsets(result),
        _rules(result),
        _costs(result),
        tag("h2", "Who learnt what"),
        tag("ul", [tag("li", sentence) for sentence in statement(result.spec).prose()]),
        _receipts(result),
        tag("h2", "Parameters"),
        tag("pre", tag("code", _parameters(result))),
    ]
    page = tag("html", tag("head", head), tag("body", body), lang="en")
    return f"<!doctype html>\n{page}\n"


def _subtitle(result: Result) -> str:
    parties = ", ".join(result.spec.job.parties)
    where = "simulated in one process" if result.simulated else "mined together without pooling data"
    return f"{result.spec.job.task} of {parties}, {where}"


def _facts(result: Result) -> Markup:
    seconds = max((costs.seconds for costs in result.parties.values()), default=0.0)
    sent = sum(costs.bytes_sent for costs in result.parties.values())
    facts = [("transactions", f"{result.n_rows:,}"), ("min_support", str(result.spec.itemsets.min_support))]
    if result.itemsets_table is not None:
        facts.append(("frequent itemsets", f"{len(result.itemsets_table):,}"))
    if result.rules_table is not None:
        facts.append(("rules", f"{len(result.rules_table):,}"))
    facts += [("seconds", f"{seconds:.2f}"), ("bytes between parties", f"{sent:,}")]
    return tag("div", [tag("div", tag("b", value), name) for name, value in facts], class_="facts")


def _itemsets(result: Result) -> Markup:
    found = result.itemsets_table
    if found is None:
        return tag("p", f"The result went to {', '.join(result.spec.job.recipients)}; the coordinator did not get it.")
    longer = found.filter(pc.greater(found["length"], 1))
    parts = [tag("h2", "Frequent itemsets"), _by_length(found)]
    for name, rows in (("single items", found.filter(pc.equal(found["length"], 1))), ("of two items and more", longer)):
        top = _top(rows, "count", _TOP)
        lines = [[_items(r["itemset"]), f"{r['count']:,}", f"{r['support']:.4f}"] for r in top]
        if lines:
            parts += [tag("h3", f"Most frequent {name}"), table(["itemset", "count", "support"], lines)]
    return escaped([*parts, _more(len(found), "itemsets.csv")])


def _by_length(found: Any) -> Markup:
    lengths = found["length"].value_counts().to_pylist()
    rows = [[str(entry["values"]), f"{entry['counts']:,}"] for entry in lengths]
    return table(["length", "itemsets"], rows) if rows else tag("p", "No itemset reaches the minimum support.")


def _rules(result: Result) -> Markup:
    rules = result.rules_table
    if rules is None:
        return Markup()
    if not len(rules):
        return escaped([tag("h2", "Rules"), tag("p", "No rule reaches the minimum confidence.")])
    measures = list(rules.column_names[6:])
    by = "lift" if "lift" in measures else "count"
    lines = [
        [_items(r["antecedent"]), _items(r["consequent"]), f"{r['count']:,}", f"{r['support']:.4f}"]
        + [f"{r[name]:.4f}" for name in measures]
        for r in _top(rules, by, _TOP)
    ]
    heads = ["antecedent", "consequent", "count", "support", *measures]
    parts: list[Content] = [tag("h2", "Rules"), _scatter(rules)]
    parts += [
        tag("h3", f"Highest {by}"),
        tag("div", table(heads, lines), class_="wide"),
        _more(len(rules), "rules.csv"),
    ]
    return escaped(parts)


def _scatter(rules: Any) -> Markup:
    """Support against confidence, coloured by lift."""
    shown = (
        rules if len(rules) <= _POINTS else rules.take(pc.select_k_unstable(rules, _POINTS, [("count", "descending")]))
    )
    support = shown["support"].to_numpy()
    confidence = (pc.cast(shown["count"], "double")).to_numpy() / shown["antecedent_count"].to_numpy()
    lift = confidence / (shown["consequent_count"].to_numpy() / max(shown["count"][0].as_py() / support[0], 1))
    right, top = float(support.max()) * 1.05, max(float(lift.max()), 1.000001)
    points = []
    for x, y, colour in zip(support.tolist(), confidence.tolist(), lift.tolist(), strict=True):
        hue = 210 - 210 * min(max((colour - 1) / (top - 1), 0), 1)
        label = tag("title", f"support {x:.4f}, confidence {y:.4f}, lift {colour:.3f}")
        cx = _MARGIN + x / right * (_WIDTH - 2 * _MARGIN)
        cy = _HEIGHT - _MARGIN - y * (_HEIGHT - 2 * _MARGIN)
        points.append(tag("circle", label, cx=f"{cx:.1f}", cy=f"{cy:.1f}", r=4, fill=f"hsl({hue:.0f} 70% 45%)"))
    note = f"lift from 1 (blue) to {top:.2f} (red)"
    if len(shown) < len(rules):
        note += f"; the {_POINTS:,} rules of highest count"
    figure = tag("svg", _axes(right), points, viewBox=f"0 0 {_WIDTH} {_HEIGHT}", role="img")
    return escaped([figure, tag("p", note, class_="note")])


def _axes(right: float) -> Markup:
    low, left = _HEIGHT - _MARGIN, _MARGIN
    parts = [
        tag("line", x1=left, y1=low, x2=_WIDTH - _MARGIN, y2=low, class_="axis"),
        tag("line", x1=left, y1=low, x2=left, y2=_MARGIN, class_="axis"),
        tag("text", "support", x=_WIDTH / 2, y=_HEIGHT - 8, text_anchor="middle"),
        tag("text", "confidence", x=left, y=_MARGIN - 14, text_anchor="middle"),
    ]
    for share in (0.0, 0.25, 0.5, 0.75, 1.0):
        x, y = left + share * (_WIDTH - 2 * _MARGIN), low - share * (_HEIGHT - 2 * _MARGIN)
        parts.append(tag("text", f"{share * right:.3g}", x=x, y=low + 18, text_anchor="middle"))
        parts.append(tag("text", f"{share:g}", x=left - 8, y=y + 4, text_anchor="end"))
    return escaped(parts)


def _costs(result: Result) -> Markup:
    rows = [
        [name, f"{costs.bytes_sent:,}", f"{costs.bytes_received:,}", str(costs.rounds), f"{costs.seconds:.2f}"]
        for name, costs in result.parties.items()
    ]
    heads = ["party", "bytes sent", "bytes received", "rounds", "seconds"]
    return escaped([tag("h2", "What it cost"), table(heads, rows)])


def _receipts(result: Result) -> Markup:
    rows = [[name, ", ".join(receipt.agrees_with)] for name, receipt in result.receipts.items()]
    identity = [
        ["job id", result.job_id.hex()],
        ["session", result.session_id.hex()],
        ["spec", result.spec.digest.hex()],
    ]
    return escaped(
        [
            tag("h2", "Receipts"),
            tag("p", "Each party has signed its release; the signatures are in result.json."),
            table(["signed by", "transcript equal to that of"], rows),
            table(["", "SHA-256"], [[name, tag("code", value)] for name, value in identity]),
        ]
    )


def _parameters(result: Result) -> str:
    given = result.spec.model_dump(mode="json", by_alias=True, exclude_none=True)
    lines = []
    for section, values in given.items():
        lines.append(f"[{section}]")
        lines += [f"{key} = {_short(value)}" for key, value in values.items()]
    return "\n".join(lines)


def _short(value: object) -> str:
    if isinstance(value, list) and len(value) > 64:
        return f"({len(value):,} items)"
    return str(value)


def _top(rows: Any, by: str, number: int) -> list[dict[str, Any]]:
    chosen: list[dict[str, Any]] = rows.take(pc.select_k_unstable(rows, number, [(by, "descending")])).to_pylist()
    return chosen


def _items(items: Sequence[str]) -> Markup:
    return escaped([tag("span", item, class_="item") for item in items])


def _more(number: int, file: str) -> Markup:
    return tag("p", f"All {number:,} are in {file}.", class_="note")
