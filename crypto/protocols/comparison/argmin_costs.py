"""What `argmin` and `select` send, and what they work on."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from crypto.protocols.comparison.argmin import BLOCK, position_word, width_for
from crypto.protocols.comparison.costs import comparison_traffic
from crypto.protocols.transfers.costs import correlated_traffic
from link.traffic import Traffic

_WORD_BYTES = 8


@dataclass(frozen=True)
class Tournament:
    """A round of the tournament.

    Attributes:
        pairs: Comparisons, and selections after them, of all rows.
        width: Bits of the comparisons.
        word_bytes: Of the words that are selected.
    """

    pairs: int
    width: int
    word_bytes: int


def tournament(rows: int, candidates: int, largest_difference: int) -> Iterator[Tournament]:
    """The rounds of `argmin`; arguments as there."""
    left = candidates
    while left > 1:
        paired = left // 2
        word_bytes = _WORD_BYTES if left > 2 else np.dtype(position_word(candidates)).itemsize
        yield Tournament(rows * paired, width_for(largest_difference, candidates), word_bytes)
        left -= paired


def argmin_traffic(
    traffic: Traffic, holders: Sequence[str], *, rows: int, candidates: int, largest_difference: int
) -> None:
    """Enters `argmin`; the holders, in the order of the `TwoParty`, have agreed upon seeds before."""
    for each in tournament(rows, candidates, largest_difference):
        comparison_traffic(traffic, holders, number=each.pairs, width=each.width)
        selection_traffic(traffic, holders, number=each.pairs, word_bytes=each.word_bytes)


def selection_traffic(traffic: Traffic, holders: Sequence[str], *, number: int, word_bytes: int) -> None:
    """Enters `argmin.select` among so many numbers in words of so many bytes; holders as for `argmin_traffic`."""
    first, second = holders
    for start in range(0, number, BLOCK):
        some = min(BLOCK, number - start)
        for sender, receiver in ((first, second), (second, first)):
            correlated_traffic(traffic, sender, receiver, some, word_bytes)
        traffic.rounds += 2
