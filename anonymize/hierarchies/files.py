"""Hierarchies in files: CSV with one row a leaf, or JSON."""

from __future__ import annotations

import csv
import json
from collections.abc import Iterator, Sequence
from pathlib import Path

from anonymize.hierarchies.hierarchy import Hierarchy
from link.errors import InputDataError
from link.files.json_text import read_json


def from_csv(path: Path, separator: str = ",", *, name: str | None = None, add_top: bool = False) -> Hierarchy:
    """Reads a hierarchy from CSV without a header: one row a leaf, level 0 first.

    Args:
        path: UTF-8 text; blank lines are ignored.
        separator: One character.
        name: Of the column; by default the file's, without its extension.
        add_top: Put a level `*` on top if the last one has several labels.

    Raises:
        InputDataError: The file is missing or no such text, or the hierarchy is wrong (`Hierarchy.of`).
    """
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            rows = [row for row in csv.reader(file, delimiter=separator, strict=True) if row]
    except (OSError, ValueError, csv.Error) as error:
        raise InputDataError(
            f"The hierarchy {path} cannot be read as CSV in UTF-8; check its path and format."
        ) from error
    if rows and len(rows) > 1 and all(len(row) == 1 for row in rows) and not add_top:
        raise InputDataError(
            f'The hierarchy {path} has one column only with the separator "{separator}"; name the file\'s own, '
            "or let a level * be added."
        )
    return Hierarchy.of(name or path.stem, rows, add_top=add_top)


def to_csv(hierarchy: Hierarchy, path: Path, separator: str = ",") -> None:
    """Writes a hierarchy so that `from_csv` reads it."""
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, delimiter=separator, lineterminator="\n")
        writer.writerows(rows_of(hierarchy))


def rows_of(hierarchy: Hierarchy) -> Iterator[tuple[str, ...]]:
    """One row for each leaf, level 0 first."""
    for leaf in range(len(hierarchy.leaves)):
        yield tuple(hierarchy.label(level, leaf) for level in range(hierarchy.height + 1))


def from_json(path: Path, *, name: str | None = None, add_top: bool = False) -> Hierarchy:
    """Reads a hierarchy from JSON: rows as in CSV, `[["20", "20-29", "*"], …]`, or a tree.

    A tree is `{"*": {"Europe": ["France", "Spain"], "Asia": […]}}`: objects hold labels, lists hold leaves. A leaf that
    is less deep than others keeps its own label up to the level of its parent.

    Args:
        path: UTF-8 text.
        name: Of the column; by default the file's, without its extension.
        add_top: Put a level `*` on top if the last one has several labels.

    Raises:
        InputDataError: The file is missing or no such JSON, or the hierarchy is wrong (`Hierarchy.of`).
    """
    try:
        content = read_json(path.read_text(encoding="utf-8-sig"))
    except (OSError, ValueError) as error:
        raise InputDataError(f"The hierarchy {path} cannot be read as JSON; check its path and format.") from error
    if isinstance(content, dict):
        rows = list(_branches(content, (), path))
        depth = max((len(row) for row in rows), default=0)
        rows = [(row[0],) * (depth - len(row)) + row for row in rows]
    elif isinstance(content, list) and all(isinstance(row, list) for row in content):
        rows = [tuple(_label(text, path) for text in row) for row in content]
    else:
        raise InputDataError(f"The hierarchy {path} is neither a tree of objects and lists nor a list of rows.")
    return Hierarchy.of(name or path.stem, rows, add_top=add_top)


def _branches(node: object, above: Sequence[str], path: Path) -> Iterator[tuple[str, ...]]:
    """Every leaf with the labels above it, itself first."""
    if isinstance(node, dict):
        for text, child in node.items():
            yield from _branches(child, (text, *above), path)
    elif isinstance(node, list):
        for leaf in node:
            yield (_label(leaf, path), *above)
    else:
        raise InputDataError(f'The hierarchy {path} holds "{node}" where an object or a list of leaves belongs.')


def _label(text: object, path: Path) -> str:
    if isinstance(text, str):
        return text
    raise InputDataError(f"The hierarchy {path} holds {json.dumps(text)}, which is no text; put it in quotes.")
