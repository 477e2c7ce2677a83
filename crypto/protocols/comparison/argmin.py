"""The position of the least of k shared numbers, row by row; nothing else of the numbers comes out.

Every number gets its position behind it, v_j = 2^b·s_j + j with b = ⌈log2 k⌉, so that no two of a row are equal and of
equal numbers the first is the least. Pairs then meet in a tournament:

    1. [v_i ≥ v_j] is compared, as a shared bit.                    (`comparison`)
    2. v_i − [v_i ≥ v_j]·(v_i − v_j) goes on: the smaller one.      (`select`)

and so on with half as many. What is left modulo 2^b is the position. The last choice is therefore made with the lowest
b bits alone, moved to the top of a short word: opening that opens a position and no bit more.

`select` multiplies a shared bit β = β₀ ⊕ β₁ by a shared number x₀ + x₁: β·x₀ = β₀·x₀ + (1 − 2·β₀)·x₀·β₁, and β·x₁
likewise, are one correlated transfer each.

Rounds: for each of the ⌈log2 k⌉ rounds of the tournament those of a comparison, and 2.
Output: additive shares of the positions, in the top b bits of a word.
Bytes a row: k − 1 comparisons at the width of the numbers and b more bits; k − 2 selections of 16/k + 8 from each
    holder (k here that of the extension), and one in the short word.
Adversary: semi-honest, private against either holder. Leakage: sizes, k, and the width.

Source: the tournament as in Knuth, The Art of Computer Programming, vol. 3, section 5.2.3; Rathee et al., "CrypTFlow2",
CCS 2020, section 3.1.1 and appendix A.1 (multiplexer by two transfers); comparisons and transfers in their modules.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from crypto.primitives.bit_matrix import unpack_bits
from crypto.primitives.shares.additive import AdditiveShare
from crypto.primitives.shares.masks import Words
from crypto.primitives.shares.xor import XorShare
from crypto.protocols.comparison.comparison import at_least
from crypto.protocols.comparison.shared_bits import check_two_party, open_values
from crypto.protocols.comparison.two_party import TwoParty, beside
from crypto.protocols.transfers.ot_extension import receive_correlated, send_correlated
from link.session import Session

BLOCK: Final = 1 << 20  # selections: what a block keeps stays below 100 MB
MAX_CANDIDATES: Final = 1 << 16


def position_bits(candidates: int) -> int:
    """b: the bits of a position among so many."""
    return (candidates - 1).bit_length()


def position_word(candidates: int) -> type[np.unsignedinteger[Any]]:
    """The word in which a position is shared."""
    return np.uint8 if position_bits(candidates) <= 8 else np.uint16


def width_for(largest_difference: int, candidates: int) -> int:
    """Bits of the comparisons, where no two numbers of a row differ by more than this public bound.

    Raises:
        ValueError: They do not fit into 64.
    """
    width = ((largest_difference + 1) << position_bits(candidates)).bit_length() + 1
    if width > 64:
        raise ValueError("the numbers are too far apart: with their positions, differences do not fit into 64 bits")
    return max(2, width)


async def argmin(
    session: Session, parties: TwoParty, numbers: Sequence[AdditiveShare], largest_difference: int
) -> AdditiveShare:
    """Shares of the position of the least number of each row; both holders call this.

    Args:
        session: The lane to use, fresh for this call.
        parties: This party's half of the agreement with the other.
        numbers: One or more columns of equal length, modulo 2^64, of both parties' holders.
        largest_difference: No two numbers of a row differ by more, public; else the position is wrong.

    Returns:
        Shape (rows,), in the top b bits of `position_word`; for `open_positions`.

    Raises:
        TypeError: The shares are of other holders, or in shorter words.
        MalformedMessage: The peer's messages have another size.
    """
    check_two_party(parties, *numbers)
    if not 1 <= len(numbers) <= MAX_CANDIDATES or len({column.size for column in numbers}) != 1:
        raise ValueError(f"the least is looked for among 1 to {MAX_CANDIDATES} columns of equal length")
    if any(column.word is not np.uint64 for column in numbers):
        raise TypeError("numbers are compared in shares modulo 2^64")
    bits, width = position_bits(len(numbers)), width_for(largest_difference, len(numbers))
    left = [column.times_public(1 << bits).plus_public(place) for place, column in enumerate(numbers)]
    number = 0
    while len(left) > 2:
        lane, paired = session.lane(f"round {number}"), len(left) // 2 * 2
        one, other = _joined(left[0:paired:2]), _joined(left[1:paired:2])
        greater = await at_least(lane.lane("comparison"), parties, one - other, 0, width)
        smaller = one - await select(lane.lane("selection"), parties, greater, one - other)
        left = [*_parted(smaller, paired // 2), *left[paired:]]
        number += 1
    places = [_top(each, bits, len(numbers)) for each in left]
    if len(left) == 1:
        return places[0]
    lane = session.lane(f"round {number}")
    greater = await at_least(lane.lane("comparison"), parties, left[0] - left[1], 0, width)
    return places[0] - await select(lane.lane("selection"), parties, greater, places[0] - places[1])


async def open_positions(
    session: Session,
    share: AdditiveShare | None,
    *,
    label: str,
    holders: Sequence[str],
    number: int,
    candidates: int,
    to: Sequence[str] | None = None,
) -> NDArray[np.int64] | None:
    """Opens positions that `argmin` has found; holders and receivers call this.

    Args:
        session: The lane to use.
        share: This party's share, None where it holds none.
        label: A label of the job's statement, for at least `number` values per receiver.
        holders: All holders of shares.
        number: How many rows; public.
        candidates: How many numbers a row had; public.
        to: The receivers; all parties by default.

    Returns:
        Shape (number,); None to a party that is no receiver. Holders who deviate can make a position that there is not.

    Raises:
        UndeclaredDisclosure: The statement does not name the label, a receiver or enough values; nothing has left.
        MalformedMessage: A holder opens something of another size.
    """
    word, bits = position_word(candidates), position_bits(candidates)
    opened = await open_values(session, share, label=label, holders=holders, number=number, word=word, to=to)
    if opened is None:
        return None
    return opened.astype(np.int64) >> (8 * np.dtype(word).itemsize - bits)


async def select(session: Session, parties: TwoParty, bits: XorShare, numbers: AdditiveShare) -> AdditiveShare:
    """Shares of the numbers whose bit is set, and of 0 for the others; both holders call this.

    Args:
        session: The lane to use, fresh for this call.
        parties: This party's half of the agreement with the other.
        bits: Words of one bit, of both parties' holders.
        numbers: One a bit.

    Returns:
        In the word of `numbers`.

    Raises:
        TypeError: The shares are of other holders.
        MalformedMessage: The peer's messages have another size.
    """
    check_two_party(parties, bits, numbers)
    if (bits.number, bits.width) != (numbers.size, 1):
        raise ValueError(f"{bits} does not select from {numbers}")
    own = unpack_bits(bits.planes, bits.number)[0]
    product = numbers.values * own.astype(numbers.word)
    correlations = numbers.values - 2 * product
    sending, receiving = session.lane(f"from {parties.me}"), session.lane(f"from {parties.peer}")

    async def send(some: slice) -> Words:
        sender = await parties.sending(sending)
        return await send_correlated(sending, parties.peer, sender, correlations[some])

    async def receive(some: slice) -> Words:
        receiver = await parties.receiving(receiving)
        return await receive_correlated(receiving, parties.peer, receiver, own[some], numbers.word)

    for start in range(0, numbers.size, BLOCK):
        some = slice(start, start + BLOCK)
        kept, got = await beside(send(some), receive(some))
        product[some] += got - kept
    return AdditiveShare(product, parties.me, parties.holders)


def _top(numbers: AdditiveShare, bits: int, candidates: int) -> AdditiveShare:
    """The lowest bits of shared numbers, at the top of a short word: exact, as shares modulo 2^64 are modulo 2^b."""
    word = position_word(candidates)
    values = numbers.values.astype(word) << word(8 * np.dtype(word).itemsize - bits) if bits else 0 * numbers.values
    return AdditiveShare(values.astype(word), numbers.holder, numbers.holders)


def _joined(columns: Sequence[AdditiveShare]) -> AdditiveShare:
    first = columns[0]
    return AdditiveShare(np.concatenate([column.values for column in columns]), first.holder, first.holders)


def _parted(column: AdditiveShare, number: int) -> list[AdditiveShare]:
    return [AdditiveShare(part, column.holder, column.holders) for part in np.split(column.values, number)]
