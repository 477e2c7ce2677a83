from __future__ import annotations

import math
from collections import Counter
from fractions import Fraction
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crypto.primitives.discrete_laplace import TruncatedDiscreteLaplace
from crypto.primitives.randomness import Randomness


class Word:
    """A stream that always draws the same number."""

    def __init__(self, word: int) -> None:
        self.word = word

    def below(self, bound: int) -> int:
        assert bound == 1 << 128
        return self.word


def masses(law: TruncatedDiscreteLaplace) -> list[float]:
    weights = [math.exp(-float(law.epsilon) * abs(k - law.shift)) for k in range(2 * law.shift + 1)]
    return [weight / sum(weights) for weight in weights]


@given(st.fractions(Fraction(1, 10), Fraction(5)), st.integers(1, 16))
def test_thresholds_are_the_cumulative_masses(epsilon: Fraction, shift: int) -> None:
    law = TruncatedDiscreteLaplace(epsilon, shift)
    total = 0.0
    for k, mass in enumerate(masses(law)[:-1]):
        total += mass
        threshold = law.cumulative[k]
        assert threshold / 2**128 == pytest.approx(total, abs=1e-12)
        assert law.sample(Word(threshold - 1)) <= k < law.sample(Word(threshold))  # type: ignore[arg-type]
    assert law.sample(Word(0)) == 0  # type: ignore[arg-type]
    assert law.sample(Word((1 << 128) - 1)) == 2 * shift  # type: ignore[arg-type]
    assert law.delta == pytest.approx(masses(law)[0], rel=1e-9)


def test_the_law_is_symmetric_to_its_last_bit() -> None:
    law = TruncatedDiscreteLaplace(Fraction(1), 12)
    edges = [0, *law.cumulative, 1 << 128]
    widths = [b - a for a, b in pairwise(edges)]
    assert all(abs(a - b) <= 2 for a, b in zip(widths, reversed(widths), strict=True))


def test_samples_follow_the_law(random: Randomness) -> None:
    law = TruncatedDiscreteLaplace(Fraction(1, 2), 4)
    size = 20_000
    counts = Counter(law.sample(random) for _ in range(size))
    statistic = sum((counts[k] - size * mass) ** 2 / (size * mass) for k, mass in enumerate(masses(law)))
    assert statistic < 42.7  # chi-square with 8 degrees of freedom, error probability 10^-6


def test_equal_streams_give_equal_numbers() -> None:
    law = TruncatedDiscreteLaplace(Fraction(1), 20)
    a, b = Randomness.from_key(bytes(32)), Randomness.from_key(bytes(32))
    assert [law.sample(a) for _ in range(20)] == [law.sample(b) for _ in range(20)]


def test_the_shift_is_the_least_for_a_delta() -> None:
    law = TruncatedDiscreteLaplace.for_delta(Fraction(1), Fraction(1, 1 << 40))
    assert law.delta <= 2**-40 < TruncatedDiscreteLaplace(Fraction(1), law.shift - 1).delta
    assert law.shift == 27


def test_bad_parameters_are_refused() -> None:
    for epsilon, shift in ((Fraction(0), 3), (Fraction(-1), 3), (Fraction(1), 0), (Fraction(1), 1 << 17)):
        with pytest.raises(ValueError, match=r"epsilon|shift"):
            TruncatedDiscreteLaplace(epsilon, shift)
    with pytest.raises(ValueError, match="range"):
        TruncatedDiscreteLaplace.for_delta(Fraction(1, 10**6), Fraction(1, 10**30))
