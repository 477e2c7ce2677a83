"""Signed receipts: at the end of a job each party states to each peer what went between them, in both directions.

Who holds a peer's receipt can later prove which frames that peer has sent and received, without a body being kept.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from google.protobuf.message import DecodeError

from link.errors import ProtocolViolation
from link.identity import Identity, verify
from link.session import Session
from link.transcript import Direction
from link.version import WIRE_VERSION
from protos.v1.link_pb2 import ChainHead, Receipt, SignedReceipt

LANE: Final = "receipts"
_PURPOSE: Final = b"comine receipt 1\0"


async def exchange_receipts(session: Session, identity: Identity) -> dict[str, SignedReceipt]:
    """Signs a receipt for every peer and checks theirs; the last step of a job.

    Rounds: 1. Output: to each party the receipts of its peers.

    Args:
        session: The job's session; no other lane may be in use any more.
        identity: What this party signs with; its authority is the one that peers' certificates must be of.

    Returns:
        By peer, the receipt that it signed.

    Raises:
        ProtocolViolation: A peer's account differs from this party's.
        IdentityError: A receipt is not signed by the peer.
    """
    lane = session.lane(LANE)
    mine = {peer: _receipt(session, peer, lane.path) for peer in session.others}
    for peer, receipt in mine.items():
        content = receipt.SerializeToString(deterministic=True)
        await lane.send(
            peer,
            SignedReceipt(
                receipt=content,
                signature=identity.sign(_PURPOSE + content),
                certificate=identity.certificate_pem,
            ),
        )
    theirs = await lane.gather(SignedReceipt)
    for peer, signed in theirs.items():
        check_receipt(signed, peer, mine[peer], identity.ca_pem)
    return theirs


def check_receipt(signed: SignedReceipt, peer: str, mine: Receipt, ca_pem: bytes) -> None:
    """Checks a peer's receipt against this party's own record.

    Args:
        signed: What the peer sent.
        peer: Who must have signed it.
        mine: This party's receipt for that peer.
        ca_pem: The authority that the peer's certificate must be of.

    Raises:
        ProtocolViolation: The accounts differ; the message names the first lane in which they do.
        IdentityError: The signature is not the peer's.
    """
    verify(ca_pem, signed.certificate, peer, _PURPOSE + signed.receipt, signed.signature)
    theirs = Receipt()
    try:
        theirs.ParseFromString(signed.receipt)
    except DecodeError:
        raise ProtocolViolation(f"{peer} signed a receipt that cannot be read", party=peer) from None
    if (theirs.session, theirs.sender, theirs.peer) != (mine.session, peer, mine.sender):
        raise ProtocolViolation(f"{peer} signed a receipt for another session or party", party=peer)
    if (theirs.version, theirs.suite) != (mine.version, mine.suite):
        raise ProtocolViolation(f"{peer} signed a receipt for another version or suite", party=peer)
    _compare(peer, "sent to", theirs.sent, mine.received)
    _compare(peer, "received from", theirs.received, mine.sent)


def _receipt(session: Session, peer: str, without: str) -> Receipt:
    def heads(direction: Direction) -> list[ChainHead]:
        return [head for head in session.transcript.heads(peer, direction) if head.lane != without]

    return Receipt(
        session=session.id,
        sender=session.me,
        peer=peer,
        sent=heads("sent"),
        received=heads("received"),
        version=WIRE_VERSION,
        suite=session.suite,
    )


def _compare(peer: str, what: str, theirs: Iterable[ChainHead], mine: Iterable[ChainHead]) -> None:
    said = {head.lane: (head.frames, head.head) for head in theirs}
    known = {head.lane: (head.frames, head.head) for head in mine}
    for lane in sorted(said.keys() | known.keys()):
        if said.get(lane) != known.get(lane):
            raise ProtocolViolation(
                f"the receipt of {peer} for what it {what} this party differs from this party's record in lane "
                f"'{lane[:80]}'; one of the two nodes is faulty or lies",
                party=peer,
            )
