"""The tables of a result as compact JSON: a dictionary of items, and columns of numbers.

The page holds so many rows as a browser likes; the rest is in the files beside it.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from jobs.report.text import visible
from mining.data.arrow_arrays import as_numpy, lists, numbers, text, texts, truths

MOST_ROWS: Final = 50_000
_DIGITS: Final = 6
_FIRST_MEASURE: Final = 6  # columns of a table of rules before its measures


def page_data(
    tables: Mapping[str, pa.Table], items: Sequence[str], *, counted: bool, estimated: bool
) -> dict[str, Any]:
    """What the page's scripts show of itemsets and rules.

    Lists of items are given by their lengths and, one after the other, positions in `items`. Numbers that JSON cannot
    say are null, which means infinity, in measures of rules over estimates for what is not known. Estimated
    supports have the ends of their intervals beside them, as shares. Where supports are not disclosed all counts are
    null, and there are no measures. Columns of numbers are Arrow arrays, which `embedded` writes without a Python
    object for each.

    Args:
        tables: The itemsets, and the rules where there are any.
        items: All items that occur.
        counted: Whether supports are known.
        estimated: Whether they are estimates.
    """
    names = texts(items)
    data: dict[str, Any] = {
        "counted": counted,
        "estimated": estimated,
        "items": [visible(item) for item in items],
        "itemsets": _itemsets(_most_frequent(_numbered(tables["itemsets"], names), MOST_ROWS)),
        "rules": None,
    }
    if "rules" in tables:
        data["rules"] = _rules(_most_frequent(_numbered(with_intervals(tables["rules"]), names), MOST_ROWS))
    return data


def embedded(data: Any) -> str:
    """JSON that can stand in a script element of HTML: nothing in it ends the element or begins a comment.

    Args:
        data: What `json.dumps` takes, and in dictionaries also Arrow arrays of numbers.
    """
    return _json(data).replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def _json(data: Any) -> str:
    if isinstance(data, pa.Array):
        written = pc.fill_null(pc.cast(data, pa.string()), text("null"))
        together = lists(np.array([0, len(written)]), written)
        return f"[{pc.binary_join(together, text(','))[0].as_py()}]"
    if isinstance(data, dict):
        return "{" + ",".join(f"{json.dumps(name)}:{_json(value)}" for name, value in data.items()) + "}"
    return json.dumps(data, ensure_ascii=False, allow_nan=False, separators=(",", ":"))


def most_useful(table: pa.Table) -> pa.Table:
    """The rows of itemsets or rules in the order in which people look for them.

    Itemsets stand by their counts, the longer first of equals; rules by their lift, or without it by their counts, the
    shorter first of equals. Where counts are not disclosed the longest itemsets come first.
    """
    columns = [name for name in ("lift", "count", "length") if name in table.column_names]
    return table.take(pc.sort_indices(table, sort_keys=[(name, "descending") for name in columns]))


def top(table: pa.Table, by: str, number: int, least_items: int = 1) -> list[dict[str, Any]]:
    """The rows of the highest value of a column, the highest first."""
    if least_items > 1:
        table = table.filter(pc.greater_equal(table["length"], numbers(np.array([least_items]))[0]))
    if not len(table):  # of which pyarrow 25 chooses nothing
        return []
    chosen = pc.select_k_unstable(table, min(number, len(table)), [(by, "descending")])
    rows: list[dict[str, Any]] = table.take(chosen).to_pylist()
    return rows


def most_common(column: pa.ChunkedArray, number: int) -> list[tuple[str, int]]:
    """The items that are in most of a column's lists, and in how many; those of most lists first, then by name."""
    counted = [(entry["values"], entry["counts"]) for entry in pc.list_flatten(column).value_counts().to_pylist()]
    return sorted(counted, key=lambda entry: (-entry[1], entry[0]))[:number]


def with_intervals(rules: pa.Table) -> pa.Table:
    """Rules whose intervals, if they have any, are called by what they are of."""
    names = {"low": "confidence_low", "high": "confidence_high"}
    return rules.rename_columns([names.get(name, name) for name in rules.column_names])


def _numbered(table: pa.Table, names: pa.Array) -> pa.Table:
    """The table with each item replaced by its position in `names`, by which lists are quicker to choose and write."""
    for place, column in enumerate(table.columns):
        if pa.types.is_list(column.type):
            found = column.combine_chunks()
            offsets = pc.subtract(found.offsets, found.offsets[0])
            positions = pa.ListArray.from_arrays(offsets, pc.index_in(found.flatten(), value_set=names))
            table = table.set_column(place, table.column_names[place], positions)
    return table


def _most_frequent(table: pa.Table, number: int) -> pa.Table:
    """The rows of highest count, in the order of the table; the first ones where counts are not disclosed."""
    surplus = len(table) - number
    if surplus <= 0 or table["count"].null_count:
        return table.slice(0, number)
    shown = np.ones(len(table), bool)
    shown[np.argpartition(as_numpy(table["count"]), surplus)[:surplus]] = False
    return table.filter(truths(shown))


def _itemsets(table: pa.Table) -> dict[str, Any]:
    found = {**_lists(table["itemset"]), "count": _counts(table["count"])}
    if "low" in table.column_names:
        found |= {name: _rounded(as_numpy(table[name])) for name in ("support", "low", "high")}
    return found


def _rules(table: pa.Table) -> dict[str, Any]:
    return {
        "antecedent": _lists(table["antecedent"]),
        "consequent": _lists(table["consequent"]),
        "count": _counts(table["count"]),
        "antecedentCount": _counts(table["antecedent_count"]),
        "consequentCount": None if table["count"].null_count else table["consequent_count"].combine_chunks(),
        "measures": _measures(table),
    }


def _counts(column: pa.ChunkedArray) -> pa.Array | None:
    """The counts; None where they are not disclosed."""
    return None if column.null_count else column.combine_chunks()


def _measures(table: pa.Table) -> dict[str, pa.Array]:
    if table["count"].null_count:
        return {}
    return {name: _rounded(as_numpy(table[name])) for name in table.column_names[_FIRST_MEASURE:]}


def _lists(column: pa.ChunkedArray) -> dict[str, pa.Array]:
    return {
        "lengths": pc.list_value_length(column).combine_chunks(),
        "items": pc.list_flatten(column).combine_chunks(),
    }


def _rounded(values: NDArray[np.float64]) -> pa.Array:
    """Each value with so many significant digits as anybody reads; null where it is not finite."""
    finite = np.isfinite(values)
    with np.errstate(divide="ignore", invalid="ignore"):
        scale = 10.0 ** np.clip(_DIGITS - 1 - np.floor(np.log10(np.abs(values))), 0, 300)
        short = np.where(finite & (values != 0), np.round(values * scale) / scale, 0.0)
    return numbers(short, ~finite)
