"""Fixed public functions: what shuffled reports of sketches guarantee, and how Hadamard response fills its blocks."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from fractions import Fraction
from itertools import combinations, product
from typing import Any

import numpy as np
import pytest

from ldp.accounting.lower_bounds import Kinds, kinds_of
from ldp.accounting.shuffling import ShuffledBlanket, amplified_epsilon
from ldp.heavy_hitters.bit_strings import Integers
from ldp.heavy_hitters.fragment_puzzle import SequenceFragmentPuzzle
from ldp.mechanism import Channel
from ldp.oracles.hadamard_response import HadamardResponse
from ldp.registry import oracle

pytestmark = pytest.mark.turn(5)


def whole_channel(sketch: Any) -> Channel:
    """Of a sketch as it is, with its fixed functions: the function's number is part of the output."""
    m, share = sketch.buckets, Fraction(1, sketch.functions)
    values = np.arange(sketch.domain.size)
    buckets = [sketch.family.buckets(sketch.seeds[[k]], values) for k in range(sketch.functions)]
    rows: Channel = []
    for value in values:
        row: list[Fraction] = []
        for found in buckets:
            own = int(found[value])
            if sketch.name == "flh":
                row += [share * (sketch.bucket.p if y == own else sketch.bucket.q) for y in range(m)]
            elif sketch.name == "hcms":
                signs = product(range(m), (0, 1))
                row += [
                    share / m * (sketch.p if (y & own).bit_count() % 2 == sign else 1 - sketch.p) for y, sign in signs
                ]
            else:
                for bits in product((0, 1), repeat=m):
                    right = [(bit == 1) == (place == own) for place, bit in enumerate(bits)]
                    row.append(share * math.prod((sketch.p if each else 1 - sketch.p) for each in right))
        assert sum(row) == 1
        rows.append(row)
    return rows


def shuffled_delta(channel: Channel, first: int, second: int, third: int, n: int, epsilon: float) -> float:
    """By brute force: the hockey-stick divergence of all reports' counts, where all but one client have a third value.

    Outputs that look alike to the three values are counted as one, which loses nothing.
    """
    kinds: dict[tuple[Fraction, ...], list[Fraction]] = defaultdict(lambda: [Fraction(0)] * 3)
    for column in zip(*(channel[each] for each in (first, second, third)), strict=True):
        ratios = tuple(each / column[2] for each in column)
        kinds[ratios] = [one + other for one, other in zip(kinds[ratios], column, strict=True)]
    laws = [[float(each[place]) for each in kinds.values()] for place in range(3)]
    others: Counter[tuple[int, ...]] = Counter({(0,) * len(kinds): 1.0})  # type: ignore[dict-item]
    for _ in range(n - 1):
        grown: Counter[tuple[int, ...]] = Counter()
        for counts, p in others.items():
            for kind, q in enumerate(laws[2]):
                grown[(*counts[:kind], counts[kind] + 1, *counts[kind + 1 :])] += p * q  # type: ignore[assignment]
        others = grown
    both: dict[tuple[int, ...], list[float]] = defaultdict(lambda: [0.0, 0.0])
    for counts, p in others.items():
        for kind in range(len(kinds)):
            place = (*counts[:kind], counts[kind] + 1, *counts[kind + 1 :])
            for which in (0, 1):
                both[place][which] += p * laws[which][kind]
    return sum(max(a - math.exp(epsilon) * b, 0.0) for a, b in both.values())


@pytest.mark.parametrize("name", ["flh", "cms", "hcms"])
@pytest.mark.parametrize(("functions", "salt"), [(1, 0), (1, 1), (1, 2), (2, 0), (3, 5)])
def test_no_two_batches_tell_more_than_is_claimed(name: str, functions: int, salt: int) -> None:
    sketch = oracle(name, 5, 1.0, functions=functions, buckets=4, salt=salt)
    channel, n = whole_channel(sketch), 4
    claimed = ShuffledBlanket(sketch.blanket())
    for epsilon in (0.0, 0.2, 0.5, 0.8):
        most = math.exp(claimed.log_delta(n, epsilon))
        for first, second in combinations(range(5), 2):
            for third in set(range(5)) - {first, second}:
                found = shuffled_delta(channel, first, second, third, n, epsilon)
                assert found <= most * (1 + 1e-9)


@pytest.mark.parametrize(("epsilon", "n"), [(1.0, 10_000), (2.0, 10_000)])
def test_one_function_that_parts_all_values_is_direct_encoding(epsilon: float, n: int) -> None:
    for salt in range(500):
        sketch: Any = oracle("flh", 4, epsilon, functions=1, buckets=4, salt=salt)
        if len(set(sketch.family.buckets(sketch.seeds[[0]], np.arange(4)).tolist())) == 4:
            break
    direct = oracle("grr", 4, epsilon)
    least = Kinds(float(direct.p), float(direct.q), float(direct.q)).epsilon(n, 1e-6)  # type: ignore[attr-defined]
    assert amplified_epsilon(sketch, n, 1e-6) == amplified_epsilon(direct, n, 1e-6) >= least
    if epsilon == 1:
        assert amplified_epsilon(sketch, n, 1e-6) == pytest.approx(0.034260, abs=2e-6)


@pytest.mark.parametrize("name", ["flh", "cms", "hcms"])
def test_nothing_is_averaged_over_fixed_functions(name: str) -> None:
    """However many functions there are: two values may meet under none."""
    few, many = (oracle(name, 1000, 1.0, functions=k, buckets=8).blanket() for k in (1, 4096))
    assert few == many


# -- Hadamard response ------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("d", [2, 3, 5, 64, 100, 255, 256, 257, 1000, 1023, 1024, 1025, 4096, 65_536])
def test_blocks_are_filled_evenly(d: int) -> None:
    for power in range(min(6, d.bit_length() - 1) + 1):
        response = HadamardResponse(d, 4.0, blocks=1 << power)
        sizes = np.bincount(response.block, minlength=1 << power)
        assert sizes.max() - sizes.min() <= 1
        assert 1 <= response.row.min() <= response.row.max() < response.shape.block
        places = response.block * response.shape.block + response.row
        assert len(np.unique(places)) == d


@pytest.mark.parametrize("d", [5, 64, 100, 256, 1000, 1024, 4096])
@pytest.mark.parametrize("epsilon", [0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 5.0])
def test_the_automatic_number_of_blocks_has_the_least_variance(d: int, epsilon: float) -> None:
    even = np.full(d, 1.0)
    chosen = oracle("hr", d, epsilon).variance(even, d).mean()
    most = int(math.log2(min(math.exp(epsilon), d)))
    least = min(oracle("hr", d, epsilon, blocks=1 << power).variance(even, d).mean() for power in range(most + 1))
    assert chosen == pytest.approx(least, rel=1e-12)


def test_a_fragment_is_no_worse_than_with_one_block() -> None:
    for epsilon in (1.5, 2.0, 3.0, 5.0):
        fragment: Any = SequenceFragmentPuzzle(Integers(32), epsilon, 8).fragment
        d = fragment.domain.size
        one = oracle("hr", d, fragment.epsilon, blocks=1)
        assert fragment.variance(np.ones(d), d).mean() <= one.variance(np.ones(d), d).mean() * (1 + 1e-12)


@pytest.mark.parametrize("blocks", [1, 2, 4])
def test_variances_are_those_of_the_channel(blocks: int) -> None:
    response = HadamardResponse(6, 2.0, blocks=blocks)
    channel = response.channel()
    decoded = np.array(
        [response.unbiased(np.eye(len(channel[0]), dtype=np.int64)[y], 1) for y in range(len(channel[0]))]
    )
    for held in range(6):
        law = np.array([float(p) for p in channel[held]])
        assert sum(channel[held]) == 1
        assert law @ decoded == pytest.approx(np.eye(6)[held], abs=1e-9)
        variances = law @ decoded**2 - (law @ decoded) ** 2
        assert response.variance(np.eye(6)[held], 1) == pytest.approx(variances, rel=1e-9)


@pytest.mark.parametrize("epsilon", [0.5, 1.0])
def test_the_kinds_of_one_block_are_known_however_it_was_chosen(epsilon: float) -> None:
    assert kinds_of(oracle("hr", 64, epsilon)) == kinds_of(oracle("hr", 64, epsilon, blocks=1))
