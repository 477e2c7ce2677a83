"""What a policy says to jobs that anonymise rows of several parties."""

from __future__ import annotations

from typing import Any

import pytest

from jobs.spec import JobSpec
from link.errors import PolicyDenied
from party.case import Case
from party.policy import decide, verdicts
from party.rules import PolicySection, Rules
from tests.joint.anonymisation_jobs_world import job
from tests.joint.anonymisation_world import PARTIES
from tests.joint.model_jobs_world import job as model_job


def policy(**rules: Any) -> PolicySection:
    return PolicySection.model_validate({"approve": "auto", "tasks": ["anonymize", "naive-bayes"], **rules})


def case(spec: JobSpec) -> Case:
    return Case(spec, "analyst", "north", PARTIES, ("people",), now=0.0)


def test_keys_are_refused_unless_they_are_allowed() -> None:
    asking = case(job(keys="union"))
    for rules in (policy(), policy(keys="none")):
        with pytest.raises(PolicyDenied, match=r'does not allow keys = "union".*\(rule keys\)'):
            decide(rules, asking)
    assert decide(policy(keys="union"), asking) == "auto"
    assert decide(policy().under(Rules(keys="union")), asking) == "auto"
    with pytest.raises(PolicyDenied, match="rule keys"):
        decide(policy(keys="union").under(Rules(keys="none")), asking)


def test_other_jobs_are_not_asked_about_keys() -> None:
    assert decide(policy(), case(job())) == "auto"
    assert "keys" not in {verdict.rule for verdict in verdicts(policy(), case(job()))}
    assert "keys" in {verdict.rule for verdict in verdicts(policy(keys="none"), case(job()))}
    assert decide(policy(keys="none"), case(model_job("naive-bayes"))) == "auto"
    assert "keys" not in {verdict.rule for verdict in verdicts(policy(keys="none"), case(model_job("naive-bayes")))}


def test_a_union_of_keys_has_a_bound() -> None:
    rules = policy(keys="union", max_union_bound=100)
    with pytest.raises(PolicyDenied, match=r"\[union\] bound of at most 100 \(rule max_union_bound\)"):
        decide(rules, case(job(keys="union")))
    assert decide(rules, case(job(keys="union", union={"bound": 100}))) == "auto"
    assert decide(rules, case(job())) == "auto"


def test_k_is_held_against_min_count() -> None:
    with pytest.raises(PolicyDenied, match="the job has k = 3"):
        decide(policy(min_count=4), case(job()))
