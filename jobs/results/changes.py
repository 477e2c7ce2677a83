"""What one result has that another has not, and which figures of what both have differ."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from mining.data.arrow_arrays import text, truths

MOST: Final = 100  # of what appeared, vanished or changed that are listed
_FIGURES: Final = ("support", "low", "high", "confidence", "lift", "value")
_ITEM, _SIDE = "\0", "\0\0"  # between two items, and between the sides of a rule


class Row(NamedTuple):
    """An itemset, a rule, or what else has figures.

    Attributes:
        sides: Its items; of a rule those of both sides, of a number its name.
        before: Its figures in the earlier result, in the order of `Changes.figures`; None where they are not known.
        after: In the later one.
    """

    sides: tuple[tuple[str, ...], ...]
    before: tuple[float | None, ...]
    after: tuple[float | None, ...]


class Listed(NamedTuple):
    """Some of the rows, those with the largest figure or difference first.

    Attributes:
        number: How many there are.
        rows: The first ones.
    """

    number: int
    rows: tuple[Row, ...]


class Changes(NamedTuple):
    """How a table of a result differs from that of an earlier one.

    Attributes:
        table: Its name, such as "itemsets", "rules" or "numbers".
        figures: The columns of numbers that are compared: those that both have.
        same: How many rows are in both with equal figures.
        appeared: Rows that only the later one has.
        vanished: Rows that only the earlier one has.
        changed: Rows of both whose figures differ.
    """

    table: str
    figures: tuple[str, ...]
    same: int
    appeared: Listed
    vanished: Listed
    changed: Listed


def changes(before: Mapping[str, pa.Table], after: Mapping[str, pa.Table]) -> list[Changes]:
    """How the tables that both results have differ.

    Args:
        before: Of the earlier result, by name, as `Finding.compared`.
        after: Of the later one.
    """
    found = []
    for name in before.keys() & after.keys():
        sides = [field.name for field in after[name].schema if pa.types.is_list(field.type)]
        if sides and set(sides) <= set(before[name].column_names):
            found.append(_of_table(name, before[name], after[name], sides))
    return sorted(found, key=lambda each: each.table)


def _of_table(name: str, before: pa.Table, after: pa.Table, sides: list[str]) -> Changes:
    figures = tuple(each for each in _FIGURES if each in before.column_names and each in after.column_names)
    old, new = _scalars(before, sides, figures), _scalars(after, sides, figures)
    both = old.join(new, "key", join_type="full outer", left_suffix=" before", right_suffix=" after")
    was, here = (~_unknown(both[f"here {when}"]) for when in ("before", "after"))
    numbers = tuple(_numbers(both, figures, when) for when in ("before", "after"))
    equal = (numbers[0] == numbers[1]) | (np.isnan(numbers[0]) & np.isnan(numbers[1]))
    differ = ~equal.all(axis=1) & was & here
    earlier, later = (np.nan_to_num(each[:, 0]) if figures else np.zeros(len(both)) for each in numbers)

    def listed(which: NDArray[np.bool_], by: NDArray[np.float64]) -> Listed:
        places = np.flatnonzero(which)
        first = places[np.argsort(-by[places], kind="stable")][:MOST]
        keys = both["key"].take(pa.array(first)).to_pylist()
        rows = (
            Row(_sides(key), *(tuple(None if np.isnan(x) else float(x) for x in each[place]) for each in numbers))
            for key, place in zip(keys, first, strict=True)
        )
        return Listed(len(places), tuple(rows))

    return Changes(
        name,
        figures,
        int((was & here & ~differ).sum()),
        listed(here & ~was, later),
        listed(was & ~here, earlier),
        listed(differ, np.abs(later - earlier)),
    )


def _scalars(table: pa.Table, sides: list[str], figures: tuple[str, ...]) -> pa.Table:
    """The rows with their items as one text: Arrow joins no lists."""
    keys = [pc.binary_join(table[side], text(_ITEM)) for side in sides]
    key = keys[0] if len(keys) == 1 else pc.binary_join_element_wise(*keys, text(_SIDE))
    here = truths(np.ones(len(table), bool))
    return pa.table({"key": key, "here": here, **{each: table[each] for each in figures}})


def _numbers(both: pa.Table, figures: tuple[str, ...], when: str) -> NDArray[np.float64]:
    """Shape (rows, figures); not a number where one is not known."""
    columns = [both[f"{each} {when}"].cast(pa.float64()).fill_null(np.nan).to_numpy() for each in figures]
    return np.stack(columns, axis=1) if columns else np.zeros((len(both), 0))


def _unknown(column: pa.ChunkedArray) -> NDArray[np.bool_]:
    missing: NDArray[np.bool_] = column.is_null().to_numpy()
    return missing


def _sides(key: str) -> tuple[tuple[str, ...], ...]:
    return tuple(tuple(side.split(_ITEM)) for side in key.split(_SIDE))
