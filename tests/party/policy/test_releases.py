"""What a policy says to jobs that anonymise rows of several parties."""

from __future__ import annotations

import fnmatch
import tomllib
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from jobs.spec.job import JobSpec
from party.examination import examine
from party.policy.policy import decide, verdicts
from party.policy.policy_input import PolicyInput, Verdict
from party.policy.rules import PolicySection, Rules
from tests.errors import fails
from tests.mining.joint.anonymisation.anonymisation_jobs_world import RELEASED, job
from tests.mining.joint.anonymisation.anonymisation_world import PARTIES
from tests.mining.joint.anonymisation.vertical_anonymisation_world import job as vertical_job
from tests.mining.joint.model_jobs_world import job as model_job
from tests.party.files import write_federation

COLUMNS = tomllib.loads(f"columns = {RELEASED}")["columns"]


def policy(**rules: Any) -> PolicySection:
    return PolicySection.model_validate(
        {"approve": "auto", "tasks": ["anonymize", "naive-bayes"], "columns": COLUMNS, **rules}
    )


def facts(spec: JobSpec) -> PolicyInput:
    return PolicyInput(spec, "analyst", "north", PARTIES, ("people",), now=0.0)


def verdict(rules: PolicySection, spec: JobSpec, rule: str) -> Verdict:
    (found,) = (each for each in verdicts(rules, facts(spec)) if each.rule == rule)
    return found


# -- columns ----------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("spec", [job(), vertical_job(PARTIES[:2])])
def test_without_a_rule_on_columns_any_may_be_released(spec: JobSpec) -> None:
    assert decide(policy(columns=None), facts(spec)) == "auto"
    assert verdict(policy(columns=None), spec, "columns") == Verdict(
        "columns", "releases of any columns, since none are named"
    )
    assert decide(policy(), facts(spec)) == "auto"
    assert decide(policy(columns=None).under(Rules(columns=COLUMNS)), facts(spec)) == "auto"


@pytest.mark.parametrize(
    "columns",
    [
        {name: roles for name, roles in COLUMNS.items() if name != "note"},
        COLUMNS | {"note": ["quasi_identifiers", "sensitive"]},
        COLUMNS | {"age": ["sensitive"]},
    ],
)
def test_a_release_has_the_columns_that_are_allowed_in_their_roles(columns: dict[str, Any]) -> None:
    for spec in (job(), vertical_job(PARTIES[:2])):
        for approve in ("auto", "manual"):
            with fails("E300"):
                decide(policy(columns=columns, approve=approve), facts(spec))


def test_all_columns_as_they_are_with_one_that_is_generalised() -> None:
    """The job by which all rows would be published as they are."""
    hierarchies = {"sex": [["f", "*"], ["m", "*"]]}
    rest = ["age", "town", "ill", "note"]
    raw = job(quasi_identifiers=["sex"], sensitive=[], insensitive=rest, hierarchies=hierarchies, columns={})
    with fails("E300", party="north"):
        decide(policy(min_count=3, min_parties=3), facts(raw))


@pytest.mark.parametrize("columns", [{}, {"age": []}, {"age": ["identifiers"]}, {"age": ["sensitive", "sensitive"]}])
def test_columns_that_are_refused_in_a_policy(columns: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        policy(columns=columns)


# -- what is withheld -------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    "pattern",
    ["note=*", "note=x", "n*", "*hiv*", "[mn]ote=?", "age=*", "ill=hiv", "*"],
)
def test_no_release_has_a_column_of_which_items_are_withheld(pattern: str) -> None:
    rules = policy(withhold=["unknown=*", pattern])
    with fails("E300"):
        decide(rules, facts(job()))
    with fails("E300", party="north"):
        decide(policy(columns=None, withhold=[pattern]), facts(vertical_job(PARTIES[:2])))


@pytest.mark.parametrize("pattern", ["hiv*", "note", "notes=*", "NOTE=*", "?note=*", "[!ntias]*", "occupation=*"])
def test_patterns_of_other_items_say_nothing(pattern: str) -> None:
    rules = policy(withhold=[pattern])
    assert decide(rules, facts(job())) == "auto"
    assert verdict(rules, job(), "withhold").refusal is None


TEXT = st.text("ab=*?[]!-", max_size=6)


@given(pattern=TEXT.filter(bool), column=st.text("ab", min_size=1, max_size=3), value=TEXT)
def test_a_column_with_an_item_that_matches_is_never_released(pattern: str, column: str, value: str) -> None:
    if not fnmatch.fnmatchcase(f"{column}={value}", pattern):
        return
    spec = job(insensitive=[column], columns={"ill": {"values": ["flu"]}})
    found = verdict(policy(columns=None, withhold=[pattern]), spec, "withhold")
    assert found.refusal is not None


# -- how strictly -----------------------------------------------------------------------------------------------------
def test_k_is_held_against_min_count() -> None:
    with fails("E300", party="north"):
        decide(policy(min_count=4), facts(job()))
    assert decide(policy(min_count=3), facts(job())) == "auto"


def test_where_origins_are_shown_each_partys_part_is_held_against_min_count() -> None:
    shown = job(origin="shown", k_site=2, model={"k": 10})
    with fails("E300", party="north"):
        decide(policy(min_count=10), facts(shown))
    assert decide(policy(min_count=2), facts(shown)) == "auto"
    assert decide(policy(min_count=10), facts(job(origin="shown", k_site=10, model={"k": 10}))) == "auto"
    assert decide(policy(min_count=10), facts(job(k_site=2, model={"k": 10}))) == "auto"
    with fails("E300", party="north"):
        decide(policy(min_count=4), facts(job(origin="shown", k_site=10)))


def test_a_floor_of_insider_k() -> None:
    with fails("E300", party="north"):
        decide(policy(min_insider_k=2), facts(job(insider_k=1)))
    assert decide(policy(min_insider_k=2), facts(job(insider_k=2))) == "auto"
    assert decide(policy(min_insider_k=2), facts(job(insider_k=None))) == "auto"
    with fails("E300", party="north"):
        decide(policy(min_insider_k=3), facts(job(insider_k=None)))
    two = vertical_job(PARTIES[:2])
    assert decide(policy(min_insider_k=3), facts(two)) == "auto"
    assert "min_insider_k" not in {each.rule for each in verdicts(policy(min_insider_k=3), facts(two))}


# -- keys -------------------------------------------------------------------------------------------------------------
def test_keys_are_refused_unless_they_are_allowed() -> None:
    asking = facts(job(keys="union"))
    for rules in (policy(), policy(keys="none")):
        with fails("E300", party="north"):
            decide(rules, asking)
    assert decide(policy(keys="union"), asking) == "auto"
    assert decide(policy().under(Rules(keys="union")), asking) == "auto"
    with fails("E300", party="north"):
        decide(policy(keys="union").under(Rules(keys="none")), asking)


def test_a_union_of_keys_has_a_bound() -> None:
    rules = policy(keys="union", max_union_bound=100)
    with fails("E300", party="north"):
        decide(rules, facts(job(keys="union")))
    assert decide(rules, facts(job(keys="union", union={"bound": 100}))) == "auto"
    assert decide(rules, facts(job())) == "auto"


def test_rules_on_releases_say_nothing_to_other_jobs() -> None:
    rules = policy(keys="none", min_insider_k=9)
    other = facts(model_job("naive-bayes"))
    assert decide(rules, other) == "auto"
    assert not {"keys", "columns", "min_insider_k"} & {each.rule for each in verdicts(rules, other)}
    told = {each.rule for each in verdicts(policy(keys="none", min_insider_k=1), facts(job()))}
    assert {"keys", "columns", "min_insider_k"} <= told
    assert "keys" not in {each.rule for each in verdicts(policy(), facts(job()))}


# -- before the node starts -------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("tasks", "rule", "warned"),
    [("anonymize", "", True), ("anonymize", f"columns = {RELEASED}", False), ("itemsets", "", False)],
)
def test_a_node_is_warned_of_releases_of_any_columns(tmp_path: Path, tasks: str, rule: str, warned: bool) -> None:
    write_federation(tmp_path, {name: [["id,age"], ["1,50"]] for name in PARTIES[:3]})
    file = tmp_path / "north.toml"
    text = file.read_text().replace('kind = "transactions"', 'kind = "table"').replace('"basket"', '"csv"')
    file.write_text(text.replace('tasks = ["itemsets", "rules"]', f'tasks = ["{tasks}"]') + rule)
    found = [finding for finding in examine(file).findings if finding.subject == "policy"]
    assert [finding.status for finding in found] == ["warning"] * warned
    assert all("write columns under [dataset.policy]" in finding.sentence for finding in found)
