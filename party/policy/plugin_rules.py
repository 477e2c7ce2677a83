"""What a policy says to kinds of jobs that other distributions add."""

from __future__ import annotations

from jobs.kinds.kind import Facet
from jobs.kinds.registry import plugin_of
from jobs.spec.job import JobSpec
from party.policy.policy_input import PolicyInput, Verdict
from party.policy.rules import PolicySection


def added_kinds(policy: PolicySection, facts: PolicyInput) -> Verdict | None:
    """A plug-in's kind is run where it is named: no other rule knows whether what it discloses is what it says."""
    name, refusal = plugin_of(facts.spec), None
    if name is None:
        return None
    if name not in policy.kinds:
        refusal = (
            f"runs jobs of comine's own kinds and of plug-ins that it names, and this one is of the plug-in '{name}', "
            "which it does not name (rule kinds)"
        )
    return Verdict("kinds", ", ".join(policy.kinds) or "no plug-ins", refusal)


def can_judge(spec: JobSpec, facets: frozenset[Facet]) -> bool:
    """Whether the rules for what a job opens find in it what they look at, in the tables of comine's own kinds."""
    judged = {
        "itemsets": spec.itemsets_ is not None,
        "model": bool(spec.columns),
        "release": spec.anonymize is not None,
        "rows in common": True,
        "column groups": bool(spec.groups),
        "other": plugin_of(spec) is not None,
    }
    return bool(facets) and all(judged.get(facet, False) for facet in facets)
