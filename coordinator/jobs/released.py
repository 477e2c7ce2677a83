"""From what the parties signed to a result: signatures, agreement of the learners, and the table they vouch for."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING

from coordinator.jobs.lifecycle import ended
from coordinator.jobs.records.store import JobFolder, Record
from jobs.federation import Federation
from jobs.kinds.finding import Finding
from jobs.kinds.packed_itemsets import digest
from jobs.kinds.registry import coordinator_learns, kind_of
from jobs.plan import Plan
from jobs.results.record import Receipt
from jobs.results.release import rows_of, verify
from jobs.results.result import Result
from jobs.spec.job import JobSpec
from link.costs import Costs
from link.errors import ComineError, ConfigurationError, MalformedMessage, ProtocolViolation
from link.pki.trust import Trust
from protos.v1.control_pb2 import Release, ResultHeader

if TYPE_CHECKING:
    from link.pki.identity import Identity


def assemble(
    spec: JobSpec,
    job_id: bytes,
    trust: Trust | None,
    released: Mapping[str, tuple[ResultHeader, bytes]],
    source: str | None,
) -> Result:
    """Checks what all parties released and makes one result of it.

    Args:
        spec: The job.
        job_id: Its id.
        trust: Whom the coordinator believes; None where the signatures were checked when they came. Certificates
            expire and are revoked, and that takes nothing from what was signed before.
        released: By party, its signed release and what it sent of the result.
        source: The learner whose result is taken; None where the coordinator is no recipient or the job finds nothing
            but numbers of rows.

    Raises:
        IdentityError: A signature is not the party's.
        MalformedMessage: The table cannot be read.
        ProtocolViolation: Two parties signed different things, or the table is not what was signed.
    """
    releases = {
        party: Release.FromString(header.release)
        if trust is None
        else verify(header, trust=trust, party=party, job_id=job_id)
        for party, (header, _) in released.items()
    }
    agreed = releases[spec.learners[0]]
    for party, release in releases.items():
        _check_agreement(party, release, agreed, learns=party in spec.learners)
    n_rows, positions = rows_of(agreed)
    if (n_rows is None) is (positions is None) or (positions is not None) is not kind_of(spec).finds_positions(spec):
        raise ProtocolViolation(f"{agreed.party} signed another kind of size than the job asks for", party=agreed.party)
    finding = None if source is None else _found(spec, source, released[source][1], agreed)
    return Result(
        spec=spec,
        job_id=job_id,
        session_id=agreed.session,
        n_rows=n_rows,
        positions=positions,
        strategy=agreed.strategy,
        parties={
            party: Costs(release.bytes_sent, release.bytes_received, release.rounds, release.seconds)
            for party, release in releases.items()
        },
        receipts={
            party: Receipt(header.release, header.signature, header.certificate, tuple(releases[party].receipts_from))
            for party, (header, _) in released.items()
        },
        finding=finding,
    )


def result_of(
    record: Record,
    headers: Mapping[str, ResultHeader],
    table: bytes | None,
    trust: Trust | None = None,
    *,
    signer: Identity | None = None,
) -> Result:
    """The result of a job with what led to it: the proposal, the consents, and the plan where there was one.

    Args:
        record: The job.
        headers: What each party signed.
        table: The packed result; None where the coordinator is no recipient.
        trust: As in `assemble`.
        signer: Who signs what the result is saved in.

    Raises:
        ComineError: As in `assemble`.
    """
    source = None if table is None else record.spec.learners[0]
    released = {party: (header, table or b"") for party, header in headers.items()}
    result = assemble(record.spec, record.id, trust, released, source)
    plan = None
    if record.plan is not None:
        with suppress(ComineError, ValueError, KeyError, TypeError):  # another version's plan costs no result
            plan = Plan.from_data(record.plan)
    return replace(result, proposal=record.proposal, approvals=record.approvals, plan=plan, signer=signer)


def kept_result(folder: JobFolder, federation: Federation) -> Result:
    """The result of a job that has succeeded, as the coordinator keeps it.

    Args:
        folder: The job.
        federation: Whose certificate signs what the result is saved in, where it is good today.

    Raises:
        ConfigurationError: The job goes on.
        ComineError: It ended early; the error is the one that began it.
    """
    record = folder.record()
    if record.job.problem is not None:
        raise ended(record.job)
    if not record.job.over:
        raise ConfigurationError(
            f"the job has no result yet, it is {record.job.state}; wait for it with: comine job watch {folder.id[:12]}"
        )
    table = folder.table() if coordinator_learns(record.spec) else None
    signer = None
    with suppress(ComineError):  # a result can be had when the certificate has expired, too
        signer = None if federation.coordinator is None else federation.coordinator.identity(federation.pins)
    return result_of(record, record.released, table, signer=signer)


def _found(spec: JobSpec, source: str, packed: bytes, agreed: Release) -> Finding:
    """What a learner has sent, once it is what all have signed and what the job asks for."""
    if digest(packed) != agreed.result_digest:
        raise ProtocolViolation(
            f"{source} sent another result than it and the other parties have signed; do not use it", party=source
        )
    try:
        finding = kind_of(spec).unpack(packed)
    except ValueError as error:
        raise MalformedMessage(f"{source} sent a result that cannot be read: {error}", party=source) from None
    if finding.n_rows != agreed.n_rows:
        raise ProtocolViolation(f"{source} signed another number of rows than its result has", party=source)
    if not finding.fits(spec):
        raise ProtocolViolation(f"{source} sent a result of another kind than the job asks for", party=source)
    return finding


def _check_agreement(party: str, release: Release, agreed: Release, *, learns: bool) -> None:
    if release.session != agreed.session or len(release.session) != 32:
        raise ProtocolViolation(
            f"{party} signed for another session than {agreed.party}; one of these two nodes deviates"
        )
    if rows_of(release) != rows_of(agreed):
        raise ProtocolViolation(
            f"{party} signed another number of rows than {agreed.party}; one of these two nodes deviates"
        )
    if release.strategy != agreed.strategy:
        raise ProtocolViolation(f"{party} signed another strategy than {agreed.party}; one of these two nodes deviates")
    if learns and release.result_digest != agreed.result_digest:
        raise ProtocolViolation(f"{party} signed another result than {agreed.party}; do not use either")
