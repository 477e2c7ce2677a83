from __future__ import annotations

from decimal import Decimal
from pathlib import Path
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from jobs.loading import job_of
from jobs.spec.diff import Change, diff
from jobs.spec.job import JobSpec


def spec(itemsets: dict[str, Any] | None = None, **job: Any) -> JobSpec:
    contents = {
        "job": {"name": "weekly", "task": "itemsets", "parties": ["a", "b"], "dataset": "baskets", **job},
        "itemsets": {"min_support": Decimal("0.01"), **(itemsets or {})},
    }
    if job.get("task") == "rules":
        contents["rules"] = {"min_confidence": Decimal("0.5")}
    return job_of(contents, "job.toml", Path())


def test_changes_are_told_by_key_with_both_values() -> None:
    assert diff(spec(), spec({"min_support": Decimal("0.005"), "max_length": 3}, parties=["a", "b", "c"])) == (
        Change("job.parties", ["a", "b"], ["a", "b", "c"]),
        Change("itemsets.min_support", "0.01", "0.005"),
        Change("itemsets.max_length", None, 3),
    )


def test_a_table_that_is_new_is_told_key_by_key() -> None:
    keys = [change.key for change in diff(spec(), spec(task="rules"))]
    assert keys == ["job.task", "rules.min_confidence", "rules.consequent", "rules.measures"]


VARIANTS = st.builds(
    spec,
    st.fixed_dictionaries(
        {},
        optional={
            "min_support": st.sampled_from([1, 5, Decimal("0.1")]),
            "max_length": st.integers(1, 3),
            "exclude": st.sampled_from([["a*"], ["a*", "b"]]),
            "thin": st.booleans(),
        },
    ),
    task=st.sampled_from(["itemsets", "rules"]),
    deadline=st.sampled_from(["30m", "2h"]),
)


@given(VARIANTS, VARIANTS)
def test_no_changes_mean_the_same_job_and_back_is_the_reverse(one: JobSpec, other: JobSpec) -> None:
    there, back = diff(one, other), diff(other, one)
    assert (there == ()) == (one.digest == other.digest)
    assert {(c.key, c.before, c.after) for c in map(_hashable, there)} == {
        (c.key, c.after, c.before) for c in map(_hashable, back)
    }


def _hashable(change: Change) -> Change:
    return Change(change.key, str(change.before), str(change.after))


def test_a_change_is_a_line() -> None:
    changed = {"min_support": Decimal("0.005"), "max_length": 3, "exclude": ["a*"]}
    told = [each.text for each in diff(spec(), spec(changed, parties=["a", "c"]))]
    assert told == [
        "parties: c added; b removed",
        "min_support: 1 % → 0.5 %",
        "exclude: a* added",
        "max_length: not set → 3",
    ]
    assert [each.text for each in diff(spec({"min_support": 20}), spec())] == ["min_support: 20 → 1 %"]
    turned = Change("itemsets.exclude", ["a", "b"], ["b", "a"])
    assert turned.text == "exclude: a, b → b, a"
    assert Change("align.bound", 64, None).text == "align.bound: 64 → not set"
