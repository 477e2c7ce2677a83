"""What unions of classes keep (Aggarwal, Data Mining, exercises 20.7 to 20.13); early refusal against brute force."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from anonymize.models import (
    AlphaK,
    BetaLikeness,
    DeltaDisclosure,
    DistinctDiversity,
    EntropyDiversity,
    KAnonymity,
    Model,
    PSensitive,
    RecursiveDiversity,
    Requirements,
    SensitiveLevels,
    TCloseness,
)
from anonymize.models.diversity import entropies
from anonymize.models.p_sensitive import max_groups
from tests.anonymize.models.contract import COUNTS, TREE, fitted, histograms, met, table_of

pytestmark = pytest.mark.turn(3)

LEVELS = (("0", "1"), ("2", "3"), ("4", "5"))
MODELS: list[Model] = [
    KAnonymity(5),
    DistinctDiversity(3, "s"),
    EntropyDiversity(2, "s"),
    RecursiveDiversity(2, 2, "s"),
    RecursiveDiversity("1.5", 3, "s"),
    PSensitive(2, ("s",)),
    AlphaK(0.5, "s"),
    SensitiveLevels(2, LEVELS, "s"),
    TCloseness(0.3, "s", "variational"),
    TCloseness(0.3, "s", "kl"),
    TCloseness(0.2, "s", "ordered"),
    TCloseness(0.2, "s", "ordered", "value"),
    TCloseness(0.3, "s", "hierarchical", hierarchy=TREE),
    BetaLikeness(1, "s"),
    BetaLikeness(1, "s", enhanced=True),
]


@pytest.mark.parametrize("model", MODELS, ids=str)
@given(rows=COUNTS)
def test_unions_of_good_classes_are_good(model: Model, rows: list[list[int]]) -> None:
    """Exercises 9, 11 and 12: concave measures from below, convex ones from above."""
    assert model.monotone
    ready, classes = fitted(model, rows)
    good = classes.sensitive["s"][ready.satisfied(classes)]
    if len(good):
        assert ready.satisfied(histograms([good.sum(axis=0)]))[0]
        assert ready.satisfied(histograms([good[:2].sum(axis=0)]))[0]


@pytest.mark.parametrize("model", [model for model in MODELS if model.monotone_with_suppression], ids=str)
@given(rows=COUNTS)
def test_unions_never_add_violators_for_some_models(model: Model, rows: list[list[int]]) -> None:
    ready, classes = fitted(model, rows)
    counts = classes.sensitive["s"]
    before = classes.sizes[~ready.satisfied(classes)].sum()
    merged = histograms([counts[:2].sum(axis=0), *counts[2:]])
    assert merged.sizes[~ready.satisfied(merged)].sum() <= before


def test_which_models_prune_with_suppression() -> None:
    names = {model.name for model in MODELS if model.monotone_with_suppression}
    assert names == {"k-anonymity", "distinct l-diversity", "p-sensitive k-anonymity", "H sensitive levels"}


def test_a_union_can_add_violators_for_entropy() -> None:
    model = EntropyDiversity(2, "s")
    assert model.satisfied(histograms([[1, 1], [10, 0], [11, 1]])).tolist() == [True, False, False]
    assert entropies(np.array([[1, 1], [11, 1]])) == pytest.approx([math.log(2), 0.2868], abs=1e-4)


@pytest.mark.parametrize(
    ("model", "good", "bad"),
    [
        (RecursiveDiversity(2, 2, "s"), [1, 1], [10, 0]),
        (AlphaK(0.5, "s"), [1, 1], [10, 0]),
        (TCloseness("0.2", "s"), [8, 4], [10, 0]),
        (BetaLikeness("0.5", "s"), [8, 4], [10, 0]),
    ],
    ids=str,
)
def test_unions_can_add_violators_for_others(model: Model, good: list[int], bad: list[int]) -> None:
    ready = model.fitted(table_of([18, 18]))
    union = np.add(good, bad).tolist()
    assert ready.satisfied(histograms([good, bad, union])).tolist() == [True, False, False]


def test_delta_disclosure_is_not_monotone() -> None:
    model = DeltaDisclosure(0.7, "s")
    assert not model.monotone
    # Half the records have each value. A class without the second does not violate; its union with a good one does.
    ready = model.fitted(table_of([20, 20]))
    assert ready.satisfied(histograms([[9, 0], [7, 3], [16, 3]])).tolist() == [True, True, False]


@given(COUNTS)
def test_diverse_classes_have_l_values(rows: list[list[int]]) -> None:
    """Exercise 7."""
    values = np.count_nonzero(rows, axis=1)
    for l in (2, 3, 4):  # noqa: E741
        for model in (EntropyDiversity(l, "s"), RecursiveDiversity(3, l, "s")):
            assert (values[model.satisfied(histograms(rows))] >= l).all()


@given(COUNTS)
def test_a_table_has_at_least_the_least_entropy_of_its_classes(rows: list[list[int]]) -> None:
    """Exercise 8."""
    assert entropies(np.sum(rows, axis=0)[None, :])[0] >= entropies(np.array(rows)).min() - 1e-12


@given(COUNTS)
def test_distances_are_convex(rows: list[list[int]]) -> None:
    """Equation 20.15."""
    for model in MODELS:
        if isinstance(model, TCloseness):
            ready, classes = fitted(model, rows)
            parts = ready.distances(classes)
            union = ready.distances(histograms([classes.sensitive["s"][:2].sum(axis=0)]))[0]
            assert union <= np.average(parts[:2], weights=classes.sizes[:2]) + 1e-9


@pytest.mark.parametrize("model", [*MODELS, DeltaDisclosure(0.7, "s")], ids=str)
@given(rows=COUNTS)
def test_good_classes_are_large_enough(model: Model, rows: list[list[int]]) -> None:
    ready, classes = fitted(model, rows)
    assert (classes.sizes[ready.satisfied(classes)] >= model.least_size).all()


def releases(totals: Sequence[int], suppressible: int) -> Iterator[list[int]]:
    """What can be left as one class when some records, not all, are left out."""
    for left in itertools.product(*(range(count + 1) for count in totals)):
        if 0 < sum(left) >= sum(totals) - suppressible:
            yield list(left)


@pytest.mark.parametrize(
    "model", [model for model in MODELS if not isinstance(model, KAnonymity | TCloseness | BetaLikeness)], ids=str
)
@given(totals=st.lists(st.integers(1, 4), min_size=1, max_size=4), suppressible=st.integers(0, 4))
def test_nothing_feasible_is_refused(model: Model, totals: list[int], suppressible: int) -> None:
    """If one class of what is left meets the model, there is a release, so the model must not refuse."""
    table = table_of(totals)
    ready = model.fitted(table)
    feasible = ready.satisfied(histograms(list(releases(totals, suppressible)))).any()
    reason = model.infeasible(table, suppressible)
    if feasible:
        assert reason is None
    elif suppressible == 0:
        assert reason is not None


def test_refusals() -> None:
    table = table_of([9, 3])
    assert KAnonymity(12).infeasible(table, 0) is None
    assert KAnonymity(13).infeasible(table, 5) == "k = 13 cannot be met: the table has 12 records only."
    for model, sentence in (
        (DistinctDiversity(3, "s"), 'l = 3 cannot be met: column "s" has 2 distinct values only.'),
        (PSensitive(3, ("s",)), 'p = 3 cannot be met: column "s" has 2 distinct values only.'),
        (
            SensitiveLevels(2, (("0", "1"), ("2",)), "s"),
            'H = 2 cannot be met: column "s" has values of 1 levels of sensitivity only.',
        ),
    ):
        assert model.infeasible(table, 3) == sentence
    assert "all 12 records as one class" in str(AlphaK(0.7, "s").infeasible(table, 0))
    assert AlphaK(0.7, "s").infeasible(table, 3) is None
    assert TCloseness(0, "s").infeasible(table, 0) is None
    assert DeltaDisclosure("0.01", "s").infeasible(table, 0) is None
    assert Requirements((KAnonymity(2), DistinctDiversity(3, "s"))).infeasible(table, 0) is not None
    assert Requirements((KAnonymity(2), DistinctDiversity(2, "s"))).infeasible(table, 0) is None


def test_entropy_is_refused_with_suppression_only_where_that_is_certain() -> None:
    model = EntropyDiversity(2, "s")
    assert math.exp(entropies(np.array([[10, 2]]))[0]) == pytest.approx(1.569, abs=1e-3)
    assert model.infeasible(table_of([10, 2]), 7) is not None
    assert model.infeasible(table_of([10, 2]), 8) is None  # (2, 2) is left
    assert "reach 1.5895 at most with 20 of 100" in str(EntropyDiversity(1.6, "s").infeasible(table_of([90, 5, 5]), 20))
    assert EntropyDiversity(1.58, "s").infeasible(table_of([90, 5, 5]), 20) is None


def test_most_classes_of_a_p_sensitive_table() -> None:
    counts = np.array([8, 6, 4, 3, 1, 1])
    assert max_groups(counts, p=2, k=2) == 11
    assert max_groups(counts, p=7, k=7) == 0
    assert max_groups(counts, p=1, k=5) == 4


@given(st.lists(st.integers(1, 5), min_size=1, max_size=5), st.integers(1, 4))
def test_the_bound_on_classes_is_reached_where_k_is_p(counts: list[int], p: int) -> None:
    """Greedy is best: each class takes one record of each of the p values of which most are left."""
    left, classes = sorted(counts), 0
    while len(left) >= p and left[-p] > 0:
        left = sorted([*left[:-p], *(count - 1 for count in left[-p:])])
        classes += 1
    assert max_groups(np.array(counts), p, p) == classes


def test_met_is_checked_against_the_whole_table() -> None:
    assert met(TCloseness(0.5, "s"), [[2, 0], [0, 2]]) == [True, True]
