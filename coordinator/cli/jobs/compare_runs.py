"""`comine job compare`: results of several runs beside each other."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated, Final

import typer

from coordinator.cli.options import HERE, AsJson, FederationFile
from coordinator.cli.terminal.completion import job_names

if TYPE_CHECKING:
    from jobs.documents.run_comparison import ComparedRow, ComparedTable, RunComparison

_SHOWN: Final = 10  # rows of each part of a table; the JSON has up to 100


def compare_runs(
    runs: Annotated[
        list[str],
        typer.Argument(
            metavar="RUN RUN...",
            help="Jobs that have succeeded, by id, the first digits of it, or name (the latest); each is compared with "
            "the one before.",
            autocompletion=job_names,
        ),
    ],
    federation: FederationFile = HERE,
    as_json: AsJson = False,
) -> None:
    """Compare the results of jobs: what was asked otherwise, and what appeared, vanished or changed."""
    from coordinator.cli.terminal.console import write_json
    from coordinator.jobs.records.store import Store
    from coordinator.jobs.run_comparison import compared
    from coordinator.member import read_federation

    known = read_federation(federation)
    store = Store.of(known)
    found = compared([store.find(each) for each in runs], known)
    if as_json:
        write_json(found.model_dump(mode="json", by_alias=True))
    else:
        _show(found)


def _show(found: RunComparison) -> None:
    from coordinator.cli.terminal.console import write, write_table
    from link.files.printable import one_line

    names = list(dict.fromkeys(name for run in found.runs for name in run.figures))
    rows = [
        [
            run.job_id[:12],
            one_line(run.name),
            _known(run.n_rows),
            _known(run.positions),
            *(_known(run.figures.get(name)) for name in names),
        ]
        for run in found.runs
    ]
    write_table(["id", "name", "rows", "positions", *names], rows)
    for step in found.steps:
        write(f"\nfrom {step.before[:12]} to {step.after[:12]}\n")
        for change in step.asked or ["nothing: both are runs of the same job"]:
            write(f"  asked otherwise: {one_line(change)}\n")
        for table in step.tables:
            for line in _lines(table):
                write(f"  {one_line(line)}\n")


def _lines(table: ComparedTable) -> Iterator[str]:
    parts = {"appeared": table.appeared, "vanished": table.vanished, "changed": table.changed}
    numbers = ", ".join(f"{part.number:,} {how}" for how, part in parts.items())
    yield f"{table.table}: {table.same:,} in both with the same figures; {numbers}"
    for how, part in parts.items():
        for row in part.rows[:_SHOWN]:
            yield f"  {how}: {_row(table.figures, row)}"
        if part.number > _SHOWN:
            yield f"  {how}: {part.number - _SHOWN:,} more; --json lists the first {len(part.rows)}"


def _row(figures: list[str], row: ComparedRow) -> str:
    name = " => ".join(", ".join(side) for side in row.sides)
    told = [
        f"{figure} {' -> '.join(_figure(each) for each in dict.fromkeys(pair) if each is not None)}"
        for figure, *pair in zip(figures, row.before, row.after, strict=True)
        if any(each is not None for each in pair)
    ]
    return f"{name} ({', '.join(told)})" if told else name


def _figure(value: float) -> str:
    return f"{value:.4g}"


def _known(value: int | None) -> str:
    return "" if value is None else f"{value:,}"
