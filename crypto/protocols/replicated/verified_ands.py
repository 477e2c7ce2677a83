"""ANDs on replicated bits of three holders, of whom one may deviate: each checked against random triples.

    1  evaluate  ANDs are taken as among semi-honest holders: each sends its part, under a sharing of zero, to the one
                 before it. In the same messages they make random triples (a, b, a ∧ b): B for each gate, and B more
                 (`evaluated`)
    2  shuffle   coins, tossed when all that is made, say in which order triples are used
    3  open      the first B triples are opened, and have to be right. Of each other one, and the gate (x, y, z) that
                 it falls to, the holders open x ⊕ a and y ⊕ b
    4  check     z ⊕ c ⊕ (y ⊕ b) a ⊕ (x ⊕ a) b ⊕ (x ⊕ a)(y ⊕ b) is 0 where gate and triple are right, or wrong alike

All that a holder can do to an AND is to add bits to it, which it chooses without knowing the operands. A wrong gate
stays unnoticed only if all B triples of its bucket are wrong alike; triples are made before anybody knows which gate
they fall to. They are shuffled by bytes, and many of them by words of eight: one with a wrong bit is wrong.

With N bytes or words of gates, whoever makes k of them wrong needs k B wrong ones of triples, which fall into these k
buckets and nowhere else: the probability is 1 / C(NB + B, kB), most where k is 1 or N. `bucket_size` is the least B
that keeps this at 2^-40 or below.

Rounds: one a step of the circuits; 1 for the coins; 2 for the check. Bits: 1 an AND, 1 and 2 for each of its triples,
    from each holder: 10 an AND of 50,000 or more, 13 of 4,500 or more, 7 of 47 million.

Output: replicated shares of the circuits' outputs, right but with probability 2^-40; or an error at every honest
    holder.
Adversary: malicious, one of the three.
Leakage: none. What is opened is under triples that are used once, or a triple that is used for nothing; the bits of
    the check are sums of what the adversary itself has added.

Source: Araki et al., "Optimized Honest-Majority MPC for Malicious Adversaries", S&P 2017 (gates against buckets in an
order drawn afterwards); Furukawa, Lindell, Nof and Weinstein, EUROCRYPT 2017, Protocols 2.22 and 2.24 (checking one
triple by another), section 2.3 and Lemma 2.3 (attacks on an AND add to it).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import comb
from typing import Any, Final, TypeVar

import numpy as np

from crypto.primitives.randomness import Randomness
from crypto.primitives.shares.replicated import Holders3
from crypto.primitives.shares.replicated_bits import Planes, ReplicatedBits
from crypto.primitives.shares.ring_matrix import random_matrix
from crypto.protocols.replicated.circuits import Circuit
from crypto.protocols.replicated.crosschecks import neighbours, opened_to, zeros
from crypto.protocols.sums.pairwise import PairwiseSecrets
from link.errors import ProtocolViolation
from link.session import Session
from protos.v1.verified_pb2 import MaskedAnds

T = TypeVar("T")
UNIT: Final = 8  # bytes, which are shuffled as one word: bytes would take eight times as long
FEW_BYTES: Final = 50_000  # of gates, up to which they are shuffled one by one, as words would need larger buckets
SECURITY_BITS: Final = 40  # a wrong batch of ANDs passes with probability 2^-40 at the most


@dataclass(frozen=True, slots=True, repr=False)
class Products:
    """ANDs, or triples: z = x ∧ y, if nobody deviated. Each is one plane."""

    x: ReplicatedBits
    y: ReplicatedBits
    z: ReplicatedBits


@dataclass(frozen=True, slots=True, repr=False)
class Evaluated:
    """What is checked before an output is used.

    Attributes:
        outputs: Of the circuits.
        gates: All ANDs, N bytes.
        triples: `bucket` times as many, and `spare_size` bytes.
        bucket: How many triples each gate is checked against.
        unit: How many bytes are shuffled as one.
    """

    outputs: list[Any]
    gates: Products
    triples: Products
    bucket: int
    unit: int


def unit_size(size: int) -> int:
    """Bytes that are shuffled as one, of so many bytes of gates."""
    return UNIT if size > FEW_BYTES else 1


def bucket_size(size: int) -> int:
    """B for so many bytes of gates: the least with 1 / C(B N + B, B) ≤ 2^-40, for the number N of units."""
    bucket, number = 2, -(-size // unit_size(size))
    while comb(bucket * (number + 1), bucket) < 1 << SECURITY_BITS:
        bucket += 1
    return bucket


def spare_size(size: int) -> int:
    """Bytes of triples beside `bucket_size` for each byte of gates: those that are opened, and what fills up units."""
    return bucket_size(size) * (unit_size(size) + -size % unit_size(size))


async def evaluated(
    session: Session, secrets: PairwiseSecrets, holders: Holders3, circuits: Sequence[Circuit[Any]], size: int
) -> Evaluated:
    """Evaluates circuits side by side, and makes the triples against which they are checked.

    Args:
        session: The lane to use, fresh for this call.
        secrets: From `pairwise.agree` in this session.
        holders: The three, who call this alike.
        circuits: Of planes of one size.
        size: Bytes of all their ANDs, public: one or more.

    Raises:
        MalformedMessage: A holder's message has another size.
    """
    outputs: list[Any] = [None] * len(circuits)
    waiting: dict[int, tuple[ReplicatedBits, ReplicatedBits]] = {}
    gates: list[Products] = []
    triples: list[Products] = []
    bucket = bucket_size(size)
    products: ReplicatedBits | None = None
    while True:
        start = 0
        for place, circuit in enumerate(circuits):
            try:
                if products is None:
                    waiting[place] = next(circuit)
                elif place in waiting:
                    width = waiting[place][0].width
                    waiting[place] = circuit.send(products.bits(slice(start, start + width)))
                    start += width
            except StopIteration as end:
                outputs[place] = end.value
                waiting.pop(place, None)
        if not waiting:
            break
        x, y = (ReplicatedBits.stacked([pair[side] for pair in waiting.values()]) for side in range(2))
        width, (flat_x, flat_y) = x.width, (x.reshaped(1), y.reshaped(1))
        number = bucket * flat_x.own.size + (0 if gates else spare_size(size))
        a, b = _random(session, secrets, holders, number)
        joined = [ReplicatedBits.joined(pair) for pair in ((flat_x, a), (flat_y, b))]
        z = await _multiplied(session, secrets, holders, *joined)
        flat_z, c = z.split(flat_x.own.size)
        gates.append(Products(flat_x, flat_y, flat_z))
        triples.append(Products(a, b, c))
        products = flat_z.reshaped(width)
    if sum(each.x.own.size for each in gates) != size:
        raise ValueError(f"the circuits have other than {size} bytes of ANDs")
    return Evaluated(outputs, _joined(gates), _joined(triples), bucket, unit_size(size))


async def check(session: Session, holders: Holders3, of: Evaluated, coins: bytes) -> None:
    """Checks all ANDs; nothing that follows from the outputs may be opened before this has returned.

    Args:
        session: The lane to use, fresh for this call.
        holders: The three, who call this alike.
        of: From `evaluated`; its inputs have been compared by now.
        coins: Tossed since.

    Raises:
        ProtocolViolation: An AND is wrong, or the two others contradict each other.
        MalformedMessage: A holder's message has another size.
    """
    gates = _filled_up(of.gates, of.unit)
    masked, kept = await session.compute(operands, gates, of, coins)
    planes = await opened_to(session.lane("operands"), masked, "operands of ANDs")
    under = 2 * of.bucket * gates.x.own.size
    a, b, c = planes[0, under:].reshape(3, -1)
    differs = await session.compute(differences, gates, kept, planes[0, :under].reshape(2, of.bucket, -1))
    # Also where an opened triple is wrong the digests are sent, so that nobody waits; they tell nothing but that.
    (right,) = await zeros(session.lane("check"), [differs], "the check of ANDs")
    if not right or (c != a & b).any():
        one, other = (name for name in holders if name != session.me)
        raise ProtocolViolation(
            f"an AND of the comparison is wrong, by {one} or by {other}; one of these two nodes deviates"
        )


def _filled_up(products: Products, unit: int) -> Products:
    """With ANDs of zeros, up to whole units."""
    zero = products.x.constant(0).octets(np.zeros(-products.x.own.size % unit, np.int64), 1)
    x, y, z = (ReplicatedBits.joined([part, zero]) for part in (products.x, products.y, products.z))
    return Products(x, y, z)


def operands(gates: Products, of: Evaluated, coins: bytes) -> tuple[ReplicatedBits, Products]:
    """What is opened, x ⊕ a, y ⊕ b and triples; and the other triples in the order in which they fall to gates."""
    bucket, triples = of.bucket, of.triples
    order = Randomness.from_key(coins).permutation(triples.x.own.size // of.unit)
    shown, used = order[:bucket], order[bucket:]
    kept = Products(*(part.octets(used, of.unit).reshaped(bucket) for part in (triples.x, triples.y, triples.z)))
    parts = [
        gates.x.repeated(bucket) ^ kept.x,
        gates.y.repeated(bucket) ^ kept.y,
        *(part.octets(shown, of.unit) for part in (triples.x, triples.y, triples.z)),
    ]
    return ReplicatedBits.joined([part.reshaped(1) for part in parts]), kept


def differences(gates: Products, triples: Products, opened: Planes) -> ReplicatedBits:
    """Shares of zeros where a gate and its triples are right."""
    of_x, of_y = opened
    differs = gates.z.repeated(len(of_x)) ^ triples.z ^ triples.x.and_public(of_y) ^ triples.y.and_public(of_x)
    return differs.plus_public(of_x & of_y)


async def _multiplied(
    session: Session, secrets: PairwiseSecrets, holders: Holders3, x: ReplicatedBits, y: ReplicatedBits
) -> ReplicatedBits:
    before, after = neighbours(session, holders)
    context = secrets.context(session, "sharing of zero")
    part = await session.compute(x.local_and, y)
    for peer in (before, after):
        part ^= random_matrix(secrets.stream(peer, context), part.shape, np.uint8)
    await session.send_array(before, MaskedAnds, part)
    following = await session.recv_array(after, MaskedAnds, np.uint8, part.shape)
    return ReplicatedBits(part, following, session.me, holders)


def _random(
    session: Session, secrets: PairwiseSecrets, holders: Holders3, size: int
) -> tuple[ReplicatedBits, ReplicatedBits]:
    """Shares of two random planes: both holders of a component draw it from what they have in common."""
    context = secrets.context(session, "triples")
    own, following = (
        random_matrix(secrets.stream(peer, context), (2, size), np.uint8) for peer in neighbours(session, holders)
    )
    both = ReplicatedBits(own, following, session.me, holders)
    return both.bits(slice(0, 1)), both.bits(slice(1, 2))


def _joined(products: Sequence[Products]) -> Products:
    x, y, z = (
        ReplicatedBits.joined(parts) for parts in zip(*((each.x, each.y, each.z) for each in products), strict=True)
    )
    return Products(x, y, z)
