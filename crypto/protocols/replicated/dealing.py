"""Every party deals replicated shares of its numbers, bit by bit, to three computing parties.

    1  deal      a dealer draws two of three components from keys, and takes the XOR of both off its bits for the third.
                 It commits to each component, and tells each holder all commitments, and what opens those to the two
                 components that this one holds: keys, or bits. It signs what it sends to each
    2  compare   any two holders tell each other which commitments they got from the other dealers (`compared`)

Numbers dealt as so many bits are numbers from 0 to 2^width − 1 whatever a dealer does: there is no −1.

Rounds: 1 each; nothing that depends on what was dealt may be opened before `compared` has returned. ANDs may be taken
    before, as all that they send is under masks.
Bytes: per number its width in bits, from a party that computes to one of the two others, from one that does not to two.

Output: replicated shares of each dealer's numbers, at the three.
Adversary: malicious, one of the three holders together with any dealers. A component that lies at two honest holders is
    one and the same; one that a corrupt party holds is what its honest holder says. A dealer that gives two of them
    different ones is convicted by its signatures, `evidence`.
Leakage: none; a holder alone has two components, which are uniform, and of the third a commitment that hides it: it is
    of a key, or of bits after a random number, that this holder does not know.

Source: Furukawa, Lindell, Nof and Weinstein, EUROCRYPT 2017, section 2.2 and Protocol 2.6, in which dealers share by
replicated secret sharing and holders compare.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Final

import numpy as np

from crypto.primitives.randomness import KEY_BYTES, Randomness
from crypto.primitives.shares.replicated import Holders3
from crypto.primitives.shares.replicated_bits import Planes, ReplicatedBits
from crypto.primitives.shares.ring_matrix import random_matrix
from crypto.protocols.replicated import evidence
from crypto.protocols.replicated.crosschecks import contradiction, neighbours
from crypto.protocols.replicated.evidence import commitment_of
from link.session import Session
from link.transcripts.vouching import convicted, heard, passed_on, said_to, vouch
from link.transcripts.words import Words
from protos.v1.verified_pb2 import DealtBits, DealtCommitments, DealtKey, HeardDealings

_PURPOSE: Final = "dealing"

Shape = tuple[int, int]
"""Planes, and bytes of each."""
Rest = Callable[[Planes, Planes], Planes]
"""The component that a dealer gives in full, of the two that keys give."""


@dataclass(frozen=True, slots=True, repr=False)
class Dealt:
    """What a holder was dealt.

    Attributes:
        shares: Of each party's numbers, in the order of the job.
        words: By dealer, this holder excepted, what it has signed.
        what: What it is, for errors.
    """

    shares: list[ReplicatedBits]
    words: Mapping[str, Words]
    what: str


def sent_in_full(parties: tuple[str, ...], holders: Holders3, dealer: str) -> int:
    """The component of a dealer's numbers that no key gives: one of its own, where it has any."""
    return holders.index(dealer) if dealer in holders else parties.index(dealer) % 3


def rest_of(planes: Planes) -> Rest:
    """That of a sharing by XOR."""
    return lambda one, other: planes ^ one ^ other


async def dealt(
    session: Session,
    shape: Shape,
    rest: Rest,
    holders: Holders3,
    widths: Mapping[str, int] | None = None,
    *,
    what: str,
) -> Dealt | None:
    """Deals this party's numbers, and at a holder takes what all parties deal; every party of the job calls this.

    Args:
        session: The lane to use, fresh for this call.
        shape: Of what this party deals, bit by bit; how many bytes a plane has is public and equal at all parties.
        rest: What completes a sharing of this party's; most often `rest_of`.
        holders: The three computing parties, in the same order at all parties.
        widths: Of each party's numbers, public, one or more; None where all have this party's.
        what: What is dealt, for errors, such as "counts".

    Returns:
        What it holds; None to a party that does not compute.

    Raises:
        ProtocolViolation: A dealer commits to other components than it deals.
        MalformedMessage: A dealer's message has another size.
    """
    random, full = session.randomness(_PURPOSE), sent_in_full(session.parties, holders, session.me)
    keys = [random.bytes(KEY_BYTES) for _ in holders]
    one, other = (_expanded(keys[full - back], shape) for back in (1, 2))
    parts = {full: rest(one, other), (full - 1) % 3: one, (full - 2) % 3: other}
    commitments = b"".join(commitment_of(key, [parts[full]] * (part == full)) for part, key in enumerate(keys))
    for place, holder in enumerate(holders):
        held = (place, (place + 1) % 3)
        if holder != session.me:
            await session.send(holder, DealtCommitments(commitments=commitments, in_full=full))
            for part in held:
                await session.send(holder, DealtKey(component=part, key=keys[part]))
            if full in held:
                await session.send_array(holder, DealtBits, parts[full])
            await vouch(session, holder)
    if session.me not in holders:
        return None
    place = holders.index(session.me)
    shares, words = [], {}
    for dealer in session.parties:
        if dealer == session.me:
            shares.append(ReplicatedBits(parts[place], parts[(place + 1) % 3], session.me, holders))
        else:
            of_dealer = (shape[0] if widths is None else widths[dealer], shape[1])
            share, words[dealer] = await _taken(session, of_dealer, holders, dealer, what)
            shares.append(share)
    return Dealt(shares, words, what)


async def compared(session: Session, of: Dealt, holders: Holders3) -> None:
    """Compares what all parties have dealt; the three holders call this.

    Args:
        session: The lane to use, fresh for this call.
        of: From `dealt`.
        holders: As given to it.

    Raises:
        ProtocolViolation: A dealer gave two holders different commitments: it is named alone where it has signed both,
            else together with the holder that says so.
        MalformedMessage: A holder's message has another size.
    """
    peers = neighbours(session, holders)
    dealers = {peer: [name for name in session.parties if name not in (peer, session.me)] for peer in peers}
    for peer in peers:
        await session.send(peer, HeardDealings(heard=[passed_on(of.words[dealer]) for dealer in dealers[peer]]))
    for peer in peers:
        number = len(dealers[peer])

        def check(message: HeardDealings, number: int = number) -> None:
            if len(message.heard) != number:
                raise ValueError(f"it is about {number} dealers, not {len(message.heard)}")

        told = (await session.recv(peer, HeardDealings, check)).heard
        for dealer, passed in zip(dealers[peer], told, strict=True):
            known = of.words[dealer].showing(0)
            if passed.body == known.shown(0).body:
                continue
            other = said_to(session, peer, known, passed)
            if other is None:
                raise contradiction(dealer, peer, f"the {of.what} that {dealer} has dealt")
            done = f"has dealt other {of.what} to {peer} than to {session.me}"
            raise convicted(session, evidence.EQUIVOCATION, done, known, other)


async def _taken(
    session: Session, shape: Shape, holders: Holders3, dealer: str, what: str
) -> tuple[ReplicatedBits, Words]:
    place, full = holders.index(session.me), sent_in_full(session.parties, holders, dealer)
    held = (place, (place + 1) % 3)

    def check_commitments(message: DealtCommitments) -> None:
        evidence.check_form(message)
        if message.in_full != full:
            raise ValueError(f"it gives component {message.in_full} in full, not {full}")

    def check_key(part: int, message: DealtKey) -> None:
        evidence.check_form(message)
        if message.component != part:
            raise ValueError(f"it opens component {message.component}, not {part}")

    async def receive() -> tuple[bytes, list[bytes], Planes | None]:
        commitments = (await session.recv(dealer, DealtCommitments, check_commitments)).commitments
        keys = [(await session.recv(dealer, DealtKey, partial(check_key, part))).key for part in held]
        bits = await session.recv_array(dealer, DealtBits, np.uint8, shape) if full in held else None
        return commitments, keys, bits

    (commitments, keys, bits), words = await heard(session, dealer, receive())
    parts = []
    for number, (part, key) in enumerate(zip(held, keys, strict=True)):
        in_full = bits if part == full else None
        if commitment_of(key, [] if in_full is None else [in_full]) != evidence.commitment_in(commitments, part):
            shown = [0, 1 + number, *(range(3, len(words.frames)) if part == full else ())]
            done = f"has dealt other {what} to {session.me} than it has committed to"
            raise convicted(session, evidence.DEALING, done, words.showing(*shown))
        parts.append(_expanded(key, shape) if in_full is None else in_full)
    own, following = parts
    return ReplicatedBits(own, following, session.me, holders), words.showing(0)


def _expanded(key: bytes, shape: Shape) -> Planes:
    return random_matrix(Randomness.from_key(key), shape, np.uint8)
