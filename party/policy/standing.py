"""Standing approvals: whether a proposal is a run that a person has approved in advance.

The policy has judged the proposal before, as every other, and judges it again at the start. What does not fit to the
letter is not refused here: it awaits a person, as if there were no standing approval.
"""

from __future__ import annotations

import datetime as dt
from typing import Any, Final

from jobs.audit.standing_events import StandingApproved, Terms
from jobs.spec.job import JobSpec
from link.errors import IdentityError, UsageError
from link.files.quantities import duration, seconds
from link.pki.certificates import read_certificate
from link.pki.identity import Identity, verify
from link.pki.trust import Trust, fingerprint
from party.state.standing import Standing
from protos.v1.control_pb2 import SignedProposal

SLACK_S: Final = 300  # by which a clock may be set back before standing approvals rest
MOST_TIMES: Final = 400
LONGEST_S: Final = 400 * 86_400
_DAY: Final = dt.timedelta(days=1)


class Schedule:
    """What a person asks for at the command line.

    Args:
        times: How many runs.
        every: The time between two of them at least, as in "7d".
        until: The last day, as in "2027-01-31", in UTC.
        now: Unix seconds.

    Raises:
        UsageError: Something of it is not possible.
    """

    def __init__(self, times: int, every: str, until: str, now: float) -> None:
        try:
            self.times, self.every_s = times, seconds(every)
            last = dt.datetime.strptime(until, "%Y-%m-%d").replace(tzinfo=dt.UTC)
        except ValueError:
            raise UsageError("--every is a duration such as 7d, and --until a day such as 2027-01-31") from None
        self.until = int((last + _DAY).timestamp())
        if not (1 <= times <= MOST_TIMES and self.every_s >= 1 and now < self.until <= now + LONGEST_S):
            raise UsageError(
                f"a standing approval is for 1 to {MOST_TIMES} runs, and ends after today, within "
                f"{LONGEST_S // 86_400} days"
            )

    @property
    def runs(self) -> str:
        """It in the words of the audit log."""
        return f"{self.times} {self.every_s} {self.until}"


def as_typed(runs: str) -> dict[str, Any]:
    """A schedule in the words of the audit log, as a person asks for it: `times`, `every` and `until`."""
    times, every_s, until = map(int, runs.split())
    last = dt.datetime.fromtimestamp(until, dt.UTC) - _DAY
    return {"times": times, "every": duration(every_s), "until": f"{last:%Y-%m-%d}"}


def grant(
    schedule: Schedule, job_id: bytes, spec: JobSpec, proposal: SignedProposal, coordinator: str, identity: Identity,
    by: str, now: float,
) -> StandingApproved:  # fmt: skip
    """A standing approval, signed by the party.

    Args:
        schedule: How many runs, and when.
        job_id: The job that was shown to who approves.
        spec: Its specification.
        proposal: As its coordinator signed it.
        coordinator: Who that is.
        identity: The party.
        by: Who approves.
        now: Unix seconds.
    """
    terms = Terms(
        party=identity.name,
        job=job_id,
        spec_digest=spec.digest,
        coordinator=coordinator,
        coordinator_certificate=_print(proposal.certificate),
        times=schedule.times,
        every_s=schedule.every_s,
        until=schedule.until,
        approved=int(now),
        by=by,
    )
    return StandingApproved(
        terms=terms, certificate=identity.certificate_pem.decode(), signature=identity.sign(terms.signed())
    )


def why_not(
    standing: Standing, spec: JobSpec, proposal: SignedProposal, coordinator: str, trust: Trust, me: str, now: float
) -> str:
    """Why a standing approval is not for a proposal; empty where it is.

    Args:
        standing: The standing approval.
        spec: What is proposed.
        proposal: As its coordinator signed it, which was checked.
        coordinator: Who that is.
        trust: Whom this party believes.
        me: This party.
        now: Unix seconds, which are not before the latest time that was seen.
    """
    terms = standing.terms
    if terms.spec_digest != spec.digest:
        return "it is for another specification"
    if (terms.party, terms.coordinator, terms.coordinator_certificate) != (
        me,
        coordinator,
        _print(proposal.certificate),
    ):
        return "it is for another coordinator, or another certificate of this one"
    if standing.revoked:
        return f"it was revoked by {standing.revoked}"
    if now >= terms.until:
        return "it has ended"
    if len(standing.uses) >= terms.times:
        return "all its runs are used up"
    if now < max((terms.approved, *standing.uses)) + terms.every_s:
        return "the last run is too short a time ago"
    try:
        verify(trust, standing.certificate.encode(), me, terms.signed(), standing.signature, timed=False)
    except IdentityError:
        return "its signature does not hold"
    return ""


def _print(certificate: bytes) -> bytes:
    return bytes.fromhex(fingerprint(read_certificate(certificate)))
