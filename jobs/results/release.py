"""A party's signed statement of what it released in a job, and its check."""

from __future__ import annotations

import datetime as dt
from typing import TYPE_CHECKING, Final

from google.protobuf.message import DecodeError

from link.errors import MalformedMessage, ProtocolViolation
from link.pki.identity import Identity
from link.pki.identity import verify as verify_signature
from link.pki.trust import Trust
from protos.v1.control_pb2 import Release, ResultHeader

if TYPE_CHECKING:
    from jobs.run import PartyRun

_PURPOSE: Final = b"comine.release/1\0"


def release_of(run: PartyRun, *, job_id: bytes, party: str, result_digest: bytes) -> Release:
    """What `party` states after a run.

    Args:
        run: The party's run.
        job_id: The job.
        party: The party's name.
        result_digest: Of the packed result; empty where the party does not learn it, or the receiver of the release may
            not.
    """
    return Release(
        job_id=job_id,
        session=run.session_id,
        party=party,
        result_digest=result_digest,
        n_rows=run.outcome.n_rows,
        positions=run.outcome.positions,
        strategy=run.outcome.strategy,
        bytes_sent=run.costs.bytes_sent,
        bytes_received=run.costs.bytes_received,
        rounds=run.costs.rounds,
        seconds=run.costs.seconds,
        receipts_from=run.receipts_from,
    )


def rows_of(release: Release) -> tuple[int | None, int | None]:
    """The numbers of rows and of positions that a release states; None for what it does not."""
    return (
        release.n_rows if release.HasField("n_rows") else None,
        release.positions if release.HasField("positions") else None,
    )


def sign(release: Release, identity: Identity) -> ResultHeader:
    """The release with this party's signature over its bytes, and the certificate to check it with."""
    body = release.SerializeToString()
    signature = identity.sign(_PURPOSE + body)
    return ResultHeader(release=body, signature=signature, certificate=identity.certificate_pem)


def verify(header: ResultHeader, *, trust: Trust, party: str, job_id: bytes, at: dt.datetime | None = None) -> Release:
    """The release inside a header, once it is known to be this party's word on this job.

    Args:
        header: The release as it came.
        trust: Whom the reader trusts.
        party: Who must have signed it.
        job_id: The job.
        at: When it was signed, for records; now, where absent.

    Raises:
        IdentityError: The signature is wrong, or its certificate is foreign, outdated or names somebody else.
        MalformedMessage: The release cannot be read.
        ProtocolViolation: It speaks of another job or in another party's name.
    """
    verify_signature(trust, header.certificate, party, _PURPOSE + header.release, header.signature, at=at)
    release = Release()
    try:
        release.ParseFromString(header.release)
    except DecodeError:
        raise MalformedMessage(f"{party} signed a release that cannot be read", party=party) from None
    if release.party != party or release.job_id != job_id:
        raise ProtocolViolation(f"{party} signed the release of another party or job", party=party)
    return release
