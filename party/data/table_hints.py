"""Signs that a table is not what its owner means; as in `mining.data.hints`, items are named in examples alone."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Final

import numpy as np

from link.files.toml_text import quoted
from mining.data.hints import Hint, has_hidden, long_names, read_alike, some
from mining.data.items.discretisation import number_of
from mining.data.row_ids import AT_ONCE, IdNormalisation
from mining.data.tables import Table

MANY_NUMBERS: Final = 20  # distinct numbers of a column, above which hardly one is meant as an item
_NEARLY_ALL: Final = 0.95
_FEW_ROWS: Final = 10  # below it, what most rows have in common says little


def table_hints(table: Table) -> tuple[Hint, ...]:
    """The signs that are found in a table whose ids name its rows."""
    return tuple(hint for look in _LOOKS if (hint := look(table)) is not None)


def _emptiness(table: Table) -> Hint | None:
    if not table.n_rows:
        return Hint("empty", "there is no row; check the source, and the query where there is one")
    if not table.n_items:
        return Hint("empty", "there is no cell with a value beside the ids; check the separator and the columns")
    return None


def _numbers(table: Table) -> Hint | None:
    """Columns of many numbers, each of which is an item of its own."""
    many = [
        column.name
        for column in table.columns
        if len(column.values) > MANY_NUMBERS and all(number_of(text) is not None for text in column.values.to_pylist())
    ]
    if not many:
        return None
    sentence = f"{_columns(many)} of numbers, each an item of its own; a job can put them into intervals"
    return Hint("numbers", f"{sentence} by [itemsets.cuts] or [itemsets.quantiles]")


def _strays(table: Table) -> Hint | None:
    """Cells that are no numbers in columns of numbers."""
    rows, found = 0, []
    for column in table.columns:
        is_number = np.array([number_of(text) is not None for text in column.values.to_pylist()], bool)
        if MANY_NUMBERS < is_number.sum() < len(is_number):
            held = np.bincount(column.codes[column.codes >= 0], minlength=len(is_number))
            rows += int(held[~is_number].sum())
            found.append(column.name)
    if not found:
        return None
    which = f"the column {quoted(found[0])}" if len(found) == 1 else f"columns ({', '.join(map(quoted, found[:3]))})"
    sentence = f"{rows} cells of {which} are no numbers as the others are, and count as empty in jobs that put these"
    return Hint("no-numbers", f"{sentence} into intervals; correct them in the source where they should count")


def _long_names(table: Table) -> Hint | None:
    return long_names(f"{name}={value}" for name, value in _values(table))


def _identifiers(table: Table) -> Hint | None:
    """Columns with a value of its own in nearly every row."""
    own = [column.name for column in table.columns if len(column.values) >= _NEARLY_ALL * table.n_rows]
    if table.n_rows < _FEW_ROWS or not own:
        return None
    sentence = f"{_columns(own)} with another value in nearly every row, of which none can be frequent"
    return Hint("identifiers", f"{sentence}; leave out of the source what no job needs")


def _alike(table: Table) -> Hint | None:
    """Values of a column that a person would read as the same."""
    found = [
        f"{column.name}={value}"
        for column in table.columns
        if len(column.values) < _NEARLY_ALL * table.n_rows
        for value in read_alike(column.values.to_pylist())
    ]
    if not found:
        return None
    sentence = f"{len(found)} items differ from another one only by case, blanks or invisible characters"
    return Hint("alike", f"{sentence}, and count apart; write them alike", some(found))


def _edges(table: Table) -> Hint | None:
    """Values with blanks around them."""
    edged = [f"{name}={value}" for name, value in _values(table) if value != value.strip()]
    if not edged:
        return None
    sentence = (
        f"blanks, tabs or line ends around values count as part of them, in {len(edged)} of {table.n_items} items"
    )
    return Hint("blanks", f"{sentence}; remove them from the source", some(edged))


def _invisible(table: Table) -> Hint | None:
    """Values with characters that nobody sees and that make them other values all the same."""
    hidden = [f"{name}={value}" for name, value in _values(table) if has_hidden(value)]
    if not hidden:
        return None
    sentence = f"{len(hidden)} of {table.n_items} items hold tabs, no-break blanks or other characters that nobody sees"
    return Hint("invisible", f"{sentence}; write them without", some(hidden))


def _ids(table: Table) -> Hint | None:
    """Ids with blanks around them, which no other party may write in the same way."""
    trimmed = IdNormalisation(trim=True)
    edged = 0
    for start in range(0, table.n_rows, AT_ONCE):
        rows = zip(*(cells.slice(start, AT_ONCE).to_pylist() for cells in table.ids), strict=True)
        edged += sum(any(trimmed.apply(text) != text for text in row) for row in rows)
    if not edged:
        return None
    sentence = (
        f"blanks around ids count as part of them, in {edged} of {table.n_rows} rows; remove them from the source"
    )
    return Hint("ids", f"{sentence}, or agree on jobs with [align] trim = true")


def _values(table: Table) -> Iterator[tuple[str, str]]:
    for column in table.columns:
        for value in column.values.to_pylist():
            yield column.name, value


def _columns(names: list[str]) -> str:
    listed = ", ".join(map(quoted, names[:3])) + (" and others" if len(names) > 3 else "")
    return f"there is a column ({listed})" if len(names) == 1 else f"there are {len(names)} columns ({listed})"


_LOOKS: Final[tuple[Callable[[Table], Hint | None], ...]] = (
    _emptiness,
    _ids,
    _numbers,
    _strays,
    _long_names,
    _identifiers,
    _alike,
    _edges,
    _invisible,
)
