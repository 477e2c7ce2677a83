from __future__ import annotations

import re
from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from crypto.primitives import blocks
from crypto.primitives.randomness import Randomness
from crypto.protocols.union.lists import (
    MOST_CLASSES,
    ListSizes,
    common_fakes,
    distinct,
    length_class,
    padded,
    sizes_of,
    spare_for_common_fakes,
    widened,
)
from link.errors import ConfigurationError
from mining.limits import MAX_ITEM_BYTES
from tests.errors import fails


@given(st.integers(1, blocks.MAX_BLOCKS))
def test_a_length_class_holds_an_element_with_less_than_half_to_spare(width):
    assert width <= widened(width) <= max(width, 1.5 * (width - 1))
    assert widened(widened(width)) == widened(width)


def test_length_classes():
    assert length_class([]) == 1
    assert length_class([b"", b"a" * 16]) == 1
    assert length_class([b"a" * 17, b"b"]) == 2


@pytest.mark.parametrize("epsilon", [0.5, 1.0, 8])
def test_the_truncation_costs_less_than_two_to_the_minus_forty(epsilon):
    fakes = common_fakes(epsilon)
    assert fakes.delta <= 2**-40
    assert spare_for_common_fakes(4, fakes) == 6 * fakes.shift


def lists_of_two(elements: list[bytes], capacity: int) -> list[np.ndarray]:
    fakes = common_fakes(1.0)
    sizes = ListSizes(2, 2, capacity, spare_for_common_fakes(2, fakes))
    return [
        padded(elements, sizes, fakes, [Randomness.from_seed(b"pair")], Randomness.from_seed(me.encode())).tuples
        for me in ("a", "b")
    ]


@pytest.mark.parametrize("elements", [[], [b"x", b"y" * 20], [b"%d" % i for i in range(9)]])
def test_a_padded_list_has_a_public_length_and_hides_fakes_among_its_kind(elements):
    one, two = lists_of_two(elements, 9)
    assert one.shape == two.shape == (9 + 2 * common_fakes(1.0).shift, 2, 30)
    assert Counter(blocks.decode(one)) == Counter([*elements, *[None] * (len(one) - len(elements))])


def test_two_lists_have_their_elements_and_the_common_fakes_in_common():
    one, two = lists_of_two([b"x"], 9)
    common = {row.tobytes() for row in one} & {row.tobytes() for row in two}
    drawn = common_fakes(1.0).sample(Randomness.from_seed(b"pair"))
    assert len(common) == 1 + drawn
    assert len({row.tobytes() for row in one}) == len(one)


@given(
    st.lists(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 3)), min_size=1, max_size=8), min_size=1, max_size=4)
)
def test_distinct_compares_whole_tuples(lists):
    def tuples(pairs):
        return np.array([[[a] * 31 + [0], [b] * 31 + [0]] for a, b in pairs], np.uint8)

    result = distinct([tuples(pairs) for pairs in lists])
    assert result.shape[1:] == (2, 32)
    assert sorted((row[0, 0], row[1, 0]) for row in result) == sorted(set().union(*lists))


@pytest.mark.parametrize(("most", "raised"), [(4095, True), (MAX_ITEM_BYTES, False)])
def test_nobody_is_told_to_raise_what_is_at_its_most(most, raised):
    with fails("E104") as caught:
        sizes_of((0, MOST_CLASSES[1]), 3, "items", None, most, 0)
    assert ("max_item_bytes" in caught.value.message) == raised


@pytest.mark.parametrize(("key", "named"), [("[align] bound", False), ("[union] bound", True)])
def test_the_sentence_names_the_key_that_sets_the_bound(key, named):
    with pytest.raises(ConfigurationError, match=re.escape(f"raise {key} in the job")):
        sizes_of((MOST_CLASSES[0], 0), 3, "rows", 5, 16, 0, key=key)
    with pytest.raises(ConfigurationError, match=re.escape(f"lower {key}")) as caught:
        sizes_of((0, 0), 3, "rows", 1 << 24, 16, 1, "union", key=key)
    assert ("max_item_bytes" in caught.value.message) == named
