"""One job under several models: its specification under each, and accuracy against a plain reckoning."""

from __future__ import annotations

import math
from decimal import Decimal
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from jobs.comparison import accuracy, under
from jobs.kinds.noisy.parameters import distributed_mining
from jobs.kinds.reported.parameters import hybrid_mining
from jobs.loading import envelope
from jobs.proposed import job_from_canonical
from jobs.spec.job import JobSpec
from mining.itemsets import Itemsets
from mining.joint.hybrid.parameters import MOST_LOCAL
from tests.errors import fails
from tests.mining.joint.hybrid.hybrid_world import job

EVERYTHING = {
    "model": "distributed",
    "epsilon": "1.5",
    "delta": "1e-6",
    "contributions": [5, 4],
    "noise": "skellam",
    "shufflers": ["east"],
    "local_epsilon": "6",
    "search": "svsm",
    "opted_in": ["south"],
}


def full() -> JobSpec:
    """A job that says something for every model."""
    itemsets = {"min_support": "0.1", "strategy": "level-wise", "max_candidates": 1000}
    contents = job().model_dump(mode="json", by_alias=True)
    contents["itemsets"] |= itemsets
    return envelope({**contents, "privacy": EVERYTHING}, "the test", Path())


def test_a_job_under_every_model_keeps_what_means_something_there() -> None:
    spec = full()
    exact, noisy = under(spec, "exact"), under(spec, "distributed", Decimal(3))
    assert (exact.privacy.model, exact.itemsets.strategy) == ("exact", "level-wise")
    assert distributed_mining(noisy).epsilon == 3
    assert (distributed_mining(noisy).noise, distributed_mining(noisy).max_candidates) == ("skellam", 1000)
    for model in ("local", "shuffle"):
        task = hybrid_mining(under(spec, model))
        most_local = 6.0 if model == "shuffle" else MOST_LOCAL  # which is shuffled reports' alone
        assert (task.model, task.epsilon, task.search, task.most_local) == (model, 1.5, "svsm", most_local)
    for model in ("exact", "local", "shuffle", "distributed"):
        changed = under(spec, model)  # type: ignore[arg-type]
        assert changed.itemsets.catalogue == spec.itemsets.catalogue
        assert job_from_canonical(changed.canonical()) == changed


def test_a_model_that_a_job_cannot_run_under_is_refused() -> None:
    rows = JobSpec.model_validate(
        {
            "job": {"name": "n", "task": "itemsets", "parties": ["a", "b"], "dataset": "d"},
            "itemsets": {"min_support": 2},
        }
    )
    with fails("E100"):
        under(rows, "distributed")
    with fails("E100"):
        under(rows, "distributed", Decimal(1))
    with fails("E100"):
        under(rows, "local", Decimal(1))
    assert under(rows, "exact").itemsets.min_support == 2


@st.composite
def results(draw: st.DrawFn) -> tuple[pa.Table, pa.Table]:
    """What was found, with intervals, and the truth."""
    items = draw(st.integers(1, 6))
    supports = st.lists(st.integers(0, 20), min_size=items, max_size=items)
    true, told = draw(supports), draw(supports)
    truth = {f"i{at}": count / 20 for at, count in enumerate(true) if count}
    found = {f"i{at}": count / 20 for at, count in enumerate(told) if count}
    width = draw(st.sampled_from([0.0, 0.1, 1.0]))

    def table(values: dict[str, float], *, intervals: bool) -> pa.Table:
        columns: dict[str, pa.Array] = {
            "itemset": pa.array([[name] for name in values], pa.list_(pa.string())),
            "support": pa.array(list(values.values()), pa.float64()),
        }
        if intervals:
            columns["low"] = pa.array([value - width for value in values.values()], pa.float64())
            columns["high"] = pa.array([value + width for value in values.values()], pa.float64())
        return pa.table(columns)

    return table(found, intervals=True), table(truth, intervals=False)


@given(results())
def test_accuracy_is_what_a_plain_reckoning_gives(tables: tuple[pa.Table, pa.Table]) -> None:
    found, truth = tables
    told = {names[0]: row for row in found.to_pylist() for names in [row["itemset"]]}
    right = {row["itemset"][0]: row["support"] for row in truth.to_pylist()}
    both = [name for name in right if name in told]
    ranked = sorted(right, key=lambda name: (-right[name], name))
    scores = {name: len(right) - place for place, name in enumerate(ranked)}
    got = accuracy(found, truth)
    assert got.found == len(told)
    assert got.precision == (len(both) / len(told) if told else 1)
    assert got.recall == (len(both) / len(right) if right else 1)
    assert got.f1 == pytest.approx(2 * len(both) / (len(told) + len(right)) if told or right else 1)
    assert got.ncr == pytest.approx(sum(scores[name] for name in both) / sum(scores.values()) if right else 1)
    errors = [told[name]["support"] - right[name] for name in both]
    if not both:
        assert (got.mean_absolute, got.root_mean_square, got.covered) == (None, None, None)
        return
    assert got.mean_absolute == pytest.approx(sum(map(abs, errors)) / len(both))
    assert got.root_mean_square == pytest.approx(math.sqrt(sum(error**2 for error in errors) / len(both)))
    held = [told[name]["low"] <= right[name] <= told[name]["high"] for name in both]
    assert got.covered == pytest.approx(sum(held) / len(both))


@given(
    st.lists(st.tuples(st.sets(st.integers(0, 5), min_size=1, max_size=3), st.integers(1, 4)), max_size=20), st.data()
)
def test_the_most_frequent_are_the_first_of_all_in_their_order(
    drawn: list[tuple[set[int], int]], data: st.DataObject
) -> None:
    counts = {tuple(sorted(chosen)): count for chosen, count in drawn}
    items = tuple("fbdace")
    levels = []
    for length in sorted({len(each) for each in counts}):
        chosen = [each for each in counts if len(each) == length]
        levels.append((np.array(chosen, np.int32), np.array([counts[each] for each in chosen])))
    itemsets = Itemsets(items, levels, 30)
    k = data.draw(st.integers(1, 25))
    named = {tuple(sorted(items[at] for at in each)): count for each, count in counts.items()}
    order = sorted(named, key=lambda each: (-named[each], len(each), each))
    first = itemsets.most_frequent(k)
    assert {tuple(sorted(each)): count for each, count in first} == {each: named[each] for each in order[:k]}
    assert first.digest() == first.canonical().digest()


def test_without_counts_there_is_no_order() -> None:
    with pytest.raises(ValueError, match="have no order"):
        Itemsets(("a",), [(np.zeros((1, 1), np.int32), np.zeros(1, np.int64))], 3, counted=False).most_frequent(1)
