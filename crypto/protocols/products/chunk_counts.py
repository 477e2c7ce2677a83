"""Counts over rows in bytes: chunk by chunk, each of at most 127 rows, whose counts stay below 2^7.

What parties share of a row costs them a byte and not a word that would hold the whole count; `lifting` adds up the
chunks' counts in long words.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray

from crypto.primitives.shares.masks import Words
from crypto.protocols.transfers.vector_transfers import Segment, stretches

CHUNK_ROWS: Final = 127


class ChunkCounts:
    """A party's words of products of columns, added up over chunks as transfers of stretches of rows bring them.

    Attributes:
        words: Shape (products, chunks).
    """

    __slots__ = ("_places", "_starts", "words")

    def __init__(self, rows: int, places: Sequence[int], products: int) -> None:
        """Nothing yet; all must be kept before the words mean something.

        Args:
            rows: Length of the columns.
            places: By the receiver's column of the transfers, the place of its first product.
            products: How many there are.
        """
        self._places = places
        self._starts, total = {}, 0
        for start, stop in stretches(rows):
            self._starts[start] = total
            total += _chunks(stop - start)
        self.words = np.empty((products, total), np.uint8)

    def keep(self, segment: Segment, first: int, words: Words) -> None:
        """Takes words of a segment, as `vector_transfers.Keep`."""
        place, chunk = self._places[segment.column] + first, self._starts[segment.rows[0]]
        sums = _chunk_sums(words)
        self.words[place : place + words.shape[1], chunk : chunk + len(sums)] = sums.T


def number_of_chunks(rows: int) -> int:
    """How many chunks columns of so many rows make."""
    return sum(_chunks(stop - start) for start, stop in stretches(rows))


def _chunks(rows: int) -> int:
    return -(-rows // CHUNK_ROWS)


def _chunk_sums(words: Words) -> NDArray[np.uint8]:
    """Modulo 2^8, shape (chunks, columns). Row t is in chunk t mod their number, which is what adds up fastest."""
    rows, columns = words.shape
    number = _chunks(rows)
    whole = rows // number * number
    sums: NDArray[np.uint8] = np.add.reduce(words[:whole].reshape(-1, number, columns), axis=0, dtype=np.uint8)
    sums[: rows - whole] += words[whole:]
    return sums
