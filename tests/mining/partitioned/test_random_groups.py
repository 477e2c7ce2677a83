"""Groups of rows by chance: of the sizes asked for, the same however rows are cut, with the law of a permutation."""

from __future__ import annotations

from collections import Counter
from itertools import pairwise, permutations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from crypto.primitives.randomness import Randomness
from mining.partitioned import random_groups
from mining.partitioned.random_groups import RandomGroups
from tests.mining.partitioned.world import ragged

pytestmark = pytest.mark.turn(3)


@given(st.lists(st.integers(0, 40), min_size=1, max_size=6), st.integers(0, 1 << 30), st.data())
def test_sizes_are_those_asked_for_however_rows_are_cut(sizes: list[int], seed: int, draw: st.DataObject) -> None:
    groups = RandomGroups.drawn(sizes, Randomness.from_seed(seed))
    whole = groups.of(0, sum(sizes))
    assert np.bincount(whole, minlength=len(sizes)).tolist() == sizes
    cuts = draw.draw(ragged(sum(sizes)))
    parts = [groups.of(start, stop - start) for start, stop in pairwise(cuts)]
    assert np.concatenate(parts).tolist() == whole.tolist()


def test_rows_of_several_segments(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(random_groups, "SEGMENT", 7)
    groups = RandomGroups.drawn([30, 0, 25, 45], Randomness.from_seed(3))
    whole = groups.of(0, 100)
    assert np.bincount(whole).tolist() == [30, 0, 25, 45]
    assert [groups.of(at, 1).item() for at in range(100)] == whole.tolist()
    assert len({groups.of(7 * at, 7).tobytes() for at in range(14)}) > 7  # each segment has a stream of its own


def test_every_division_is_as_likely() -> None:
    """Of all divisions of 6 rows into groups of 1, 2 and 3, by 1,500 draws: a false alarm has a probability of 10⁻⁶."""
    random = Randomness.from_seed(11)
    seen = Counter(tuple(RandomGroups.drawn([1, 2, 3], random).of(0, 6).tolist()) for _ in range(1_500))
    divisions = set(permutations([0, 1, 1, 2, 2, 2]))
    assert set(seen) <= divisions
    assert stats.chisquare([seen[each] for each in divisions]).pvalue > 1e-6


@pytest.mark.parametrize("values", [2, 4])
def test_equal_numbers_at_a_cut_are_drawn_again(values: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Numbers of few values, which are often equal: sizes are kept all the same."""
    drawn, step = random_groups.numbers_of, np.uint64((1 << 64) // values)
    monkeypatch.setattr(random_groups, "numbers_of", lambda *where: (each // step * step for each in drawn(*where)))
    for seed in range(20):
        groups = RandomGroups.drawn([2, 1], Randomness.from_seed(seed))
        assert np.bincount(groups.of(0, 3)).tolist() == [2, 1]


def test_neither_key_nor_cuts_are_shown() -> None:
    groups = RandomGroups.drawn([3, 3], Randomness.from_seed(1))
    assert groups.key.key.hex() not in repr(groups) + repr(groups.key)
    assert repr(groups) == "RandomGroups()"
