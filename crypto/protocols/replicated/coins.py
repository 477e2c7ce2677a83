"""Coins that three holders toss together: uniform, and known to none of them before all have committed.

    1  commit    each sends the two others the hash of a random coin, and signs it (`committed`)
    2  open      each sends each of the two others its coin, and the commitment that it got from the third, and signs
                 that (`tossed`)

A holder that shows the two others different commitments is found out in step 2, before anybody uses the coins: else
the honest ones would go on with different ones. So is one that opens another coin. Its signatures prove it, `evidence`.

Rounds: 1 each. Bytes: 32, then 64, to each of the two others, and signatures.
Adversary: malicious, one of the three. The coins are uniform given all that was sent before the honest holders opened
    theirs, up to finding collisions of SHA-256; a holder can refuse its own and end the job.
Leakage: none.

Source: Blum, "Coin flipping by telephone", CRYPTO 1981; Lindell, "Parallel coin-tossing and constant-round secure
two-party computation", Journal of Cryptology 16, 2003.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from crypto.primitives.hashing import derive_key
from crypto.primitives.shares.replicated import Holders3
from crypto.protocols.replicated import evidence
from crypto.protocols.replicated.crosschecks import contradiction
from crypto.protocols.replicated.evidence import COIN_BYTES, coin_commitment
from link.session import Session
from link.vouching import convicted, heard, passed_on, said_to, send_words
from link.words import Words
from protos.v1.verified_pb2 import Coin, CoinCommitment


@dataclass(frozen=True, slots=True, repr=False)
class Commitments:
    """What a holder knows between both steps.

    Attributes:
        coin: Its own, not yet known to the others.
        path: Of the lane on which they committed.
        of: By holder, itself excepted, the commitment.
        words: By holder, that it has signed it.
    """

    coin: bytes
    path: str
    of: Mapping[str, bytes]
    words: Mapping[str, Words]


async def committed(session: Session, holders: Holders3) -> Commitments:
    """Commits to a coin; the three holders call this, on a lane called `evidence.COMMIT_LANE`.

    Raises:
        ProtocolViolation: A holder has not signed its commitment.
        MalformedMessage: A commitment has not 32 bytes.
    """
    coin, found, words = session.randomness("coin").bytes(COIN_BYTES), {}, {}
    mine = CoinCommitment(commitment=coin_commitment(session.id, session.path, session.me, coin))
    others = [name for name in holders if name != session.me]
    for peer in others:
        await send_words(session, peer, mine)
    for peer in others:
        message, words[peer] = await heard(session, peer, session.recv(peer, CoinCommitment, evidence.check_form))
        found[peer] = message.commitment
    return Commitments(coin, session.path, found, words)


async def tossed(session: Session, holders: Holders3, commitments: Commitments) -> bytes:
    """Opens the coins; the three holders call this, on a lane called `evidence.TOSS_LANE` beside the other.

    Returns:
        32 bytes, of all three coins.

    Raises:
        ProtocolViolation: A coin is another than its holder has committed to, or a holder has committed to two.
        MalformedMessage: A message has another size.
    """
    others = [name for name in holders if name != session.me]
    for peer, third in zip(others, reversed(others), strict=True):
        await send_words(session, peer, Coin(coin=commitments.coin, heard=passed_on(commitments.words[third])))
    coins = {session.me: commitments.coin}
    for peer, third in zip(others, reversed(others), strict=True):
        message, words = await heard(session, peer, session.recv(peer, Coin, evidence.check_form))
        if coin_commitment(session.id, commitments.path, peer, message.coin) != commitments.of[peer]:
            what = "does not stand by a coin's commitment"
            raise convicted(session, evidence.COIN, what, commitments.words[peer], words)
        known = commitments.words[third]
        if message.heard.body != known.shown(0).body:
            other = said_to(session, peer, known, message.heard)
            if other is None:
                raise contradiction(peer, third, f"what {third} has committed to")
            raise convicted(session, evidence.EQUIVOCATION, "has committed to two coins", known, other)
        coins[peer] = message.coin
    return derive_key(b"".join(coins[name] for name in holders), "joint coins", session.id, commitments.path)
