"""Words that their sender cannot deny: it signs the hash chain of a lane, so that the receiver can show them to others.

A party that must stand by what it sends on a lane vouches for it (`vouch`): its next frame there is a signature over
the session, the job and the chain of all that it has sent to that receiver on the lane. The receiver checks it against
what has come (`heard`) before it looks at what that says. So it holds `Words`, of which it can show some frames in full
and of the others hashes alone. What breaks the rules of a protocol by the sender's words alone is `Evidence`; a session
collects it (`convicted`), and its host writes it down.

Cost: one signature for each receiver and lane that is vouched for; in the same round as the words.
Adversary: malicious. Nobody can show words that a party has not sent to that receiver in that session, on that lane and
at that place, unless it can forge ECDSA signatures or find collisions of SHA-256. A party may refuse to sign; then the
receiver ends the job, and has no evidence.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable
from dataclasses import replace
from typing import Final, TypeVar

from google.protobuf.message import Message

from link.core import ABORT_S, SessionCore
from link.errors import ComineError, IdentityError, MalformedMessage, ProtocolViolation, UnexpectedMessage
from link.session import Session
from link.transcripts.words import Evidence, Origin, Shown, Withheld, Words
from protos.v1.link_pb2 import HeardWords, Voucher

T = TypeVar("T")

HASH_BYTES: Final = 32
_MOST_UNREAD: Final = 16  # frames beside one that is malformed
MALFORMED: Final = "malformed"  # the rule that every message keeps the form of its type


async def vouch(session: Session, to: str) -> None:
    """Signs all that this party has sent to `to` on this lane; without an identity it says so by an empty signature."""
    core = session.core
    chain = core.transcript.chains[to, "sent"][session.path]
    statement = _origin(session, session.me, to).statement(chain)
    signature = b"" if core.identity is None else core.identity.sign(statement)
    await session.send(to, Voucher(signature=signature))


async def send_words(session: Session, to: str, message: Message) -> None:
    """Sends a message and vouches for it."""
    await session.send(to, message)
    await vouch(session, to)


async def heard(session: Session, frm: str, receiving: Awaitable[T]) -> tuple[T, Words]:
    """Receives what `frm` vouches for.

    Args:
        session: The lane, of which nothing of `frm` has been read.
        frm: The peer.
        receiving: Reads its messages, all of them, with what `Session` has for that; and computes nothing of them.

    Returns:
        What `receiving` does, and the words.

    Raises:
        ProtocolViolation: The peer has not signed what it sent.
        MalformedMessage: As of `receiving`; the words are kept as evidence.
    """
    frames = session.core.overhear(frm, session.path)
    try:
        found = await receiving
    except MalformedMessage:
        place = len(frames) - 1
        with contextlib.suppress(ComineError, TimeoutError):
            async with asyncio.timeout(ABORT_S):  # its signature comes with it, or never
                words = await _signed(session, frm, frames, beyond=_MOST_UNREAD)
                session.core.evidence.append(Evidence(MALFORMED, (words.showing(place),)))
        raise
    return found, await _signed(session, frm, frames)


def passed_on(words: Words) -> HeardWords:
    """Words as they are shown to another party of the session: the first frame, and hashes of the others."""
    first, *rest = words.showing(0).frames
    if not isinstance(first, Shown):
        raise TypeError("what is passed on was heard")
    hashes = [frame.header + frame.body for frame in rest if isinstance(frame, Withheld)]
    return HeardWords(body=first.body, round=first.round, rest=hashes, signature=words.signature)


def said_to(session: Session, peer: str, like: Words, passed: HeardWords) -> Words | None:
    """What a third party has said to a peer, by the peer's account.

    Args:
        session: The session.
        peer: Who passes it on.
        like: What the third party has said here, on the same lane.
        passed: What the peer passes on.

    Returns:
        None where the third party has not signed it, or none of the two can sign.
    """
    first = like.shown(0)
    frames: list[Shown | Withheld] = [Shown(first.type, first.last, passed.round, passed.body)]
    frames += [Withheld(each[:HASH_BYTES], each[HASH_BYTES:]) for each in passed.rest]
    words = Words(replace(like.origin, receiver=peer), tuple(frames), passed.signature, like.certificate)
    return words if _is_signed(session.core, words) else None


def convicted(session: Session, rule: str, what: str, *words: Words) -> ProtocolViolation:
    """The error that ends a job in which a party's words convict it; the session keeps them as evidence.

    Args:
        session: The session.
        rule: The name of the rule.
        what: What the party does, in words.
        *words: Its words.
    """
    accused = words[0].origin.sender
    if session.core.identity is None:
        return ProtocolViolation(f"{accused} {what}; its node must be checked", party=accused)
    session.core.evidence.append(Evidence(rule, words))
    return ProtocolViolation(
        f"{accused} {what}; its node must be checked, and {session.me} keeps evidence of it", party=accused
    )


def _origin(session: Session, sender: str, receiver: str) -> Origin:
    terms = session.core.terms
    return Origin(
        session.id, terms.job_id, terms.attempt, terms.spec_digest, session.wire, sender, receiver, session.path
    )


async def _signed(session: Session, frm: str, frames: list[Shown], beyond: int = 0) -> Words:
    """The words that are `frames`, and so many more at most that nobody reads."""
    core = session.core
    while True:
        try:
            signature = (await session.recv(frm, Voucher)).signature
            break
        except UnexpectedMessage:
            if not beyond:
                raise
            beyond -= 1
    frames.pop()  # the voucher
    core.overheard.pop((frm, session.path))
    member = core.members.get(frm)
    certificate = b"" if member is None else member.certificate_pem
    words = Words(_origin(session, frm, session.me), tuple(frames), signature, certificate)
    if core.identity is not None and not _is_signed(core, words):
        raise ProtocolViolation(f"{frm} has not signed what it sent; its node must be checked", party=frm)
    return words


def _is_signed(core: SessionCore, words: Words) -> bool:
    if core.identity is None:
        return False
    try:
        words.check(core.identity.trust)
    except IdentityError:
        return False
    return True
