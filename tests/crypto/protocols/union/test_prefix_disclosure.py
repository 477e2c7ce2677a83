"""How many bits a union by prefixes may open: the chance that it opens more than the statement allows for."""

from __future__ import annotations

from functools import cache
from math import exp, floor, lgamma, log, log2

import numpy as np
import pytest

from crypto.primitives.unordered_code import word_bits
from crypto.protocols.union import prefix_disclosure
from crypto.protocols.union.prefixes import DENSE_BITS, FIRST_BITS, IN_USE, SPARSE_BITS

CHILDREN = 1 << SPARSE_BITS
DEEPEST = 40  # elements under one prefix that are told apart here; of more there are none but for a chance of 2^-150
TILTS = np.array([*np.arange(1.05, 2.5, 0.05), *np.arange(2.5, 8, 0.25)])
RATES = np.arange(0.05, 4, 0.05)
LONGEST_WORD = word_bits(13)  # of the length of a name of up to 8,191 bytes


@cache
def splits(tilt: float) -> np.ndarray:
    """By number k of elements under a prefix, k! in the divisor: the mean of tilt^S.

    S counts the prefixes of several elements at or below it. Each of k elements goes to one of the children by itself,
    so the generating function of these means is g(x) = 1 + x + tilt·(g(x / children)^children − …) in each power of 2
    and more, where the same power stands on both sides.
    """
    means = np.zeros(DEEPEST + 1)
    means[:2] = 1
    for k in range(2, DEEPEST + 1):
        below = np.zeros(k + 1)
        below[:k] = means[:k] * float(CHILDREN) ** -np.arange(k)
        for _ in range(SPARSE_BITS):
            below = np.convolve(below, below)[: k + 1]
        means[k] = tilt * below[k] / (1 - tilt * float(CHILDREN) ** (1 - k))
    means[0] = 0  # of prefixes in use
    return means


@cache
def logarithms() -> np.ndarray:
    """Of g at the rates, by tilt."""
    powers = RATES[:, None] ** np.arange(DEEPEST + 1)
    return np.log(np.array([powers @ splits(tilt) for tilt in TILTS]))


def chance(elements: int, bits: int) -> float:
    """A bound of the chance that names are asked for at prefixes of so many bits, and lengths take too many bits then.

    The statement allows for m elements `LENGTHS`·m and `REPEATED`·children words of lengths, u + children·S are asked
    for, u prefixes in use of B. Where lengths are asked for at once, what it allows for longer prefixes is left for
    them. By u the chance is at most C(B, u)·m!·g(x)^u / (x^m·B^m·tilt^S) for every rate x and tilt.
    """
    prefixes, total = 1 << bits, 0.0
    allowed = prefix_disclosure.LENGTHS * elements + prefix_disclosure.REPEATED * CHILDREN
    if bits == FIRST_BITS:
        allowed += prefix_disclosure.PREFIXES * elements // LONGEST_WORD
    most = min(elements, prefixes // IN_USE)
    step = max(1, most // 100)
    for in_use in range(most, max(0, most - 60 * step), -step):
        splits_beyond = floor((allowed - in_use) / CHILDREN) + 1
        found = in_use * logarithms() - elements * np.log(RATES) - splits_beyond * np.log(TILTS)[:, None]
        ways = lgamma(prefixes + 1) - lgamma(in_use + 1) - lgamma(prefixes - in_use + 1)
        total += step * exp(min(0.0, found.min() + ways + lgamma(elements + 1) - elements * log(prefixes)))
    return total


@pytest.mark.parametrize("steps", [0, 1, 2])
def test_more_is_opened_than_declared_with_a_chance_below_2_to_minus_40(steps):
    """From few elements to more than stop at such prefixes: at most a quarter of these are in use."""
    bits = FIRST_BITS + steps * DENSE_BITS
    most = round(-log(1 - 1 / IN_USE) * 2**bits)  # so many fill a quarter on average
    shares = (0.01, 0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.7, 0.8, 0.9, 0.95, 1, 1.03, 1.06, 1.08, 1.1, 1.2, 1.4, 1.7)
    chances = {number: chance(number, bits) for number in {max(2, round(share * most)) for share in shares}}
    assert max(chances.values()) < 2**-40, {number: round(log2(each), 1) for number, each in chances.items() if each}
