"""Which sums of all parties' numbers reach a public threshold, decided among three of whom one may deviate.

    1  deal      every party deals its numbers to the three, bit by bit (`dealing`)
    2  circuits  the three take the sums of the dealt numbers, compare them with the threshold, and each number with its
                 dealer's limit, such as its number of rows (`circuits`). For the latter a dealer also says what is
                 borrowed from each place where its number is taken off the limit, so that all places are compared at
                 once. Meanwhile the three compare what was dealt
    3  ANDs      each proves that its parts of all ANDs are right (`verified_ands`)
    4  limits    no number may be above its limit: what tells so comes with the word that the proofs hold, and cannot be
                 read without it, since wrong ANDs could make it tell more (`zero_checks`)
    5  open      sums, or whether they reach the threshold: every component comes from two holders (`crosschecks`)

Steps 1 to 4 are `decided`; its outputs are right, and may be opened at any time after. All of a call is dealt and
checked before any of its outputs can be opened.

Rounds: 1, one a step of the circuits, and 2. Bytes: `verified_costs`.

Output: replicated shares at the three.
Adversary: malicious with abort, one of the three together with any parties that are none. Honest parties get the sums
    of the numbers that were dealt, or an error, but with probability 2^-40 a block. The adversary chooses its own
    parties' numbers, within their limits, without knowing those of others; it gets what is opened first, and may then
    end the job at any honest party. It can learn nothing by ending it earlier.
Collusion: any two of the three can compute all parties' numbers.
Leakage: sizes.

Source: Furukawa, Lindell, Nof and Weinstein, EUROCRYPT 2017, Protocol 3.2, with proofs as of Boyle et al., CCS 2019.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import pairwise
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from crypto.primitives.shares.replicated import Holders3
from crypto.primitives.shares.replicated_bits import Planes, ReplicatedBits
from crypto.primitives.shares.xor import planes_of
from crypto.protocols.replicated import circuits
from crypto.protocols.replicated.circuits import Circuit, planes_by_step, side_by_side
from crypto.protocols.replicated.dealing import Rest, Shape, compared, dealt, rest_of
from crypto.protocols.replicated.verified_ands import check, evaluated
from crypto.protocols.sums.pairwise import PairwiseSecrets
from link.errors import ProtocolViolation
from link.session import Session
from link.tasks import together

FEW: Final = 1 << 15  # numbers, up to which rounds are dearer than ANDs
BLOCK: Final = 1 << 17  # numbers at once; what a block keeps stays below 100 MB
_BLOCKS_AT_ONCE: Final = 2

Shares = Sequence[ReplicatedBits]
Build = Callable[[Shares, Shares], list[Circuit[ReplicatedBits, Any]]]
"""Circuits of all parties' numbers, in the order of the job, and of limits."""


@dataclass(frozen=True, slots=True, repr=False)
class Decided:
    """What the three hold of a batch of numbers.

    Attributes:
        sums: Of each number, its width in planes.
        reached: One plane: whether the sum reaches the threshold.
    """

    sums: ReplicatedBits
    reached: ReplicatedBits


@dataclass(frozen=True, slots=True)
class Refusal:
    """Why a dealer is refused whose planes of a circuit are not all zero.

    Attributes:
        what: The planes tell, for an error on them.
        error: On a dealer.
        planes: Of each dealer.
    """

    what: str
    error: Callable[[str], ProtocolViolation]
    planes: int

    def of(self, dealers: int) -> list[slice]:
        """The planes of each dealer."""
        return [slice(start, start + self.planes) for start in range(0, dealers * self.planes, self.planes)]


def _too_high(dealer: str) -> ProtocolViolation:
    return ProtocolViolation(
        f"{dealer} has dealt a count that is above its number of rows; its node must be checked", party=dealer
    )


async def decided(
    session: Session,
    secrets: PairwiseSecrets,
    values: NDArray[np.uint64],
    holders: Holders3,
    limit: int,
    limits: list[ReplicatedBits] | None,
    threshold: int,
    width: int,
) -> Decided | None:
    """Whether the sums of all parties' numbers reach a threshold; every party of the job calls this.

    Args:
        session: The lane to use, fresh for this call.
        secrets: From `pairwise.agree` in this session.
        values: Shape (m,), this party's, m ≥ 1; no number above this party's limit.
        holders: The three computing parties, in the same order at all parties.
        limit: This party's.
        limits: At one of the three, shares of one number for each party in the order of the job. They add up to less
            than 2^width, so that no sum of numbers within them is too large.
        threshold: From 0 to 2^width − 1, public.
        width: Two or more, public.

    Returns:
        None to a party that does not compute.

    Raises:
        ProtocolViolation: A party deviates, or its number is above its limit.
        MalformedMessage: A party's message has another size.
    """
    planes = await session.compute(borrowing, values, limit, width)
    slots, refusal = asyncio.Semaphore(_BLOCKS_AT_ONCE), Refusal("whose counts are too high", _too_high, width)

    async def decide(lane: Session, part: slice) -> Decided | None:
        number = part.stop - part.start

        def build(numbers: Shares, limits: Shares) -> list[Circuit[ReplicatedBits, Any]]:
            return decision(numbers, limits, threshold, few=number <= FEW)

        own = planes[:, part.start // 8 : -(-part.stop // 8)]
        async with slots:
            spread = [] if limits is None else [each.bits(slice(0, width)).spread(own.shape[1]) for each in limits]
            gates = decision_planes(len(session.parties), width, number <= FEW)
            shape = dealt_planes(width), own.shape[1]
            dealing = rest_of(own)
            found = await checked(lane, secrets, shape, dealing, holders, spread, build, gates, refusal, what="counts")
            if found is None:
                return None
            (sums_and_reached, _), _ = found
            return Decided(*sums_and_reached)

    lanes = [(session.lane(f"block {place}"), part) for place, part in enumerate(blocks(len(values)))]
    parts = [each for each in await together(decide(*each) for each in lanes) if each is not None]
    if not parts:
        return None
    return Decided(
        ReplicatedBits.joined([part.sums for part in parts]), ReplicatedBits.joined([part.reached for part in parts])
    )


def dealt_planes(width: int) -> int:
    """Planes that a party deals of numbers of so many bits: these, and what is borrowed."""
    return 2 * width - 1


def borrowing(values: NDArray[np.uint64], limit: int, width: int) -> Planes:
    """The numbers, and from each place but the lowest whether limit − number borrows from it, bit by bit."""
    most = np.uint64(limit)
    borrows = (most ^ values ^ most - values) & np.uint64((1 << width) - 1)
    return np.concatenate([planes_of(values, width), planes_of(borrows, width)[1:]])


def decision(numbers: Shares, limits: Shares, threshold: int, *, few: bool) -> list[Circuit[ReplicatedBits, Any]]:
    """The circuits of `decided`."""
    width = limits[0].width
    counts, borrows = ([each.bits(place) for each in numbers] for place in (slice(0, width), slice(width, None)))
    return [circuits.reaching_sums(counts, threshold, few=few), circuits.beyond(counts, borrows, limits)]


def blocks(number: int) -> list[slice]:
    """The numbers of each block; each but the last a multiple of eight."""
    stops = [*range(0, number, BLOCK), number]
    return [slice(start, stop) for start, stop in pairwise(stops)]


@cache
def decision_planes(parties: int, width: int, few: bool) -> tuple[int, ...]:
    """Planes of ANDs of `decision`, step by step, of so many parties' numbers of so many bits."""
    numbers, limits = nothing(parties, dealt_planes(width)), nothing(parties, width)
    return tuple(planes_by_step(side_by_side(decision(numbers, limits, 0, few=few)), limits[0]))


def nothing(parties: int, width: int) -> Shares:
    """Shares of no number of each party, of so many planes: of which circuits can be counted."""
    planes = np.zeros((width, 0), np.uint8)
    return [ReplicatedBits(planes, planes, "0", ("0", "1", "2"))] * parties


async def checked(
    session: Session,
    secrets: PairwiseSecrets,
    shape: Shape,
    rest: Rest,
    holders: Holders3,
    limits: Shares,
    build: Build,
    gates: Sequence[int],
    refusal: Refusal | None = None,
    *,
    what: str,
) -> tuple[list[Any], list[ReplicatedBits]] | None:
    """Deals numbers, evaluates circuits of them and checks all ANDs; every party of the job calls this.

    Args:
        session: The lane to use, fresh for this call.
        secrets: From `pairwise.agree` in this session.
        shape: Of what a party deals, as of `dealt`.
        rest: As of `dealt`.
        holders: The three computing parties, in the same order at all parties.
        limits: Shares of what else the circuits take.
        build: The circuits.
        gates: Planes of ANDs of the circuits side by side, step by step.
        refusal: Where the last circuit gives planes for each party of which no bit may be 1: what it is told then.
        what: What is dealt, as of `dealt`.

    Returns:
        The circuits' outputs, which are right, and each party's numbers; None to a party that does not compute.

    Raises:
        ProtocolViolation: A party deviates, or what it deals is refused.
        MalformedMessage: A party's message has another size.
    """
    of = await dealt(session.lane("deal"), shape, rest, holders, what=what)
    if of is None:
        return None
    numbers = of.shares
    size, refusable = shape[1] * sum(gates), 0 if refusal is None else len(numbers)
    # What was dealt is compared before proofs are: with inputs that differ at two honest holders, ANDs are wrong in a
    # way that depends on others' numbers, and the check would tell of them.
    beside: list[Coroutine[Any, Any, Any]] = [
        compared(session.lane("compare"), of, holders),
        evaluated(session.lane("ands"), secrets, holders, build(numbers, limits), size, refusable),
    ]
    _, done = await together(beside)
    if refusal is None:
        await check(session.lane("verify"), holders, done, [], "")
        return done.outputs, numbers
    zeros = [done.outputs[-1].bits(each) for each in refusal.of(len(numbers))]
    found = await check(session.lane("verify"), holders, done, zeros, refusal.what)
    for dealer, accepted in zip(session.parties, found, strict=True):
        if not accepted:
            raise refusal.error(dealer)
    return done.outputs, numbers
