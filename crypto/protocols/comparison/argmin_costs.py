"""What `argmin` sends, and what it works on."""

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
    first, second = holders
    for each in tournament(rows, candidates, largest_difference):
        comparison_traffic(traffic, holders, number=each.pairs, width=each.width)
        for start in range(0, each.pairs, BLOCK):
            number = min(BLOCK, each.pairs - start)
            for sender, receiver in ((first, second), (second, first)):
                correlated_traffic(traffic, sender, receiver, number, each.word_bytes)
            traffic.rounds += 2
