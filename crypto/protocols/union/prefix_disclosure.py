"""What a union by prefixes reveals to whom: its lines of the job's statement, as data."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from crypto.primitives.unordered_code import word_bits
from crypto.protocols.sums import masked_maximum
from crypto.protocols.union.limits import longest_allowed
from crypto.protocols.union.prefixes import DENSE_BITS, FIRST_BITS, LIMITS, SPARSE_BITS
from crypto.protocols.union.size_classes import SETS
from link.disclosure import Declared, Learned

PREFIXES: Final = (1 << DENSE_BITS) + 5  # of each element, in step 1: 8 of the last question, and fewer than 5 before
LENGTHS: Final = 6  # that are asked for each element: 1, and of one in eight 32 more, of few of these again
_NAMES: Final = 2
REPEATED: Final = 16  # looks at the last few elements: two meet in all of them with a chance of 2^-80


def most_opened(elements: int, max_element_bytes: int) -> int:
    """The most bits that a union of so many elements opens, but for a chance below 2^-40.

    Args:
        elements: Of the union.
        max_element_bytes: As given to `prefix_union`.
    """
    longest = longest_allowed(max_element_bytes)
    length, name = word_bits(longest.bit_length()), word_bits(8 * longest)
    each = PREFIXES + LENGTHS * length + _NAMES * name
    return (1 << FIRST_BITS) + elements * each + REPEATED * ((length << SPARSE_BITS) + 2 * name)


def declared(
    parties: Sequence[str], elements: int, max_element_bytes: int, label: str = "union", *, unions: int = 1
) -> list[Declared]:
    """The statement's lines for what unions under one label open.

    Args:
        parties: All parties of the job, who all learn the unions.
        elements: The most that each union may hold, such as the sum of the bounds.
        max_element_bytes: As given to `prefix_union`.
        label: As given to `prefix_union`.
        unions: How many there may be.
    """
    what = "the elements of the union of all parties' sets, bit by bit"
    most = unions * most_opened(elements, max_element_bytes)
    return [
        masked_maximum.declared(parties, unions * sum(LIMITS)),
        Declared(label, frozenset(parties), what, most, "in the course of the union"),
    ]


def leakage(parties: Sequence[str], *, bound: int | None = None, limits: bool = True) -> list[Learned]:
    """Who learns what in a union of semi-honest parties, beside the union itself; no group of them learns more.

    Args:
        parties: All parties of the job.
        bound: The job's bound.
        limits: Whether a set may be over a limit; not where all know that none is.
    """
    everyone, two = tuple(parties), len(parties) == 2
    most = SETS.most if bound is None else SETS.rounded(bound)
    whose = "the other has" if two else "some other party, not which one, has"
    lines = []
    if limits:
        what = f"whether {whose} more than {most:,} elements, and whether one that is too long"
        lines.append(Learned(everyone, "size", what))
    if two:
        only = "every element that only the other holds"
        hidden = "the union hides only which of a party's own elements the other holds"
        lines.append(Learned(everyone, "membership", only, f"{only}: {hidden}"))
    return lines
