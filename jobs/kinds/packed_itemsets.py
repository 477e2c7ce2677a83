"""What a job has found in one form that every learner computes alike: on the wire and under signatures.

Layout, little-endian: magic (8 bytes) ‖ n_rows u64 ‖ number of items u32 ‖ number of levels u32 ‖ byte length of each
item u32 ‖ the items in UTF-8 ‖ per level: length k u32 ‖ number m u64 ‖ sets m·k i32 ‖ counts m i64. Items and itemsets
are in canonical order and the dictionary holds only items that occur, so equal itemsets give equal bytes.

Where counts are unknown the magic is another one, the levels have no counts, and behind them stand the rules, which
cannot be made from such itemsets: whether the job has any u8, 0 or 1 ‖ their number r u64 ‖ of each the number of its
itemset u32 ‖ of each the number of its antecedent u32 ‖ of each the number of its consequent u32. Itemsets are numbered
through all levels and the rules are in canonical order.
"""

from __future__ import annotations

import hashlib
import itertools
import struct
from collections.abc import Sequence
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from mining.itemsets import Itemsets, Level
from mining.lattice import Sets, is_ascending
from mining.rules.association import Rules
from mining.rules.growth import Family, Splits

_COUNTED: Final = b"COMITEM1"
_UNCOUNTED: Final = b"COMFREQ1"
_HEAD: Final = struct.Struct("<8sQII")
_LEVEL: Final = struct.Struct("<IQ")
_RULES: Final = struct.Struct("<BQ")


class Mined(NamedTuple):
    """What a job has found.

    Attributes:
        itemsets: The frequent itemsets, canonical.
        rules: The association rules, where they do not follow from the itemsets.
    """

    itemsets: Itemsets
    rules: Rules | None = None


def pack(itemsets: Itemsets, rules: Rules | None = None) -> bytes:
    """The canonical bytes of what has been found; see the module's layout.

    Args:
        itemsets: The frequent itemsets, in any order.
        rules: The rules over them, where their counts are unknown.
    """
    if itemsets.counted and rules is not None:
        raise ValueError("rules are not packed where they follow from the counts of the itemsets")
    ordered = itemsets.canonical()
    used = _used(len(ordered.items), ordered.levels)
    number = (np.cumsum(used) - 1).astype("<i4")
    names = [ordered.items[index].encode() for index in np.flatnonzero(used)]
    parts = [
        _HEAD.pack(_COUNTED if ordered.counted else _UNCOUNTED, ordered.n_rows, len(names), len(ordered.levels)),
        np.fromiter(map(len, names), "<u4", len(names)).tobytes(),
        *names,
    ]
    for sets, counts in ordered.levels:
        parts += [_LEVEL.pack(sets.shape[1], len(sets)), number[sets].tobytes()]
        if ordered.counted:
            parts.append(counts.astype("<i8").tobytes())
    if not ordered.counted:
        parts.append(_RULES.pack(rules is not None, 0 if rules is None else len(rules)))
    if rules is not None:
        parts += [side.astype("<u4").tobytes() for side in (rules.whole, rules.antecedent, rules.consequent)]
    return b"".join(parts)


def digest(packed: bytes) -> bytes:
    """SHA-256 of a packed result: what a release signs."""
    return hashlib.sha256(packed).digest()


def unpack(packed: bytes) -> Mined:
    """What is in a packed result, which may come from anybody.

    Raises:
        ValueError: The bytes are not exactly what `pack` gives for some result.
    """
    reader = _Reader(packed)
    magic, n_rows, n_items, n_levels = reader.fields(_HEAD)
    if magic not in (_COUNTED, _UNCOUNTED) or n_rows >= 1 << 63:
        raise ValueError("these are not packed itemsets")
    counted = magic == _COUNTED
    lengths = reader.array("<u4", n_items).tolist()
    try:
        items = tuple(reader.take(length).decode() for length in lengths)
    except UnicodeDecodeError:
        raise ValueError("an item is not UTF-8") from None
    if any(later <= earlier for earlier, later in itertools.pairwise(items)):
        raise ValueError("the items are not in ascending order")
    levels: list[Level] = []
    for _ in range(n_levels):
        length, number = reader.fields(_LEVEL)
        if length > n_items or number < 1 or length <= (levels[-1][0].shape[1] if levels else 0):
            raise ValueError("a level has an impossible length")
        sets = reader.array("<i4", number * length).reshape(number, length).astype(np.int32)
        counts = reader.array("<i8", number).astype(np.int64) if counted else np.zeros(number, np.int64)
        _check_level(sets, counts, n_items, n_rows)
        levels.append((sets, counts))
    if not _used(n_items, levels).all():
        raise ValueError("an item of the dictionary is in no itemset")
    found = Itemsets(items, levels, n_rows, counted)
    rules = None if counted else _rules(reader, found)
    if reader.left:
        raise ValueError("bytes follow the end")
    return Mined(found, rules)


def _rules(reader: _Reader, itemsets: Itemsets) -> Rules | None:
    given, number = reader.fields(_RULES)
    if given > 1 or (number and not given):
        raise ValueError("it is not clear whether there are rules")
    if not given:
        return None
    whole, antecedent, consequent = (reader.array("<u4", number).astype(np.int64) for _ in range(3))
    if any((side >= len(itemsets)).any() for side in (whole, antecedent, consequent)):
        raise ValueError("a rule names an itemset that does not exist")
    family, splits = Family(itemsets), Splits(whole, antecedent, consequent)
    if not family.are_split(splits):
        raise ValueError("the sides of a rule are not the parts of its itemset")
    rules = Rules.of(family, splits)
    same = (rules.whole == whole) & (rules.antecedent == antecedent)
    if not same.all() or ((np.diff(whole) == 0) & (np.diff(antecedent) == 0)).any():
        raise ValueError("the rules are not distinct or not in ascending order")
    return rules


def _used(n_items: int, levels: Sequence[Level]) -> NDArray[np.bool_]:
    """Which items are in some itemset."""
    used = np.zeros(n_items, bool)
    for sets, _ in levels:
        used[sets.ravel()] = True
    return used


def _check_level(sets: Sets, counts: NDArray[np.int64], n_items: int, n_rows: int) -> None:
    if sets.min() < 0 or sets.max() >= n_items:
        raise ValueError("an itemset names items that do not exist")
    if counts.min() < 0 or counts.max() > n_rows:
        raise ValueError("a count is not between 0 and the number of rows")
    if not is_ascending(sets):
        raise ValueError("the itemsets of a level, or their items, are not distinct or not in ascending order")


class _Reader:
    """Takes pieces off the front of bytes and refuses to go beyond their end."""

    def __init__(self, data: bytes) -> None:
        self._data, self._at = data, 0

    @property
    def left(self) -> int:
        return len(self._data) - self._at

    def take(self, size: int) -> bytes:
        if size > self.left:
            raise ValueError("the itemsets are cut off")
        self._at += size
        return self._data[self._at - size : self._at]

    def fields(self, layout: struct.Struct) -> tuple[Any, ...]:
        return layout.unpack(self.take(layout.size))

    def array(self, dtype: str, number: int) -> NDArray[Any]:
        return np.frombuffer(self.take(number * np.dtype(dtype).itemsize), dtype)
