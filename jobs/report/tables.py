"""The tables of a result as compact JSON: a dictionary of items, and columns of numbers.

The page holds so many rows as a browser likes; the rest is in the files beside it.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from jobs.report.text import visible

if TYPE_CHECKING:
    from jobs.findings import Result

MOST_ROWS: Final = 50_000
_DIGITS: Final = 6
_FIRST_MEASURE: Final = 6  # columns of a table of rules before its measures


def tables(result: Result) -> dict[str, Any] | None:
    """What the page's scripts show; None where there is no result here.

    Lists of items are given by their lengths and, one after the other, positions in `items`. Numbers that JSON cannot
    say are null, which stands for infinity.
    """
    found, rules = result.itemsets_table, result.rules_table
    if result.found is None or found is None:
        return None
    names = pa.array(result.found.items, pa.string())
    data: dict[str, Any] = {
        "rows": result.n_rows,
        "items": [visible(item) for item in result.found.items],
        "itemsets": _itemsets(_most_frequent(found, MOST_ROWS), names),
        "rules": None,
    }
    if rules is not None:
        data["rules"] = _rules(_most_frequent(rules, MOST_ROWS), names)
    return data


def embedded(data: Any) -> str:
    """JSON that can stand in a script element of HTML: nothing in it ends the element or begins a comment."""
    text = json.dumps(data, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def top(table: pa.Table, by: str, number: int, least_items: int = 1) -> list[dict[str, Any]]:
    """The rows of the highest value of a column, the highest first."""
    if least_items > 1:
        table = table.filter(pc.greater_equal(table["length"], least_items))
    chosen = pc.select_k_unstable(table, min(number, len(table)), [(by, "descending")])
    rows: list[dict[str, Any]] = table.take(chosen).to_pylist()
    return rows


def _most_frequent(table: pa.Table, number: int) -> pa.Table:
    """The rows of highest count, in the order of the table."""
    if len(table) > number:
        chosen = pc.select_k_unstable(table, number, [("count", "descending")])
        table = table.take(chosen.take(pc.array_sort_indices(chosen)))
    return table.combine_chunks()


def _itemsets(table: pa.Table, names: pa.Array) -> dict[str, Any]:
    return {**_lists(table["itemset"], names), "count": table["count"].to_pylist()}


def _rules(table: pa.Table, names: pa.Array) -> dict[str, Any]:
    return {
        "antecedent": _lists(table["antecedent"], names),
        "consequent": _lists(table["consequent"], names),
        "count": table["count"].to_pylist(),
        "antecedentCount": table["antecedent_count"].to_pylist(),
        "consequentCount": table["consequent_count"].to_pylist(),
        "measures": _measures(table),
    }


def _measures(table: pa.Table) -> Mapping[str, list[float | None]]:
    return {name: _rounded(table[name].to_numpy()) for name in table.column_names[_FIRST_MEASURE:]}


def _lists(column: pa.ChunkedArray, names: pa.Array) -> dict[str, list[int]]:
    flat = pc.list_flatten(column).combine_chunks()
    return {
        "lengths": pc.list_value_length(column).to_pylist(),
        "items": pc.index_in(flat, value_set=names).to_numpy().tolist(),
    }


def _rounded(values: NDArray[np.float64]) -> list[float | None]:
    """Each value with so many significant digits as anybody reads."""
    finite = np.isfinite(values)
    with np.errstate(divide="ignore", invalid="ignore"):
        scale = 10.0 ** np.clip(_DIGITS - 1 - np.floor(np.log10(np.abs(values))), 0, 300)
        short = np.where(finite & (values != 0), np.round(values * scale) / scale, 0.0)
    if finite.all():
        plain: list[float | None] = short.tolist()
        return plain
    return [value if here else None for value, here in zip(short.tolist(), finite.tolist(), strict=True)]
