"""`[itemsets] exclude`: the result is the one of the pooled rows without the items that match."""

from __future__ import annotations

import fnmatch
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import comine
from jobs.loading import job_of
from jobs.spec.itemsets import MOST_STARS
from jobs.statement import statement
from mining.reference.pooled import brute_force
from party.policy.rules import Rules
from tests.errors import fails
from tests.examples import examples

pytestmark = pytest.mark.filterwarnings("ignore::comine.api.DataWarning")  # some parties have no rows, and are to
PARTIES = ("north", "south", "east")
ROWS = st.lists(st.lists(st.sampled_from(["ab", "ac", "b", "cab", "hiv-1", "hiv-2"]), max_size=4), max_size=6)
PATTERNS = st.lists(st.sampled_from(["a*", "?b", "hiv*", "hiv-[1]", "*", "none"]), unique=True, max_size=3)


def contents(**itemsets: Any) -> dict[str, Any]:
    job = {"name": "weekly", "task": "itemsets", "parties": list(PARTIES), "dataset": "baskets"}
    return {"job": job, "itemsets": {"min_support": 2, **itemsets}}


@examples(3, 15)
@given(
    data=st.lists(ROWS, min_size=3, max_size=3),
    patterns=PATTERNS,
    how=st.sampled_from(
        [
            {"strategy": "level-wise"},
            {"strategy": "one-shot"},
            {"strategy": "level-wise", "universe": "all-items"},
            {"universe": "all.txt", "catalogue": ["ab", "ac", "b", "cab", "hiv-1", "hiv-2"]},
        ]
    ),
)
def test_excluded_items_are_as_if_they_were_nowhere(
    data: list[list[list[str]]], patterns: Sequence[str], how: dict[str, Any]
) -> None:
    def kept(item: str) -> bool:
        return not any(fnmatch.fnmatchcase(item, pattern) for pattern in patterns)

    pooled = [list(filter(kept, row)) for rows in data for row in rows]
    job = contents(exclude=list(patterns), **how)
    given_rows = dict(zip(PARTIES, data, strict=True))
    if len(pooled) < 2:
        with fails("E101" if not pooled else "E100"):
            comine.simulate(job, given_rows, seed=1)
        return
    result = comine.simulate(job, given_rows, seed=1)
    assert result.n_rows == len(pooled)
    assert result.finding is not None
    assert {frozenset(items): count for items, count in result.finding.itemsets} == brute_force(pooled, 2)


@pytest.mark.parametrize("exclude", [["hiv*"], []])
def test_items_outside_a_catalogue_do_no_harm(exclude: list[str]) -> None:
    job = contents(universe="all.txt", catalogue=["milk"], exclude=exclude)
    rows = {name: [["milk", "hiv-1"]] for name in PARTIES}
    found = comine.simulate(job, rows, seed=1)
    assert found.n_rows == 3
    assert [(row.itemset, row.count) for row in found.itemsets().itertuples()] == [(["milk"], 3)]


def test_the_statement_tells_what_is_excluded() -> None:
    def told(**itemsets: Any) -> list[str]:
        return statement(job_of(contents(**itemsets), "job.toml", Path())).exact_prose()

    (line,) = set(told(exclude=["hiv*", "x?"])) - set(told())
    assert line == (
        "north, south and east learn nothing of items that match 'hiv*', 'x?': every party removes them from its rows "
        "beforehand."
    )


@given(pattern=st.text("*a?[]!", min_size=11, max_size=200))
def test_no_pattern_has_so_many_asterisks_that_it_keeps_a_node_busy(pattern: str) -> None:
    """A thousand patterns of a hundred asterisks each took ten seconds, in the middle of all that a node does."""
    job = contents(exclude=[pattern])
    if pattern.count("*") <= MOST_STARS:
        job_of(job, "job.toml", Path())
        return
    with fails("E100"):
        job_of(job, "job.toml", Path())


def test_an_owner_is_told_of_such_a_pattern_too() -> None:
    with pytest.raises(ValueError, match="a pattern has at most 10 asterisks"):
        Rules(withhold=("*a" * 11,))
