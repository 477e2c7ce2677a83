"""Recursive (c, l)-diversity: r_1 < c·(r_l + … + r_m), where r_1 ≥ … ≥ r_m are the rows of a class with each value.

    1. the values' counts meet in a tournament: of a pair the larger one goes on, the smaller one stays behind. What is
       left is r_1. Those that stayed behind meet in the next one, whose winner is r_2, and so on up to r_{l−1}
    2. r_1 is compared with c·(N_c − r_1 − … − r_{l−1}), c being replaced by a fraction of whole numbers up to N that
       compares alike

Rounds:     (l − 1)·⌈log2 m⌉ times those of a comparison and a selection, and those of a comparison.
Leakage:    none but sizes.
Source:     Machanavajjhala et al., "l-Diversity", ICDE 2006, definition 4.2; Knuth, The Art of Computer Programming,
            vol. 3, section 5.2.3 (selection by tournaments).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

from anonymize.models import RecursiveDiversity
from anonymize.models.rationals import exact
from crypto.primitives.shares.additive import AdditiveShare
from crypto.primitives.shares.xor import XorShare
from crypto.protocols.comparison.argmin import select
from crypto.protocols.comparison.comparison import at_least, width_for
from crypto.protocols.comparison.two_party import TwoParty
from link.session import Session
from mining.joint.anonymisation.conditions.bits import joined
from mining.joint.anonymisation.conditions.share_limits import largest_fraction, least_fraction_above
from mining.joint.anonymisation.conditions.value_counts import ValueCounts, constant_bits, exact_width, parted


@dataclass(frozen=True, eq=False)
class TailTest:
    """That the most frequent value has few rows, compared with all but the most frequent ones together.

    Attributes:
        n_rows: N, of all parties.
        leading: l − 1: the values that the tail leaves out.
        head_times: v in v·r_1 ≤ u·tail.
        tail_times: u.
    """

    n_rows: int
    leading: int
    head_times: int
    tail_times: int

    def __post_init__(self) -> None:
        exact_width(self._largest)

    async def bits(self, session: Session, parties: TwoParty, counts: ValueCounts) -> XorShare:
        """See `ClassTest`."""
        if counts.values <= self.leading:
            return constant_bits(parties, counts.classes, met=False)
        columns = [counts.of(value) for value in range(counts.values)]
        first, *others = await largest_counts(session.lane("largest"), parties, columns, self.leading, self.n_rows)
        tail = counts.sizes - first
        for each in others:
            tail = tail - each
        slack = tail.times_public(self.tail_times) - first.times_public(self.head_times)
        return await at_least(session.lane("tail"), parties, slack, 0, exact_width(self._largest))

    @property
    def _largest(self) -> int:
        """What neither side of the comparison exceeds."""
        return max(self.head_times, self.tail_times) * self.n_rows


def tail_test(model: RecursiveDiversity, n_rows: int) -> TailTest:
    """The test of recursive diversity with l of at least 2.

    r_1 and the tail are at most N and r_1 is not 0, so r_1 / tail < c holds exactly where it is at most the largest
    such fraction below c; of c above 1 the inverse is taken, so that both coefficients are at most N.

    Args:
        model: Its c is above 0.
        n_rows: N, of all parties.
    """
    c = exact(model.c, "c")
    if c <= 1:
        limit = largest_fraction(c, n_rows, below=True)
        return TailTest(n_rows, model.l - 1, limit.denominator, limit.numerator)
    least = least_fraction_above(Fraction(1) / c, n_rows)
    return TailTest(n_rows, model.l - 1, least.numerator, least.denominator)


async def largest_counts(
    session: Session, parties: TwoParty, columns: Sequence[AdditiveShare], number: int, largest: int
) -> list[AdditiveShare]:
    """Shares of the largest of each row, the second largest, and so on; both holders call this.

    Args:
        session: A lane of its own.
        parties: This party's half of the agreement with the other.
        columns: Of equal length, modulo 2^64.
        number: How many are asked for, at most as many as there are columns.
        largest: No number exceeds it.
    """
    found, rest = list[AdditiveShare](), list(columns)
    for place in range(number):
        winner, rest = await _tournament(session.lane(f"{place}"), parties, rest, width_for(largest))
        found.append(winner)
    return found


async def _tournament(
    session: Session, parties: TwoParty, columns: list[AdditiveShare], width: int
) -> tuple[AdditiveShare, list[AdditiveShare]]:
    """The largest of each row, and what is left without it, in no order."""
    left, behind, number = columns, list[AdditiveShare](), 0
    while len(left) > 1:
        lane, pairs, rows = session.lane(f"round {number}"), len(left) // 2, left[0].size
        one, other = joined(left[:pairs]), joined(left[pairs : 2 * pairs])
        greater = await at_least(lane.lane("comparison"), parties, one - other, 0, width)
        more = await select(lane.lane("selection"), parties, greater, one - other)
        behind += parted(one - more, rows)
        left = [*parted(other + more, rows), *left[2 * pairs :]]
        number += 1
    return left[0], behind
