from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from crypto.primitives import blocks
from crypto.primitives.randomness import Randomness
from crypto.protocols.union.lists import (
    ListSizes,
    common_fakes,
    distinct,
    padded,
    spare_for_common_fakes,
)


@pytest.mark.parametrize("epsilon", [0.5, 1.0, 8])
def test_the_truncation_costs_less_than_two_to_the_minus_forty(epsilon):
    fakes = common_fakes(epsilon)
    assert fakes.delta <= 2**-40
    assert spare_for_common_fakes(4, fakes) == 6 * fakes.shift


def lists_of_two(elements: list[bytes], capacity: int) -> list[np.ndarray]:
    fakes = common_fakes(1.0)
    sizes = ListSizes(2, capacity, spare_for_common_fakes(2, fakes))
    return [
        padded(elements, sizes, fakes, [Randomness.from_seed(b"pair")], Randomness.from_seed(me.encode())).blocks
        for me in ("a", "b")
    ]


@pytest.mark.parametrize("elements", [[], [b"x" * 16, b"y" * 16], [b"%016d" % i for i in range(9)]])
def test_a_padded_list_has_a_public_length_and_hides_fakes_among_its_kind(elements):
    one, two = lists_of_two(elements, 9)
    assert one.shape == two.shape == (9 + 2 * common_fakes(1.0).shift, 30)
    assert Counter(blocks.decode(one)) == Counter([*elements, *[None] * (len(one) - len(elements))])


def test_two_lists_have_their_elements_and_the_common_fakes_in_common():
    one, two = lists_of_two([b"x" * 16], 9)
    common = {row.tobytes() for row in one} & {row.tobytes() for row in two}
    drawn = common_fakes(1.0).sample(Randomness.from_seed(b"pair"))
    assert len(common) == 1 + drawn
    assert len({row.tobytes() for row in one}) == len(one)


@given(st.lists(st.lists(st.integers(0, 9), min_size=1, max_size=8), min_size=1, max_size=4))
def test_distinct_drops_what_is_there_twice(lists):
    result = distinct([np.array([[number] * 31 + [0] for number in numbers], np.uint8) for numbers in lists])
    assert result.shape[1:] == (32,)
    assert result[:, 0].tolist() == sorted(set().union(*lists))
