"""`report.html` of a simulated collection: estimates beside true counts, errors beside theory, mechanisms side by side.

The page is made as that of a job: nothing is loaded, and its content security policy lets only its own scripts run.
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.stats import norm

from coordinator.frequency.simulation import Errors, Outcome, Simulation
from jobs.collections.estimates import parameters_of
from jobs.report import text
from jobs.report.page import page
from link.version import software_version

MOST_ROWS: Final = 20_000  # of values, in the page; all are in the file

_SCRIPTS: Final = ("table", "theme", "estimates", "frequency")
_POINTS: Final = 500  # of a mechanism's errors, in their picture


class _Row(NamedTuple):
    """A mechanism in the comparison; `share` and `theory_share` are of the greatest error of all."""

    name: str
    outcome: Outcome
    errors: Errors
    share: float
    theory_share: float


def report(simulation: Simulation, *, written: datetime | None = None) -> str:
    """The page.

    Args:
        simulation: What it shows.
        written: The time that it names as its own; now, if None.
    """
    order = np.argsort(-simulation.collection.counts, kind="stable")[:MOST_ROWS]
    content = _content(simulation, order, written or datetime.now(UTC))
    return page("frequency.html.j2", content, _data(simulation, order), _SCRIPTS)


def _content(simulation: Simulation, order: NDArray[np.int64], written: datetime) -> dict[str, Any]:
    request, collection = simulation.request, simulation.collection
    most = max(max(each.errors.rmse, each.errors.theory_rmse) for each in simulation.outcomes)
    rows = [
        _Row(each.oracle.name, each, each.errors, each.errors.rmse / most, each.errors.theory_rmse / most)
        for each in simulation.outcomes
    ]
    return {
        "names": [row.name for row in rows],
        "figures": [
            ("users", text.number(len(collection.codes))),
            ("values", text.number(collection.domain.size)),
            ("privacy budget ε", f"{request.epsilon:g}"),
            ("mechanisms", str(len(rows))),
            ("runs", text.number(request.runs)),
        ],
        "public": collection.public,
        "rows": rows,
        "reasons": [row.outcome.reason for row in rows if row.outcome.reason],
        "processing": request.post_processing,
        "confidence": text.percent(request.confidence).replace(".0 %", " %"),
        "top": _top(simulation, order[: request.top]),
        "looked_for": min(request.top, collection.domain.size),
        "shown": len(order),
        "total": collection.domain.size,
        "parameters": [(row.name, _parameters(row.outcome)) for row in rows],
        "seed": request.seed,
        "written": text.moment(written),
        "software": software_version(),
    }


def _top(simulation: Simulation, order: NDArray[np.int64]) -> list[dict[str, Any]]:
    """The most frequent values with what each mechanism says of them."""
    names, counts = simulation.collection.domain.names(), simulation.collection.counts
    return [
        {
            "value": names[code],
            "count": int(counts[code]),
            "estimates": [
                (each.estimate.counts[code], each.low[code], each.high[code]) for each in simulation.outcomes
            ],
        }
        for code in order.tolist()
    ]


def _parameters(outcome: Outcome) -> dict[str, str]:
    return {
        **parameters_of(outcome.oracle),
        "exact ε": f"{outcome.oracle.exact_epsilon:.12g}",
        "bytes of a report": text.number(outcome.oracle.report_bytes),
    }


def _data(simulation: Simulation, order: NDArray[np.int64]) -> dict[str, Any]:
    """What the scripts show: values by falling count, and for each mechanism its estimates and sorted errors."""
    names = simulation.collection.domain.names()
    counts = simulation.collection.counts
    return {
        "n": len(simulation.collection.codes),
        "top": simulation.request.top,
        "processing": simulation.request.post_processing,
        "values": [text.visible(names[code]) for code in order.tolist()],
        "counts": counts[order].tolist(),
        "mechanisms": [
            {
                "name": each.oracle.name,
                "estimates": text.plotted(each.estimate.counts[order]),
                "low": text.plotted(each.low[order]),
                "high": text.plotted(each.high[order]),
                "processed": None if each.post_processed is None else text.plotted(each.post_processed[order]),
                "errors": _quantiles((each.estimate.counts - counts) / each.deviations),
            }
            for each in simulation.outcomes
        ],
    }


def _quantiles(errors: NDArray[np.float64]) -> list[tuple[float | None, float | None]]:
    """Errors in standard deviations beside the quantiles of the normal distribution that they should follow."""
    d = len(errors)
    ranks = np.unique(np.linspace(0, d - 1, min(d, _POINTS)).round().astype(np.int64))
    expected = norm.ppf((ranks + 0.5) / d)
    return list(zip(text.plotted(expected), text.plotted(np.sort(errors)[ranks]), strict=True))
