"""Signed proposals and signed consent: what a coordinator asks of all parties alike, and what each of them answers.

The job id is a hash over the specification, a nonce and an expiry. An approval signs that id, so it is good for this
job alone; every party checks the approvals of all parties before it begins, and begins a job once.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterable
from typing import Final

from google.protobuf.message import DecodeError

from jobs.spec.job import JobSpec
from link.errors import MalformedMessage, ProtocolViolation
from link.pki.identity import Identity, check_span, verify
from link.pki.trust import Trust
from protos.v1.control_pb2 import Approval, Proposal, SignedApproval, SignedProposal

NONCE_BYTES: Final = 16
_PROPOSAL: Final = b"comine.proposal/1\0"
_APPROVAL: Final = b"comine.approval/1\0"


def propose(spec: JobSpec, identity: Identity, *, nonce: bytes, expiry: int) -> SignedProposal:
    """The proposal of a job, signed by its coordinator.

    Args:
        spec: The job.
        identity: The coordinator.
        nonce: `NONCE_BYTES` fresh random bytes.
        expiry: Unix seconds, after which no party begins the job.
    """
    body = Proposal(spec=spec.canonical(), nonce=nonce, expiry=expiry).SerializeToString(deterministic=True)
    return SignedProposal(
        proposal=body, signature=identity.sign(_PROPOSAL + body), certificate=identity.certificate_pem
    )


def read_proposal(signed: SignedProposal, trust: Trust, coordinator: str, *, at: dt.datetime | None = None) -> Proposal:
    """The proposal, once it is known to be this coordinator's word.

    Args:
        signed: The proposal as it came.
        trust: Whom the reader trusts.
        coordinator: Who must have signed it.
        at: When it was signed, for records; now, where absent.

    Raises:
        IdentityError: The signature is not the coordinator's.
        MalformedMessage: The proposal cannot be read or has no proper nonce.
    """
    data = _PROPOSAL + signed.proposal
    verify(trust, signed.certificate, coordinator, data, signed.signature, role="coordinator", at=at)
    proposal = Proposal()
    try:
        proposal.ParseFromString(signed.proposal)
    except DecodeError:
        raise MalformedMessage(f"{coordinator} signed a proposal that cannot be read") from None
    if len(proposal.nonce) != NONCE_BYTES or proposal.expiry < 0:
        raise MalformedMessage(f"a proposal needs a nonce of {NONCE_BYTES} bytes and an expiry")
    return proposal


def approve(job_id: bytes, coordinator: str, identity: Identity, *, decided: int, by: str) -> SignedApproval:
    """This party's consent to one job.

    Args:
        job_id: The job.
        coordinator: Who proposed it.
        identity: This party.
        decided: Unix seconds.
        by: "policy", or the person who approved.
    """
    approval = Approval(job_id=job_id, party=identity.name, coordinator=coordinator, decided=decided, by=by)
    body = approval.SerializeToString(deterministic=True)
    return SignedApproval(
        approval=body, signature=identity.sign(_APPROVAL + body), certificate=identity.certificate_pem
    )


def read_approval(signed: SignedApproval, trust: Trust, party: str, *, at: dt.datetime | None = None) -> Approval:
    """The approval, once it is known to be this party's word.

    Args:
        signed: The approval as it came.
        trust: Whom the reader trusts.
        party: Who must have signed it.
        at: When it was signed, for records; now, where absent.

    Raises:
        IdentityError: The signature is not the party's.
        MalformedMessage: The approval cannot be read.
        ProtocolViolation: It speaks in another party's name.
    """
    verify(trust, signed.certificate, party, _APPROVAL + signed.approval, signed.signature, at=at)
    approval = Approval()
    try:
        approval.ParseFromString(signed.approval)
    except DecodeError:
        raise MalformedMessage(f"{party} signed an approval that cannot be read", party=party) from None
    if approval.party != party:
        raise ProtocolViolation(f"{party} signed an approval in another party's name", party=party)
    return approval


def check_approvals(
    approvals: Iterable[SignedApproval],
    trust: Trust,
    *,
    job_id: bytes,
    coordinator: str,
    parties: tuple[str, ...],
    lasts_s: float,
) -> None:
    """Checks that every party of a job, and nobody else, has approved this very job.

    Args:
        approvals: In the order of the parties.
        trust: Whom the reader trusts.
        job_id: The job.
        coordinator: Who proposed it.
        parties: All its parties.
        lasts_s: Seconds for which the job may run, at whose end the certificates must still be valid.

    Raises:
        IdentityError: A signature is not its party's, or its certificate is not valid or will not be for long enough.
        MalformedMessage: An approval cannot be read.
        ProtocolViolation: A party's approval is missing, doubled, or of another job or coordinator.
    """
    given = list(approvals)
    if len(given) != len(parties):
        raise ProtocolViolation(f"the job needs the approval of each of its {len(parties)} parties, once")
    for party, signed in zip(parties, given, strict=True):
        approval = read_approval(signed, trust, party)
        if approval.job_id != job_id or approval.coordinator != coordinator:
            raise ProtocolViolation(
                f"the approval of {party} is for another job than the one to be started; propose the job anew",
                party=party,
            )
        check_span(signed.certificate, party, lasts_s)
