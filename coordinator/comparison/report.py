"""`report.html` of a comparison: models side by side, F1 against ε, and errors by itemset with their intervals.

The page is made as that of a job: nothing is loaded, and its content security policy lets only its own scripts run.
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any, Final, NamedTuple

import numpy as np
import pyarrow as pa

from coordinator.comparison.compare import Comparison, Measured
from jobs.report import text
from jobs.report.page import page
from link.version import software_version
from mining.joint.spent import Spent

_SCRIPTS: Final = ("table", "theme", "estimates", "compare")
_SHOWN: Final = 200  # itemsets in the page, the most frequent ones; all are in the files
_STILL: Final = 25  # of them in the table that stands where no script runs


class _Row(NamedTuple):
    """A model in the table; shares are of the greatest among all.

    Attributes:
        name: The model, and ε where several are compared.
        measured: What it gave.
        spent: What each record spent; None under the exact model.
        bytes_share: Of the bytes sent.
        seconds_share: Of the seconds.
    """

    name: str
    measured: Measured
    spent: Spent | None
    bytes_share: float
    seconds_share: float


def report(comparison: Comparison, *, written: datetime | None = None) -> str:
    """The page.

    Args:
        comparison: What it shows.
        written: The time that it names as its own; now, if None.
    """
    shown = _most_frequent(comparison)
    content = _content(comparison, shown, written or datetime.now(UTC))
    return page("compare.html.j2", content, _data(comparison, shown), _SCRIPTS)


def _most_frequent(comparison: Comparison) -> pa.Table:
    truth = comparison.truth.tables.get("itemsets")
    assert truth is not None
    order = np.argsort(-truth["support"].to_numpy(), kind="stable")[:_SHOWN]
    return truth.take(pa.array(order))


def _content(comparison: Comparison, shown: pa.Table, written: datetime) -> dict[str, Any]:
    truth, measured = comparison.truth, comparison.measured
    most_bytes = max(each.bytes_sent for each in measured) or 1.0
    most_seconds = max(each.seconds for each in measured) or 1.0
    rows = [
        _Row(_name(each, measured), each, each.spent, each.bytes_sent / most_bytes, each.seconds / most_seconds)
        for each in measured
    ]
    return {
        "job": comparison.spec.job,
        "rows": rows,
        "perturbed": rows[1:],
        "figures": [
            ("models", str(len({each.model for each in measured}))),
            ("rows", text.number(truth.n_rows or 0)),
            ("parties", str(len(comparison.spec.job.parties))),
            ("frequent itemsets", text.number(len(truth.tables["itemsets"]))),
            ("runs of each", str(len(comparison.seeds))),
        ],
        "not_run": [
            (each.model, "—" if each.epsilon is None else f"{each.epsilon:g}", each.error.message)
            for each in comparison.not_run
        ],
        "repeated": len(comparison.seeds) > 1,
        "top": [
            (row["itemset"], row["support"], estimates)
            for row, *estimates in zip(
                shown.slice(0, _STILL).to_pylist(), *(_found(each, shown) for each in measured[1:]), strict=False
            )
        ],
        "shown": len(shown),
        "total": len(truth.tables["itemsets"]),
        "simulated": truth.simulated,
        "written": text.moment(written),
        "software": software_version(),
    }


def _name(each: Measured, measured: tuple[Measured, ...]) -> str:
    swept = len({other.epsilon for other in measured if other.epsilon is not None}) > 1
    return (
        f"{each.model}, ε\N{NO-BREAK SPACE}=\N{NO-BREAK SPACE}{each.epsilon:g}"
        if swept and each.epsilon
        else each.model
    )


def _found(measured: Measured, shown: pa.Table) -> list[tuple[float | None, ...] | None]:
    """By shown itemset its estimated support and interval in the first run; None where it was not found."""
    table = measured.results[0].tables.get("itemsets")
    assert table is not None
    columns = (text.plotted(table[name].to_numpy()) for name in ("support", "low", "high"))
    by_itemset = dict(zip(map(tuple, table["itemset"].to_pylist()), zip(*columns, strict=True), strict=True))
    return [by_itemset.get(tuple(names)) for names in shown["itemset"].to_pylist()]


def _data(comparison: Comparison, shown: pa.Table) -> dict[str, Any]:
    """What the scripts show: F1 by model and ε, and each model's estimates beside the true supports."""
    measured = comparison.measured
    return {
        "values": [", ".join(map(text.visible, names)) for names in shown["itemset"].to_pylist()],
        "supports": text.plotted(shown["support"].to_numpy()),
        "models": [
            {
                "model": each.model,
                "name": _name(each, measured),
                "epsilon": None if each.epsilon is None else float(each.epsilon),
                "f1": [accuracy.f1 for accuracy in each.accuracies],
                "estimates": _found(each, shown),
            }
            for each in measured[1:]
        ],
    }
