"""Parameters that several kinds of jobs take from `[itemsets]` and `[rules]`."""

from __future__ import annotations

from jobs.spec.job import JobSpec
from mining.data.transactions import matching
from mining.joint.parameters import RuleParameters


def asked_rules(spec: JobSpec) -> RuleParameters | None:
    """The rules that a job asks for."""
    return None if spec.rules is None else RuleParameters(spec.rules.min_confidence, spec.rules.consequent)


def decided_rules(spec: JobSpec) -> RuleParameters | None:
    """Where no support is opened, rules cannot follow from the result and are decided on shares."""
    return asked_rules(spec) if spec.itemsets.disclose == "frequent" else None


def asked_catalogue(spec: JobSpec) -> tuple[str, ...] | None:
    """The public catalogue without the items that the job excludes; None where the job names none."""
    given = spec.itemsets
    if given.catalogue is None:
        return None
    excluded = matching(given.catalogue, given.exclude)
    return tuple(item for item in given.catalogue if item not in excluded)
