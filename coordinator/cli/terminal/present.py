"""Shows a result: into a folder where one is named, on standard output otherwise."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any, Final

from coordinator.cli.terminal.console import note, write, write_bytes, write_json, write_table
from jobs.kinds.registry import kind_of
from jobs.report.tables import most_useful
from jobs.results.record import cautions
from jobs.results.result import Result

_SHOWN: Final = 20
_DECIMALS: Final = 4
_COLUMNS: Final = 6  # that fit a terminal
_BY: Final = {  # by what the rows that are shown are the first
    "itemsets": (("count", "most frequent"), ("length", "longest")),
    "rules": (("lift", "of highest lift"), ("count", "most frequent")),
}
_ONLY_IN_FILES: Final = frozenset({"antecedent_count", "consequent_count"})


def present(result: Result, out: Path | None, *, as_json: bool) -> None:
    """Writes the result folder if there is to be one, and the result to standard output.

    A terminal gets the first rows as a table, or a model in words. A pipe gets all rows as CSV, or the model as JSON,
    unless they are in the folder. With `as_json` standard output gets `result.json`, and all that too unless it is in
    the folder.
    """
    if out is not None:
        result.save(out)
    if as_json:
        write_json(_as_json(result, with_rows=out is None))
    elif sys.stdout.isatty():
        _show_first(result)
    elif out is None:
        _write_csv(result)
    note(_summary(result, out))
    for sentence in cautions(result):
        note(sentence)


def _as_json(result: Result, *, with_rows: bool) -> dict[str, Any]:
    from jobs.documents.result import document, json_rows

    contents = document(result)
    if with_rows and result.finding is not None:
        contents |= {name: json_rows(table) for name, table in result.tables.items()} | result.finding.printed()
    return contents


def _write_csv(result: Result) -> None:
    from jobs.results.tables import csv_chunks

    if result.tables:
        write_bytes(csv_chunks([*result.tables.values()][-1]))
    elif result.finding is not None:
        write_bytes([result.finding.text().encode()])
    elif not result.is_elsewhere:
        name, size = ("n_rows", result.n_rows) if result.positions is None else ("positions", result.positions)
        write_bytes([f"{name}\n{size}\n".encode()])


def _show_first(result: Result) -> None:
    lines = [] if result.finding is None else list(result.finding.lines())
    if lines:
        more = f"… and {len(lines) - _SHOWN:,} lines more\n" if len(lines) > _SHOWN else ""
        write("".join(f"{line}\n" for line in lines[:_SHOWN]) + more)
    for name, table in result.tables.items():
        empty = {column for column in table.column_names if table[column].null_count == len(table) > 0}
        columns = [column for column in table.column_names if column not in _ONLY_IN_FILES | empty][:_COLUMNS]
        known = most_useful(table) if name in _BY else table
        rows = [[_cell(row[column]) for column in columns] for row in known.slice(0, _SHOWN).to_pylist()]
        by = next((f" {words}" for column, words in _BY.get(name, ()) if column in columns), "")
        more = f": the {_SHOWN}{by} of {len(table):,}" if len(table) > _SHOWN else ""
        write_table(columns, rows, f"{name}{more}")


def _cell(value: Any) -> str:
    if isinstance(value, list):
        return ", ".join(value)
    return f"{value:.{_DECIMALS}f}" if isinstance(value, float) else str(value)


def _summary(result: Result, out: Path | None) -> str:
    found = None if result.finding is None else result.finding.summary(result.spec)
    told = kind_of(result.spec).told(result.spec, result.size, result.n_rows, found)
    if out is None:
        return told
    return f"{told}; {'the account is ' if result.is_elsewhere else ''}written to {out}"
