"""Plain numbers of a column, read all at once, are coded as one by one; all others are left to the exact reader."""

from __future__ import annotations

from decimal import Decimal
from fractions import Fraction

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mining.data.items.discretisation import interval_of
from mining.models.attributes import Numeric
from mining.models.plain_numbers import intervals_of, plain_numbers, steps_of

DIGITS = st.integers(0, 10**11 - 1).map(str)
WHOLE = st.tuples(st.sampled_from(["", "-", "-0", "00"]), DIGITS).map("".join)
NUMBER = WHOLE | st.tuples(WHOLE, st.just("."), st.integers(0, 10**8 - 1).map(str)).map("".join)
OTHERS = ["", "-", "1\n", " 1", "1e3", "+1", ".5", "5.", "٣", "1,5", "nan", "inf", "0x1"]
TEXT = NUMBER | st.sampled_from(OTHERS)
BOUND = st.decimals(-1000, 1000, places=3) | st.decimals(-10, 10, places=8)


@given(st.lists(TEXT))
def test_plain_numbers_are_exact(texts: list[str]) -> None:
    plain, numbers = plain_numbers(pa.array(texts, pa.large_string()))
    taken = [text for text, is_plain in zip(texts, plain.tolist(), strict=True) if is_plain]
    assert [Fraction(text) * 10**6 for text in taken] == numbers.tolist()
    assert not set(taken) & set(OTHERS)
    short = {text for text in texts if len(text) < 8} - set(OTHERS)
    assert short <= set(taken)


@given(st.lists(NUMBER, min_size=1), st.lists(BOUND, min_size=1, unique=True), st.integers(1, 1 << 31))
def test_codes_are_those_of_single_numbers(texts: list[str], cuts: list[Decimal], steps: int) -> None:
    plain, numbers = plain_numbers(pa.array(texts, pa.large_string()))
    exact = [Decimal(text) for text, is_plain in zip(texts, plain.tolist(), strict=True) if is_plain]
    ascending = tuple(sorted(cuts))
    assert intervals_of(numbers, ascending).tolist() == [interval_of(number, ascending) for number in exact]
    low, high = ascending[0], ascending[-1]
    if low < high:
        found, attribute = steps_of(numbers, low, high, steps), Numeric("a", low, high, min(steps, (1 << 31) - 1))
        if found is not None and attribute.steps == steps:
            assert found.tolist() == [attribute.place(Fraction(min(max(each, low), high))) for each in exact]


@pytest.mark.parametrize(
    ("low", "high", "known"), [("0", "100", True), ("0.0000001", "1", False), ("0", "1e15", False)]
)
def test_bounds_that_are_no_millionths_are_left_to_decimals(low: str, high: str, known: bool) -> None:
    _, numbers = plain_numbers(pa.array(["0.5", "2.5", "-7"], pa.large_string()))
    assert (steps_of(numbers, Decimal(low), Decimal(high), 1000) is not None) == known


def test_a_half_goes_to_the_even_step() -> None:
    _, numbers = plain_numbers(pa.array(["0.5", "1.5", "2.5", "99.5"], pa.large_string()))
    found = steps_of(numbers, Decimal(0), Decimal(100), 100)
    assert found is not None
    assert found.tolist() == [0, 2, 2, 100]
