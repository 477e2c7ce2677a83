"""Blocks keep what they are made of, in memory and as bytes, and refuse what is damaged."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from mining.data.transactions import Transactions
from mining.partitioned.blocks import Block
from tests.errors import fails
from tests.mining.partitioned.world import same

rows = st.lists(st.lists(st.integers(0, 30).map(str), max_size=8), max_size=12)


@given(rows)
def test_a_block_keeps_its_rows(baskets: list[list[str]]) -> None:
    data = Transactions.from_rows(baskets)
    block = Block.from_bytes(Block.of(data).to_bytes(), "a block")
    assert block.n_rows == data.n_rows
    assert same(block.seen(None, data.n_items), data)


@given(rows, st.data())
def test_a_block_is_seen_under_other_numbers(baskets: list[list[str]], draw: st.DataObject) -> None:
    data = Transactions.from_rows([*baskets, [str(item) for item in range(31)]])
    dictionary = draw.draw(st.permutations([*data.items, "nobody's"]).flatmap(lambda items: st.just(items[5:])))
    expected = data.onto(dictionary)
    target = np.array([dictionary.index(item) if item in dictionary else -1 for item in data.items], np.int32)
    assert same(Block.of(data).seen(target, len(dictionary)), expected)


def test_codes_are_short_where_the_block_has_few_items_of_many() -> None:
    items = tuple(f"{number:06}" for number in range(70_000))
    few = Transactions(items, np.array([0, 2], np.int64), np.array([3, 69_999], np.int32))
    many = Transactions(items, np.array([0, 70_000], np.int64), np.arange(70_000, dtype=np.int32))
    assert Block.of(few).codes.dtype == np.uint16
    assert Block.of(many).codes.dtype == np.uint32
    for data in (few, many):
        assert same(Block.from_bytes(Block.of(data).to_bytes(), "a block").seen(None, 70_000), data)


@given(rows, st.data())
def test_a_damaged_block_is_refused(baskets: list[list[str]], draw: st.DataObject) -> None:
    whole = Block.of(Transactions.from_rows(baskets)).to_bytes()
    place = draw.draw(st.integers(0, len(whole) - 1))
    kind = draw.draw(st.sampled_from(["changed", "cut", "longer"]))
    damaged = {
        "changed": whole[:place] + bytes([whole[place] ^ draw.draw(st.integers(1, 255))]) + whole[place + 1 :],
        "cut": whole[:place],
        "longer": whole + b"\0" * (place + 1),
    }[kind]
    with fails("E101"):
        Block.from_bytes(damaged, "the block")
