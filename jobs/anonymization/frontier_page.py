"""`report.html` of an exploration: risk against loss, and a table of all runs."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any, Final

from jobs.anonymization.frontier_document import FrontierDocument, Point
from jobs.report import text
from jobs.report.page import page
from link.version import software_version

_SCRIPTS: Final = ("table", "theme", "estimates", "frontier-chart", "frontier")


def report(exploration: FrontierDocument, *, written: datetime | None = None) -> str:
    """The page.

    Args:
        exploration: What it shows.
        written: The time that it names as its own; now, if None.
    """
    content = {
        "algorithm": exploration.algorithm,
        "figures": [
            ("rows", text.number(exploration.rows)),
            ("runs", text.number(len(exploration.points) + len(exploration.refused))),
            ("on the frontier", text.number(sum(point.pareto for point in exploration.points))),
            ("refused", text.number(len(exploration.refused))),
        ],
        "points": [(_named(point.parameters), point) for point in exploration.points],
        "refused": [(_named(each.parameters), each.reason) for each in exploration.refused],
        "written": text.moment(written or datetime.now(UTC)),
        "software": software_version(),
    }
    return page("frontier.html.j2", content, {"points": [_shown(point) for point in exploration.points]}, _SCRIPTS)


def _shown(point: Point) -> dict[str, Any]:
    return {
        "name": _named(point.parameters),
        **{name: getattr(point, name) for name in ("risk", "loss", "classes", "suppressed", "pareto")},
    }


def _named(parameters: dict[str, int | float]) -> str:
    return ", ".join(f"{name} = {value:g}" for name, value in parameters.items())
