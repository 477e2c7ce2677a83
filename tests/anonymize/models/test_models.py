"""Privacy models of single classes: the literature's numbers, exact limits and wrong parameters."""

from __future__ import annotations

import math
from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from anonymize.grouping import Histograms
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
from anonymize.models.rationals import at_most, below, exact
from anonymize.roles import Roles
from anonymize.tables import Table
from link.errors import ConfigurationError
from tests.anonymize.models.contract import COUNTS, TREE, histograms, met, table_of
from tests.errors import fails


def one(model: Model, *counts: int) -> bool:
    """Whether a class with these counts meets a model that needs no fitting."""
    return bool(model.satisfied(histograms([counts]))[0])


def test_k() -> None:
    assert KAnonymity(3).satisfied(histograms([[2, 0], [2, 1], [0, 4]])).tolist() == [False, True, True]


def test_distinct_diversity() -> None:
    assert one(DistinctDiversity(3, "s"), 3, 2, 1)
    assert not one(DistinctDiversity(4, "s"), 3, 2, 1, 0)


def test_entropy_diversity() -> None:
    entropy = float(entropies(np.array([[3, 2, 1]]))[0])
    assert entropy == pytest.approx(1.011404, abs=1e-6)
    assert math.exp(entropy) == pytest.approx(2.749459, abs=1e-6)
    assert one(EntropyDiversity(2, "s"), 3, 2, 1)
    assert not one(EntropyDiversity(3, "s"), 3, 2, 1)
    assert entropies(np.array([[3, 1], [1, 3], [4, 4]])) == pytest.approx([0.562335, 0.562335, 0.693147], abs=1e-6)


@given(st.integers(1, 40), st.integers(1, 1000))
def test_equal_counts_meet_entropy_exactly(values: int, count: int) -> None:
    assert one(EntropyDiversity(values, "s"), *[count] * values)
    assert not one(EntropyDiversity(values + 0.001, "s"), *[count] * values)


@pytest.mark.parametrize(("c", "l", "holds"), [(1, 2, False), (2, 2, True), (3, 3, False), (4, 3, True), (9, 4, False)])
def test_recursive_diversity(c: int, l: int, holds: bool) -> None:  # noqa: E741
    assert one(RecursiveDiversity(c, l, "s"), 3, 2, 1) is holds
    assert one(RecursiveDiversity(c, l, "s"), 1, 3, 0, 2, 0) is holds


def test_recursive_diversity_takes_the_decimal_that_is_written() -> None:
    # 3 < c * 10 holds from 0.3 on, strictly; 0.3 as a float is below three tenths.
    assert not one(RecursiveDiversity(0.3, 1, "s"), *[3, 3, 3, 1])
    assert one(RecursiveDiversity("0.3000001", 1, "s"), *[3, 3, 3, 1])
    assert not one(RecursiveDiversity(1.1, 2, "s"), 11, 10)
    assert one(RecursiveDiversity(Decimal("1.11"), 2, "s"), 11, 10)


@given(COUNTS, st.integers(1, 7), st.sampled_from(["0.3", "1", "2.5", "7"]))
def test_recursive_diversity_is_its_definition(rows: list[list[int]], l: int, c: str) -> None:  # noqa: E741
    def holds(row: list[int]) -> bool:
        counts = sorted((count for count in row if count), reverse=True)
        return len(counts) >= l and counts[0] < Fraction(c) * sum(counts[l - 1 :])

    assert RecursiveDiversity(c, l, "s").satisfied(histograms(rows)).tolist() == list(map(holds, rows))


def test_alpha() -> None:
    assert one(AlphaK(0.625, "s"), 5, 2, 1)
    assert not one(AlphaK(0.624, "s"), 5, 2, 1)
    assert one(AlphaK(0.1, "s"), *[1] * 10)
    assert one(AlphaK("1/3", "s"), 1, 1, 1)
    assert AlphaK(0.3, "s").least_size == 4


def test_alpha_of_listed_values() -> None:
    rows = [[5, 2, 1], [1, 3, 0]]
    assert met(AlphaK(0.5, "s"), rows) == [False, False]
    assert met(AlphaK(0.5, "s", ("1", "2")), rows) == [True, False]
    assert AlphaK(0.5, "s", ("1",)).least_size == 1
    with fails("E100"):
        met(AlphaK(0.5, "s", ("7",)), rows)
    with fails("E100"):
        one(AlphaK(0.5, "s", ("1",)), 1, 1)


def test_p_sensitive_of_several_columns() -> None:
    data = {"q": [1, 1, 1, 2, 2, 2], "a": list("xyxxyz"), "b": list("uuuuvu")}
    table = Table.of(data, Roles(quasi_identifiers=("q",), sensitive=("a", "b")))
    requirements = Requirements((PSensitive(2, ("a", "b")), KAnonymity(2))).fitted(table)
    labels = table.columns["q"].codes.astype(np.int64)
    assert requirements.check(labels, 2, table.sensitive).tolist() == [False, True]
    assert Requirements((PSensitive(2, "a"),)).check(labels, 2, table.sensitive).tolist() == [True, True]  # type: ignore[arg-type]
    assert PSensitive(2, ("a", "b")).column is None
    assert PSensitive(2, ("a",)).column == "a"


def test_levels() -> None:
    levels = (("0", "1"), ("2", "3"), ("4", "5"))
    rows = [[3, 3, 0, 0, 0, 0], [1, 0, 0, 2, 0, 0], [0, 1, 1, 0, 0, 1]]
    assert met(SensitiveLevels(1, levels, "s"), rows) == [True, True, True]
    assert met(SensitiveLevels(2, levels, "s"), rows) == [False, True, True]
    assert met(SensitiveLevels(3, levels, "s", (0.1, 0.2, 0.4)), rows) == [False, False, True]
    with fails("E100"):
        met(SensitiveLevels(1, (("0", "1"), ("2", "3", "4")), "s"), rows)
    with fails("E100"):
        SensitiveLevels(1, levels, "s").satisfied(histograms(rows))


@pytest.mark.parametrize(
    "wrong",
    [
        lambda: KAnonymity(0),
        lambda: KAnonymity(2.5),  # type: ignore[arg-type]
        lambda: KAnonymity(True),
        lambda: DistinctDiversity(0, "s"),
        lambda: EntropyDiversity(0.5, "s"),
        lambda: EntropyDiversity(math.nan, "s"),
        lambda: RecursiveDiversity(0, 2, "s"),
        lambda: RecursiveDiversity("two", 2, "s"),
        lambda: RecursiveDiversity(1, 0, "s"),
        lambda: AlphaK(0, "s"),
        lambda: AlphaK(1.1, "s"),
        lambda: PSensitive(0, ("s",)),
        lambda: PSensitive(1, ()),
        lambda: SensitiveLevels(0, (("a",),), "s"),
        lambda: SensitiveLevels(2, (("a",),), "s"),
        lambda: SensitiveLevels(1, (("a",), ("a",)), "s"),
        lambda: SensitiveLevels(1, (("a",), ("b",)), "s", (0.5,)),
        lambda: SensitiveLevels(1, (("a",), ("b",)), "s", (0.5, -1)),
        lambda: TCloseness(-0.1, "s"),
        lambda: TCloseness(0.1, "s", "far"),  # type: ignore[arg-type]
        lambda: TCloseness(0.1, "s", "ordered", "floor"),  # type: ignore[arg-type]
        lambda: TCloseness(0.1, "s", "hierarchical"),
        lambda: TCloseness(0.1, "s", "equal", hierarchy=TREE),
        lambda: BetaLikeness(0, "s"),
        lambda: DeltaDisclosure(0, "s"),
        lambda: Requirements(()),
    ],
)
def test_wrong_parameters_are_refused(wrong: Callable[[], object]) -> None:
    with pytest.raises(ConfigurationError):
        wrong()


@pytest.mark.parametrize(
    "model",
    [
        DistinctDiversity(2, "q"),
        PSensitive(2, ("q",)),
        TCloseness(0.1, "q"),
        AlphaK(0.5, "q"),
        SensitiveLevels(1, ((), ()), "q"),
    ],
)
def test_models_look_at_sensitive_columns_only(model: Model) -> None:
    with fails("E100"):
        model.fitted(table_of([1, 1]))


def test_columns_must_exist() -> None:
    with fails("E100"):
        Requirements((KAnonymity(2), EntropyDiversity(2, "t"))).fitted(table_of([1, 1]))


def test_models_tell_what_they_are() -> None:
    model = TCloseness(0.2, "s", "ordered").fitted(table_of([1, 1]))
    assert model.parameters == {"t": 0.2, "column": "s", "distance": "ordered", "ground": "rank"}
    assert str(model) == "t-closeness (t = 0.2, column = s, distance = ordered, ground = rank)"
    assert str(AlphaK(0.5, "s")) == "(alpha, k)-anonymity (alpha = 0.5, column = s)"
    assert model == TCloseness(0.2, "s", "ordered")
    assert hash(model) == hash(TCloseness(0.2, "s", "ordered"))


def test_requirements_are_all_models() -> None:
    requirements = Requirements((KAnonymity(3), DistinctDiversity(2, "s"), EntropyDiversity(2.5, "s")))
    assert requirements.k == 3
    assert requirements.columns == ("s",)
    assert requirements.monotone
    assert not requirements.monotone_with_suppression
    assert Requirements((KAnonymity(3), DistinctDiversity(4, "s"))).k == 4
    assert Requirements((KAnonymity(3), DistinctDiversity(4, "s"))).monotone_with_suppression
    assert not Requirements((KAnonymity(3), DeltaDisclosure(1, "s"))).monotone
    rows = [[3, 0, 0], [1, 1, 0], [1, 1, 1], [4, 1, 0]]
    assert requirements.satisfied(histograms(rows)).tolist() == [False, False, True, False]


@given(COUNTS, st.integers(1, 20))
def test_chunks_change_nothing(rows: list[list[int]], cells: int) -> None:
    counts = np.array(rows)
    labels, values = np.nonzero(counts)
    table = Table.of({"q": labels, "s": values}, Roles(quasi_identifiers=("q",), sensitive=("s",)))
    weights = counts[labels, values]
    requirements = Requirements((KAnonymity(4), DistinctDiversity(3, "s")))
    whole = requirements.check(labels, len(rows), table.sensitive, weights)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("anonymize.models.requirements.MOST_CELLS", cells)
        assert requirements.check(labels, len(rows), table.sensitive, weights).tolist() == whole.tolist()
    assert whole.tolist() == [sum(row) >= 4 and np.count_nonzero(row) >= 3 for row in rows]


@pytest.mark.parametrize(
    "model",
    [
        KAnonymity(2),
        DistinctDiversity(2, "s"),
        EntropyDiversity(2, "s"),
        RecursiveDiversity(1, 3, "s"),
        AlphaK(0.5, "s"),
        PSensitive(2, ("s",)),
        SensitiveLevels(1, (("0", "1"), ("2",)), "s"),
        *(TCloseness(0.1, "s", name) for name in ("equal", "kl", "ordered")),  # type: ignore[arg-type]
        TCloseness(0.1, "s", "hierarchical", hierarchy=TREE),
        BetaLikeness(1, "s", enhanced=True),
        DeltaDisclosure(1, "s"),
    ],
    ids=str,
)
def test_no_classes_are_no_trouble(model: Model) -> None:
    table = table_of([1, 1, 1])
    nothing = Histograms(np.empty(0, np.int64), {"s": np.empty((0, 3), np.int64)})
    assert Requirements((model,)).fitted(table).satisfied(nothing).tolist() == []


def test_numbers_are_taken_as_written() -> None:
    assert exact(0.1, "x") == Fraction(1, 10)
    assert exact("1/3", "x") == Fraction(1, 3)
    assert exact(Decimal("0.02"), "x") == Fraction(1, 50)
    for wrong in (math.inf, math.nan, "many", "1/0", None):
        with fails("E100"):
            exact(wrong, "x")  # type: ignore[arg-type]


@given(st.integers(0, 2**62), st.fractions(0, 10**12), st.integers(0, 2**62))
def test_comparisons_are_exact_whatever_the_size(left: int, limit: Fraction, right: int) -> None:
    a, b = np.array([left]), np.array([right])
    assert at_most(a, limit, b).tolist() == [left <= limit * right]
    assert below(a, limit, b).tolist() == [left < limit * right]
