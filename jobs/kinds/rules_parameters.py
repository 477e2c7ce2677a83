"""The rules of a job that cannot follow from its result."""

from __future__ import annotations

from jobs.spec.job import JobSpec
from mining.joint.parameters import RuleParameters


def decided_rules(spec: JobSpec) -> RuleParameters | None:
    """Where no support is opened, rules cannot follow from the result and are decided on shares."""
    if spec.rules is None or spec.itemsets.disclose != "frequent":
        return None
    return RuleParameters(spec.rules.min_confidence, spec.rules.consequent)
