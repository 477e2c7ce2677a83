"""Shows a result: into a folder where one is named, on standard output otherwise."""

from __future__ import annotations

import io
import sys
from pathlib import Path
from typing import Any, Final

from coordinator.cli.console import note, write, write_bytes, write_json, write_table
from jobs.cut_rows import cut_rows
from jobs.findings import Result

_SHOWN: Final = 20
_DECIMALS: Final = 4
_COLUMNS: Final = 6  # that fit a terminal
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
    for sentence in cut_rows(result):
        note(sentence)


def _as_json(result: Result, *, with_rows: bool) -> dict[str, Any]:
    from jobs.document import document, json_rows
    from jobs.kinds.models.document import model_document

    contents = document(result)
    if with_rows:
        for name, table in (("itemsets", result.itemsets_table), ("rules", result.rules_table)):
            if table is not None:
                contents[name] = json_rows(table)
        if result.trained is not None:
            contents["model"] = model_document(result.trained)
    return contents


def _write_csv(result: Result) -> None:
    from jobs.tables import csv_chunks

    table = result.itemsets_table if result.rules_table is None else result.rules_table
    if table is not None:
        write_bytes(csv_chunks(table))
    elif result.trained is not None:
        from jobs.kinds.models.document import model_document

        write_json(model_document(result.trained))
    elif result.anonymized is not None:
        from anonymize.certifying import write_cells
        from anonymize.release import plain

        text = io.StringIO(newline="")
        write_cells(text, plain(result.anonymized.table))
        write_bytes([text.getvalue().encode()])
    elif result.spec.job.task == "align":
        name, size = ("n_rows", result.n_rows) if result.positions is None else ("positions", result.positions)
        write_bytes([f"{name}\n{size}\n".encode()])


def _show_first(result: Result) -> None:
    if result.trained is not None:
        lines = list(result.trained.lines())
        more = f"… and {len(lines) - _SHOWN:,} lines more\n" if len(lines) > _SHOWN else ""
        write("".join(f"{line}\n" for line in lines[:_SHOWN]) + more)
    for name, table in (("itemsets", result.itemsets_table), ("rules", result.rules_table)):
        if table is None:
            continue
        empty = {column for column in table.column_names if table[column].null_count == len(table) > 0}
        columns = [column for column in table.column_names if column not in _ONLY_IN_FILES | empty][:_COLUMNS]
        rows = [[_cell(row[column]) for column in columns] for row in table.slice(0, _SHOWN).to_pylist()]
        more = f" (the first {_SHOWN} of {len(table):,})" if len(table) > _SHOWN else ""
        write_table(columns, rows, f"{name}{more}")


def _cell(value: Any) -> str:
    if isinstance(value, list):
        return ", ".join(value)
    return f"{value:.{_DECIMALS}f}" if isinstance(value, float) else str(value)


def _summary(result: Result, out: Path | None) -> str:
    itemsets, rules = result.itemsets_table, result.rules_table
    if not result.spec.mines:
        elsewhere = ""
        if result.anonymized is not None:
            left_out = result.anonymized.n_rows - result.anonymized.table.num_rows
            elsewhere = f"; {result.anonymized.table.num_rows:,} are released and {left_out:,} left out"
        if result.spec.anonymizes and result.anonymized is None:
            elsewhere = f"; the release is at {', '.join(result.spec.job.recipients)}"
        if result.spec.trains and result.trained is None:
            elsewhere = f"; the model is at {', '.join(result.spec.job.recipients)}"
        written = f"; written to {out}" if out is not None else ""
        return f"task {result.spec.job.task}: {result.size} of {len(result.parties)} parties{elsewhere}{written}"
    about = "about " if result.spec.privacy.model == "distributed" else ""  # parties add noise to that number, too
    over = f"{about}{result.n_rows:,} transactions of {len(result.parties)} parties"
    if itemsets is None:
        account = f"; the account is written to {out}" if out is not None else ""
        return f"mined {over}; the result is at {', '.join(result.spec.job.recipients)}{account}"
    found = f"{len(itemsets):,} {'itemsets' if result.estimated is not None else 'frequent itemsets'}"
    if rules is not None:
        found += f" and {len(rules):,} rules"
    if result.found is not None and not result.found.counted:
        found += ", supports not disclosed,"
    if result.estimated is not None:
        found += ", estimated with 95 % intervals,"
    return f"{found} of {over}" + (f"; written to {out}" if out is not None else "")
