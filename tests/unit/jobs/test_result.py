"""Packed itemsets: one form for equal itemsets, and nothing else is accepted."""

from __future__ import annotations

import contextlib

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from jobs.result import digest, pack, unpack
from mining.itemsets import Itemsets
from mining.miner import frequent_itemsets
from mining.transactions import Transactions

ROWS = [["a b", "a", "b"], ["a", "b"], ["a", "Ä"], ["Ä", "a b"]]


def mined(rows: list[list[str]]) -> Itemsets:
    return frequent_itemsets(Transactions.from_rows(rows), 1)


@given(st.lists(st.lists(st.sampled_from("abcdefÄ🍎"), max_size=5), max_size=8))
def test_packing_keeps_everything(rows: list[list[str]]) -> None:
    found = mined(rows)
    again = unpack(pack(found))
    assert dict(again) == dict(found.canonical())
    assert again.n_rows == len(rows)
    assert pack(again) == pack(found)


def test_equal_itemsets_pack_alike_whatever_their_dictionary() -> None:
    found = mined(ROWS)
    items = (*reversed(found.items), "never seen")
    place = np.array([items.index(item) for item in found.items], np.int32)
    levels = [(np.sort(place[sets][::-1], axis=1), counts[::-1]) for sets, counts in reversed(found.levels)]
    assert digest(pack(Itemsets(items, levels, found.n_rows))) == digest(pack(found))


def test_other_itemsets_pack_otherwise() -> None:
    blank = pack(Itemsets(("a b",), [(np.array([[0]], np.int32), np.array([2]))], 4))
    apart = pack(Itemsets(("a", "b"), [(np.array([[0, 1]], np.int32), np.array([2]))], 4))
    assert digest(blank) != digest(apart)


@given(st.integers(0, 10_000), st.integers(1, 255))
def test_changed_bytes_never_pass_unseen(position: int, change: int) -> None:
    packed = bytearray(pack(mined(ROWS)))
    packed[position % len(packed)] ^= change
    with contextlib.suppress(ValueError):
        assert pack(unpack(bytes(packed))) == bytes(packed)


@pytest.mark.parametrize("spoil", [lambda p: p[:-1], lambda p: p + b"\0", lambda p: b"", lambda p: b"PARQUET1" + p[8:]])
def test_cut_and_foreign_bytes_are_refused(spoil: object) -> None:
    with pytest.raises(ValueError, match=r"."):
        unpack(spoil(pack(mined(ROWS))))  # type: ignore[operator]
