"""How a start of a job is charged to what limits all jobs together, and how the audit log records it."""

from __future__ import annotations

from jobs.audit.events import Charged
from jobs.audit.service_events import JointReleaseBegan
from jobs.kinds.charge import charge
from jobs.kinds.registry import opens
from party.jobs.context import JobContext
from party.jobs.job import Job
from party.jobs.progress import open_journal
from party.policy.joint_result import joint_result
from party.services.anonymization.releases import Releases
from party.state.ledger import Entry, Ledger


def charge_start(context: JobContext, job: Job, attempt: int, now: float) -> None:
    """Charges a start; it is on disk when this returns, before anything of the job can leave.

    Under noise the first start of a job is charged for all, whose coins its journal has: that is there before.

    Args:
        context: What the node's jobs share.
        job: What starts.
        attempt: Counts its starts, from 1.
        now: Unix seconds.

    Raises:
        PolicyDenied: As many releases of the same rows as may be made have begun meanwhile.
        ComineError: It cannot be written, or what an earlier start has drawn is lost, so the job must not start.
    """
    named = job.spec.job
    before = [entry for entry in context.ledger.of_job(job.id) if entry.attempt != attempt]
    open_journal(context.journals, job.id, job.spec, attempt, before)
    if context.consent.judge.looks_at_rows(job.spec):
        context.ledger.note_result(named.dataset, joint_result(job.spec))
    context.ledger.record(Entry(job.id, attempt, now, named.dataset, named.name, job.coordinator, charge(job.spec)))
    if opens(job.spec, "release"):  # last: a start that is not charged uses up no release
        most = context.consent.judge.policy_of(job.spec).max_releases
        job.earlier_release = context.releases.begin(named.dataset, job.id, job.coordinator, most)


def charged(ledger: Ledger, job_id: bytes, attempt: int) -> tuple[Charged, ...]:
    """What the audit log records of a start; nothing of a job under the exact model, which is charged nothing."""
    found = (entry for entry in ledger.of_job(job_id) if entry.attempt == attempt)
    return tuple(
        Charged.of(job_id, attempt, entry.dataset, entry.charge) for entry in found if entry.charge.epsilon is not None
    )


def release_begun(releases: Releases, job: Job) -> tuple[JointReleaseBegan, ...]:
    """What the audit log records of a joint release, by which an older copy of what counts them is known."""
    if not opens(job.spec, "release"):
        return ()
    named, number = job.spec.job, releases.head
    return (JointReleaseBegan(dataset=named.dataset, coordinator=job.coordinator, job=job.id, number=number),)
