"""What jobs of many rows, items and parties cost: the tables of `docs/tasks/sizing.md`, from coefficients.

`python -m benchmarks.mining.sizing` prints them as the page holds them.

Counting follows from the costs of a row, which section `large` measures. Bytes, rounds and seconds of the protocols are
those of the planner, for machines as fast as `SPEED` says.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from math import ceil
from pathlib import Path

from benchmarks.settings import Settings
from benchmarks.table import Table
from jobs.kinds.columns.plan_figures import VerticalFigures
from jobs.loading import job_of
from jobs.plan import Plan
from jobs.plan.answer import Answer, ColumnSizes, ItemsetSizes, SetSize
from jobs.plan.calibration import Speed, measure, speed_message
from jobs.plan.estimate import estimate
from jobs.plan.prices import ROW_BYTES
from jobs.spec.job import JobSpec
from link.errors import ConfigurationError
from link.executor import ThreadExecutor
from mining.data.items.bitmaps import packed_bytes
from mining.pairs import n_pairs


@dataclass(frozen=True)
class Coefficients:
    """Of a row of the kind of retail, with 9.3 items; section `large` measures them.

    Attributes:
        encode_s: Seconds of a core to encode it.
        pairs_s: To count its pairs.
        longer_s: To count longer candidates in it.
        disk_bytes: In blocks.
        memory_bytes: In memory, at the most, while it is read and counted.
        node_bytes: Memory of a node with rows in blocks.
        worker_bytes: Memory of each of its processes.
    """

    encode_s: float
    pairs_s: float
    longer_s: float
    disk_bytes: float
    memory_bytes: float
    node_bytes: float
    worker_bytes: float


MEASURED = Coefficients(2.3e-6, 0.9e-6, 0.7e-6, 23, 530, 210e6, 180e6)
SPEED = Speed(
    multiply_s=4.9e-5,
    embed_s=3.4e-5,
    byte_s=5.3e-10,
    frame_byte_s=1.6e-9,
    frame_s=8.8e-6,
    candidate_s=4.1e-7,
    row_s=2.8e-7,
    row_pairs_s=6.7e-7,
    transfer_s=2.3e-7,
)
ROWS = tuple(10**power for power in range(6, 11))
ITEMS = tuple(10**power for power in range(3, 7))
PARTIES = (2, 4, 8, 16, 64)
COLUMN_ROWS = (10**5, 10**6, 10**7)
COLUMN_PARTIES = (2, 3, 4)
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
    return [counting(), protocols(), columns()]


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
