from __future__ import annotations

from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jobs.kinds.charge import charge
from jobs.kinds.registry import kind_of
from jobs.loading import job_of
from jobs.spec.job import JobSpec
from link.errors import PolicyDenied
from party.policy.policy import decide, verdicts
from party.policy.policy_input import Earlier, PolicyInput
from party.policy.privacy_budget import DatasetBudget
from party.policy.rules import PolicySection
from party.policy.several_jobs import check_new_rows
from tests.errors import fails

NOW, DAY = 1_000_000_000, 86_400


def policy(**rules: Any) -> PolicySection:
    return PolicySection.model_validate({"approve": "auto", "tasks": ["itemsets", "rules"], **rules})


def job(*, itemsets: dict[str, Any] | None = None, **changes: Any) -> JobSpec:
    tables = {name: changes.pop(name) for name in ("union", "rules", "privacy", "trust") if name in changes}
    contents = {
        "job": {
            "name": "weekly",
            "task": "itemsets",
            "parties": ["north", "south", "east"],
            "dataset": "baskets",
            **changes,
        },
        "itemsets": {k: v for k, v in {"min_support": Decimal("0.01"), **(itemsets or {})}.items() if v is not None},
        **tables,
    }
    return job_of(contents, "job.toml", Path())


def private(model: str, **changes: Any) -> JobSpec:
    """A job of north, south and east under a privacy model."""
    given = {"model": model, "epsilon": Decimal(1), "delta": None if model == "local" else Decimal("1e-6")}
    asked = {"universe": "items", "catalogue": ["a", "b", "c"]} | ({"max_length": 1} if model == "blended" else {})
    partition = {"partition": "hybrid", "itemsets": asked | (changes.pop("itemsets", None) or {})}
    return job(**partition, privacy={key: value for key, value in (given | changes).items() if value is not None})


def columns(*parties: str, itemsets: dict[str, Any] | None = None, **tables: Any) -> JobSpec:
    """A vertical job of north and others."""
    contents = {
        "job": {
            "name": "columns",
            "task": tables.pop("task", "itemsets"),
            "parties": ["north", *parties],
            "dataset": "baskets",
            "partition": "vertical",
        },
        **tables,
    }
    if contents["job"]["task"] == "itemsets":
        contents["itemsets"] = {"min_support": Decimal("0.01"), **(itemsets or {})}
    return job_of(contents, "job.toml", Path())


def facts(spec: JobSpec, **changes: Any) -> PolicyInput:
    known: dict[str, Any] = {
        "coordinator": "analyst",
        "me": "north",
        "federation": ("north", "south", "east", "west"),
        "datasets": ("baskets", "visits"),
        "now": NOW,
    }
    return PolicyInput(spec, **known | changes)


def judge(rules: PolicySection, spec: JobSpec, **changes: Any) -> str:
    return decide(rules, facts(spec, **changes))


def started(days_ago: float, *parties: str, **changes: Any) -> Earlier:
    named = parties or ("north", "south", "east")
    return Earlier(bytes(32), NOW - days_ago * DAY, named, "0.01", "SUCCEEDED", **changes)


def test_rules_about_itemsets_say_nothing_to_a_task_without_them() -> None:
    align = {"task": "align", "partition": "vertical", "name": "a", "parties": ["north", "south"], "dataset": "baskets"}
    spec = job_of({"job": align}, "job.toml", Path())
    strict = policy(tasks=["align"], min_support=Decimal("0.5"), min_count=10, max_length=2, withhold=("a*",))
    assert judge(strict, spec) == "auto"
    assert {"min_support", "min_count", "max_length", "withhold"}.isdisjoint(
        v.rule for v in verdicts(strict, facts(spec))
    )
    with fails("E300", party="north"):
        judge(policy(), spec)


def test_a_policy_without_rules_allows() -> None:
    assert judge(policy(), job()) == "auto"
    assert judge(policy(), job(itemsets={"min_support": 1})) == "auto"
    assert judge(policy(approve="manual"), job()) == "manual"


@pytest.mark.parametrize(
    "changes", [{"parties": ["south", "east"]}, {"parties": ["north", "far"]}, {"dataset": "sales"}]
)
def test_a_job_that_does_not_fit_the_node(changes: dict[str, Any]) -> None:
    with fails("E100", party="north") as caught:
        judge(policy(), job(**changes))
    assert caught.value.party == "north"


CATALOGUE = {"universe": "all.txt", "catalogue": ["beer", "hiv-1"]}
REFUSED: list[tuple[dict[str, Any], JobSpec, dict[str, Any]]] = [
    ({"coordinators": ["hub"]}, job(), {}),
    ({"tasks": ["rules"]}, job(), {}),
    ({"datasets": ["visits"]}, job(), {}),
    ({"peers": ["south"]}, job(), {}),
    ({"min_parties": 4}, job(), {}),
    ({"min_support": Decimal("0.02")}, job(), {}),
    ({"min_count": 10}, job(itemsets={"min_support": 9}), {}),
    ({"min_count": 10}, job(), {}),
    ({"max_length": 3}, job(), {}),
    ({"max_length": 3}, job(itemsets={"max_length": 4}), {}),
    ({"withhold": ["hiv*"]}, job(), {}),
    ({"withhold": ["hiv*", "b?"]}, job(itemsets={"exclude": ["b?", "x"]}), {}),
    ({"withhold": ["hiv*"]}, job(itemsets={"exclude": ["HIV*"]}), {}),
    ({"withhold": ["hiv*"]}, job(itemsets=CATALOGUE), {}),
    ({"withhold": ["hiv-2*"]}, job(itemsets=CATALOGUE), {}),  # a catalogue in which nothing matches
    ({"withhold": ["ward=7"]}, columns("south", itemsets={"exclude": ["ward=7"], "cuts": {"ward": [5, 10]}}), {}),
    ({"max_candidates": 1000}, job(), {}),
    ({"disclose": ["frequent"]}, job(), {}),
    ({"min_count": 2}, job(itemsets={"min_support": 10, "disclose": "candidates"}), {}),
    ({"min_support": Decimal("0.001")}, job(itemsets={"min_support": Decimal("0.1"), "disclose": "candidates"}), {}),
    ({"min_count": 10}, job(itemsets={"min_support": 10, "universe": "all-items"}), {}),
    ({"min_count": 2}, columns("south", itemsets={"min_support": 10, "disclose": "candidates"}), {}),
    ({"min_count": 10}, columns("south", itemsets={"min_support": 10, "quantiles": {"income": 4}}), {}),
    (
        {"min_support": Decimal("0.001")},
        columns("south", itemsets={"disclose": "frequent", "quantiles": {"income": 2, "age": 9}}),
        {},
    ),
    ({"compute": ["north", "east"]}, job(), {}),
    ({"compute": ["north", "south"]}, job(trust={"helper": "east"}), {}),
    ({"helpers": []}, job(trust={"helper": "east"}), {}),
    ({"helpers": []}, job(trust={"helper": "auto"}), {}),
    ({"security": "malicious"}, job(trust={"helper": "east"}), {}),
    ({"security": "malicious"}, columns("south"), {}),
    ({"compute": ["north"]}, columns("south", "east", itemsets={"disclose": "candidates", "engine": "replicated"}), {}),
    ({"engines": ["paillier", "replicated"]}, columns("south"), {}),
    ({"engines": ["ot"]}, columns("south", trust={"helper": "coordinator"}), {}),
    ({"helpers": []}, columns("south", itemsets={"engine": "replicated"}), {}),
    (
        {"column_groups": "refuse"},
        columns("south", "east", groups={"a": ["north", "east"], "b": ["south"]}, align={"mode": "union"}),
        {},
    ),
    ({"helpers": ["coordinator", "west"]}, columns("south", "east", trust={"helper": "east"}), {}),
    ({"max_union_bound": 64}, columns("south", align={"bound": 65}), {}),
    ({"tasks": ["align"], "max_union_bound": 64}, columns("south", task="align"), {}),
    ({"tasks": ["align"], "max_jobs": 1}, columns("south", task="align"), {"earlier": [started(1, "north", "south")]}),
    ({"min_count": 10}, columns("south", itemsets={"min_support": 9}), {}),
    ({"withhold": ["ward=*"]}, columns("south"), {}),
    ({"max_deadline": "29m"}, job(), {}),
    ({"max_union_bound": 64}, job(), {}),
    ({"max_union_bound": 64}, job(union={"bound": 65}), {}),
    ({}, job(), {"expiry": NOW + 8 * DAY}),
    ({"max_expiry": "1h"}, job(), {"expiry": NOW + 3600 + 301}),
    ({"party_sets": "fixed"}, job(parties=["north", "south"]), {"earlier": [started(9), started(1, "north", "south")]}),
    ({"max_jobs": 2}, job(), {"earlier": [started(40), started(29), started(1)]}),
    ({"max_jobs": 1, "max_jobs_period": "2h"}, job(), {"earlier": [started(0.05)]}),
    ({"models": ["local", "shuffle"]}, private("distributed"), {}),
    ({"models": ["local"]}, job(), {}),
    ({"max_epsilon": Decimal("0.5")}, private("distributed"), {}),
    ({"max_delta": Decimal("1e-7")}, private("shuffle"), {}),
    ({"max_local_epsilon": Decimal(4)}, private("shuffle"), {}),
    ({"max_local_epsilon": Decimal("0.9")}, private("local"), {}),
    ({"analysts": ["south", "east"]}, private("local"), {}),
    ({"shufflers": ["south"]}, private("shuffle"), {}),
    ({"withhold": ["hiv*"]}, private("distributed"), {}),
    ({"max_candidates": 9}, private("shuffle"), {}),
    ({"min_support": Decimal("0.02")}, private("local"), {}),
    ({"approval": [{"parties": ["south", "east"], "decide": "refuse"}]}, job(), {}),
]


@pytest.mark.parametrize(("rules", "spec", "changes"), REFUSED)
def test_a_refusal_names_the_party_and_the_rule(rules: dict[str, Any], spec: JobSpec, changes: dict[str, Any]) -> None:
    with fails("E300", party="north") as caught:
        judge(policy(**rules), spec, **changes)
    assert "north" in caught.value.message
    (refusal,) = [v for v in verdicts(policy(**rules), facts(spec, **changes)) if v.refusal]
    assert refusal.refusal in caught.value.message
    assert refusal.rule in {*rules, "max_expiry", "approve"}


def test_every_rule_can_refuse() -> None:
    """Each key of a policy is refused by in the list above, or decides on approval, or is checked with the rows.

    Some are about releases alone: `test_policy_releases`, `test_releases`; `max_plans` is about plans:
    `test_plan_estimate`, `max_failed_jobs` about what became of jobs: `test_failed_jobs`; `kinds` is about plug-ins:
    `tests/extensions/test_kind.py`; `min_group` is about what jobs reveal together: `test_min_group`; others bound how
    much of the node a coordinator may take: `test_open_jobs`; and by others people decide: `test_holds`,
    `test_several_people`.
    """
    of_releases = {"columns", "keys", "min_insider_k", "max_releases", "max_failed_releases"}
    of_releases |= {"max_plans", "max_failed_jobs", "kinds", "min_group"}
    of_load = {"max_open_jobs", "max_running_jobs", "max_proposals"}
    of_people = {"approvals", "release"}
    tried = {key for rules, *_ in REFUSED for key in rules} | {"approve", "max_expiry", "min_new_rows"}
    assert tried | of_releases | of_load | of_people == set(PolicySection.model_fields)


TOP = {"top_k": 32, "min_support": None}
ALLOWED: list[tuple[dict[str, Any], JobSpec, dict[str, Any]]] = [
    ({"models": ["exact", "local"], "max_epsilon": Decimal(1), "max_delta": Decimal("1e-9")}, private("local"), {}),
    ({"max_epsilon": Decimal("0.1"), "max_local_epsilon": Decimal("0.1")}, job(), {}),  # which has no epsilon at all
    ({"max_local_epsilon": Decimal("0.1"), "shufflers": ["south"]}, private("distributed"), {}),
    ({"max_local_epsilon": Decimal(4)}, private("shuffle", local_epsilon=Decimal(4)), {}),
    (
        {"min_support": Decimal("0.1"), "min_count": 50},
        private("shuffle", itemsets=TOP),
        {"budget": DatasetBudget.model_validate({"epsilon": "1", "delta": "1e-6"})},
    ),
    ({"compute": ["west"], "max_union_bound": 1}, private("distributed"), {}),  # neither shares nor unions
    ({"coordinators": ["hub", "analyst"]}, job(), {}),
    ({"min_support": Decimal("0.01")}, job(), {}),
    ({"min_count": 10}, job(itemsets={"min_support": 10}), {}),
    ({"min_count": 1}, job(itemsets={"min_support": 10, "disclose": "candidates", "universe": "all-items"}), {}),
    (
        {"min_count": 10, "disclose": ["candidates"]},
        job(itemsets={"min_support": 10, "disclose": "candidates", "universe": "all-items"}),
        {},
    ),
    ({"max_length": 3}, job(itemsets={"max_length": 3}), {}),
    ({"min_parties": 3, "peers": ["south", "east"]}, job(), {}),
    ({"withhold": ["hiv*"]}, job(itemsets={"exclude": ["hiv*", "x"]}), {}),
    ({"max_candidates": 5_000_000, "max_deadline": "30m"}, job(), {}),
    ({"max_union_bound": 64}, job(union={"bound": 64}), {}),
    ({"max_union_bound": 64}, job(itemsets=CATALOGUE | {"strategy": "level-wise"}), {}),  # no union at all
    ({"max_union_bound": 64}, columns("south", align={"bound": 64}), {}),
    ({"engines": ["ot"], "helpers": []}, columns("south"), {}),
    ({"security": "malicious"}, job(itemsets=CATALOGUE, trust={"helper": "east", "security": "malicious"}), {}),
    ({"security": "semi-honest"}, job(), {}),
    ({"engines": ["replicated"], "helpers": ["coordinator"]}, columns("south", trust={"helper": "coordinator"}), {}),
    ({"helpers": ["south"], "compute": ["north", "east"]}, columns("east", "south", trust={"helper": "south"}), {}),
    ({"column_groups": "refuse"}, columns("south", "east"), {}),
    (
        {"column_groups": "allow", "tasks": ["itemsets"]},
        columns("south", "east", groups={"a": ["north", "east"], "b": ["south"]}, align={"mode": "union"}),
        {},
    ),
    ({"helpers": []}, columns("south", "east", trust={"helper": "north", "compute": ["south", "east"]}), {}),
    ({}, job(), {"expiry": NOW + 7 * DAY}),
    ({"max_expiry": "30d"}, job(), {"expiry": NOW + 30 * DAY}),
    ({"party_sets": "fixed"}, job(), {}),
    ({"party_sets": "fixed"}, job(), {"earlier": [started(9, "east", "north", "south"), started(1, "north", "west")]}),
    ({"max_jobs": 2}, job(), {"earlier": [started(40), started(30.01), started(29)]}),
]


@pytest.mark.parametrize(("rules", "spec", "changes"), ALLOWED)
def test_limits_are_inclusive(rules: dict[str, Any], spec: JobSpec, changes: dict[str, Any]) -> None:
    assert judge(policy(**rules), spec, **changes) == "auto"


@pytest.mark.parametrize(
    ("given", "decision"),
    [
        ({}, "auto"),
        ({"coordinator": "hub"}, "manual"),
        ({"spec": job(dataset="visits")}, "manual"),
        ({"spec": job(parties=["north", "west"])}, "manual"),
        ({"spec": job(parties=["north", "south"])}, "auto"),
        ({"spec": job(task="rules", rules={"min_confidence": Decimal("0.5")})}, "manual"),
    ],
)
def test_the_first_approval_rule_that_fits_decides(given: dict[str, Any], decision: str) -> None:
    rules = policy(
        approve="manual",
        approval=[
            {
                "coordinators": ["analyst"],
                "tasks": ["itemsets"],
                "datasets": ["baskets"],
                "parties": ["south", "east"],
                "decide": "auto",
            },
            {"coordinators": ["analyst"], "decide": "manual"},
            {"coordinators": ["analyst"], "decide": "refuse"},
        ],
    )
    assert judge(rules, given.pop("spec", job()), **given) == decision


@given(st.data())
def test_decide_refuses_exactly_where_a_verdict_does(data: st.DataObject) -> None:
    rules, spec, changes = data.draw(st.sampled_from([*REFUSED, *ALLOWED]))
    merged: dict[str, Any] = dict(rules)
    for more, *_ in data.draw(st.lists(st.sampled_from(REFUSED), max_size=4)):
        merged |= more
    found = verdicts(policy(**merged), facts(spec, **changes))
    written = set(merged) - {"approval", "max_jobs_period", "max_expiry"} | {"tasks", "approve"}
    if not spec.is_vertical:
        written -= {"engines"}
        if kind_of(spec).helper(spec) is None:
            written -= {"helpers"}
    if not spec.groups:
        written -= {"column_groups"}
    cost = charge(spec)
    if cost.epsilon is None:
        written -= {"max_epsilon", "max_delta"}
    else:
        written -= {"compute"}
    if (
        spec.itemsets_ is not None
        and spec.itemsets.disclose == "candidates"
        and kind_of(spec).engine(spec) != "replicated"
    ):
        written -= {"compute"}  # nothing stays shared
    if not (spec.is_vertical or kind_of(spec).unions(spec).taken):
        written -= {"max_union_bound"}
    if cost.local_epsilon is None:
        written -= {"max_local_epsilon", "analysts"}
    if cost.model != "shuffle":
        written -= {"shufflers"}
    if spec.itemsets_ is None:
        written -= {"min_support", "min_count", "max_length", "withhold", "max_candidates", "disclose", "compute"}
        written -= {"engines", "helpers"}
    of_policy = {verdict.rule for verdict in found if not verdict.rule.startswith("privacy.")}
    assert of_policy == written | ({"max_expiry"} if "expiry" in changes else set())
    if any(verdict.refusal for verdict in found):
        with pytest.raises(PolicyDenied):
            judge(policy(**merged), spec, **changes)
    else:
        judge(policy(**merged), spec, **changes)


@given(last=st.integers(0, 50), now=st.integers(0, 50), least=st.integers(1, 20), same=st.booleans())
def test_changed_data_must_have_changed_by_enough_rows(last: int, now: int, least: int, same: bool) -> None:
    rules, earlier = policy(min_new_rows=least), started(1, n_rows=last, data_digest=b"a")
    content: dict[str, Any] = {"me": "north", "n_rows": now, "data_digest": b"a" if same else b"b"}
    check_new_rows(rules, last=None, **content)
    check_new_rows(policy(), last=earlier, **content)
    if same or abs(now - last) >= least:
        check_new_rows(rules, last=earlier, **content)
    else:
        with fails("E300", party="north"):
            check_new_rows(rules, last=earlier, **content)


@given(asked=st.decimals("0.0001", 1, places=4), floor=st.decimals("0.0001", 1, places=4))
def test_a_fraction_is_judged_by_the_fraction_alone(asked: Decimal, floor: Decimal) -> None:
    spec, rules = job(itemsets={"min_support": asked}), policy(min_support=floor, min_count=10)
    if asked >= floor:
        judge(rules, spec)
    else:
        with pytest.raises(PolicyDenied):
            judge(rules, spec)


@given(count=st.integers(1, 10**6))
def test_a_count_is_judged_by_the_job_alone(count: int) -> None:
    """How many rows there are has no part in it: it would be told by which counts are refused."""
    with fails("E300"):
        judge(policy(min_support=Decimal("0.1")), job(itemsets={"min_support": count}))
    rules = policy(min_support=Decimal("0.5"), min_count=10)
    if count >= 10:
        assert judge(rules, job(itemsets={"min_support": count})) == "auto"
    else:
        with fails("E300"):
            judge(rules, job(itemsets={"min_support": count}))


FLOORS: list[tuple[dict[str, Any], dict[str, Any]]] = [
    ({"min_support": Decimal("0.02")}, {"itemsets": {"top_k": 8, "min_support": None}}),
    ({"min_count": 10}, {"itemsets": {"top_k": 8, "min_support": None}}),
    ({"min_support": Decimal("0.02")}, {"itemsets": {"min_support": 3}}),
]


@pytest.mark.parametrize("model", ["local", "shuffle", "distributed"])
@pytest.mark.parametrize(("rules", "changes"), FLOORS)
def test_floors_are_waived_for_noise_only_where_both_totals_bound_it(
    model: str, rules: dict[str, Any], changes: dict[str, Any]
) -> None:
    spec = private(model, **changes)
    bounded = DatasetBudget.model_validate({"epsilon": "10", "delta": "1e-5"})
    assert judge(policy(**rules), spec, budget=bounded) == "auto"
    unbounded = [
        None,
        {"local_epsilon": "9"},
        {"delta": "1e-6"},
        {"epsilon": "10.1", "delta": "1e-5"},  # so much noise hides nothing
    ]
    for keys in unbounded:
        table = None if keys is None else DatasetBudget.model_validate(keys)
        with fails("E300"):
            judge(policy(**rules), spec, budget=table)


@pytest.mark.parametrize("model", ["local", "shuffle", "distributed"])
def test_new_rows_are_asked_for_unless_bounded_noise_protects(model: str) -> None:
    spec, rules = private(model), policy(min_new_rows=100)
    bounded = DatasetBudget.model_validate({"epsilon": "2", "delta": "1e-5"})
    for table, asked in ((None, True), (bounded, False)):
        found = facts(spec, budget=table)
        assert ("min_new_rows" in {v.rule for v in verdicts(rules, found)}) == asked
        assert found.noise_protects != asked


def test_what_is_charged_holds_towards_parties_too() -> None:
    bounded = DatasetBudget.model_validate({"epsilon": "2", "delta": "1e-5"})
    with fails("E300", party="north"):
        judge(policy(), private("distributed", colluding=0), budget=bounded)


@given(rows=st.integers(0, 10**8), power=st.integers(4, 9))
def test_delta_is_at_most_one_in_the_rows_that_are_published(rows: int, power: int) -> None:
    spec = private("distributed", delta=Decimal(1).scaleb(-power))
    assert judge(policy(), spec) == judge(policy(), job(), published_rows=rows) == "auto"
    if rows <= 10**power:
        assert judge(policy(), spec, published_rows=rows) == "auto"
    else:
        with fails("E300"):
            judge(policy(), spec, published_rows=rows)
