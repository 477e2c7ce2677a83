"""What a union by prefixes sends and computes; see `prefix_union`."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations
from math import exp, expm1, log1p
from typing import Final

from crypto.primitives.unordered_code import word_bits
from crypto.protocols.sums.costs import maximum_traffic
from crypto.protocols.transfers.costs import rows_traffic, seeds_traffic
from crypto.protocols.transfers.ot_extension import batches
from crypto.protocols.union.limits import longest_allowed
from crypto.protocols.union.prefixes import DENSE_BITS, FIRST_BITS, IN_USE, LIMITS, SPARSE_BITS
from crypto.protocols.union.prefixes import MOST_BITS as MOST_POINT_BITS
from crypto.protocols.union.shared_or import MOST_BITS
from link.traffic import Traffic

_ALIKE: Final = 0.5  # a guess: the chance that all elements under a prefix have one length


@dataclass(frozen=True)
class AskedBits:
    """What the costs of a union depend on.

    Attributes:
        questions: How many bits each question asks for; none of them is 0.
        elements: Elements of the union.
    """

    questions: tuple[int, ...]
    elements: int

    @property
    def total(self) -> int:
        """Bits of all questions."""
        return sum(self.questions)

    @classmethod
    def expected(cls, elements: int, element_bytes: int, max_element_bytes: int) -> AskedBits:
        """As many bits as are asked for on average.

        Args:
            elements: Of the union.
            element_bytes: Of an element, on average.
            max_element_bytes: As given to `prefix_union`.
        """
        bits, asked = FIRST_BITS, [1 << FIRST_BITS]
        in_use, single = _prefixes(elements, bits)
        while in_use * IN_USE > 1 << bits:
            bits += DENSE_BITS
            asked.append(round(in_use) << DENSE_BITS)
            in_use, single = _prefixes(elements, bits)
        length, name = word_bits(longest_allowed(max_element_bytes).bit_length()), word_bits(8 * element_bytes)
        looked_at, known = round(in_use), 0.0
        while looked_at and bits < MOST_POINT_BITS:
            several = in_use - single
            asked += [looked_at * length, round(single - known + several * _ALIKE) * name]
            looked_at, known = round(several) << SPARSE_BITS, single
            bits += SPARSE_BITS
            in_use, single = _prefixes(elements, bits)
        return cls(tuple(number for number in asked if number), elements)


def _prefixes(elements: int, bits: int) -> tuple[float, float]:
    """How many prefixes of so many bits are in use, and how many by one element, on average."""
    others = log1p(-(2.0**-bits))  # the logarithm of the chance that an element is under another
    return -expm1(elements * others) * 2.0**bits, elements * exp(max(0, elements - 1) * others)


def pairs_traffic(traffic: Traffic, agreed: tuple[str, ...] = (), *, both: bool = False) -> None:
    """Enters `shared_or.prepared`, the base transfers between every two parties: 2 rounds, which the caller counts.

    Args:
        traffic: Where it is entered.
        agreed: Two parties that have agreed before.
        both: Whether they agree upon both directions, for what takes more than ORs.
    """
    for first, second in combinations(traffic.parties, 2):
        if {first, second} != set(agreed):
            seeds_traffic(traffic, first, second)
            if both:
                seeds_traffic(traffic, second, first)


def prefix_union_traffic(traffic: Traffic, asked: AskedBits) -> None:
    """Enters `prefix_union`: 1 round, and n + 1 for each question.

    Of two parties the second asks on while its share is on its way to the first: 2 for each question, and 1.
    """
    parties = traffic.parties
    two = len(parties) == 2
    maximum_traffic(traffic, LIMITS)
    for question in asked.questions:
        parts = -(-question // MOST_BITS)
        taken = batches(question)
        choices = sum(taken) // 8
        for sender, receiver in combinations(parties, 2):
            rows_traffic(traffic, sender, receiver, question)
            traffic.send(sender, receiver, choices, parts)
        for holder in parties:
            traffic.send(holder, parties, -(-question // 8), parts)
        traffic.rounds += parts * (2 if two else len(parties) + 1)
    traffic.rounds += two
