"""The result folder: itemsets, rules or a model, `result.json` and `report.html`, written whole or not at all."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from jobs.documents.result import document
from jobs.documents.written_json import write_json
from jobs.report.page import report
from jobs.results.destination import ALIGNMENT, PARTIES, beside, check_destination, writing
from jobs.results.manifest import seal
from jobs.results.record import ResultRecord
from jobs.results.tables import csv_chunks, write_csv
from mining.data.arrow_arrays import lists, numbers, texts


def prepare() -> None:
    """Has Arrow set up its writers, so that the first folder need not wait for them."""
    table = pa.table({"items": lists(np.array([0, 1]), texts(["a"])), "support": numbers(np.array([1]))})
    pq.write_table(table, pa.BufferOutputStream(), compression="zstd")
    for _ in csv_chunks(table):
        pass


def write_result_folder(out: Path, result: ResultRecord) -> None:
    """Writes a result folder; an earlier one in its place is replaced in one step.

    Args:
        out: The folder; it and its parents are created.
        result: What to write.

    Raises:
        ConfigurationError: `out` is a file, or holds something other than an earlier result.
        ResourceError: The disk is full, or the folder cannot be written.
    """
    write_whole(out, lambda draft: _fill(draft, result))


def write_whole(out: Path, fill: Callable[[Path], None], holds_earlier: Callable[[Path], bool] | None = None) -> None:
    """Writes a folder whole or not at all; an earlier one in its place is replaced in one step.

    Args:
        out: The folder; it and its parents are created.
        fill: Makes the folder that it is given, with all its files.
        holds_earlier: Whether a folder holds an earlier result, and so may be replaced; by default one of a job.

    Raises:
        ConfigurationError: `out` is a file, or holds something other than an earlier result.
        ResourceError: The disk is full, or the folder cannot be written.
    """
    target = out.resolve()
    draft = beside(target, "new")
    try:
        writing(target, lambda: check_destination(target, out, holds_earlier))
        writing(target, lambda: fill(draft))
        writing(target, lambda: _replace(draft, target))
    finally:
        shutil.rmtree(draft, ignore_errors=True)


def _fill(draft: Path, result: ResultRecord) -> None:
    draft.mkdir(parents=True)
    with ThreadPoolExecutor() as pool:  # Arrow writes without the interpreter, which makes the page meanwhile
        writers = [
            pool.submit(write, draft / name, table)
            for name, table in result.tables.items()
            for write in (_write_csv, _write_parquet)
        ]
        for party, table in result.alignments.items():
            place = draft / PARTIES / party / ALIGNMENT
            place.parent.mkdir(parents=True)
            writers.append(pool.submit(_write_parquet, place, table))
        if result.finding is not None:
            result.finding.write(draft, result.spec)
        _write_account(draft, result)
    for writer in writers:
        writer.result()
    seal(draft, result.signer)


def _write_csv(path: Path, table: pa.Table) -> None:
    write_csv(path.with_suffix(".csv"), table)


def _write_parquet(path: Path, table: pa.Table) -> None:
    pq.write_table(table, path.with_suffix(".parquet"), compression="zstd")


def _write_account(draft: Path, result: ResultRecord) -> None:
    write_json(draft / "result.json", document(result))
    (draft / "report.html").write_text(report(result), encoding="utf-8")


def _replace(draft: Path, target: Path) -> None:
    if not (target.exists() and any(target.iterdir())):
        draft.rename(target)  # takes the place of an empty folder
        return
    earlier = beside(target, "old")
    target.rename(earlier)
    try:
        draft.rename(target)
    except OSError:
        earlier.rename(target)
        raise
    shutil.rmtree(earlier, ignore_errors=True)
