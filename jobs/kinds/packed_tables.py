"""The tables of a result folder, read back into the form that the parties sign."""

from __future__ import annotations

import csv
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any, Final

import numpy as np
import pyarrow.parquet as pq

from jobs.kinds.packed_itemsets import pack
from link.files.json_text import read_json
from mining.itemsets import Itemsets
from mining.rules.association import Rules
from mining.rules.growth import Family, Splits

_SIDES: Final = ("antecedent", "consequent")

Rows = Iterator[tuple[Any, ...]]
Reader = Callable[[Path, tuple[str, ...]], Rows]


def packed_tables(folder: Path, suffix: str, n_rows: int, *, counted: bool, rules: bool) -> bytes:
    """What `jobs.kinds.packed_itemsets.pack` gives for the result in the tables.

    Args:
        folder: The result folder.
        suffix: Of the tables' names: "csv" or "parquet".
        n_rows: Transactions of all parties.
        counted: Whether the itemsets have counts; where not, none that is written goes unseen.
        rules: Whether the rules do not follow from the itemsets.

    Raises:
        OSError: A table cannot be read.
        KeyError: A column is missing, or a rule is over an itemset that is not in the table.
        ValueError: A cell holds something else.
        TypeError: A cell holds something else.
    """
    read: Reader = _csv_rows if suffix == "csv" else _parquet_rows
    found = _itemsets(read(folder / f"itemsets.{suffix}", ("itemset", "count")), n_rows, counted).canonical()
    if found.counted or not rules:
        return pack(found)
    return pack(found, _rules(read(folder / f"rules.{suffix}", _SIDES), found))


def _csv_rows(path: Path, names: tuple[str, ...]) -> Rows:
    with path.open(encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file):
            yield tuple(_count(row[name]) if name == "count" else read_json(row[name]) for name in names)


def _count(cell: str) -> int | None:
    return int(cell) if cell else None


def _parquet_rows(path: Path, names: tuple[str, ...]) -> Rows:
    table = pq.read_table(path, columns=list(names))
    yield from zip(*(table[name].to_pylist() for name in names), strict=True)


def _itemsets(rows: Iterable[tuple[Any, ...]], n_rows: int, counted: bool) -> Itemsets:
    listed = list(rows)
    items = tuple(sorted({item for itemset, _ in listed for item in itemset}))
    position = {item: index for index, item in enumerate(items)}
    levels: dict[int, tuple[list[list[int]], list[int | None]]] = defaultdict(lambda: ([], []))
    counted = counted or any(count is not None for _, count in listed)
    for itemset, count in listed:
        sets, counts = levels[len(itemset)]
        sets.append([position[item] for item in itemset])
        counts.append(count if counted else 0)
    arrays = [(np.array(sets, np.int32), np.array(counts, np.int64)) for sets, counts in levels.values()]
    return Itemsets(items, arrays, n_rows, counted)


def _rules(rows: Iterable[tuple[Any, ...]], itemsets: Itemsets) -> Rules:
    number = {items: index for index, (items, _) in enumerate(itemsets)}
    listed = [
        (number[tuple(sorted((*antecedent, *consequent)))], number[tuple(antecedent)], number[tuple(consequent)])
        for antecedent, consequent in rows
    ]
    whole, antecedents, consequents = np.array(listed, np.int64).reshape(-1, 3).T
    return Rules.of(Family(itemsets), Splits(whole, antecedents, consequents))
