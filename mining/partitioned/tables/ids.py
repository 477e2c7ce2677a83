"""The ids of rows that lie in blocks: read block by block, by whoever asks for them, and never all in memory."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Sequence
from typing import overload

from mining.data.row_ids import IdNormalisation, Ids, RowIds
from mining.data.tables import Table
from mining.partitioned.runner import first_rows


class StoredIds(Ids):
    """The ids of rows in blocks, as `RowIds` are in memory. The block that was read last is kept.

    Args:
        blocks: Each gives the ids of a block.
        lengths: Rows of each.
        normalisation: What is done to cells first.
    """

    __slots__ = ("_blocks", "_firsts", "_last", "_length", "_normalisation")

    def __init__(
        self, blocks: Sequence[Callable[[], Table]], lengths: Sequence[int], normalisation: IdNormalisation
    ) -> None:
        self._blocks, self._firsts, self._normalisation = blocks, first_rows(lengths), normalisation
        self._length = sum(lengths)
        self._last: tuple[int, RowIds] | None = None

    def __len__(self) -> int:
        return self._length

    @overload
    def __getitem__(self, key: int) -> bytes: ...

    @overload
    def __getitem__(self, key: slice) -> list[bytes]: ...

    def __getitem__(self, key: int | slice) -> bytes | list[bytes]:
        places = range(self._length)[key]
        if isinstance(places, int):
            return self._between(places, places + 1)[0]
        if places.step != 1:
            return [self._between(place, place + 1)[0] for place in places]
        return self._between(places.start, places.stop)

    def empty(self) -> int:
        """How many rows have an empty cell in a column of the id."""
        return sum(self._block(number).empty() for number in range(len(self._blocks)))

    def _between(self, start: int, stop: int) -> list[bytes]:
        found = list[bytes]()
        while start < stop:
            number = bisect_right(self._firsts, start) - 1
            first = self._firsts[number]
            some = self._block(number)[start - first : stop - first]
            found += some
            start += len(some)
        return found

    def _block(self, number: int) -> RowIds:
        """The ids of a block.

        Raises:
            InputDataError: It is missing or damaged.
        """
        last = self._last
        if last is None or last[0] != number:
            self._last = None  # so that never two are in memory
            last = self._last = number, RowIds(self._blocks[number]().ids, self._normalisation)
        return last[1]
