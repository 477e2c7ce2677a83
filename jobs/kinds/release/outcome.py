"""What a party has when a release is made."""

from __future__ import annotations

from jobs.kinds.release.finding import FoundRelease
from jobs.kinds.release.release import Anonymized
from jobs.results.outcome import Outcome
from mining.joint.anonymisation.anonymise import JointRelease
from mining.joint.anonymisation.parameters import JointAnonymisation


def found_release(task: JointAnonymisation, found: JointRelease, parties: tuple[str, ...]) -> Outcome:
    """The outcome of a job: with the release at a party that learns it."""
    finding = None if found.rows is None else FoundRelease(Anonymized.of(task, found, parties))
    return Outcome(found.n_rows, task.algorithm, finding)
