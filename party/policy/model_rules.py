"""What a policy says to jobs that learn models."""

from __future__ import annotations

from party.policy.policy_input import PolicyInput, Verdict
from party.policy.rules import PolicySection


def min_count_of_model(policy: PolicySection, facts: PolicyInput) -> Verdict | None:
    """A tree can keep to nodes of many rows; other models are made of counts of any size."""
    least = policy.min_count
    if least is None:
        return None
    task, tree, refusal = facts.spec.job.task, facts.spec.decision_tree, None
    floor = f"at least {least} (rule min_count)"
    if tree is None and least > 1:
        refusal = (
            f"asks for counts of {floor}, and the task '{task}' opens counts of any size; "
            "where that is allowed, min_count = 1 under [dataset.policy] says so"
        )
    elif tree is not None and tree.min_rows < least:
        refusal = f"asks for [decision_tree] min_rows of {floor}, and the job has {tree.min_rows}"
    allows = f"trees with min_rows of at least {least}, within whose nodes counts may be smaller"
    return Verdict("min_count", allows, refusal)
