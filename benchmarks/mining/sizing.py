"""What jobs of many rows, items and parties cost: the tables of `docs/tasks/sizing.md`, from coefficients.

`python -m benchmarks.mining.sizing` prints them as the page holds them.

Counting follows from the costs of a row. Bytes, rounds and seconds of the protocols are those of the planner, for
machines as fast as `SPEED` says. `coefficients` measures and keeps both.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import asdict
from math import ceil
from pathlib import Path

from benchmarks.mining.coefficients import read
from benchmarks.settings import Settings
from benchmarks.table import Table
from jobs.kinds.columns.plan_figures import VerticalFigures
from jobs.loading import job_of
from jobs.plan import Plan
from jobs.plan.answer import Answer, ColumnSizes, ItemsetSizes, SetSize
from jobs.plan.calibration import measure, speed_message
from jobs.plan.estimate import estimate
from jobs.plan.prices import ROW_BYTES
from jobs.spec.job import JobSpec
from link.errors import ConfigurationError
from link.executor import ThreadExecutor
from mining.data.items.bitmaps import packed_bytes
from mining.pairs import n_pairs

MEASURED, SPEED = read()
ROWS = tuple(10**power for power in range(6, 11))
ITEMS = tuple(10**power for power in range(3, 7))
PARTIES = (2, 4, 8, 16, 64)
COLUMN_ROWS = (10**5, 10**6, 10**7)
COLUMN_PARTIES = (2, 3, 4)
MODES = ("intersection", "cardinality", "union")
ALIGNED = (2, 3, 5)  # parties
FREQUENT, FREQUENT_PAIRS = 300, 150
CORES = 16  # of a machine
LEVEL_S = 600  # that a level may take
LATENCY_S = 0.02
BANDWIDTH = "1 Gbit/s"
CERTIFICATE_BYTES = 700


def run(settings: Settings) -> list[Table]:
    """The speed of this machine, and the tables of the page."""
    settings.tell("the speed of this machine")
    measured = asdict(asyncio.run(measure(ThreadExecutor())))
    speed = Table("Speed of this machine, as a node measures it, beside that of the page", ("of", "s", "the page's"))
    for name, seconds in measured.items():
        speed.add(name, seconds, asdict(SPEED)[name])
    return [speed, *tables()]


def tables() -> list[Table]:
    """Those of the page."""
    return [coefficients(), counting(), protocols(), columns(), alignments()]


def coefficients() -> Table:
    """What the others are computed with."""
    one = MEASURED
    table = Table("Coefficients", ("coefficient", "here"))
    for what, seconds in (
        ("to encode a row, once for a source", one.encode_s),
        ("to count a row's pairs", one.pairs_s),
        ("to count longer candidates in a row", one.longer_s),
    ):
        table.add(what, f"{1e6 * seconds:.2g} µs of a core")
    table.add("a row in blocks on the disk", f"{one.disk_bytes:.0f} bytes")
    table.add("a row in memory, at the peak of a job", f"{one.memory_bytes:.0f} bytes")
    table.add("a node with rows in blocks", size(one.node_bytes))
    table.add("each of its processes", size(one.worker_bytes))
    table.add("a group multiplication", f"{1e6 * SPEED.multiply_s:.2g} µs")
    table.add("a random oblivious transfer, both halves", f"{1e6 * SPEED.transfer_s:.2g} µs of a core")
    return table


def counting() -> Table:
    """What a party's rows cost, whoever else takes part."""
    table = Table(
        "Rows of a party",
        ("rows", "encode", "pairs", "longer level", "disk", "in memory", "in blocks", f"machines of {CORES} cores"),
    )
    one = MEASURED
    for rows in ROWS:
        cores = ceil(rows * max(one.pairs_s, one.longer_s) / LEVEL_S)
        table.add(
            f"{rows:.0e}".replace("e+", "e"),
            *(duration(rows * each) for each in (one.encode_s, one.pairs_s, one.longer_s)),
            *(size(rows * each) for each in (one.disk_bytes, one.memory_bytes)),
            size(one.node_bytes + min(cores, CORES) * one.worker_bytes),
            f"{ceil(cores / CORES)}, {cores} cores",
        )
    return table


def protocols() -> Table:
    """What the parties do together of a job over rows."""
    table = Table(
        "Parties over rows",
        ("parties", *(f"{items:,} items" for items in ITEMS)),
    )
    for number in PARTIES:
        table.add(str(number), *(cell(lambda: over_rows(number, items)) for items in ITEMS))  # noqa: B023
    return table


def columns() -> Table:
    """What the parties do together of a job over columns."""
    table = Table("Parties over columns", ("parties", *(f"{rows:,} rows" for rows in COLUMN_ROWS)))
    for number in COLUMN_PARTIES:
        figures = [over_columns(number, rows) for rows in COLUMN_ROWS]
        table.add(
            str(number),
            *(f"{cell(lambda: each[:2])}, {size(each[2])}" for each in figures),  # noqa: B023
        )
    return table


def alignments() -> Table:
    """What an alignment alone costs."""
    table = Table("Alignment alone", ("mode", "parties", *(f"{rows:,} rows" for rows in COLUMN_ROWS)))
    for mode in MODES:
        for number in ALIGNED:
            table.add(mode, str(number), *(cell(lambda: alignment(mode, number, rows)) for rows in COLUMN_ROWS))  # noqa: B023
    return table


def alignment(mode: str, parties: int, rows: int) -> tuple[Plan, int]:
    """The plan of one, four fifths of the rows common to all, and the memory of a node whose table lies in blocks."""
    spec = job(parties, {"partition": "vertical", "task": "align"}, align={"mode": mode})
    sizes = ItemsetSizes((0,), (0,), SetSize(0), columns=ColumnSizes(1, 16, 24, ((0,) * 8, (0,) * 8)))
    figures = VerticalFigures.of(spec, answers(spec, rows, sizes), LATENCY_S)
    return planned(spec, rows, sizes), max(figures.block_bytes.values())


def over_rows(parties: int, items: int, rows: int = ROWS[0]) -> tuple[Plan, int]:
    """A plan of two levels, and the memory of a node whose rows lie in blocks; see the page for its sizes.

    Raises:
        ConfigurationError: No job is as large.
    """
    itemsets = {"min_support": "0.001", "max_length": 2, "strategy": "level-wise"}
    spec = job(parties, {}, itemsets=itemsets, union={"bound": items})
    brought = SetSize(items)
    sizes = ItemsetSizes((items, n_pairs(FREQUENT)), (FREQUENT, FREQUENT_PAIRS), brought, held=brought)
    plan = planned(spec, rows, sizes)
    in_memory = rows * ROW_BYTES + packed_bytes(items, rows)
    return plan, max(party.memory_bytes for party in plan.parties.values()) - in_memory


def over_columns(parties: int, rows: int) -> tuple[Plan, int, int]:
    """The same of a job over columns, all rows common to all: with tables in memory, and with tables in blocks.

    Raises:
        ConfigurationError: No job is as large.
    """
    spec = job(parties, {"partition": "vertical"}, itemsets={"min_support": "0.001", "max_length": 2})
    classes = ((0, 0, 20, 0, 0, 0, 0, 0), (0,) * 8)
    sizes = ItemsetSizes((20, 190), (20, 10), SetSize(20), columns=ColumnSizes(10, 16, 24, classes))
    figures = VerticalFigures.of(spec, answers(spec, rows, sizes), LATENCY_S)
    memory, blocks = (max(each.values()) for each in (figures.memory_bytes, figures.block_bytes))
    return planned(spec, rows, sizes), memory, blocks


def job(parties: int, settings: dict[str, str], **sections: object) -> JobSpec:
    """A job of so many parties."""
    names = [f"party-{number:02}" for number in range(1, parties + 1)]
    named = {"name": "sizing", "task": "itemsets", "parties": names, "dataset": "data", **settings}
    return job_of({"job": named, "plan": {"bandwidth": BANDWIDTH}, **sections}, "the page", Path())


def planned(spec: JobSpec, rows: int, sizes: ItemsetSizes) -> Plan:
    """The plan of parties that are all alike."""
    return estimate(spec, answers(spec, rows, sizes), LATENCY_S, compare=False)


def answers(spec: JobSpec, rows: int, sizes: ItemsetSizes) -> dict[str, Answer]:
    """What parties that are all alike say of themselves."""
    speed = speed_message(SPEED)
    return {name: Answer(name, speed, CERTIFICATE_BYTES, rows, sizes) for name in spec.job.parties}


def cell(figures: Callable[[], tuple[Plan, int]]) -> str:
    """Bytes that the busiest party sends, rounds, seconds, memory; – where no job is as large."""
    try:
        plan, memory = figures()
    except ConfigurationError:
        return "–"
    sent = max(party.bytes_sent for party in plan.parties.values())
    return f"{size(sent)}, {plan.rounds}, {duration(plan.seconds)}, {size(memory)}"


def size(number: float) -> str:
    """Bytes in two digits or more."""
    for unit, scale in (("TB", 1e12), ("GB", 1e9), ("MB", 1e6)):
        if number >= scale:
            return f"{rounded(number / scale)} {unit}"
    return f"{rounded(number / 1e3)} kB"


def duration(seconds: float) -> str:
    """Seconds in two digits or more."""
    for unit, scale in (("h", 3600), ("min", 60)):
        if seconds >= 2 * scale:
            return f"{rounded(seconds / scale)} {unit}"
    return f"{rounded(seconds)} s"


def rounded(number: float) -> str:
    """Two digits, or all before the point."""
    return f"{number:.2g}" if number < 10 else f"{number:,.0f}"


def markdown(table: Table) -> str:
    """A table as a page holds it."""
    rows: list[Sequence[object]] = [table.columns, ["---"] * len(table.columns), *table.rows]
    return "".join(f"| {' | '.join(map(str, row))} |\n" for row in rows)


if __name__ == "__main__":
    print("\n".join(map(markdown, tables())))
