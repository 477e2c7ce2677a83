"""Composition, series of budgets, and ledgers: all of it exact, against brute force in fractions."""

from __future__ import annotations

import itertools
import math
import pathlib
import subprocess
import sys
from collections.abc import Iterator
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import special

from ldp.budget import LEAST_EPSILON
from ldp.certify import spent_epsilon
from ldp.registry import oracle
from ldp.streams.allocation import (
    SERIES as SERIES_NAMES,
)
from ldp.streams.allocation import (
    budgets,
    by_error,
    geometric,
    p_series,
    splitting,
    taylor,
    telescoping,
    uniform,
    zeta,
)
from ldp.streams.composition import GRID, amplified, before_sampling, rounded_down, sequential
from ldp.streams.ledger import UserLedgers, WindowLedger
from link.errors import ConfigurationError, InputDataError, PolicyDenied
from tests.errors import fails

pytestmark = pytest.mark.turn(8)

ROOT = pathlib.Path(__file__).resolve().parents[3]
NO_BUDGETS = (math.nan, math.inf, -1.0, "1", None, True)
AMOUNTS = st.fractions(0, Fraction(1, 2), max_denominator=64)


# -- composition ------------------------------------------------------------------------------------------------------
def test_budgets_add_up_exactly() -> None:
    assert sequential([0.1] * 10) == 10 * Fraction(0.1) != 1
    assert sequential([]) == 0
    assert sequential([Fraction(1, 3), 1]) == Fraction(4, 3)
    for wrong in NO_BUDGETS:
        with fails("E100"):
            sequential([1.0, wrong])  # type: ignore[list-item]


@given(st.floats(0.001, 16))
def test_budgets_on_the_grid_are_floats(epsilon: float) -> None:
    found = rounded_down(Fraction(epsilon))
    assert Fraction(epsilon) - Fraction(1, GRID) < found <= Fraction(epsilon)
    assert Fraction(float(found)) == found


def test_sampling_has_the_check_values() -> None:
    assert amplified(1.0, 0.1) == pytest.approx(0.1585651, abs=1e-7)
    assert before_sampling(1.0, 0.1) == pytest.approx(2.9004771, abs=1e-7)
    assert amplified(1.0, 1) == pytest.approx(1, abs=1e-15)
    for wrong in (0, -0.1, 1.1, math.nan, "1", True):
        for function in (amplified, before_sampling):
            with fails("E100"):
                function(1.0, wrong)  # type: ignore[arg-type]
    for wrong in NO_BUDGETS:
        with fails("E100"):
            amplified(wrong, 0.5)  # type: ignore[arg-type]


@given(st.floats(0.001, 8), st.fractions(Fraction(1, 1000), 1, max_denominator=1000))
def test_sampling_and_its_inverse_are_rounded_to_the_safe_side(epsilon: float, rate: Fraction) -> None:
    assert amplified(before_sampling(epsilon, rate), rate) <= math.nextafter(epsilon, math.inf)
    assert amplified(before_sampling(epsilon, rate), rate) == pytest.approx(epsilon, rel=1e-9)
    assert math.log1p(float(rate) * math.expm1(epsilon)) == pytest.approx(amplified(epsilon, rate), rel=1e-9)


@pytest.mark.parametrize("rate", [Fraction(1, 10), Fraction(1, 2), Fraction(1)])
@pytest.mark.parametrize("epsilon", [0.1, 1.0, 3.0])
def test_a_sampled_channel_spends_what_is_stated_at_most(epsilon: float, rate: Fraction) -> None:
    """Who is not sampled sends a report of a fixed value, so that nobody sees who was."""
    channel = oracle("grr", 4, epsilon).channel()
    sampled = [[rate * p + (1 - rate) * q for p, q in zip(row, channel[0], strict=True)] for row in channel]
    assert spent_epsilon(sampled) <= amplified(epsilon, rate)
    assert spent_epsilon(sampled) == pytest.approx(amplified(epsilon, rate), rel=1e-9)


# -- series -----------------------------------------------------------------------------------------------------------
SERIES = {
    "geometric": (geometric, (0.5, 0.25, 0.125)),
    "taylor": (taylor, (0.581977, 0.290988, 0.096996, 0.024249, 0.004850)),
    "p-series 2": (p_series, (0.607927, 0.151982, 0.067547)),
    "p-series 1.5": (lambda epsilon: p_series(epsilon, 1.5), (0.382793, 0.135338, 0.073669)),
    "telescoping": (telescoping, (0.5, 1 / 6, 1 / 12, 0.05)),
}


@pytest.mark.parametrize("name", SERIES)
def test_series_have_their_check_values_and_stay_within_the_budget(name: str) -> None:
    function, expected = SERIES[name]
    for epsilon in (1.0, 0.1, 0.3, 16.0, math.pi):
        terms = list(itertools.islice(function(epsilon), 500))
        assert [float(term) for term in terms[: len(expected)]] == pytest.approx(
            [epsilon * each for each in expected], abs=1e-6 * epsilon
        )
        assert sum(terms) <= Fraction(epsilon)
        assert all(Fraction(float(term)) == term >= 0 for term in terms)
        assert all(later <= former for former, later in itertools.pairwise(terms))


@given(st.floats(0.001, 16), st.floats(0.01, 0.99), st.floats(1.01, 20))
def test_infinite_series_never_exceed_their_budget(epsilon: float, ratio: float, p: float) -> None:
    series: tuple[Iterator[Fraction], ...]
    series = (geometric(epsilon, ratio), taylor(epsilon), p_series(epsilon, p), telescoping(epsilon))
    for terms in series:
        assert sum(itertools.islice(terms, 100)) <= Fraction(epsilon)


@given(st.floats(0.001, 16), st.lists(st.floats(1e-6, 1e6), min_size=1, max_size=20))
def test_budgets_by_error_are_those_of_least_variance(epsilon: float, errors: list[float]) -> None:
    found = by_error(epsilon, errors)
    assert sum(found) <= Fraction(epsilon)
    assert sum(found) >= Fraction(epsilon) - Fraction(len(errors) + 1, GRID)
    roots = np.cbrt(errors)
    assert [float(each) for each in found] == pytest.approx(list(epsilon * roots / roots.sum()), abs=1e-12)


def test_finite_series_have_their_check_values() -> None:
    assert [float(each) for each in by_error(1.0, [1, 8])] == pytest.approx([1 / 3, 2 / 3])
    assert [float(each) for each in uniform(1.0, 4)] == [0.25] * 4
    for wrong in ([], [0.0], [-1.0, 1.0], [math.nan], [math.inf]):
        with fails("E100"):
            by_error(1.0, wrong)
    for queries in (0, -1, 1.5, True):
        with pytest.raises(ConfigurationError):
            uniform(1.0, queries)  # type: ignore[arg-type]


NAMED: dict[str, dict[str, Any]] = {
    "uniform": {"queries": 7},
    "geometric": {"ratio": 0.75},
    "taylor": {},
    "p-series": {"exponent": 1.25},
    "telescoping": {},
    "by-error": {"errors": (1.0, 30.0, 2.5)},
}


@pytest.mark.parametrize("series", SERIES_NAMES)
@pytest.mark.parametrize("epsilon", [0.3, 1.0, 16.0, math.pi])
def test_budgets_of_queries_are_large_enough_and_add_up_to_no_more(series: str, epsilon: float) -> None:
    found = budgets(series, epsilon, **NAMED[series])
    assert sum(found) <= Fraction(epsilon)
    assert min(found) >= LEAST_EPSILON
    assert len(found) == {"uniform": 7, "by-error": 3}.get(series, len(found))
    if series not in ("uniform", "by-error"):
        with fails("E100") as caught:
            budgets(series, epsilon, **NAMED[series], queries=len(found) + 1)
        assert f"query {len(found) + 1};" in caught.value.message
        assert budgets(series, epsilon, **NAMED[series], queries=2) == found[:2]


def test_wrong_series_of_queries_are_refused() -> None:
    for series, more in (
        ("fibonacci", {}),
        ("uniform", {}),
        ("uniform", {"queries": 1001}),
        ("uniform", {"queries": 10**18}),
        ("uniform", {"queries": 3, "ratio": 0.5}),
        ("taylor", {"exponent": 2.0}),
        ("geometric", {"errors": (1.0,)}),
        ("by-error", {}),
        ("by-error", {"errors": (1.0, 2.0), "queries": 3}),
        ("by-error", {"errors": (1.0, 1e12)}),
        ("by-error", {"errors": (1.0,) * 300_000}),
    ):
        with fails("E100"):
            budgets(series, 1.0, **more)


@pytest.mark.parametrize("scale", [1e-300, 1.0, 1e300])
def test_budgets_by_error_depend_on_ratios_only(scale: float) -> None:
    found = budgets("by-error", 1.0, errors=(8 * scale, scale, 27 * scale))
    assert [float(each) for each in found] == pytest.approx([1 / 3, 1 / 6, 1 / 2])


def test_zeta_is_that_of_scipy() -> None:
    for p in (1.001, 1.25, 2.0, 3.7, 20.0, 60.0, 1e5):
        assert float(zeta(p)) == pytest.approx(special.zeta(p), rel=1e-14)


def test_wrong_series_are_refused_before_the_first_term() -> None:
    for function in (geometric, taylor, p_series, telescoping):
        for wrong in (*NO_BUDGETS, 0, 17):
            with fails("E100"):
                function(wrong)  # type: ignore[operator]
    for ratio in (0, 1, 1.5, -0.5, math.nan):
        with pytest.raises(ConfigurationError):
            geometric(1.0, ratio)
    for p in (1, 0.5, math.nan, math.inf):
        with pytest.raises(ConfigurationError):
            p_series(1.0, p)


def test_splitting_users_beats_splitting_the_budget() -> None:
    found = splitting("oue", 100_000, 1.0, 4)
    assert (found.budget, found.users) == pytest.approx((63.668, 14.731), abs=2e-3)
    for name, epsilon, queries in itertools.product(("grr", "oue", "olh", "hr", "ss", "auto"), (0.5, 2.0), (2, 10)):
        found = splitting(name, 16, epsilon, queries)
        assert found.users < found.budget, name
    single = splitting("grr", 8, 1.0, 1)
    assert (single.budget, single.drawing) == (single.users, 0)


def test_at_large_budgets_the_draw_of_users_counts() -> None:
    """LDP-IDS compares what reports add only; with it, splitting the budget wins where reports are nearly exact."""
    for domain, below, above in ((2, 0.9, 1.2), (16, 2.5, 3.2)):
        small, large = (splitting("auto", domain, 5 * each, 5) for each in (below, above))
        assert small.users + small.drawing < small.budget
        assert large.users < large.budget < large.users + large.drawing
    assert splitting("grr", 4, 1.0, 3).drawing == pytest.approx(0.75 / 4 * 2)


# -- ledgers ----------------------------------------------------------------------------------------------------------
@given(st.integers(1, 6), st.lists(st.tuples(st.integers(0, 3), AMOUNTS), max_size=40))
def test_a_ledger_refuses_exactly_what_a_window_does_not_hold(w: int, moves: list[tuple[int, Fraction]]) -> None:
    ledger, spent, step = WindowLedger(w, 1), dict[int, Fraction](), 0
    for ahead, amount in moves:
        step += ahead
        # All windows that hold the step, by brute force; nothing is spent after it yet.
        firsts = range(step - w + 1, step + 1)
        windows = [sum(spent.get(at, Fraction(0)) for at in range(first, first + w)) for first in firsts]
        assert ledger.left(step) == 1 - max(windows)
        if max(windows) + amount <= 1:
            ledger.spend(step, amount)
            spent[step] = spent.get(step, Fraction(0)) + amount
        else:
            before = ledger.to_bytes()
            with fails("E300"):
                ledger.spend(step, amount)
            assert ledger.to_bytes() == before
        again = WindowLedger.from_bytes(ledger.to_bytes())
        assert again.to_bytes() == ledger.to_bytes()
        assert again.left(step) == ledger.left(step)
    assert len(ledger.entries) <= w


def test_a_ledger_keeps_a_windows_entries_only() -> None:
    ledger = WindowLedger(5, 1.0)
    for step in range(1_000):
        ledger.spend(step, Fraction(1, 5))
    assert len(ledger.entries) == 5
    assert ledger.left(1_003) == Fraction(4, 5)
    assert ledger.left(10**15) == 1


def test_a_tenth_ten_times_is_no_one() -> None:
    """0.1 is more than a tenth as a float: a ledger of floats would not see it."""
    ledger = WindowLedger(10, 1.0)
    for step in range(9):
        ledger.spend(step, 0.1)
    with pytest.raises(PolicyDenied):
        ledger.spend(9, 0.1)


def test_wrong_ledgers_and_amounts_are_refused() -> None:
    for w in (0, -1, 1.5, math.nan, "3", None, True):
        with fails("E100"):
            WindowLedger(w, 1.0)  # type: ignore[arg-type]
        with fails("E100"):
            UserLedgers(3, w, 1.0)  # type: ignore[arg-type]
    for epsilon in (*NO_BUDGETS, 0):
        with fails("E100"):
            WindowLedger(3, epsilon)  # type: ignore[arg-type]
        with fails("E100"):
            UserLedgers(3, 3, epsilon)  # type: ignore[arg-type]
    ledger = WindowLedger(3, 1.0)
    for amount in NO_BUDGETS:
        with fails("E100"):
            ledger.spend(0, amount)  # type: ignore[arg-type]
    ledger.spend(5, 0.5)
    for step in (4, -1, 1.5, math.nan, None, True):
        with fails("E101"):
            ledger.spend(step, 0.1)  # type: ignore[arg-type]
    ledger.spend(np.int64(6), 0)  # type: ignore[arg-type]
    ledger.spend(6, 0.5)


def test_wrong_bytes_are_no_ledger() -> None:
    ledger = WindowLedger(3, 1.0)
    ledger.spend(5, 0.5)
    data = ledger.to_bytes()
    wrong = [data[:-1], data + b"x", b"", b"X" + data[1:], data[:5], data[:5] + b"[]", data[:5] + b"\xff"]
    wrong += [
        data.replace(b'"1/2"', b'"3/2"'),  # more than the budget
        data.replace(b'"1/2"', b'"1/0"'),
        data.replace(b'"1/2"', b'"-1/2"'),
        data.replace(b'"w": 3', b'"w": 0'),
        data.replace(b"[5,", b'["5",'),
    ]
    for each in wrong:
        with pytest.raises(InputDataError):
            WindowLedger.from_bytes(each)


@given(
    st.integers(1, 5),
    st.lists(st.tuples(st.integers(0, 2), st.sets(st.integers(0, 4)), st.integers(1, 8)), max_size=30),
)
def test_ledgers_of_many_users_agree_with_single_ones(w: int, moves: list[tuple[int, set[int], int]]) -> None:
    many, single, step, peak = UserLedgers(5, w, 1.0), [WindowLedger(w, 1.0) for _ in range(5)], 0, Fraction(0)
    for ahead, chosen, eighths in moves:
        step, amount = step + ahead, Fraction(eighths, 8)
        users = np.array(sorted(chosen), dtype=np.int64)
        if all(single[user].left(step) >= amount for user in chosen):
            many.spend(step, users, amount)
            for user in chosen:
                single[user].spend(step, amount)
                peak = max(peak, single[user].spent(step))
        else:
            with pytest.raises(PolicyDenied):
                many.spend(step, users, amount)
        assert many.peak == peak


def test_what_clients_import_is_light() -> None:
    code = (
        "import sys, ldp.streams.ledger, ldp.streams.composition\n"
        "own = {name.split('.')[0] for name in sys.modules} & {'ldp', 'link', 'crypto', 'mining', 'protos'}\n"
        "heavy = {'scipy', 'cryptography', 'grpc', 'google', 'rich', 'numba'} & set(sys.modules)\n"
        "print(*sorted(own | heavy))"
    )
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=ROOT, check=True)
    assert ran.stdout.split() == ["ldp", "link"]
