"""Which sums of all parties' numbers reach a public threshold, decided between two of whom one may deviate.

    1  deal      every party's numbers become authenticated bits of the two, bit by bit (`inputs`). Each of the two also
                 proves that its own are not above its limit, and the first that it has added a constant to its own, so
                 that the sums tell whether they reach the threshold (`decisions`, `bit_proofs`)
    2  triples   meanwhile the two make as many AND triples as the circuits take (`and_triples`)
    3  circuits  they take the sums, and compare the numbers of parties that do not compute with these parties' limits
                 (`circuits`): an AND of a layer opens two bits under those of a triple
    4  check     they compare what both have alike of all that has been opened, then of the numbers above their limits:
                 there must be none (`checks`)
    5  open      sums, or whether they reach the threshold, which both open to each other and check; then both say to
                 other receivers what it is

Steps 1 to 4 are `decided` and, of numbers without limits, `summed`; their outputs are right, and may be opened at any
time after. Nothing that depends on a number leaves before step 4 is through.

Rounds: 1, 6, one a step of the circuits, and 2, or 3 with parties that do not compute; to open 3, and 1 to others.
Bytes: `costs`.

Output: authenticated shares at the two.
Adversary: malicious with abort, one of the two together with any parties that do not compute. Honest parties get the
    sums of the numbers that were dealt, or an error, but with probability 2^-40 a block.
Collusion: the two together can compute all parties' numbers.
Leakage: sizes.

Source: Wang, Ranellucci and Katz, CCS 2017 (authenticated triples); Nielsen et al., CRYPTO 2012, section 3 (evaluation,
with triples as of Beaver, CRYPTO 1991); the circuits as of `verified_sums`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from crypto.primitives.bit_matrix import pack_bits, unpack_bits
from crypto.primitives.shares.authenticated import AuthenticatedBits, Bits, Tags
from crypto.primitives.shares.known_bits import KnownBits
from crypto.primitives.shares.xor import planes_of, words_of
from crypto.protocols.authenticated.and_triples import Triples, make_triples
from crypto.protocols.authenticated.bit_proofs import PROOF_MASK_BITS, Relations, Statement, proved
from crypto.protocols.authenticated.checks import Witnesses, open_masked, settle
from crypto.protocols.authenticated.correlation import key_of, keyed_pair
from crypto.protocols.authenticated.decisions import decision_on, decision_planes, total, total_planes
from crypto.protocols.authenticated.inputs import Bound, Numbers, bound, deal, hashes_compared, taken
from crypto.protocols.authenticated.thresholds import Circuits, Threshold
from crypto.protocols.comparison.two_party import TwoParty
from crypto.protocols.replicated.circuits import side_by_side
from crypto.protocols.replicated.crosschecks import contradiction
from link.errors import ProtocolViolation
from link.session import Session
from link.tasks import together

ANDS: Final = 1 << 20  # of a block: so many take buckets of three, and what is kept of them stays below 300 MB
KNOWN_BITS: Final = 1 << 22  # of a block at one of the two, of which it proves relations


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
        sums: What tells the sums, as the decision on a threshold says.
        reached: One plane: whether the sum reaches the threshold.
    """

    sums: AuthenticatedBits
    reached: AuthenticatedBits


async def summed(
    session: Session, keyed: Keyed | None, values: NDArray[np.uint64], holders: tuple[str, str], width: int
) -> tuple[AuthenticatedBits, Numbers] | None:
    """The sums of all parties' numbers, and the numbers; every party of the job calls this.

    Args:
        session: The lane to use, fresh for this call.
        keyed: At the two, their agreement.
        values: Shape (m,), this party's, below 2^width; m is public, equal at all parties, and small.
        holders: The two computing parties, in the same order at all parties.
        width: Bits of a number; public.

    Returns:
        Shares of the sums, of `sum_width` bits, and what this one has of each party's numbers; None to a party that
        does not compute.

    Raises:
        ProtocolViolation: A party deviates.
        MalformedMessage: A party's message has another size.
    """
    bits = _bits_of(values, width)
    if keyed is None:
        await deal(session.lane("deal"), bits, holders)
        return None
    pair, key, witnesses = keyed.pair, await keyed.key(), Witnesses()

    async def numbers_bound() -> tuple[Bound, list[Tags]]:
        of = await _bound(session, pair, key, bits.reshape(-1), bits.size, bits.size)
        return of, await hashes_compared(session.lane("hashes"), pair, of, "numbers")

    gates = len(values) * sum(total_planes(len(session.parties), width))
    made: list[Any] = await together(
        [numbers_bound(), make_triples(session.lane("triples"), pair, key, witnesses, gates)]
    )
    (of, hashed), triples = made
    known = {holder: of.known[holder].reshaped(width) for holder in pair.holders}
    numbers = Numbers(known, of.numbers(width))
    every = [*_shared(pair, key, known.values()), *numbers.shares.values()]
    (sums,) = await _evaluated(session, pair, total(every), triples, witnesses, hashed)
    await settle(session.lane("check"), pair, witnesses)
    return sums, numbers


async def decided(
    session: Session,
    keyed: Keyed | None,
    values: NDArray[np.uint64],
    holders: tuple[str, str],
    limits: Numbers | None,
    threshold: int,
    width: int,
) -> Decided | None:
    """Whether the sums of all parties' numbers reach a threshold; every party of the job calls this.

    Args:
        session: The lane to use, fresh for this call.
        keyed: As of `summed`.
        values: Shape (m,), this party's, m ≥ 1; no number above this party's limit.
        holders: As of `summed`.
        limits: At one of the two, from `summed`, one number of each party. They add up to less than 2^width, so that no
            sum of numbers within them is too large.
        threshold: From 0 to 2^width − 1, public.
        width: Two or more, public.

    Returns:
        None to a party that does not compute.

    Raises:
        ProtocolViolation: A party deviates, or its number is above its limit.
        MalformedMessage: A party's message has another size.
    """
    parties, parts = len(session.parties), []
    decision = decision_on(parties, threshold, width)
    for place, part in enumerate(blocks(len(values), parties, decision)):
        lane = session.lane(f"block {place}")
        if keyed is None or limits is None:
            await deal(lane.lane("deal"), _bits_of(values[part], width), holders)
        else:
            parts.append(await _decided(lane, keyed, values[part], limits, decision))
    if not parts:
        return None
    return Decided(
        AuthenticatedBits.joined([part.sums for part in parts]),
        AuthenticatedBits.joined([part.reached for part in parts]),
    )


async def _decided(
    session: Session, keyed: Keyed, values: NDArray[np.uint64], limits: Numbers, decision: Threshold
) -> Decided:
    """A block, at one of the two."""
    pair, key, witnesses, number = keyed.pair, await keyed.key(), Witnesses(), len(values)
    width, first = decision.width, pair.is_first
    of_limits = {holder: each.bits(slice(0, width)).spread(number) for holder, each in limits.known.items()}
    planes = await session.compute(decision.known, values, _word(limits.known[pair.me]), first)
    mask = unpack_bits(
        np.frombuffer(session.randomness("masks").bytes(PROOF_MASK_BITS // 8), np.uint8), PROOF_MASK_BITS
    )
    bits = np.concatenate([planes.reshape(-1), mask])
    size_of_peer = decision.known_planes(not first) * number + PROOF_MASK_BITS

    async def numbers_bound() -> tuple[Bound, list[Tags]]:
        of = await _bound(session, pair, key, bits, size_of_peer, width * number)
        own, theirs = (
            Statement(
                Relations.stacked(decision.relations(_planes(of.known[name]), of_limits[name], is_first)),
                of.known[name].words(slice(-PROOF_MASK_BITS, None)),
            )
            for name, is_first in ((pair.me, first), (pair.peer, not first))
        )
        hashes = hashes_compared(session.lane("hashes"), pair, of, "counts")
        compared: list[Any] = await together([hashes, proved(session.lane("proofs"), pair, own, theirs)])
        hashed, holds = compared
        if not holds:
            raise _too_high(pair.peer)
        return of, hashed

    def _planes(known: KnownBits) -> KnownBits:
        part = known.words(slice(0, -PROOF_MASK_BITS))
        return part.reshaped(part.number // number)

    gates = number * sum(decision_planes(len(session.parties), decision))
    made: list[Any] = await together(
        [numbers_bound(), make_triples(session.lane("triples"), pair, key, witnesses, gates)]
    )
    (of, hashed), triples = made
    of_two = [_planes(of.known[holder]) for holder in pair.holders]
    summands = [decision.summand(each, not place) for place, each in enumerate(of_two)]
    numbers = of.numbers(width)
    of_others = [limits.shares[dealer].bits(slice(0, width)).spread(number) for dealer in numbers]
    circuits = decision.circuits(_shared(pair, key, summands), list(numbers.values()), of_others)
    outcome, *beyond = await _evaluated(session, pair, circuits, triples, witnesses, hashed)
    zeros = [each.bits(slice(place, place + 1)) for each in beyond for place in range(each.width)]
    within = await settle(session.lane("check"), pair, witnesses, zeros)
    for dealer, each in zip(numbers, within, strict=True):
        if not each:
            raise _too_high_or_made_so(dealer, pair.peer)
    own_numbers = _shared(pair, key, [each.bits(slice(0, width)) for each in of_two])
    return Decided(decision.sums(outcome, own_numbers), outcome.bits(slice(outcome.width - 1, None)))


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


def blocks(number: int, parties: int, decision: Threshold) -> list[slice]:
    """The numbers of each block, which takes `ANDS` or a little more, or `KNOWN_BITS`; the last one fewer."""
    size = min(-(-ANDS // sum(decision_planes(parties, decision))), KNOWN_BITS // decision.known_planes(True))
    return [slice(start, min(start + size, number)) for start in range(0, number, size)]


async def _bound(session: Session, pair: TwoParty, key: np.uint64, bits: Bits, of_peer: int, of_dealer: int) -> Bound:
    """Binds the two to what they know and were dealt.

    Args:
        session: The lane of the call.
        pair: The two.
        key: This holder's.
        bits: What it knows, shape (n,).
        of_peer: How many bits the other knows.
        of_dealer: Bits of a dealer's numbers.
    """
    dealt = await taken(session.lane("deal"), pair, of_dealer)
    return await bound(session.lane("inputs"), pair, key, bits, of_peer, dealt)


async def _evaluated(
    session: Session,
    pair: TwoParty,
    circuits: Circuits,
    triples: Triples,
    witnesses: Witnesses,
    hashed: Sequence[Tags],
) -> list[Any]:
    """The circuits' outputs; their ANDs are right if the openings are, whose witnesses come after those of hashes."""
    for witness in hashed:
        witnesses.add(witness)
    lane, circuit = session.lane("ands"), side_by_side(circuits)
    try:
        x, y = next(circuit)
        while True:
            a, b, c = triples.take(x.width, x.number)
            masked = AuthenticatedBits.stacked([x ^ a, y ^ b])
            of_x, of_y = np.split(await open_masked(lane, pair, masked, witnesses), 2)
            ands = (c ^ b.times_public(of_x) ^ a.times_public(of_y)).plus_public(of_x & of_y)
            x, y = circuit.send(ands)
    except StopIteration as end:
        outputs: list[Any] = end.value
        return outputs


def _shared(pair: TwoParty, key: np.uint64, known: Iterable[KnownBits]) -> list[AuthenticatedBits]:
    return [each.shared(key, pair.me, pair.holders) for each in known]


def _too_high(dealer: str) -> ProtocolViolation:
    """A computing party's count is above its number of rows."""
    return ProtocolViolation(
        f"{dealer} has dealt a count that is above its number of rows; its node must be checked", party=dealer
    )


def _too_high_or_made_so(dealer: str, peer: str) -> ProtocolViolation:
    """A count of a party that does not compute is, or the peer says so of one that is not."""
    return ProtocolViolation(
        f"{dealer} has dealt a count that is above its number of rows, or {peer} makes it appear so; one of these "
        "two nodes deviates"
    )


def _word(number: KnownBits) -> int:
    """The first number, at who knows it."""
    return int(words_of(pack_bits(number.values), number.number)[0])


def _bits_of(values: NDArray[np.uint64], width: int) -> Bits:
    return unpack_bits(planes_of(values, width), len(values))
