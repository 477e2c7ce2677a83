"""Lengths tell classes of sizes, and limits tell no more, however many jobs ask with limits of their choice."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from crypto.protocols.union.limits import (
    LENGTH_CLASSES,
    MAX_ELEMENT_BYTES,
    check_limits,
    longest_allowed,
    over_limits,
    refuse_over_limits,
)
from crypto.protocols.union.size_classes import LEAST, LISTS, SETS, SizeClasses, over_bound
from mining.limits import MAX_ITEM_BYTES
from tests.errors import fails

LADDERS = st.sampled_from([SETS, LISTS])
SIZES = st.one_of(st.integers(0, 300), st.integers(0, 1 << 24))


@given(LADDERS, SIZES)
def test_the_class_of_a_size_is_the_least_that_holds_it(ladder: SizeClasses, size: int) -> None:
    place = ladder.place(size)
    assert size <= ladder.size(place) == ladder.rounded(size)
    assert place == 0 or ladder.size(place - 1) < size
    assert ladder.rounded(size) <= max(LEAST, (1 + 1 / ladder.to_a_doubling) * size)
    assert ladder.rounded(ladder.rounded(size)) == ladder.rounded(size)


def test_the_first_classes_and_the_last() -> None:
    assert [SETS.size(place) for place in range(5)] == [64, 128, 256, 512, 1024]
    assert [LISTS.size(place) for place in range(9)] == [64, 80, 96, 112, 128, 160, 192, 224, 256]
    for ladder in (SETS, LISTS):
        sizes = [ladder.size(place) for place in range(ladder.beyond)]
        assert all(a < b for a, b in pairwise(sizes))
        assert sizes[-1] == ladder.most == 1 << 24
        assert ladder.place(ladder.most + 1) == ladder.of(ladder.most + 1, None) == ladder.beyond


def swept(ladder: SizeClasses, held: int) -> list[bool]:
    """What the ends of jobs tell of a party, by bound."""
    return [ladder.of(held, bound) == ladder.beyond for bound in [*range(1, 400), *range(400, 9000, 97), ladder.most]]


@settings(max_examples=60)
@given(LADDERS, st.integers(0, 9000), st.integers(0, 9000))
def test_bounds_one_after_the_other_tell_the_size_class_alone(ladder: SizeClasses, one: int, other: int) -> None:
    assert (swept(ladder, one) == swept(ladder, other)) == (ladder.place(one) == ladder.place(other))


def told(longest: int, limit: int) -> bool:
    return over_limits([b"x" * longest], None, limit)[1]


def length_class(longest: int) -> int:
    return next(most for most in LENGTH_CLASSES if longest <= most)


@settings(max_examples=60)
@given(st.integers(0, 4096), st.integers(0, 4096))
def test_limits_of_names_one_after_the_other_tell_the_length_class_alone(one: int, other: int) -> None:
    limits = [*range(1, 200), *range(200, 4097, 31), 4096]
    alike = length_class(one) == length_class(other)
    assert ([told(one, limit) for limit in limits] == [told(other, limit) for limit in limits]) == alike


def test_the_longest_that_a_limit_allows_is_the_longest_of_its_class() -> None:
    assert LENGTH_CLASSES[:9] == (16, 33, 50, 67, 101, 133, 201, 269, 405)
    assert [longest_allowed(most) for most in (0, 16, 17, 128, 133, 134)] == [16, 16, 33, 133, 133, 201]
    for shorter, most in pairwise(LENGTH_CLASSES):
        assert longest_allowed(shorter + 1) == longest_allowed(most) == most
        assert most <= 2 * shorter + 1
    assert longest_allowed(MAX_ELEMENT_BYTES) == MAX_ELEMENT_BYTES


@pytest.mark.parametrize(
    ("bound", "said"),
    [
        (None, "16777216, the most"),
        (3, "64, to which its bound of 3 is rounded up; raise KEY"),
        (128, "128; raise KEY"),
    ],
)
def test_whoever_is_over_a_bound_is_told_what_it_came_to(bound: int | None, said: str) -> None:
    assert over_bound(SETS, bound, "KEY").startswith(said)
    if bound is not None:
        with fails("E104"):
            refuse_over_limits((True, False), "items", bound, 16, key="KEY")


@pytest.mark.parametrize(("most", "raised"), [(4095, True), (MAX_ITEM_BYTES, False)])
def test_nobody_is_told_to_raise_what_is_at_its_most(most: int, raised: bool) -> None:
    with fails("E104") as caught:
        refuse_over_limits((False, True), "items", None, most)
    assert ("max_item_bytes" in caught.value.message) == raised


@given(LADDERS, st.lists(SIZES, min_size=1), st.one_of(st.none(), SIZES.map(lambda size: max(size, 1))))
def test_every_list_has_room_for_what_it_may_hold(ladder: SizeClasses, held: list[int], bound: int | None) -> None:
    largest = max(ladder.of(number, bound) for number in held)
    if largest < ladder.beyond:
        assert max(held) <= ladder.capacity(largest, bound)


@pytest.mark.parametrize(("bound", "longest"), [(0, 9), ((1 << 24) + 1, 9), (None, 1 << 16)])
def test_limits_within_which_there_is_no_union_are_refused(bound: int | None, longest: int) -> None:
    with fails("E100"):
        check_limits("items", bound, longest)
