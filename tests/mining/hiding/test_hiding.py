"""Hiding: the worked example, every method on random rows, and the exact method against brute force."""

from __future__ import annotations

import functools
from collections.abc import Iterator
from decimal import Decimal
from itertools import chain, combinations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mining.data.transactions import Transactions
from mining.hiding import effects, exact
from mining.hiding.border import Border
from mining.hiding.effects import Mined
from mining.hiding.hide import METHODS, hide
from mining.hiding.sensitive import SensitiveRule, Thresholds, numbered, wholes, without
from mining.hiding.workspace import Workspace
from mining.reference.pooled import brute_force
from mining.reference.rules import rules as reference_rules
from mining.rules.association import association_rules
from tests.errors import fails

pytestmark = pytest.mark.turn(3)


@pytest.fixture(scope="module", autouse=True)
def search_here() -> Iterator[None]:
    """Exact searches run in this process: to start one of its own for each takes minutes; `test_exact_limit` does."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(exact, "searched_apart", exact.searched)
        yield


D = Transactions.from_rows(["abc", "abc", "ab", "ac", "bc", "a", "b", "abd", "bd", "cd"])
THREE = Thresholds(3, Decimal("0.6"))
AB = SensitiveRule(("a",), ("b",))


def rows_of(data: Transactions) -> list[str]:
    names = np.array(data.items, object)
    ends = zip(data.offsets[:-1], data.offsets[1:], strict=True)
    return ["".join(names[data.indices[start:end]]) for start, end in ends]


def test_support_reduction_as_worked_out() -> None:
    found = hide(D, [AB], THREE, method="support")
    assert rows_of(found.transactions) == ["ac", "abc", "a", "ac", "bc", "a", "b", "abd", "bd", "cd"]
    assert (found.itemsets.hiding_failure, found.itemsets.misses_cost, found.itemsets.artefactual) == (0, 1 / 6, 0)
    assert found.dissimilarity == pytest.approx(2 / 21)
    after = Mined(found.transactions, THREE)
    assert frozenset("bc") not in after.itemsets()


@pytest.mark.parametrize("method", ["bba", "maxmin", "exact"])
def test_border_and_exact_methods_lose_nothing_in_the_example(method: str) -> None:
    found = hide(D, [AB], THREE, method=method)  # type: ignore[arg-type]
    assert (found.itemsets.lost, found.deleted, found.itemsets.still_found) == (0, 2, 0)
    if method == "exact":
        assert found.solved is not None
        assert found.solved.status in ("optimal", "heuristic")


def test_the_border_is_that_of_the_example() -> None:
    work = Workspace(D)
    kept = without(Mined(D, THREE).table, [(0, 1)])
    border = Border(work, kept, 3)
    assert {"".join(D.items[i] for i in items) for items in border.sets} == {"d", "ac", "bc"}
    assert border.supports.tolist() == [3, 3, 3]


@pytest.mark.parametrize(("victim", "hidden"), [("b", True), ("a", False)])
def test_confidence_must_fall_below_the_threshold(victim: str, hidden: bool) -> None:
    work = Workspace(D)
    work.delete(2, D.items.index(victim))
    both, antecedent = work.support((0, 1)), work.support((0,))
    assert (both, antecedent) == ((3, 6) if victim == "b" else (3, 5))
    assert THREE.reaches(both, antecedent) is not hidden


def test_rows_that_go_lower_the_threshold() -> None:
    found = hide(D, [AB], Thresholds(Decimal("0.3"), Decimal("0.6")), method="rows")
    assert found.removed == 2
    assert found.transactions.n_rows == 8
    left = rows_of(D)
    del left[7], left[2]
    assert rows_of(found.transactions) == left
    after = Mined(found.transactions, Thresholds(Decimal("0.3"), Decimal("0.6"))).itemsets()
    assert frozenset("ac") in after
    assert frozenset("bc") in after
    assert frozenset("d") not in after


def test_losses_are_counted_by_itemset_and_not_by_border() -> None:
    data = Transactions.from_rows(["123", "034", "24", "124", "1234", "01234", "012", "0234", "03"])
    found = hide(data, [SensitiveRule(("3", "4"))], Thresholds(3, Decimal(1)), method="exact")
    assert (found.itemsets.lost, found.deleted) == (1, 2)


ROWS = st.lists(st.sets(st.sampled_from("abcdef"), max_size=6), min_size=3, max_size=24)
RULES = st.lists(
    st.permutations("abcdef").flatmap(
        lambda order: st.tuples(st.integers(1, 2), st.integers(1, 2)).map(
            lambda sizes: SensitiveRule(tuple(order[: sizes[0]]), tuple(order[sizes[0] : sum(sizes)]))
        )
    ),
    min_size=1,
    max_size=3,
)


@settings(max_examples=30, deadline=None)
@given(ROWS, RULES, st.integers(1, 4), st.sampled_from(["0.3", "0.6", "1"]), st.sampled_from(METHODS), st.booleans())
def test_nothing_sensitive_can_be_mined_afterwards(
    rows: list[set[str]], rules: list[SensitiveRule], count: int, confidence: str, method: str, every: bool
) -> None:
    data = Transactions.from_rows([*rows, set("abcdef")])
    thresholds = Thresholds(min(count, data.n_rows), Decimal(confidence))
    scope = "supersets" if every else "rule"
    if method == "rows":
        thresholds = Thresholds(Decimal("0.2"), thresholds.min_confidence)
    found = hide(data, rules, thresholds, method=method, scope=scope, time_limit=5)  # type: ignore[arg-type]
    released = [set(row) for row in rows_of(found.transactions)]
    least = thresholds.least_count(len(released)) if released else 1
    frequent = brute_force(released, least)
    mined = (
        {(rule.antecedent, rule.consequent) for rule in reference_rules(frequent, thresholds.min_confidence)}
        if frequent
        else set()
    )
    for rule in rules:
        left, right = frozenset(rule.antecedent), frozenset(rule.consequent)
        if every:
            assert not [each for each in mined if left <= set(each[0]) and right <= set(each[1])]
        else:
            assert (left, right) not in {(frozenset(a), frozenset(b)) for a, b in mined}
        if not method.startswith("confidence"):
            assert not [each for each in frequent if left | right <= set(each)]
    assert found.dissimilarity <= 1


@settings(max_examples=25, deadline=None)
@given(st.lists(st.sets(st.sampled_from("abcd"), min_size=1, max_size=4), min_size=3, max_size=6), st.integers(1, 3))
def test_exact_is_the_best_of_all_solutions(rows: list[set[str]], count: int) -> None:
    data = Transactions.from_rows([*rows, set("abcd")])
    rule = SensitiveRule(("a",), ("b",))
    thresholds = Thresholds(count, Decimal(1))
    found = hide(data, [rule], thresholds, method="exact", time_limit=20)
    (target,) = wholes(numbered([rule], data))
    cells = [(row, item) for row in np.flatnonzero(Workspace(data).holding(target)).tolist() for item in target]
    before = {s for s in brute_force(map(set, rows_of(data)), count) if not set("ab") <= set(s)}
    best = None
    for chosen in chain.from_iterable(combinations(cells, size) for size in range(len(cells) + 1)):
        changed = [set(row) for row in rows_of(data)]
        for row, item in chosen:
            changed[row].discard(data.items[item])
        after = brute_force(changed, count)
        if any(set("ab") <= set(s) for s in after):
            continue
        value = (len(before - set(after)), len(chosen))
        best = value if best is None else min(best, value)
    assert (found.itemsets.lost, found.deleted) == best
    for method in ("support", "bba", "maxmin"):
        other = hide(data, [rule], thresholds, method=method)  # type: ignore[arg-type]
        assert (found.itemsets.lost, found.deleted) <= (other.itemsets.lost, other.deleted)


@pytest.mark.parametrize("method", ["support", "bba", "maxmin", "exact", "rows"])
def test_rows_that_go_may_leave_fewer_than_a_count(method: str) -> None:
    data = Transactions.from_rows(["a", "a", "a"])
    found = hide(data, [SensitiveRule(("a",))], Thresholds(3, Decimal(0)), method=method)  # type: ignore[arg-type]
    assert (found.transactions.n_rows, found.removed, found.itemsets.still_found) == (2, 1, 0)
    with fails("E100"):
        hide(data, [SensitiveRule(("a",))], Thresholds(4, Decimal(0)), method=method)  # type: ignore[arg-type]


@pytest.mark.parametrize("text", ["²", "0.1²", "nan", "inf", "-1", "0.0", "1.5", "", "1,5"])
def test_what_is_no_threshold_is_told(text: str) -> None:
    with fails("E100"):
        Thresholds.parse(text, "0.5")


def test_wrong_rules_are_told() -> None:
    with fails("E101"):
        hide(D, [SensitiveRule(("x",), ("a",))], THREE)
    with fails("E100"):
        hide(D, [SensitiveRule(("a", "b"))], THREE, method="confidence")
    with fails("E100"):
        SensitiveRule(("a",), ("a",))
    with fails("E100"):
        SensitiveRule.parse("-> b")
    assert SensitiveRule.parse("a, b -> c") == SensitiveRule(("a", "b"), ("c",))


def test_too_many_rules_are_told_with_what_hiding_can_change(monkeypatch: pytest.MonkeyPatch) -> None:
    limited = functools.partial(association_rules, max_rules=1)
    monkeypatch.setattr(effects, "association_rules", limited)
    with fails("E100") as raised:
        Mined(D, THREE).rules()
    assert "max_length" not in raised.value.message
    assert "consequent" not in raised.value.message
