"""The sum of one number of each party, opened to all by three of whom one may deviate, who keep the numbers' bits.

    1  deal      every party deals its number twice: bit by bit, and as a word that is the sum of three components
                 modulo 2^64. It also deals the carries of that sum (`dealing`)
    2  carries   the three check that either is the same number: with the carries given, one AND a carry, all at once
                 (`verified_ands`). Meanwhile they compare what was dealt
    3  open      each component of the sum of all words is the sum of those of the words: three words are opened
                 (`crosschecks`)

Sums of words need no carries, comparisons need bits. So what is opened is the sum of the very numbers that later serve
as limits (`verified_sums`), and no carry has to wait for another.

For components A, B, C of a word with bits n, and given carries u and v,

    u = maj(A, B, C),    v_{j+1} = maj(s_j, u_{j-1}, v_j) with s = A ⊕ B ⊕ C,    n_j = s_j ⊕ u_{j-1} ⊕ v_j,

where u_{-1}, v_0 and all bits of n beyond its width are 0. A component is a value that two holders know, and so shared.

Rounds: 5. Bytes: `verified_costs.total_traffic`.

Output: the sum, at all parties; replicated shares of the numbers' bits, at the three.
Adversary: malicious with abort, as of `verified_sums`; a dealer of two different numbers is refused by name.
Leakage: the sum.

Source: Mohassel and Rindal, "ABY3", CCS 2018, section 5.3 (three components as values that are shared already, added up
in two steps); that a dealer gives carries and others verify them is a witness in place of a computation.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Any, Final

import numpy as np

from crypto.primitives.shares.masks import Words
from crypto.primitives.shares.replicated import Holders3
from crypto.primitives.shares.replicated_bits import Planes, ReplicatedBits
from crypto.primitives.shares.xor import planes_of, words_of
from crypto.protocols.replicated.circuits import Circuit, planes_by_step
from crypto.protocols.replicated.crosschecks import components
from crypto.protocols.replicated.dealing import Rest
from crypto.protocols.replicated.verified_sums import Refusal, checked, nothing
from crypto.protocols.sums.pairwise import PairwiseSecrets
from link.errors import ProtocolViolation
from link.session import Session

WORD_BITS: Final = 64
WORD_BYTES: Final = WORD_BITS // 8
_CARRIES: Final = WORD_BITS - 1  # of either sort; from the highest place none are asked for
_LANES: Final = 8  # words in the bytes of a plane, of which the first is the number
_CARRIED: Final = np.uint64(2**_CARRIES - 1)
_TOLD: Final = 2 * _CARRIES + WORD_BITS  # planes of each dealer that say whether both forms are of one number


async def opened_total(
    session: Session, secrets: PairwiseSecrets, value: int, holders: Holders3, width: int, *, label: str
) -> tuple[int, list[ReplicatedBits] | None]:
    """Opens the sum of all parties' numbers to all; every party of the job calls this.

    Args:
        session: The lane to use, fresh for this call.
        secrets: From `pairwise.agree` in this session.
        value: This party's number, below 2^width.
        holders: The three computing parties, in the same order at all parties.
        width: Bits of a number, below 64 and such that no sum has more than 64; public.
        label: A label of the job's statement, for one value to all parties.

    Returns:
        The sum; and at one of the three, shares of the bits of each party's number, in the order of the job.

    Raises:
        ProtocolViolation: A party deviates.
        MalformedMessage: A party's message has another size.
        UndeclaredDisclosure: The statement does not name the label; nothing of the sum has left.
    """
    numbers = np.zeros(_LANES, np.uint64)
    numbers[0] = value
    refusal = Refusal("whose number is dealt in two ways", _two_numbers, _TOLD)
    shape, gates = (dealt_of_number(width), 1), total_planes(len(session.parties), width)
    rest = completing(numbers, width)
    found = await checked(session, secrets, shape, rest, holders, [], _compared, gates, refusal, what="numbers")
    held, bits = None, None
    if found is not None:
        _, dealt = found
        words = slice(width, width + WORD_BITS)
        bits = [share.bits(slice(0, width)) for share in dealt]
        held = _added([share.own[words] for share in dealt]), _added([share.following[words] for share in dealt])
    parts = await components(
        session.lane("open"),
        held,
        np.empty(1, np.uint64),
        label=label,
        holders=holders,
        number=1,
        to=session.parties,
    )
    if parts is None:
        raise AssertionError("the sum is opened to all")
    return int((parts[0] + parts[1] + parts[2])[0]), bits


def dealt_of_number(width: int) -> int:
    """Planes that a party deals of a number of so many bits."""
    return width + WORD_BITS + 2 * _CARRIES


@cache
def total_planes(parties: int, width: int) -> tuple[int, ...]:
    """Planes of ANDs, step by step, of so many parties' numbers of so many bits."""
    dealt = nothing(parties, dealt_of_number(width))
    (circuit,) = _compared(dealt, [])
    return tuple(planes_by_step(circuit, dealt[0]))


def completing(numbers: Words, width: int) -> Rest:
    """Components of bits and of carries are completed by XOR, those of words by their sum."""

    def rest(one: Planes, other: Planes) -> Planes:
        words = slice(width, width + WORD_BITS)
        first, second = (words_of(part[words], _LANES) for part in (one, other))
        third = numbers - first - second
        carried = first & second | first & third | second & third
        beneath = numbers ^ first ^ second ^ third ^ carried << np.uint64(1)
        dealt = (
            (numbers, width),
            (third, WORD_BITS),
            (carried & _CARRIED, _CARRIES),
            (beneath >> np.uint64(1), _CARRIES),
        )
        found = np.concatenate([planes_of(each, bits) for each, bits in dealt])
        for place in (slice(0, width), slice(words.stop, None)):
            found[place] ^= one[place] ^ other[place]
        return found

    return rest


def _two_numbers(dealer: str) -> ProtocolViolation:
    return ProtocolViolation(f"{dealer} has dealt two different numbers as one; its node must be checked", party=dealer)


def _compared(dealt: Sequence[ReplicatedBits], _: Sequence[ReplicatedBits]) -> list[Circuit[ReplicatedBits, Any]]:
    return [differences(dealt)]


def differences(dealt: Sequence[ReplicatedBits]) -> Circuit[ReplicatedBits, ReplicatedBits]:
    """Planes that are all zero, `_TOLD` of each dealer, if it has dealt one number and its carries."""
    none, low, one, other, rest = dealt[0].constant(0), slice(0, _CARRIES), [], [], []
    for share in dealt:
        width = share.width - dealt_of_number(0)
        number, word, carried, beneath = (
            share.bits(slice(start, stop))
            for start, stop in (
                (0, width),
                (width, width + WORD_BITS),
                (width + WORD_BITS, width + WORD_BITS + _CARRIES),
                (width + WORD_BITS + _CARRIES, share.width),
            )
        )
        x, y, z = _components(word)
        partial, doubled, arriving = x ^ y ^ z, _stacked([none, carried]), _stacked([none, beneath])
        for (a, b, c), carries in (((x, y, z), carried), ((partial, doubled, arriving), beneath)):
            one.append((a ^ c).bits(low))
            other.append((b ^ c).bits(low))
            rest.append(c.bits(low) ^ carries)
        rest.append(partial ^ doubled ^ arriving ^ _stacked([number, *[none] * (WORD_BITS - width)]))
    ands = yield _stacked(one), _stacked(other)
    for place, start in enumerate(range(0, ands.width, _CARRIES)):
        dealer, sort = divmod(place, 2)
        rest[3 * dealer + sort] = rest[3 * dealer + sort] ^ ands.bits(slice(start, start + _CARRIES))
    return _stacked(rest)


def _components(share: ReplicatedBits) -> list[ReplicatedBits]:
    """Each component as a value of its own, which is shared already: its other two components are zero."""
    place, none = share.holders.index(share.holder), np.zeros_like(share.own)
    return [
        ReplicatedBits(
            share.own if part == place else none,
            share.following if part == (place + 1) % 3 else none,
            share.holder,
            share.holders,
        )
        for part in range(3)
    ]


def _added(words: Sequence[Planes]) -> Words:
    """The sum of the first words of these planes, modulo 2^64, shape (1,)."""
    total: Words = np.sum([words_of(planes, 1) for planes in words], axis=0, dtype=np.uint64)
    return total


_stacked = ReplicatedBits.stacked
