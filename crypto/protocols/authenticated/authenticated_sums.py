"""Which sums of all parties' numbers reach a public threshold, decided between two of whom one may deviate.

    1  deal      every party's numbers become authenticated bits of the two, bit by bit (`inputs`)
    2  triples   meanwhile the two make as many AND triples as the circuits take (`and_triples`)
    3  circuits  they take the sums, compare them with the threshold, and each number with its dealer's limit
                 (`circuits`): an AND of a layer opens two bits under those of a triple
    4  check     they compare what both have alike of all that has been opened, then of the numbers above their limits:
                 there must be none (`checks`)
    5  open      sums, or whether they reach the threshold, which both open to each other and check; then both say to
                 other receivers what it is

Steps 1 to 4 are `decided` and, of numbers without limits, `summed`; their outputs are right, and may be opened at any
time after. Nothing that depends on a number leaves before step 4 is through.

Rounds: 1, 6, one a step of the circuits, and 3; to open 3, and 1 to others. Bytes: `costs`.

Output: authenticated shares at the two.
Adversary: malicious with abort, one of the two together with any parties that do not compute. Honest parties get the
    sums of the numbers that were dealt, or an error, but with probability 2^-40 a block.
Collusion: the two together can compute all parties' numbers.
Leakage: sizes.

Source: Wang, Ranellucci and Katz, CCS 2017 (authenticated triples); Nielsen et al., CRYPTO 2012, section 3 (evaluation,
with triples as of Beaver, CRYPTO 1991); the circuits as of `verified_sums`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from crypto.primitives.bit_matrix import pack_bits, unpack_bits
from crypto.primitives.shares.authenticated import AuthenticatedBits, Bits
from crypto.primitives.shares.xor import planes_of
from crypto.protocols.authenticated.and_triples import Triples, make_triples
from crypto.protocols.authenticated.checks import Witnesses, open_masked, settle
from crypto.protocols.authenticated.correlation import key_of, keyed_pair
from crypto.protocols.authenticated.decisions import decision, decision_planes, total, total_planes
from crypto.protocols.authenticated.inputs import Bound, bound, deal, hashes_compared, taken
from crypto.protocols.comparison.two_party import TwoParty
from crypto.protocols.replicated.circuits import Circuit, side_by_side
from crypto.protocols.replicated.crosschecks import contradiction
from link.errors import ProtocolViolation
from link.session import Session
from link.tasks import together

ANDS: Final = 1 << 20  # of a block: so many take buckets of three, and what is kept of them stays below 300 MB

Shares = Sequence[AuthenticatedBits]


class Keyed:
    """A computing party's half of what the two agree upon; its key is made when it is first used.

    Attributes:
        pair: The agreement.
    """

    __slots__ = ("_key", "_session", "pair")

    def __init__(self, session: Session, holders: tuple[str, str]) -> None:
        """Agrees upon nothing yet.

        Args:
            session: The lane to agree on, fresh for this object.
            holders: The two computing parties, this one among them, in the same order at both.
        """
        self.pair: Final[TwoParty] = keyed_pair(session.lane("agreement"), holders)
        self._session = session.lane("key")
        self._key: np.uint64 | None = None

    async def key(self) -> np.uint64:
        """This party's key."""
        if self._key is None:
            await self.pair.prepare()
            self._key = await key_of(self.pair, self._session)
        return self._key


@dataclass(frozen=True, slots=True, repr=False)
class Decided:
    """What the two hold of a batch of numbers.

    Attributes:
        sums: Of each number, its width in planes.
        reached: One plane: whether the sum reaches the threshold.
    """

    sums: AuthenticatedBits
    reached: AuthenticatedBits


async def summed(
    session: Session, keyed: Keyed | None, values: NDArray[np.uint64], holders: tuple[str, str], width: int
) -> tuple[AuthenticatedBits, list[AuthenticatedBits]] | None:
    """The sums of all parties' numbers, and the numbers; every party of the job calls this.

    Args:
        session: The lane to use, fresh for this call.
        keyed: At the two, their agreement.
        values: Shape (m,), this party's, below 2^width; m is public, equal at all parties, and small.
        holders: The two computing parties, in the same order at all parties.
        width: Bits of a number; public.

    Returns:
        Shares of the sums, of `sum_width` bits, and of each party's numbers in the order of the job; None to a party
        that does not compute.

    Raises:
        ProtocolViolation: A party deviates.
        MalformedMessage: A party's message has another size.
    """
    gates = total_planes(len(session.parties), width)
    found = await _checked(session, keyed, _bits_of(values, width), holders, [], total, gates)
    if found is None:
        return None
    (of_all,), numbers = found
    return of_all, numbers


async def decided(
    session: Session,
    keyed: Keyed | None,
    values: NDArray[np.uint64],
    holders: tuple[str, str],
    limits: list[AuthenticatedBits] | None,
    threshold: int,
    width: int,
) -> Decided | None:
    """Whether the sums of all parties' numbers reach a threshold; every party of the job calls this.

    Args:
        session: The lane to use, fresh for this call.
        keyed: As of `summed`.
        values: Shape (m,), this party's, m ≥ 1; no number above this party's limit.
        holders: As of `summed`.
        limits: At one of the two, shares of one number for each party in the order of the job. They add up to less than
            2^width, so that no sum of numbers within them is too large.
        threshold: From 0 to 2^width − 1, public.
        width: Two or more, public.

    Returns:
        None to a party that does not compute.

    Raises:
        ProtocolViolation: A party deviates, or its number is above its limit.
        MalformedMessage: A party's message has another size.
    """
    bits, parts = await session.compute(_bits_of, values, width), []
    for place, part in enumerate(blocks(len(values), len(session.parties), width)):
        number = part.stop - part.start

        def build(numbers: Shares, limits: Shares) -> list[Circuit[AuthenticatedBits, Any]]:
            return decision(numbers, limits, threshold)

        spread = [] if limits is None else [each.bits(slice(0, width)).spread(number) for each in limits]
        gates = decision_planes(len(session.parties), width)
        lane = session.lane(f"block {place}")
        found = await _checked(lane, keyed, bits[:, part], holders, spread, build, gates, limited=True)
        if found is not None:
            parts.append(Decided(*found[0][0]))
    if not parts:
        return None
    return Decided(
        AuthenticatedBits.joined([part.sums for part in parts]),
        AuthenticatedBits.joined([part.reached for part in parts]),
    )


async def opened(
    session: Session,
    keyed: Keyed | None,
    share: AuthenticatedBits | None,
    *,
    label: str,
    holders: tuple[str, str],
    number: int,
    width: int,
    to: Sequence[str],
) -> Bits | None:
    """Opens words under a label of the statement; holders and receivers call this.

    Args:
        session: The lane to use, fresh for this call.
        keyed: As of `summed`.
        share: This party's share of `number` words; None where it holds none.
        label: A label of the job's statement, for at least `number` values per receiver.
        holders: The two computing parties.
        number: How many words; public.
        width: Bits of a word; public.
        to: The receivers, both computing parties among them.

    Returns:
        Planes, packed, shape (width, ⌈number / 8⌉); None to a party that is no receiver.

    Raises:
        UndeclaredDisclosure: The statement does not name the label, a receiver or enough values; nothing has left.
        ProtocolViolation: A computing party opens another share than its own, or the two say different things.
        MalformedMessage: A computing party opens something of another size.
    """
    shape, outsiders = (width, -(-number // 8)), [name for name in to if name not in holders]
    if share is not None and keyed is not None:
        pair, witnesses = keyed.pair, Witnesses()
        await session.open(label, pack_bits(share.values), [pair.peer], number=number)
        theirs = await session.receive_opened(pair.peer, label, np.uint8, shape, number=number)
        bits = share.values ^ unpack_bits(theirs, number)
        witnesses.add(share.witness(bits))
        await settle(session.lane("check"), pair, witnesses)
        planes = pack_bits(bits)
        await session.open(label, planes, outsiders, number=number)
        return planes
    if session.me not in to:
        return None
    one, other = [await session.receive_opened(holder, label, np.uint8, shape, number=number) for holder in holders]
    if not np.array_equal(one, other):
        raise contradiction(*holders, "what is opened")
    return one


def blocks(number: int, parties: int, width: int) -> list[slice]:
    """The numbers of each block, which takes `ANDS` or a little more, the last one fewer."""
    size = -(-ANDS // sum(decision_planes(parties, width)))
    return [slice(start, min(start + size, number)) for start in range(0, number, size)]


async def _checked(
    session: Session,
    keyed: Keyed | None,
    bits: Bits,
    holders: tuple[str, str],
    limits: Shares,
    build: Callable[[Shares, Shares], list[Circuit[AuthenticatedBits, Any]]],
    gates: Sequence[int],
    *,
    limited: bool = False,
) -> tuple[list[Any], list[AuthenticatedBits]] | None:
    """Deals numbers, evaluates circuits of them and checks all that was opened.

    Args:
        session: The lane to use, fresh for this call.
        keyed: As of `summed`.
        bits: This party's numbers, shape (width, number).
        holders: As of `summed`.
        limits: Shares of what else the circuits take.
        build: The circuits, of all parties' numbers in the order of the job and of the limits.
        gates: Planes of ANDs of the circuits side by side, step by step.
        limited: Whether the last circuit gives a plane for each party of which no bit may be 1: numbers above limits.

    Returns:
        The circuits' outputs, which are right, and each party's numbers; None to a party that does not compute.

    Raises:
        ProtocolViolation: A party deviates, or its number is above its limit.
        MalformedMessage: A party's message has another size.
    """
    if keyed is None:
        await deal(session.lane("deal"), bits, holders)
        return None
    pair, key, witnesses = keyed.pair, await keyed.key(), Witnesses()

    async def numbers_bound() -> tuple[Bound, list[NDArray[np.uint64]]]:
        dealt = await taken(session.lane("deal"), pair, bits.size)
        of = await bound(session.lane("inputs"), pair, key, bits, dealt)
        return of, await hashes_compared(session.lane("hashes"), pair, of)

    made: list[Any] = await together(
        [numbers_bound(), make_triples(session.lane("triples"), pair, key, witnesses, bits.shape[1] * sum(gates))]
    )
    (of, hashed), triples = made
    for witness in hashed:
        witnesses.add(witness)
    circuits = build(of.shares, limits)
    outputs = await _evaluated(session.lane("ands"), pair, side_by_side(circuits), triples, witnesses)
    beyond = [outputs[-1].bits(slice(place, place + 1)) for place in range(len(of.shares))] if limited else []
    found = await settle(session.lane("check"), pair, witnesses, beyond)
    for dealer, within in zip(session.parties, found, strict=False):
        if not within:
            raise _too_high(pair, dealer)
    return outputs, of.shares


async def _evaluated(
    session: Session,
    pair: TwoParty,
    circuit: Circuit[AuthenticatedBits, list[Any]],
    triples: Triples,
    witnesses: Witnesses,
) -> list[Any]:
    """The circuits' outputs; their ANDs are right if the openings are."""
    try:
        x, y = next(circuit)
        while True:
            a, b, c = triples.take(x.width, x.number)
            masked = AuthenticatedBits.stacked([x ^ a, y ^ b])
            of_x, of_y = np.split(await open_masked(session, pair, masked, witnesses), 2)
            ands = (c ^ b.times_public(of_x) ^ a.times_public(of_y)).plus_public(of_x & of_y)
            x, y = circuit.send(ands)
    except StopIteration as end:
        outputs: list[Any] = end.value
        return outputs


def _too_high(pair: TwoParty, dealer: str) -> ProtocolViolation:
    """A count is above its dealer's number of rows, or the peer says so of one that is not."""
    if dealer == pair.peer:
        return ProtocolViolation(
            f"{dealer} has dealt a count that is above its number of rows; its node must be checked", party=dealer
        )
    if dealer == pair.me:
        return ProtocolViolation(
            f"{pair.peer} makes a count of {dealer} appear above its number of rows; its node must be checked",
            party=pair.peer,
        )
    return ProtocolViolation(
        f"{dealer} has dealt a count that is above its number of rows, or {pair.peer} makes it appear so; one of these "
        "two nodes deviates"
    )


def _bits_of(values: NDArray[np.uint64], width: int) -> Bits:
    return unpack_bits(planes_of(values, width), len(values))
