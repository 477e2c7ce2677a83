"""Results of several runs beside each other: what was asked otherwise, and what was found otherwise."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any, Final

from coordinator.jobs.records.store import JobFolder
from coordinator.jobs.released import kept_result
from coordinator.jobs.status import when
from jobs.documents.run_comparison import ComparedRun, ComparedTable, RunComparison, RunStep
from jobs.federation import Federation
from jobs.results.changes import Changes, Listed, changes
from jobs.results.result import Result
from jobs.spec.diff import diff
from link.errors import UsageError

MOST: Final = 8  # results; they may take much memory together


def compared(folders: Sequence[JobFolder], federation: Federation) -> RunComparison:
    """Compares each result with the one before it.

    Args:
        folders: Of jobs that have succeeded, in the order in which they are compared.
        federation: Of the coordinator.

    Raises:
        UsageError: These are too few, too many, or one twice.
        ComineError: One has no result.
    """
    if not 2 <= len(folders) <= MOST or len({folder.id for folder in folders}) < len(folders):
        raise UsageError(f"choose between 2 and {MOST} results to compare")
    results = [kept_result(folder, federation) for folder in folders]
    runs = [_run(folder, result) for folder, result in zip(folders, results, strict=True)]
    steps = [_step(before, after) for before, after in pairwise(results)]
    return RunComparison(schema="comine.run-comparison/1", runs=runs, steps=steps)


def _run(folder: JobFolder, result: Result) -> ComparedRun:
    record, spec = folder.record(), result.spec
    return ComparedRun(
        job_id=folder.id,
        name=record.name,
        task=spec.job.task,
        created=when(record.created),
        n_rows=result.n_rows,
        positions=result.positions,
        figures={} if result.finding is None else dict(result.finding.figures(spec)),
    )


def _step(before: Result, after: Result) -> RunStep:
    tables = [{} if each.finding is None else each.finding.compared(each.spec) for each in (before, after)]
    return RunStep(
        before=before.job_id.hex(),
        after=after.job_id.hex(),
        asked=[change.text for change in diff(before.spec, after.spec)],
        tables=[_table(each) for each in changes(*tables)],
    )


def _table(found: Changes) -> ComparedTable:
    return ComparedTable.model_validate(
        found._asdict()
        | {"figures": list(found.figures)}
        | {name: _rows(each) for name, each in found._asdict().items() if isinstance(each, Listed)}
    )


def _rows(found: Listed) -> dict[str, Any]:
    rows = [{"sides": [*map(list, row.sides)], "before": [*row.before], "after": [*row.after]} for row in found.rows]
    return {"number": found.number, "rows": rows}
