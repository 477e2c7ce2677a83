"""Opening authenticated bits between two, and the check that both opened the shares that they have.

Opened bits are used at once, and checked together before anything that follows from them leaves. For each of them both
holders have the same witness (`AuthenticatedBits.witness`), if and only if both opened their own shares. They commit to
a hash of all witnesses, then open it: so neither can wait for the other's and try out, by hashing, what it has to be.

With the commitment goes half of a coin, so that the two have a common coin once they have compared. And a holder may
commit to shares of zeros, of bits and of tags, which are opened only after the first comparison: where these are zeros,
both holders have the same.

Rounds: 1 to open bits; 2 to compare, and 1 for zeros.
Adversary: malicious, one of the two, in the random oracle model: bits that differ pass with probability 2^-63, that of
    a guess of what the adversary does not know of the other's key.
Leakage: whether all is right; of shares that are not of zeros, that they are not, once all else is right.

Source: Damgård, Keller, Larraia, Pastro, Scholl and Smart, "Practical Covertly Secure MPC for Dishonest Majority",
ESORICS 2013, section 3 (batched checks); Blum, "Coin flipping by telephone", CRYPTO 1981.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np

from crypto.primitives.bit_matrix import pack_bits, unpack_bits
from crypto.primitives.hashing import encode_labels
from crypto.primitives.shares.authenticated import AuthenticatedBits, Bits, Tags
from crypto.protocols.comparison.two_party import TwoParty
from link.errors import ProtocolViolation
from link.session import Session
from protos.v1.authenticated_pb2 import CheckCommitment, CheckOpening, MaskedBits, ZerosOpening

DIGEST_BYTES: Final = 32
COIN_BYTES: Final = 32


@dataclass(frozen=True, slots=True, repr=False)
class Witnesses:
    """What both holders have alike, of all that has been opened since the last comparison."""

    digest: Any = field(default_factory=hashlib.sha256)

    def add(self, witness: Tags) -> None:
        """Notes more of it; both holders do so in one order."""
        self.digest.update(np.ascontiguousarray(witness).data)


def digest_of(share: AuthenticatedBits) -> bytes:
    """Of shares of zeros: both holders have the same."""
    found = hashlib.sha256(share.values.tobytes())
    found.update(share.tags.tobytes())
    return found.digest()


async def open_masked(session: Session, pair: TwoParty, share: AuthenticatedBits, witnesses: Witnesses) -> Bits:
    """The bits of a share, which are under others that nobody knows; both holders call this.

    Returns:
        Their values, of the share's shape: not yet checked.

    Raises:
        MalformedMessage: The peer's message has another size.
    """
    opened = await exchanged(session, pair, share.values)
    witnesses.add(share.witness(opened))
    return opened


async def exchanged(session: Session, pair: TwoParty, own: Bits) -> Bits:
    """The XOR of what both holders send, of the same shape."""
    packed = pack_bits(own.reshape(1, -1))
    await session.send_array(pair.peer, MaskedBits, packed)
    theirs = await session.recv_array(pair.peer, MaskedBits, np.uint8, packed.shape)
    found: Bits = own ^ unpack_bits(theirs, own.size).reshape(own.shape)
    return found


async def compare(
    session: Session, pair: TwoParty, digest: bytes, what: str, zeros: Sequence[bytes] = ()
) -> tuple[bytes, list[bool]]:
    """Compares what both holders have to have alike.

    Args:
        session: The lane to use, fresh for this call.
        pair: The two.
        digest: Of what is compared first.
        what: What it is of, for an error.
        zeros: Digests that are compared only if that is alike, of as many shares at both.

    Returns:
        A coin of 32 bytes, uniform if either holder is honest; and which of the latter are alike.

    Raises:
        ProtocolViolation: The first ones differ, or the peer opens something else than it has committed to.
        MalformedMessage: The peer's message has another size.
    """
    random = session.randomness("coins")
    coin, nonce, joined = random.bytes(COIN_BYTES), random.bytes(COIN_BYTES), b"".join(zeros)
    own = CheckCommitment(
        commitment=_committed(session.me, "digest", digest, coin),
        zeros=_committed(session.me, "zeros", joined, nonce) if zeros else b"",
    )
    await session.send(pair.peer, own)

    def check_commitment(message: CheckCommitment) -> None:
        _check_size("commitment", DIGEST_BYTES, message.commitment)
        _check_size("commitment to zeros", DIGEST_BYTES * bool(zeros), message.zeros)

    theirs = await session.recv(pair.peer, CheckCommitment, check_commitment)
    await session.send(pair.peer, CheckOpening(digest=digest, coin=coin))
    opening = await session.recv(pair.peer, CheckOpening, _check_opening)
    if _committed(pair.peer, "digest", opening.digest, opening.coin) != theirs.commitment:
        raise ProtocolViolation(
            f"{pair.peer} has opened something else than it had committed to; its node must be checked", party=pair.peer
        )
    if opening.digest != digest:
        raise ProtocolViolation(
            f"{what} of {pair.peer} are not what they must be; its node must be checked", party=pair.peer
        )
    found: list[bool] = []
    if zeros:
        await session.send(pair.peer, ZerosOpening(digests=joined, nonce=nonce))

        def check_zeros(message: ZerosOpening) -> None:
            _check_size("digests", len(joined), message.digests)
            _check_size("nonce", COIN_BYTES, message.nonce)

        told = await session.recv(pair.peer, ZerosOpening, check_zeros)
        if _committed(pair.peer, "zeros", told.digests, told.nonce) != theirs.zeros:
            raise ProtocolViolation(
                f"{pair.peer} has opened something else than it had committed to; its node must be checked",
                party=pair.peer,
            )
        each = [told.digests[at : at + DIGEST_BYTES] for at in range(0, len(joined), DIGEST_BYTES)]
        found = [one == other for one, other in zip(zeros, each, strict=True)]
    halves = (coin, opening.coin) if pair.is_first else (opening.coin, coin)
    return hashlib.sha256(encode_labels("coin", *halves)).digest(), found


async def settle(
    session: Session, pair: TwoParty, witnesses: Witnesses, zeros: Sequence[AuthenticatedBits] = ()
) -> list[bool]:
    """Checks all that has been opened, and whether some shares are of zeros.

    Args:
        session: The lane to use, fresh for this call.
        pair: The two.
        witnesses: Of what has been opened.
        zeros: Shares that are to be of zeros.

    Returns:
        Whether each of these is.

    Raises:
        ProtocolViolation: The peer has opened another share than its own.
        MalformedMessage: The peer's message has another size.
    """
    digests = [digest_of(share) for share in zeros]
    _, found = await compare(session, pair, witnesses.digest.digest(), "shares of opened bits", digests)
    return found


def _committed(name: str, what: str, value: bytes, nonce: bytes) -> bytes:
    """The commitment of a holder; the nonce hides it."""
    return hashlib.sha256(encode_labels("commitment", name, what, value, nonce)).digest()


def _check_opening(message: CheckOpening) -> None:
    _check_size("digest", DIGEST_BYTES, message.digest)
    _check_size("coin", COIN_BYTES, message.coin)


def _check_size(what: str, size: int, value: bytes) -> None:
    if len(value) != size:
        raise ValueError(f"its {what} has {len(value)} bytes, not {size}")
