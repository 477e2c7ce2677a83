"""What jobs on a dataset may cost in all, and what is said when it would be too much."""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from jobs.privacy_account import Charge
from ldp.accounting.composition import Guarantee, optimal
from party.policy.policy import verdicts
from party.policy.privacy_budget import DatasetBudget, Totals, left, short, totals
from tests.errors import fails
from tests.examples import examples
from tests.party.policy.test_policy import facts, job, judge, policy, private

SIX = Decimal("1e-6")
decimals = st.decimals("0.001", 9, places=3)
central = st.builds(Charge, st.just("distributed"), st.none(), decimals, st.decimals("1e-9", "1e-6", places=9))
local = decimals.map(lambda epsilon: Charge("local", epsilon, epsilon, Decimal(0)))
exact = st.just(Charge("exact", None, None, None))
charges = st.lists(st.one_of(central, local, exact), max_size=12)


def budget(**keys: Any) -> DatasetBudget:
    return DatasetBudget.model_validate(keys)


@given(charges)
def test_basic_composition_is_the_exact_sum(found: list[Charge]) -> None:
    spent = totals(found)
    for key in ("local_epsilon", "epsilon", "delta"):
        assert Fraction(getattr(spent, key)) == sum(Fraction(getattr(each, key) or 0) for each in found)


@examples(25, 40)
@given(charges)
def test_optimal_composition_never_costs_more_than_the_sum_and_uses_the_whole_delta(found: list[Charge]) -> None:
    table = budget(epsilon="100", delta="1e-4", composition="optimal")
    basic, together = totals(found), totals(found, table)
    assert together.local_epsilon == basic.local_epsilon
    assert together.epsilon <= basic.epsilon
    if together.epsilon < basic.epsilon:
        assert together.delta == table.delta


def test_optimal_composition_is_that_of_many_equal_jobs() -> None:
    table = budget(epsilon="3", delta="1e-5", composition="optimal")
    weekly = [Charge("distributed", None, Decimal("0.1"), Decimal("1e-8"))] * 52
    expected = optimal([Guarantee(0.1, 1e-8)] * 52, 1e-5).epsilon
    assert float(totals(weekly, table).epsilon) == pytest.approx(expected, rel=1e-9)
    assert totals(weekly, table).epsilon < 4 < totals(weekly).epsilon
    # where the jobs' own δs are more than that of the table, nothing is left to compose with
    assert totals(weekly, budget(epsilon="3", delta="1e-8", composition="optimal")) == totals(weekly)


def test_what_is_left_is_never_below_nothing() -> None:
    table = budget(epsilon="2", delta="1e-5", local_epsilon="5")
    assert left(table, Totals()) == {"epsilon": Decimal(2), "delta": Decimal("1e-5"), "local_epsilon": Decimal(5)}
    spent = left(table, Totals(Decimal("0.5"), Decimal(3), SIX))
    assert spent == {"epsilon": 0, "delta": Decimal("9e-6"), "local_epsilon": Decimal("4.5")}


REFUSED: list[tuple[dict[str, Any], Sequence[Charge], Any]] = [
    (
        {"epsilon": "2", "delta": "1e-5"},
        [Charge("distributed", None, Decimal("1.5"), SIX)],
        private("distributed"),
    ),
    (
        {"delta": "1e-6", "period": "365d"},
        [Charge("distributed", None, Decimal("0.1"), Decimal("3e-7"))],
        private("distributed"),
    ),
    ({"local_epsilon": "7.9"}, [], private("shuffle")),
    (
        {"epsilon": "1", "delta": "1e-5", "composition": "optimal"},
        [Charge("distributed", None, Decimal("0.1"), Decimal("1e-8"))],
        private("distributed"),
    ),
    ({"exact": "refuse"}, [], job()),
]


@pytest.mark.parametrize(("keys", "charged", "spec"), REFUSED)
def test_a_job_that_would_spend_too_much_is_refused(keys: dict[str, Any], charged: Sequence[Charge], spec: Any) -> None:
    given = {"budget": budget(**keys), "charged": charged}
    with fails("E300", party="north"):
        judge(policy(), spec, **given)
    (refusal,) = [verdict for verdict in verdicts(policy(), facts(spec, **given)) if verdict.refusal]
    assert refusal.rule.startswith("privacy.")


@pytest.mark.parametrize(
    ("keys", "charged", "spec"),
    [
        ({"epsilon": "2", "delta": "2e-6"}, [Charge("shuffle", Decimal(8), Decimal(1), SIX)], private("distributed")),
        ({"epsilon": "1", "delta": "1e-5"}, [], private("local")),
        (
            {"epsilon": "1", "delta": "1e-5"},
            [Charge("distributed", None, Decimal(1), SIX)],
            job(),
        ),  # spends nothing that is bounded
        ({"local_epsilon": "8"}, [Charge("distributed", None, Decimal(9), SIX)], private("shuffle")),
        ({"exact": "refuse"}, [], private("local")),
        (
            {"epsilon": "0.3", "delta": "1e-5"},
            [Charge("local", *[Decimal("0.1")] * 2, Decimal(0))] * 2,
            private("local", epsilon="0.1"),
        ),
    ],
)
def test_what_is_left_may_be_spent_to_the_last_digit(keys: dict[str, Any], charged: Any, spec: Any) -> None:
    assert judge(policy(), spec, budget=budget(**keys), charged=charged) == "auto"


@pytest.mark.parametrize(
    ("keys", "words"),
    [
        ({"composition": "optimal"}, "needs epsilon and delta"),
        ({"composition": "optimal", "epsilon": "1"}, "epsilon needs delta beside it"),
        ({"epsilon": "1", "local_epsilon": "1"}, "epsilon needs delta beside it"),
        ({"period": "30d"}, "period limits nothing"),
        ({"epsilon": "0"}, "must be above 0"),
        *(
            ({"delta": delta}, "must be above 0 and at most 0.0001|finite number")
            for delta in ("1", "0.001", "0", "-1e-6", "NaN", "0.99999")
        ),
        ({"exact": "never"}, "allow"),
        ({"refund": True}, "Extra inputs"),
    ],
)
def test_a_table_that_makes_no_sense(keys: dict[str, Any], words: str) -> None:
    with pytest.raises(ValidationError, match=words):
        budget(**keys)


@pytest.mark.parametrize(
    ("number", "text"),
    [
        ("1", "1"),
        ("1.50", "1.5"),
        ("1E+2", "100"),
        ("1E-6", "1e-6"),
        ("0.000013", "1.3e-5"),
        ("0", "0"),
        ("0.12345678901234", "0.123457"),
    ],
)
def test_numbers_for_people_are_short(number: str, text: str) -> None:
    assert short(Decimal(number)) == text
