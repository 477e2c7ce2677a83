"""Checks what one entry of an audit log holds: proposals, approvals and receipts are signed by somebody themselves.

Certificates are judged at the time of the entry: what was signed before they expired or were revoked stays good. What
a party signed itself inside an entry that is known to be late is late with it, and not said once more.
"""

from __future__ import annotations

import datetime as dt
import hashlib
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TypeVar

from google.protobuf.message import DecodeError, Message

from jobs.audit.checks.lapse import timeless
from jobs.audit.entry import Entry
from jobs.audit.events import (
    Approved,
    CertificateChanged,
    Event,
    HeadLost,
    LogBegan,
    PeerAccount,
    Proposed,
    SessionBegan,
    Started,
    Transcript,
)
from jobs.consent import read_approval, read_proposal
from link.errors import ComineError
from link.pki.certificates import read_certificate
from link.pki.trust import Trust, fingerprint
from link.transcripts.receipts import differences, read_receipt
from protos.v1.control_pb2 import Approval, Proposal, SignedApproval, SignedProposal
from protos.v1.link_pb2 import SignedReceipt

M = TypeVar("M", bound=Message)


def problems(entry: Entry, event: Event, party: str, trust: Trust, *, late: bool = False) -> Iterator[str]:
    """What is wrong inside an entry whose signature holds.

    Args:
        entry: The line.
        event: What happened.
        party: Whose log it is.
        trust: Whom the reader trusts.
        late: Whether the entry was signed while its certificate was not good.
    """
    judgement = _Judgement(party, trust, entry.time, late)
    try:
        match event:
            case LogBegan() | CertificateChanged():
                yield from _certificate(event, entry)
            case HeadLost():
                yield "the log's head had been lost before this entry, so it is unknown whether lines were cut off"
            case Proposed():
                yield from _proposal(event, trust, entry.time)
            case Approved():
                yield from _approval(event, judgement)
            case Started():
                yield from _approvals(event, judgement)
            case SessionBegan() if party not in event.parties:
                yield f"the session has no part for {party}"
            case Transcript():
                yield from _transcript(event, judgement)
            case _:
                pass
    except ComineError as error:
        yield error.message
    except DecodeError:
        yield "a message in it cannot be read"


def job_id_of(proposal: Proposal) -> bytes:
    """The id of a proposed job, from the bytes of its specification, which an older version may have written."""
    spec_digest = hashlib.sha256(proposal.spec).digest()
    return hashlib.sha256(spec_digest + proposal.nonce + proposal.expiry.to_bytes(8, "big")).digest()


@dataclass(frozen=True, slots=True)
class _Judgement:
    """How signatures inside an entry are judged.

    Attributes:
        party: Whose log it is.
        trust: Whom the reader trusts.
        at: The time of the entry.
        late: Whether the entry was signed while its certificate was not good.
    """

    party: str
    trust: Trust
    at: dt.datetime
    late: bool

    def judged(self, signer: str, certificate: bytes) -> tuple[Trust, dt.datetime]:
        """Whom to trust, and when, for a signature that came with a certificate."""
        return timeless(self.trust, certificate) if self.late and signer == self.party else (self.trust, self.at)


def _certificate(event: LogBegan | CertificateChanged, entry: Entry) -> Iterator[str]:
    try:
        found = fingerprint(read_certificate(event.certificate.encode()))
    except ValueError:
        found = ""
    if found != entry.certificate:
        yield "it holds another certificate than the one that signs it"


def _proposal(event: Proposed, trust: Trust, at: dt.datetime) -> Iterator[str]:
    proposal = read_proposal(_parsed(SignedProposal(), event.proposal), trust, event.coordinator, at=at)
    if job_id_of(proposal) != event.job:
        yield f"the proposal is of job {job_id_of(proposal).hex()}, not of {event.job.hex()}"


def _approval(event: Approved, judgement: _Judgement) -> Iterator[str]:
    signed = _parsed(SignedApproval(), event.approval)
    trust, at = judgement.judged(judgement.party, signed.certificate)
    approval = read_approval(signed, trust, judgement.party, at=at)
    if approval.job_id != event.job or approval.by != event.by:
        yield "the approval is of another job or by somebody else than the entry says"


def _approvals(event: Started, judgement: _Judgement) -> Iterator[str]:
    given = [_parsed(SignedApproval(), raw) for raw in event.approvals]
    parties = [_parsed(Approval(), signed.approval).party for signed in given]
    if len(set(parties)) != len(parties):
        yield "a party's approval is there twice"
    for party, signed in zip(parties, given, strict=True):
        trust, at = judgement.judged(party, signed.certificate)
        if read_approval(signed, trust, party, at=at).job_id != event.job:
            yield f"the approval of {party} is of another job"


def _transcript(event: Transcript, judgement: _Judgement) -> Iterator[str]:
    for peer, account in event.peers.items():
        yield from _account(event, peer, account, judgement)


def _account(event: Transcript, peer: str, account: PeerAccount, judgement: _Judgement) -> Iterator[str]:
    party, signed = judgement.party, _parsed(SignedReceipt(), account.mine)
    trust, at = judgement.judged(party, signed.certificate)
    mine = read_receipt(signed, party, trust, at=at)
    if (mine.session, mine.peer) != (event.session, peer):
        yield f"this party's receipt for {peer} is of another session or peer"
    if account.theirs is None:
        if event.complete:
            yield f"the transcript is called complete, and {peer} signed no receipt"
        return
    theirs = read_receipt(_parsed(SignedReceipt(), account.theirs), peer, judgement.trust, at=judgement.at)
    if (theirs.session, theirs.peer) != (event.session, party):
        yield f"the receipt of {peer} is of another session or peer"
        return
    for direction, lane in differences(mine, theirs):
        way = f"{party} sent {peer}" if direction == "sent" else f"{peer} sent {party}"
        yield f"disputed: {party} and {peer} have signed different accounts of what {way} in lane '{lane[:80]}'"


def _parsed(message: M, raw: bytes) -> M:
    message.ParseFromString(raw)
    return message
