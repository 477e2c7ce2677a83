"""How a job over columns multiplies what lies at several parties, why so, and who helps."""

from __future__ import annotations

from jobs.kinds.columns.parameters import vertical_mining
from jobs.spec.job import AUTO_HELPER, JobSpec
from mining.joint.vertical.choice import VERIFIED, choose_engine, chosen_engine, is_dealt
from mining.joint.vertical.engines.names import AUTO


def engine_reason(spec: JobSpec) -> str:
    """Why the job takes its engine, in a sentence; and who helps, where it leaves that open, in another."""
    return _engine_reason(spec) + _of_helper(spec)


def _engine_reason(spec: JobSpec) -> str:
    if spec.itemsets.engine != AUTO:
        return f'The job names engine = "{spec.itemsets.engine}".'
    if spec.is_verified:
        return f'security = "malicious" takes {VERIFIED}, the engine whose products are checked.'
    return choose_engine(vertical_mining(spec)).reason


def _of_helper(spec: JobSpec) -> str:
    if spec.trust.helper != AUTO_HELPER:
        return ""
    engine, helper = chosen_engine(vertical_mining(spec)).name, helper_of(spec)
    if helper is None:
        return f' helper = "auto" takes nobody: {engine} needs no help.'
    return f' helper = "auto" takes {helper}, whose help {engine} needs.'


def helper_of(spec: JobSpec) -> str | None:
    """Who helps the two computing parties: the coordinator as dealer, or the party that holds shares beside them.

    None where nobody does.
    """
    task = vertical_mining(spec)
    return chosen_engine(task).helper(task, spec.job.parties)


def is_dealt_by_coordinator(spec: JobSpec) -> bool:
    """Whether the coordinator deals randomness to the two parties."""
    return is_dealt(vertical_mining(spec), spec.job.parties)
