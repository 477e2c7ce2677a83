"""What the parties of a vertical job hold together, read from their CSV files by code that shares none with comine."""

from __future__ import annotations

import csv
from collections.abc import Mapping, Sequence
from decimal import Decimal
from pathlib import Path


def joined(files: Sequence[Path], key: str, cuts: Mapping[str, Sequence[object]]) -> list[list[str]]:
    """The items of every row that all files have, whatever blanks and case its id is written with.

    Args:
        files: The parties' tables.
        key: The column of ids.
        cuts: By column, where its numbers are cut.
    """
    tables: list[dict[str, list[str]]] = []
    for file in files:
        with file.open() as lines:
            tables.append(
                {
                    row.pop(key).strip().casefold(): [
                        f"{column}={value(cell, cuts.get(column, ()))}" for column, cell in row.items()
                    ]
                    for row in csv.DictReader(lines)
                }
            )
    common = set.intersection(*map(set, tables))
    return [[item for table in tables for item in table[row]] for row in sorted(common)]


def value(cell: str, cuts: Sequence[object]) -> str:
    """The cell, or the interval that it is in."""
    if not cuts:
        return cell
    below = [cut for cut in cuts if Decimal(cell) >= Decimal(str(cut))]
    low = f"[{below[-1]}" if below else "(-inf"
    return f"{low},{cuts[len(below)] if len(below) < len(cuts) else 'inf'})"
