"""From what the parties signed to a result: signatures, agreement of the learners, and the table they vouch for."""

from __future__ import annotations

from collections.abc import Mapping

from jobs.findings import Receipt, Result
from jobs.release import verify
from jobs.result import digest, unpack
from jobs.spec import JobSpec
from link.costs import Costs
from link.errors import MalformedMessage, ProtocolViolation
from protos.v1.control_pb2 import Release, ResultHeader


def assemble(
    spec: JobSpec,
    job_id: bytes,
    ca_pem: bytes,
    released: Mapping[str, tuple[ResultHeader, bytes]],
    source: str | None,
) -> Result:
    """Checks what all parties released and makes one result of it.

    Args:
        spec: The job.
        job_id: Its id.
        ca_pem: The authority of the federation.
        released: By party, its signed release and what it sent of the result.
        source: The learner whose table is taken; None where the coordinator is no recipient.

    Raises:
        IdentityError: A signature is not the party's.
        MalformedMessage: The table cannot be read.
        ProtocolViolation: Two parties signed different things, or the table is not what was signed.
    """
    releases = {
        party: verify(header, ca_pem=ca_pem, party=party, job_id=job_id) for party, (header, _) in released.items()
    }
    agreed = releases[spec.learners[0]]
    for party, release in releases.items():
        _check_agreement(party, release, agreed, learns=party in spec.learners)
    found = None
    if source is not None:
        packed = released[source][1]
        if digest(packed) != agreed.result_digest:
            raise ProtocolViolation(
                f"{source} sent another result than it and the other parties have signed; do not use it", party=source
            )
        try:
            found = unpack(packed)
        except ValueError as error:
            raise MalformedMessage(f"{source} sent a result that cannot be read: {error}", party=source) from None
        if found.n_rows != agreed.n_rows:
            raise ProtocolViolation(f"{source} signed another number of rows than its result has", party=source)
    return Result(
        spec=spec,
        job_id=job_id,
        session_id=agreed.session,
        n_rows=agreed.n_rows,
        strategy=agreed.strategy,
        parties={
            party: Costs(release.bytes_sent, release.bytes_received, release.rounds, release.seconds)
            for party, release in releases.items()
        },
        receipts={
            party: Receipt(header.release, header.signature, header.certificate, tuple(releases[party].receipts_from))
            for party, (header, _) in released.items()
        },
        found=found,
    )


def _check_agreement(party: str, release: Release, agreed: Release, *, learns: bool) -> None:
    if release.session != agreed.session or len(release.session) != 32:
        raise ProtocolViolation(f"{party} signed for another session than {agreed.party}", party=party)
    if release.n_rows != agreed.n_rows:
        raise ProtocolViolation(f"{party} signed another number of rows than {agreed.party}", party=party)
    if release.strategy != agreed.strategy:
        raise ProtocolViolation(f"{party} signed another strategy than {agreed.party}", party=party)
    if learns and release.result_digest != agreed.result_digest:
        raise ProtocolViolation(f"{party} signed another result than {agreed.party}; do not use either", party=party)
