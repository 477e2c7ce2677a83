"""What a policy says to kinds of jobs that other distributions add."""

from __future__ import annotations

from jobs.kinds.registry import plugin_of
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
