"""Rows put into groups of given sizes by chance, where they lie: nobody keeps or sends a list of rows.

Each row has a secret random number of 64 bits, a word of a keystream, and the groups are cut at some of these numbers:
so they are those of a uniform permutation of all rows, cut at the groups' sizes. The node finds the cuts, and draws the
numbers of some rows at a time for that; whoever holds some rows and the key draws the numbers of these again. They
depend on the rows' own places alone, and not on how the rows are cut into blocks.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Final

import numpy as np
from numpy.typing import NDArray

from link.randomness import RandomStream
from mining.partitioned.noise_key import NoiseKey

SEGMENT: Final = 1 << 18  # rows whose numbers are one stream's
_BITS: Final = 20  # by how many leading bits many numbers are counted

Numbers = NDArray[np.uint64]


@dataclass(frozen=True, eq=False, slots=True)
class RandomGroups:
    """Which row is in which group; picklable.

    Attributes:
        key: Secret; of the rows' numbers, and used for nothing else.
        cuts: Ascending: the least number of each group but the first, of as many groups as any row is in.
    """

    key: NoiseKey = field(repr=False)
    cuts: Numbers = field(repr=False)

    @classmethod
    def drawn(cls, sizes: Sequence[int], random: RandomStream) -> RandomGroups:
        """Groups of these sizes, of as many rows as these have together.

        Args:
            sizes: Of each group.
            random: The source of randomness.
        """
        ends = np.cumsum(np.asarray(sizes, np.int64))
        n_rows = int(ends[-1])
        ranks = ends[:-1][ends[:-1] < n_rows]
        while True:  # until the rows on both sides of each cut have different numbers: nearly always at once
            key = NoiseKey.drawn(random)
            cuts = _cuts(key, n_rows, ranks)
            if cuts is not None:
                return cls(key, cuts)

    def of(self, first: int, n_rows: int) -> NDArray[np.int64]:
        """The groups of some rows.

        Args:
            first: The number of the first of them among all rows.
            n_rows: How many.

        Returns:
            Shape (n_rows,).
        """
        found = [np.searchsorted(self.cuts, each, side="right") for each in numbers_of(self.key, first, n_rows)]
        return np.concatenate([np.empty(0, np.int64), *found])


def numbers_of(key: NoiseKey, first: int, n_rows: int) -> Iterator[Numbers]:
    """The numbers of some rows, those of a segment at a time."""
    start, end = first, first + n_rows
    while start < end:
        segment = start // SEGMENT
        begin, stop = segment * SEGMENT, min((segment + 1) * SEGMENT, end)
        yield key.stream("rows", segment).uint64(stop - begin)[start - begin :]
        start = stop


def _cuts(key: NoiseKey, n_rows: int, ranks: NDArray[np.int64]) -> Numbers | None:
    """The numbers that have so many smaller ones; None where one of them is there twice.

    Args:
        key: Of the numbers.
        n_rows: How many there are.
        ranks: Ascending, each from 0 to n_rows - 1; of rank 0 it is 0, whatever there is.
    """
    bits = min(_BITS, max(1, n_rows.bit_length()))
    shift, counts = np.uint64(64 - bits), np.zeros(1 << bits, np.int64)
    for numbers in numbers_of(key, 0, n_rows):
        counts += np.bincount((numbers >> shift).view(np.int64), minlength=len(counts))
    ends = np.cumsum(counts)
    places = np.searchsorted(ends, ranks, side="right")
    wanted = np.zeros(len(counts), bool)
    wanted[places] = True
    kept = [numbers[wanted[(numbers >> shift).view(np.int64)]] for numbers in numbers_of(key, 0, n_rows)]
    near = np.sort(np.concatenate([np.empty(0, np.uint64), *kept]))
    before = np.cumsum(np.where(wanted, counts, 0)) - counts  # of the kept ones, in a wanted place
    at = before[places] + ranks - (ends - counts)[places]
    cuts = np.where(ranks > 0, near[at], np.uint64(0)) if len(ranks) else np.empty(0, np.uint64)
    inner = (ranks > 0) & (at > 0)
    return None if (near[at[inner]] == near[at[inner] - 1]).any() else cuts
