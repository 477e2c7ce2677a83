"""`report.html` of a collection: estimates with intervals, their course over rounds, refusals, and the budget.

The page is made as that of a job: nothing is loaded, and its content security policy lets only its own scripts run.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any, Final, NamedTuple

from jobs.collections.estimates import FOUND, MEAN, Estimates, Row, largest_first, parameters_of, rows
from jobs.collections.reading import REASONS, Reading, decides_only, refused, spends
from jobs.report import text
from jobs.report.page import page
from ldp.streams.sampled import Sampled
from link.version import software_version
from protos.v1.frequency_pb2 import Counters

MOST_ROWS: Final = 20_000  # of values, in the page; all are in the file
TOP: Final = 20  # values in the first picture
FOLLOWED: Final = 6  # values whose course is drawn

_SCRIPTS: Final = ("table", "theme", "estimates", "rounds", "collection")
_IN_TEXT: Final = 4  # courses that a table without scripts has room for
_REASONS: Final = {
    "duplicate": (
        "Repeated",
        "their client had been counted in the period; a delivery that is tried again is one",
    ),
    "late": ("Late", "their round had ended, its grace included"),
    "early": ("Early", "their round had not begun"),
    "over_quota": ("Over quota", "their submitter had sent for as many clients as it may"),
    "foreign": ("Foreign", "they were made for another collection, mechanism or version"),
    "malformed": ("Malformed", "nothing that an honest client sends"),
}


class _Course(NamedTuple):
    """One value's estimates in all rounds, the earliest first: shares of a round's reports in percent, or means."""

    value: str
    estimates: list[float]
    low: list[float]
    high: list[float]


def report(reading: Reading, *, written: datetime | None = None) -> str:
    """The page.

    Args:
        reading: What it shows.
        written: The time that it names as its own; now, if None.
    """
    return page("collection.html.j2", *told(reading, written or datetime.now(UTC)), _SCRIPTS)


def told(reading: Reading, written: datetime, most: int = MOST_ROWS) -> tuple[dict[str, Any], dict[str, Any]]:
    """What a page says of estimates, and what its scripts draw.

    Args:
        reading: The estimates.
        written: The time that the page names as its own.
        most: Values at most that the scripts get.
    """
    shown = largest_first(reading.rows, most)
    courses = _courses(reading, [row.value for row in shown[:FOLLOWED]])
    return _content(reading, shown, courses, written), _data(reading, shown, courses)


def _content(reading: Reading, shown: Sequence[Row], courses: list[_Course], written: datetime) -> dict[str, Any]:
    head, collection = reading.estimates.head, reading.collection
    processed = _processed(reading)
    return {
        "title": collection.name,
        "node": reading.estimates.node,
        "final": head.final,
        "reports": head.reports,
        "number": head.round.number,
        "decides_only": decides_only(reading.estimates),
        "again": reading.spec.continual is not None and not head.fresh,
        "opens": text.moment(_time(head.round.opens)),
        "closes": text.moment(_time(head.round.closes)) if head.round.closes else "",
        "kind": head.kind,
        "figures": [
            ("reports", text.number(head.reports)),
            ("refused", text.number(refused(head.counters))),
            ("values found" if head.kind == FOUND else "values", _size(reading)),
            ("privacy budget ε", spends(reading.spec)),
            ("rounds ended", text.number(collection.rounds_ended)),
        ],
        "confidence": text.percent(reading.asked.confidence).replace(".0 %", " %"),
        "joint": reading.asked.joint,
        "processing": reading.processing if processed else "",
        "top": [(row, processed.get(row.value)) for row in shown[:TOP]],
        "shown": len(shown),
        "total": len(reading.rows),
        "courses": courses[:_IN_TEXT],
        "rounds": [
            (_name(each), text.number(each.head.reports), [_cell(course, place) for course in courses[:_IN_TEXT]])
            for place, each in enumerate((*reading.earlier, reading.estimates))
        ],
        "refusals": _refusals((*reading.earlier, reading.estimates)),
        "facts": _facts(reading),
        "parameters": _parameters(reading),
        "written": text.moment(written),
        "software": software_version(),
    }


def _refusals(rounds: Sequence[Estimates]) -> list[tuple[str, str, int]]:
    """Each reason with its meaning and how many reports it met, over the rounds of the page."""
    totals = {reason: sum(_counter(each.head.counters, reason) for each in rounds) for reason in REASONS}
    return [(*_REASONS[reason], totals[reason]) for reason in REASONS]


def _counter(counters: Counters, reason: str) -> int:
    return int(getattr(counters, reason))


def _facts(reading: Reading) -> list[str]:
    """What the reports cost those who sent them, in sentences."""
    spec, mechanism = reading.spec, reading.mechanism
    facts = [
        f"A report of this round is locally differentially private with ε = {mechanism.exact_epsilon:.9g}: under "
        "any two values of its client, its probabilities differ by a factor of at most e^ε, for the node too."
    ]
    if isinstance(mechanism, Sampled):
        facts.append(
            "Each client tosses a secret coin and reports its own value with a probability of "
            f"{mechanism.probability}, else one that it draws uniformly, both with "
            f"ε = {mechanism.oracle.exact_epsilon:.9g}. Nobody sees which, and the estimates are corrected for it."
        )
    if spec.continual is not None:
        facts.append(
            f"Releases follow {spec.continual.method.upper()}: in any {spec.continual.w:,} steps in a row, the reports "
            f"of a client spend at most ε = {float(spec.collection.epsilon):g} together."
        )
    elif spec.collection.mechanism == "prefix-extending":
        facts.append("A client reports in one round of a search, which it draws at random, and so spends ε once.")
    elif spec.budget is not None:
        facts.append(
            f"A series ({spec.budget.series}) divides ε among the rounds: a client that takes part in all spends "
            f"{float(spec.collection.epsilon):g} together at most."
        )
    elif spec.memo is not None:
        facts.append(
            f"A client keeps its answers. In any {spec.memo.w:,} rounds in a row, those to new values spend at most "
            f"ε = {float(spec.memo.epsilon):g}; a value beyond that waits, and the last one is reported once more. So "
            "estimates may lag behind clients whose values change often."
        )
    elif spec.window is not None:
        facts.append(
            "A client reports once in a round at most. Reports of different rounds add up: a client that takes part in "
            "all pays ε for each, unless its mechanism keeps its answers; its own budget may stop it earlier."
        )
    else:
        facts.append("A client reports once at most, as long as the collection is open.")
    facts.append(
        "Nobody links the reports of a client in different periods by their pseudonyms. What the node keeps to count "
        "none twice it forgets when the period is over."
    )
    return facts


def _parameters(reading: Reading) -> dict[str, str]:
    mechanism, spec = reading.mechanism, reading.spec
    window = {} if spec.window is None else {"window": spec.window.length, "grace": spec.window.grace}
    return {
        "mechanism": mechanism.name,
        **parameters_of(mechanism),
        "exact ε": f"{mechanism.exact_epsilon:.12g}",
        "bytes of a report": text.number(mechanism.report_bytes),
        **window,
        "created by": reading.collection.creator,
    }


def _size(reading: Reading) -> str:
    if reading.estimates.kind == MEAN:
        return "one mean"
    known = reading.domain.size if reading.domain is not None and reading.estimates.kind != FOUND else None
    return text.number(len(reading.rows) if known is None else known)


def _courses(reading: Reading, values: Sequence[str]) -> list[_Course]:
    """The course of each value over the rounds; none where there is only one."""
    if not reading.earlier:
        return []
    places = {value: place for place, value in enumerate(values)}
    nothing = float("nan")  # a value that was not found in a round
    table = [[(nothing, nothing, nothing)] * len(values) for _ in reading.earlier]
    for line, each in zip(table, reading.earlier, strict=True):
        for row in rows(each, reading.domain, reading.asked):
            if (place := places.get(row.value)) is not None:
                line[place] = _share(row, each)
    last = {row.value: _share(row, reading.estimates) for row in reading.rows}
    table.append([last[value] for value in values])
    return [
        _Course(value, *(list(column) for column in zip(*(line[place] for line in table), strict=True)))
        for place, value in enumerate(values)
    ]


def _share(row: Row, estimates: Estimates) -> tuple[float, float, float]:
    """An estimate and its interval, such that rounds of many and of few reports compare."""
    scale = 1.0 if estimates.kind == MEAN else 100 / max(estimates.of, 1)
    return row.estimate * scale, row.low * scale, row.high * scale


def _cell(course: _Course, place: int) -> tuple[float, float, float] | None:
    found = course.estimates[place], course.low[place], course.high[place]
    return found if found[0] == found[0] else None  # NaN is not equal to itself


def _name(estimates: Estimates) -> str:
    return f"round {estimates.head.round.number}"


def _time(seconds: float) -> datetime:
    return datetime.fromtimestamp(min(max(seconds, 0), 253402300799), UTC)  # the last second that datetime knows


def _processed(reading: Reading) -> dict[str, float]:
    if reading.processed is None:
        return {}
    return {row.value: count for row, count in zip(reading.rows, reading.processed, strict=True)}


def _data(reading: Reading, shown: Sequence[Row], courses: list[_Course]) -> dict[str, Any]:
    """What the scripts show: values by falling estimate, and the courses of the first of them."""
    processed = _processed(reading)
    return {
        "top": TOP,
        "mean": reading.estimates.kind == MEAN,
        "processing": reading.processing,
        "values": [text.visible(row.value) for row in shown],
        "estimates": text.plotted([row.estimate for row in shown]),
        "low": text.plotted([row.low for row in shown]),
        "high": text.plotted([row.high for row in shown]),
        "processed": text.plotted([processed[row.value] for row in shown]) if processed else None,
        "rounds": [_name(each) for each in (*reading.earlier, reading.estimates)],
        "courses": [
            {
                "value": text.visible(course.value),
                "estimates": text.plotted(course.estimates),
                "low": text.plotted(course.low),
                "high": text.plotted(course.high),
            }
            for course in courses
        ],
    }
