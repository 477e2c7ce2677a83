"""Coins that three holders toss together: uniform, and known to none of them before all have committed.

    1  commit    each sends the two others the hash of a random coin (`committed`)
    2  open      each sends the two others its coin, and the commitments that it got from them (`tossed`)

A holder that shows the two others different commitments is found out in step 2, before anybody uses the coins: else
the honest ones would go on with different ones.

Rounds: 1 each. Bytes: 32, then 96, to each of the two others.
Adversary: malicious, one of the three. The coins are uniform given all that was sent before the honest holders opened
    theirs, up to finding collisions of SHA-256; a holder can refuse its own and end the job.
Leakage: none.

Source: Blum, "Coin flipping by telephone", CRYPTO 1981; Lindell, "Parallel coin-tossing and constant-round secure
two-party computation", Journal of Cryptology 16, 2003.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from crypto.primitives.hashing import derive_key, encode_labels
from crypto.primitives.shares.replicated import Holders3
from crypto.protocols.replicated.crosschecks import contradiction
from link.errors import ProtocolViolation
from link.session import Session
from protos.v1.verified_pb2 import Coin, CoinCommitment

COIN_BYTES: Final = 32
COMMITMENT_BYTES: Final = 32


@dataclass(frozen=True, slots=True, repr=False)
class Commitments:
    """What a holder knows between both steps.

    Attributes:
        coin: Its own, not yet known to the others.
        path: Of the lane on which they committed.
        of: By holder, itself included, the commitment.
    """

    coin: bytes
    path: str
    of: Mapping[str, bytes]


async def committed(session: Session, holders: Holders3) -> Commitments:
    """Commits to a coin; the three holders call this.

    Raises:
        MalformedMessage: A commitment has not 32 bytes.
    """
    coin = session.randomness("coin").bytes(COIN_BYTES)
    found = {session.me: _commitment(session, session.path, session.me, coin)}
    others = [name for name in holders if name != session.me]
    for peer in others:
        await session.send(peer, CoinCommitment(commitment=found[session.me]))
    for peer in others:
        found[peer] = (await session.recv(peer, CoinCommitment, _check_commitment)).commitment
    return Commitments(coin, session.path, found)


async def tossed(session: Session, holders: Holders3, commitments: Commitments) -> bytes:
    """Opens the coins; the three holders call this, on a lane of its own.

    Returns:
        32 bytes, of all three coins.

    Raises:
        ProtocolViolation: A coin is another than its holder has committed to, or a holder has committed to two.
        MalformedMessage: A message has another size.
    """
    others = [name for name in holders if name != session.me]
    for peer in others:
        heard = b"".join(commitments.of[name] for name in holders if name != session.me)
        await session.send(peer, Coin(coin=commitments.coin, heard=heard))
    coins = {session.me: commitments.coin}
    for peer in others:
        message = await session.recv(peer, Coin, _check_coin)
        told = dict(
            zip(
                [name for name in holders if name != peer],
                (message.heard[:COMMITMENT_BYTES], message.heard[COMMITMENT_BYTES:]),
                strict=True,
            )
        )
        if (
            _commitment(session, commitments.path, peer, message.coin) != commitments.of[peer]
            or told.pop(session.me) != commitments.of[session.me]
        ):
            raise ProtocolViolation(
                f"{peer} does not stand by a coin's commitment; its node must be checked", party=peer
            )
        for third, commitment in told.items():
            if commitment != commitments.of[third]:
                raise contradiction(peer, third, f"what {third} has committed to")
        coins[peer] = message.coin
    return derive_key(b"".join(coins[name] for name in holders), "joint coins", session.id, commitments.path)


def _commitment(session: Session, path: str, party: str, coin: bytes) -> bytes:
    return hashlib.sha256(encode_labels("coin", session.id, path, party, coin)).digest()


def _check_commitment(message: CoinCommitment) -> None:
    if len(message.commitment) != COMMITMENT_BYTES:
        raise ValueError(f"a commitment has {COMMITMENT_BYTES} bytes, not {len(message.commitment)}")


def _check_coin(message: Coin) -> None:
    if (len(message.coin), len(message.heard)) != (COIN_BYTES, 2 * COMMITMENT_BYTES):
        raise ValueError(f"a coin has {COIN_BYTES} bytes, and two commitments {2 * COMMITMENT_BYTES}")
