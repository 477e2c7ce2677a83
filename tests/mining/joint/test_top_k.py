"""The k most frequent of the frequent itemsets: by every learner alike, in the order that is documented."""

from __future__ import annotations

from typing import Any

import pandas as pd
import pytest
from hypothesis import HealthCheck, assume, given
from hypothesis import strategies as st

import comine as api
from jobs.run import PartyRun
from jobs.statement import statement
from tests.cli.simulate.test_tables import JOB, PEOPLE, expected
from tests.coordinator.simulation.still_time import InlineExecutor, run_still
from tests.coordinator.simulation.whole_job import STRATEGIES, job, run_job
from tests.examples import examples
from tests.mining.joint.oracle import Rows, pooled_supports

pytestmark = pytest.mark.turn(3)

rows = st.lists(st.sets(st.sampled_from("abcdef"), max_size=4).map(sorted), max_size=12)


def first(supports: dict[frozenset[str], int], k: int) -> dict[tuple[str, ...], int]:
    """The k of largest supports; of equal ones the shorter first, then by their items."""
    named = {tuple(sorted(items)): count for items, count in supports.items()}
    order = sorted(named, key=lambda items: (-named[items], len(items), items))
    return {items: named[items] for items in order[:k]}


@examples(3, 10, suppress_health_check=[HealthCheck.too_slow])
@given(
    st.tuples(rows, rows, rows).filter(any), st.sampled_from(sorted(STRATEGIES)), st.integers(1, 3), st.integers(1, 12)
)
def test_the_first_of_the_pooled_result(drawn: tuple[Rows, Rows, Rows], strategy: str, least: int, k: int) -> None:
    assume(sum(map(len, drawn)) >= least)  # a job that asks for more transactions than there are is refused
    data = dict(zip(("north", "south", "east"), drawn, strict=True))
    spec = job(data, min_support=least, bound=64, **STRATEGIES[strategy], top_k=k)
    ends = run_still(run_job(spec, data, InlineExecutor()))
    wanted = first(pooled_supports(data, least), k) if any(drawn) else {}
    for end in ends.values():
        assert isinstance(end, PartyRun), end
        assert end.outcome.finding is not None
        assert {tuple(sorted(items)): count for items, count in end.outcome.finding.itemsets} == wanted


@pytest.mark.parametrize("k", [1, 3, 50])
def test_of_columns_too(k: int) -> None:
    contents: dict[str, Any] = {**JOB, "itemsets": {**JOB["itemsets"], "top_k": k}}
    result = api.simulate(contents, {party: pd.DataFrame(table) for party, table in PEOPLE.items()})
    assert result.finding is not None
    assert {tuple(sorted(items)): count for items, count in result.finding.itemsets} == first(expected(), k)


def test_what_is_opened_between_parties_stays_the_same() -> None:
    plain, fewer = statement(job()), statement(job(top_k=3))
    assert plain.declared == fewer.declared
    assert set(plain.learned) - set(fewer.learned) == {plain.learned[0]}


@pytest.mark.parametrize(("k", "which"), [(1, "the most frequent one"), (5, "the 5 most frequent")])
@pytest.mark.parametrize("recipients", [("coordinator",), ("all",), ("south",), ("coordinator", "south")])
def test_the_statement_says_who_gets_the_first_and_who_learns_all(
    k: int, which: str, recipients: tuple[str, ...]
) -> None:
    """The parties that learn supports open those of all frequent itemsets, and cut what they release."""
    spec = job(top_k=k, recipients=recipients)
    told = {line.exact: line.who for line in statement(spec).learned}
    result = told[f"of all frequent itemsets {which}, with supports, and N"]
    assert ("coordinator" in result) == spec.to_coordinator
    (uncut,) = [who for what, who in told.items() if what.startswith("all frequent itemsets with their supports")]
    assert uncut == spec.learners
    assert "coordinator" not in uncut
