"""Memoisation over a sliding window: what is kept, what is spent, and what waits."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from crypto.primitives.randomness import Randomness
from ldp.aggregator import Aggregator
from ldp.longitudinal.bit_flip import BitFlip
from ldp.longitudinal.one_bit_mean import OneBitMean
from ldp.longitudinal.two_rounds import LongitudinalDirectEncoding, LongitudinalUnaryEncoding
from ldp.streams.sliding_memo import SlidingMemo
from link.errors import InputDataError
from tests.errors import fails

MECHANISM = LongitudinalDirectEncoding(["a", "b", "c", "d"], 0.5, 1.0)
PRICE = Fraction(MECHANISM.exact_permanent_epsilon)


def test_answers_are_used_again_while_a_value_stays() -> None:
    memo = SlidingMemo.drawn(MECHANISM, 5, 2.0, Randomness.from_seed(1))
    reports = [memo.report(step, "a") for step in range(100)]
    assert memo.spent == MECHANISM.exact_permanent_epsilon
    assert memo.ledger.left(99) == 2
    gathered = Aggregator(MECHANISM)
    for each in reports:
        gathered.add(MECHANISM.read(each.to_bytes()))
    assert len(gathered) == 100


def test_a_new_value_waits_while_the_window_is_spent() -> None:
    memo = SlidingMemo.drawn(MECHANISM, 5, 2.0, Randomness.from_seed(2))
    reported = []
    for step, value in enumerate("abcccccaad"):
        memo.report(step, value)
        reported.append(memo.reported)
    # c is new at step 2 and waits until the answer to a leaves the window; a and b are kept for ever.
    assert "".join(map(str, reported)) == "abbbbccaad"
    assert len(memo.memo) == 4


@settings(max_examples=60)
@given(
    st.integers(1, 6),
    st.integers(1, 4),
    st.lists(st.tuples(st.integers(0, 3), st.sampled_from("abcd")), min_size=1, max_size=40),
    st.integers(0, 1000),
)
def test_new_answers_stay_within_the_budget_of_every_window(
    w: int, answers: int, moves: list[tuple[int, str]], seed: int
) -> None:
    rng = Randomness.from_seed(seed)
    memo, step, spent = SlidingMemo.drawn(MECHANISM, w, answers * PRICE, rng), 0, dict[int, Fraction]()
    for ahead, value in moves:
        step += ahead
        before, last = len(memo.memo), memo.reported
        memo.report(step, value, rng)
        drawn = len(memo.memo) - before
        spent[step] = spent.get(step, Fraction(0)) + drawn * PRICE
        assert memo.reported == value or (drawn == 0 and memo.reported == last)
        assert sum(amount for at, amount in spent.items() if at > step - w) <= answers * PRICE
        again = SlidingMemo.from_bytes(memo.to_bytes(), MECHANISM)
        assert again.to_bytes() == memo.to_bytes()
        memo = again
    assert memo.spent == pytest.approx(len(memo.memo) * MECHANISM.exact_permanent_epsilon)


def test_every_memoised_mechanism_serves() -> None:
    for mechanism, values in (
        (LongitudinalUnaryEncoding(5, 1.0, 2.0), np.array([0, 4, 4, 1])),
        (BitFlip(50, 1.0, sampled=2), np.array([0, 49, 7, 7])),
        (OneBitMean(1.0, 0.0, 1.0), np.array([0.1, 0.9, 0.5, 0.1])),
    ):
        memo = SlidingMemo.drawn(mechanism, 2, 4.0)
        for step, value in enumerate(values):
            mechanism.read(memo.report(step, value).to_bytes())  # type: ignore[attr-defined]
        again = SlidingMemo.from_bytes(memo.to_bytes(), mechanism)
        assert again.reported == values[-1]
        assert again.spent == memo.spent


def test_wrong_memos_are_refused() -> None:
    with fails("E100"):
        SlidingMemo.drawn(MECHANISM, 5, 0.9)
    with fails("E100"):
        SlidingMemo.drawn(MECHANISM, 0, 2.0)
    memo = SlidingMemo.drawn(MECHANISM, 5, 2.0)
    empty = memo.to_bytes()
    assert SlidingMemo.from_bytes(empty, MECHANISM).reported is None
    with pytest.raises(InputDataError):
        memo.report(0, "e")
    assert memo.to_bytes() == empty
    memo.report(3, "a")
    with fails("E101"):
        memo.report(2, "a")
    data = memo.to_bytes()
    wrong = [data[:-1], data + b"\0", b"", b"X" + data[1:], data[:20], data.replace(b'"a"', b'"a}')]
    wrong += [data.replace(b'"a"', b"nul"), data[:5] + b"\xff" * 16 + data[21:]]
    memo.reported = None
    wrong.append(memo.to_bytes())  # with an answer, but none that was reported
    for each in wrong:
        with pytest.raises(InputDataError):
            SlidingMemo.from_bytes(each, MECHANISM)
    with pytest.raises(InputDataError):
        SlidingMemo.from_bytes(data, LongitudinalDirectEncoding(4, 0.5, 1.0))
