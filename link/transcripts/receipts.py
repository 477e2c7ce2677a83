"""Signed receipts: at the end of a job each party states to each peer what went between them, in both directions.

Who holds a peer's receipt can later prove which frames that peer has sent and received, without a body being kept. Of a
session that ends early each party keeps what it can say by itself.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterable, Iterator
from typing import Final, NamedTuple

from google.protobuf.message import DecodeError

from link.errors import LimitExceeded, ProtocolViolation
from link.pki.identity import Identity, verify
from link.pki.trust import Trust
from link.session import Session
from link.transcripts.transcript import Direction, folded
from protos.v1.link_pb2 import ChainHead, Receipt, SignedReceipt

LANE: Final = "receipts"
SLACK_BYTES: Final = 64 << 10  # by which a receipt may be longer than the one that answers it: certificates differ
_PURPOSE: Final = b"comine receipt 1\0"


class Account(NamedTuple):
    """What two parties say of the frames between them.

    Attributes:
        mine: This party's signed receipt for the peer.
        theirs: The peer's for this party; None where the session ended before it came.
    """

    mine: SignedReceipt
    theirs: SignedReceipt | None


class Receipts:
    """The receipts of one session at one party.

    Args:
        session: The job's session.
        identity: What this party signs with, and whom it believes.
    """

    def __init__(self, session: Session, identity: Identity) -> None:
        self._session, self._identity = session, identity
        self._mine: dict[str, SignedReceipt] = {}
        self._theirs: dict[str, SignedReceipt] = {}

    async def exchange(self) -> None:
        """Signs a receipt for every peer and checks theirs; the last step of a job, when no other lane is in use.

        Rounds: 1.

        Raises:
            ProtocolViolation: A peer's account differs from this party's.
            LimitExceeded: It is much longer.
            IdentityError: A receipt is not signed by the peer.
        """
        lane = self._session.lane(LANE)
        self._mine = self._signed()
        for peer, signed in self._mine.items():
            await lane.send(peer, signed)
        for peer in lane.others:
            signed = await lane.recv(peer, SignedReceipt)
            most = self._mine[peer].ByteSize() + SLACK_BYTES
            if signed.ByteSize() > most:  # the audit log would keep it for ever
                raise LimitExceeded(f"{peer} sent a receipt of more than {most} bytes", party=peer)
            self._theirs[peer] = signed
        for peer, signed in self._theirs.items():
            mine, member = Receipt.FromString(self._mine[peer].receipt), self._session.core.members.get(peer)
            greeted = b"" if member is None else member.certificate_pem
            check_receipt(signed, peer, mine, self._identity.trust, timed=signed.certificate != greeted)

    def accounts(self) -> dict[str, Account]:
        """By peer, what was exchanged; before the exchange, this party's own account so far."""
        mine = self._mine or self._signed()
        return {peer: Account(mine[peer], self._theirs.get(peer)) for peer in self._session.others}

    def _signed(self) -> dict[str, SignedReceipt]:
        return {peer: sign_receipt(self._receipt(peer), self._identity) for peer in self._session.others}

    def _receipt(self, peer: str) -> Receipt:
        session = self._session
        without = session.lane(LANE).path

        def heads(direction: Direction) -> list[ChainHead]:
            return folded([head for head in session.transcript.heads(peer, direction) if head.lane != without])

        return Receipt(
            session=session.id,
            sender=session.me,
            peer=peer,
            sent=heads("sent"),
            received=heads("received"),
            version=str(session.wire),
            suite=session.suite,
        )


def sign_receipt(receipt: Receipt, identity: Identity) -> SignedReceipt:
    """A receipt with this party's signature over its bytes, and the certificate to check it with."""
    content = receipt.SerializeToString(deterministic=True)
    return SignedReceipt(
        receipt=content, signature=identity.sign(_PURPOSE + content), certificate=identity.certificate_pem
    )


def read_receipt(
    signed: SignedReceipt, signer: str, trust: Trust, *, at: dt.datetime | None = None, timed: bool = True
) -> Receipt:
    """A receipt, once it is known to be this party's word.

    Args:
        signed: The receipt.
        signer: Who must have signed it.
        trust: Whom the reader believes.
        at: When it was signed, for records; now, where absent.
        timed: As of `verify`.

    Raises:
        IdentityError: The signature is not the signer's.
        ProtocolViolation: The receipt cannot be read, or is another party's.
    """
    verify(trust, signed.certificate, signer, _PURPOSE + signed.receipt, signed.signature, at=at, timed=timed)
    receipt = Receipt()
    try:
        receipt.ParseFromString(signed.receipt)
    except DecodeError:
        raise ProtocolViolation(f"{signer} signed a receipt that cannot be read", party=signer) from None
    if receipt.sender != signer:
        raise ProtocolViolation(f"{signer} signed a receipt for another session or party", party=signer)
    return receipt


def check_receipt(signed: SignedReceipt, peer: str, mine: Receipt, trust: Trust, *, timed: bool = True) -> None:
    """Checks a peer's receipt against this party's own record.

    Args:
        signed: What the peer sent.
        peer: Who must have signed it.
        mine: This party's receipt for that peer.
        trust: Whom this party believes.
        timed: As of `verify`; not where the greeting has seen to it that the peer's certificate lasts until the end.

    Raises:
        ProtocolViolation: The accounts differ; the message names the first lane in which they do.
        IdentityError: The signature is not the peer's.
    """
    theirs = read_receipt(signed, peer, trust, timed=timed)
    if (theirs.session, theirs.peer) != (mine.session, mine.sender):
        raise ProtocolViolation(f"{peer} signed a receipt for another session or party", party=peer)
    if (theirs.version, theirs.suite) != (mine.version, mine.suite):
        raise ProtocolViolation(f"{peer} signed a receipt for another version or suite", party=peer)
    for direction, lane in differences(mine, theirs):
        what = "sent to" if direction == "received" else "received from"
        raise ProtocolViolation(
            f"the receipt of {peer} for what it {what} this party differs from this party's record in lane "
            f"'{lane[:80].removeprefix('/')}'; one of the two nodes is faulty or lies",
            party=peer,
        )


def differences(mine: Receipt, theirs: Receipt, *, ended: bool = True) -> Iterator[tuple[Direction, str]]:
    """Where two parties' accounts of the same frames differ.

    Args:
        mine: One party's receipt.
        theirs: The other's.
        ended: Whether both speak of the whole session; if not, frames may still have been under way, so only the heads
            of lanes, or of lanes taken together, with equal numbers of frames are compared.

    Yields:
        The direction, as seen by `mine`, and the lane.
    """
    directions: tuple[tuple[Direction, Iterable[ChainHead], Iterable[ChainHead]], ...] = (
        ("received", mine.received, theirs.sent),
        ("sent", mine.sent, theirs.received),
    )
    for direction, known, said in directions:
        left = {head.lane: (head.frames, head.head) for head in known}
        right = {head.lane: (head.frames, head.head) for head in said}
        for lane in sorted(left.keys() | right.keys()):
            one, other = left.get(lane), right.get(lane)
            if one != other and (ended or (one is not None and other is not None and one[0] == other[0])):
                yield direction, lane
