"""Records that no class has taken yet, and the least loss, or the greatest distance, among them.

Records with equal quasi-identifiers, sensitive value and level are one tuple with a count. Tuples are sorted by level,
then by value, then by first row, so that the tuples of a level or of a value are slices. What a record would cost is a
sum over attributes of a number that depends on the attribute's value only; small attributes share a table of all
combinations of their values, so that one look-up serves several of them.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from anonymize.grouping import group

Floats = NDArray[np.float64]
Codes = NDArray[np.int32]

_COMBINATIONS: Final = 1024  # entries of a table of combinations: it stays in the processor's nearest memory
_COMPACT_BELOW: Final = 0.85  # used-up tuples are dropped when less than this share of the stored ones remains


@dataclass(frozen=True, eq=False)
class Segments:
    """Tuples in runs of one level, or of one sensitive value.

    Attributes:
        starts: Where each run starts.
        runs: The runs; none is empty.
        levels: The level of each.
        values: The sensitive value of each; of a run of one level, that of its first tuple.
    """

    starts: NDArray[np.int64]
    runs: list[slice]
    levels: list[int]
    values: list[int]

    @classmethod
    def of(cls, keys: Codes, levels: Codes, values: Codes) -> Segments:
        """Runs of equal keys; all of shape (tuples,)."""
        starts = np.flatnonzero(np.diff(keys, prepend=-1))
        ends = [*starts[1:].tolist(), len(keys)]
        runs = [slice(start, end) for start, end in zip(starts.tolist(), ends, strict=True)]
        return cls(starts, runs, levels[starts].tolist(), values[starts].tolist())

    def least(self, numbers: Floats) -> list[float]:
        """The least of the tuples' numbers in each run."""
        found: list[float] = np.minimum.reduceat(numbers, self.starts).tolist()
        return found


class Pool:
    """The remaining records of a table.

    Attributes:
        count: How many records remain.
        value_counts: Shape (values,): how many of them have each sensitive value.
        level_counts: Shape (levels,): how many have each level.
        of_levels: The stored tuples by level.
        of_values: The stored tuples by sensitive value.
    """

    def __init__(self, codes: Codes, sizes: Sequence[int], values: Codes, levels_of_values: Codes, levels: int) -> None:
        """All records.

        Args:
            codes: Shape (d, n), of the quasi-identifiers.
            sizes: How many codes each quasi-identifier has.
            values: Shape (n,), of the sensitive attribute.
            levels_of_values: Shape (values,), the level of each sensitive value.
            levels: How many there are.
        """
        n = codes.shape[1]
        self._levels_of_values = levels_of_values
        keys = [(values, len(levels_of_values)), *zip(codes, sizes, strict=True)]
        labels, tuples = group(keys)
        rows = np.argsort(labels, kind="stable")
        starts = np.searchsorted(labels[rows], np.arange(tuples))
        first = rows[starts]
        order = np.lexsort((first, values[first], levels_of_values[values[first]]))
        self._rows = rows
        self._next = starts[order]
        self._stop = np.append(starts[1:], n)[order]
        self._values = values[first][order]
        self._packs = _packed(sizes)
        self._places = [_combined(codes, sizes, pack)[first][order] for pack in self._packs]
        self._last_table = np.empty(math.prod(sizes[a] for a in self._packs[-1]) + 1)
        self._buffers = np.empty(tuples), np.empty(tuples)
        self._used = 0
        self.count = n
        self.value_counts = np.bincount(values, minlength=len(levels_of_values))
        self.level_counts = np.bincount(levels_of_values[values], minlength=levels)
        self._find_segments()

    @property
    def tuples(self) -> int:
        """How many tuples are stored."""
        return len(self._next)

    def sums(self, tables: Sequence[Floats], used_up: float) -> Floats:
        """The sum over attributes of a number for each tuple.

        Args:
            tables: By attribute, the number of each value.
            used_up: The number of tuples that no longer have records.

        Returns:
            Shape (tuples,): a buffer that the next call uses again.
        """
        sums, terms = (buffer[: self.tuples] for buffer in self._buffers)
        last = len(self._packs) - 1
        for number, (pack, places) in enumerate(zip(self._packs, self._places, strict=True)):
            table = tables[pack[0]]
            for attribute in pack[1:]:
                table = (table[:, None] + tables[attribute]).reshape(-1)
            if number == last:
                self._last_table[:-1] = table
                self._last_table[-1] = used_up
                table = self._last_table
            table.take(places, out=terms if number else sums, mode="clip")
            if number:
                sums += terms
        return sums

    def first(self, positions: NDArray[np.int64]) -> int:
        """Of some tuples that have records, the one of the lowest remaining row."""
        return int(positions[self._rows[self._next[positions]].argmin()])

    def take(self, position: int) -> int:
        """Takes the lowest row of a tuple; positions hold until `compact`."""
        row, value = int(self._rows[self._next[position]]), self._values[position]
        self._next[position] += 1
        if self._next[position] == self._stop[position]:
            self._places[-1][position] = len(self._last_table) - 1  # the place of what is used up
            self._used += 1
        self.count -= 1
        self.value_counts[value] -= 1
        self.level_counts[self._levels_of_values[value]] -= 1
        return row

    def compact(self) -> None:
        """Drops tuples that are used up, when there are many."""
        if self.tuples - self._used >= _COMPACT_BELOW * self.tuples:
            return
        keep = np.flatnonzero(self._next < self._stop)
        self._next, self._stop, self._values = self._next[keep], self._stop[keep], self._values[keep]
        self._places = [places[keep] for places in self._places]
        self._used = 0
        self._find_segments()

    def rest(self) -> NDArray[np.int64]:
        """The rows that remain, ascending; shape (count,)."""
        spans = [self._rows[a:b] for a, b in zip(self._next, self._stop, strict=True) if a < b]
        return np.sort(np.concatenate(spans)) if spans else np.empty(0, np.int64)

    def _find_segments(self) -> None:
        levels = self._levels_of_values[self._values]
        self.of_levels = Segments.of(levels, levels, self._values)
        self.of_values = Segments.of(self._values, levels, self._values)


def _packed(sizes: Sequence[int]) -> list[list[int]]:
    """Attributes in packs of few combinations, by first fit of the largest; the last pack has the fewest."""
    packs: list[list[int]] = []
    combinations: list[int] = []
    for attribute in sorted(range(len(sizes)), key=lambda a: -sizes[a]):
        fitting = [i for i, number in enumerate(combinations) if number * sizes[attribute] <= _COMBINATIONS]
        if fitting:
            packs[fitting[0]].append(attribute)
            combinations[fitting[0]] *= sizes[attribute]
        else:
            packs.append([attribute])
            combinations.append(sizes[attribute])
    return [packs[i] for i in np.argsort(combinations)[::-1]]


def _combined(codes: Codes, sizes: Sequence[int], pack: Sequence[int]) -> NDArray[np.int64]:
    """Shape (n,): where a record is in the table of the combinations of a pack."""
    places = np.zeros(codes.shape[1], np.int64)
    for attribute in pack:
        places = places * sizes[attribute] + codes[attribute]
    return places
