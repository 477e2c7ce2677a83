"""The folder of a comparison: `compare.json`, its table, all itemsets and a page, written whole or not at all."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Any, Final

import pyarrow as pa

from coordinator.comparison.compare import Comparison, Measured
from coordinator.comparison.report import report
from jobs.documents.comparison import ComparedAccuracy, ComparedModel, CompareDocument, NotCompared
from jobs.documents.result import Privacy
from jobs.documents.written_json import write_json
from jobs.results.destination import MANIFEST
from jobs.results.folder import write_whole
from jobs.results.manifest import seal
from jobs.results.tables import write_csv
from link.version import software_version

COMPARISON: Final = "compare"
TRUTH: Final = "itemsets.csv"
ESTIMATES: Final = "estimates.csv"

MEASURES: Final = ("found", "f1", "precision", "recall", "ncr", "mean_absolute", "root_mean_square", "covered")

_FILES: Final = frozenset({f"{COMPARISON}.json", f"{COMPARISON}.csv", TRUTH, ESTIMATES, "report.html", MANIFEST})


def write_folder(out: Path, comparison: Comparison) -> None:
    """Writes the folder; an earlier one in its place is replaced in one step.

    Raises:
        ConfigurationError: `out` is a file, or holds something other than an earlier comparison.
        ResourceError: The disk is full, or the folder cannot be written.
    """
    write_whole(out, lambda draft: _fill(draft, comparison), holds_earlier)


def holds_earlier(folder: Path) -> bool:
    """Whether a folder holds an earlier comparison and nothing else."""
    present = {path.name for path in folder.iterdir()}
    return f"{COMPARISON}.json" in present and present <= _FILES


def document(comparison: Comparison) -> dict[str, Any]:
    """The contents of `compare.json`."""
    return _document(comparison).model_dump(mode="json", by_alias=True)


def _document(comparison: Comparison) -> CompareDocument:
    truth = comparison.truth
    assert truth.n_rows is not None  # which every job that mines shows
    seeds = [seed for seed in comparison.seeds if seed is not None]
    return CompareDocument(
        schema="comine.compare/1",
        software=software_version(),
        job=comparison.spec.model_dump(mode="json", by_alias=True),
        simulated=truth.simulated,
        n_rows=truth.n_rows,
        true_itemsets=len(truth.tables["itemsets"]),
        seeds=seeds or None,
        models=[_model(each) for each in comparison.measured],
        not_run=[
            NotCompared(model=each.model, epsilon=_text(each.epsilon), code=each.error.code, reason=each.error.message)
            for each in comparison.not_run
        ],
    )


def _model(measured: Measured) -> Any:
    spent = measured.spent
    return ComparedModel(
        model=measured.model,
        epsilon=_text(measured.epsilon),
        runs=len(measured.results),
        accuracy=ComparedAccuracy.model_validate(
            {"f1_deviation": measured.f1_deviation, **{name: measured.mean(name) for name in MEASURES}}
        ),
        privacy=None if spent is None else Privacy(**asdict(spent)),
        bytes_sent=measured.bytes_sent,
        rounds=measured.rounds,
        seconds=measured.seconds,
    )


def _fill(draft: Path, comparison: Comparison) -> None:
    draft.mkdir(parents=True)
    contents = document(comparison)
    write_json(draft / f"{COMPARISON}.json", contents)
    write_csv(draft / f"{COMPARISON}.csv", _table(contents["models"]))
    truth = comparison.truth.tables.get("itemsets")
    assert truth is not None
    write_csv(draft / TRUTH, truth)
    if len(comparison.measured) > 1:
        write_csv(draft / ESTIMATES, _estimates(comparison))
    (draft / "report.html").write_text(report(comparison), encoding="utf-8")
    seal(draft, None)


def _table(models: list[dict[str, Any]]) -> pa.Table:
    """A row for each model and ε."""
    costs = ("bytes_sent", "rounds", "seconds")
    spent = ("local_epsilon", "epsilon", "delta", "n")
    columns: dict[str, pa.Array] = {
        "model": pa.array([each["model"] for each in models]),
        "allowed_epsilon": pa.array([each["epsilon"] for each in models], pa.string()),
        "runs": pa.array([each["runs"] for each in models]),
    }
    for name in (*MEASURES, "f1_deviation"):
        columns[name] = pa.array([each["accuracy"][name] for each in models], pa.float64())
    for name in spent:
        columns[name] = pa.array([(each["privacy"] or {}).get(name) for each in models], pa.float64())
    columns |= {name: pa.array([each[name] for each in models]) for name in costs}
    return pa.table(columns)


def _estimates(comparison: Comparison) -> pa.Table:
    """What every run under another model than the exact one found."""
    tables = []
    for measured in comparison.measured[1:]:
        for number, result in enumerate(measured.results, 1):
            table = result.tables.get("itemsets")
            assert table is not None
            for name, value in (("run", str(number)), ("epsilon", str(measured.epsilon)), ("model", measured.model)):
                table = table.add_column(0, name, pa.array([value] * len(table)))
            tables.append(table)
    return pa.concat_tables(tables)


def _text(epsilon: object) -> str | None:
    return None if epsilon is None else str(epsilon)
