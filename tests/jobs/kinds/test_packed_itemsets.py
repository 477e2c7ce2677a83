"""Packed results: one form for equal results, and nothing else is accepted."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from dataclasses import replace
from decimal import Decimal

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from jobs.kinds.packed_itemsets import digest, pack, unpack
from mining.data.transactions import Transactions
from mining.itemsets import Itemsets
from mining.miner import frequent_itemsets
from mining.rules.association import Rules, association_rules
from tests.jobs.results.made import uncounted

ROWS = [["a b", "a", "b"], ["a", "b"], ["a", "Ä"], ["Ä", "a b"]]
some_rows = st.lists(st.lists(st.sampled_from("abcdefÄ🍎"), max_size=5), max_size=8)


def mined(rows: list[list[str]]) -> Itemsets:
    return frequent_itemsets(Transactions.from_rows(rows), 1)


def decided(rows: list[list[str]], confidence: Decimal = Decimal("0.6")) -> Rules:
    """Rules over itemsets without counts."""
    rules = association_rules(mined(rows), confidence)
    return replace(rules, itemsets=uncounted(rules.itemsets))


def repacked(packed: bytes) -> bytes:
    return pack(*unpack(packed))


@given(some_rows)
def test_packing_keeps_everything(rows: list[list[str]]) -> None:
    found = mined(rows)
    again, rules = unpack(pack(found))
    assert rules is None
    assert dict(again) == dict(found.canonical())
    assert again.n_rows == len(rows)
    assert pack(again) == pack(found)


@given(some_rows, st.sampled_from([Decimal(0), Decimal("0.5"), Decimal(1)]))
def test_packing_keeps_rules_and_no_count(rows: list[list[str]], confidence: Decimal) -> None:
    rules = decided(rows, confidence)
    packed = pack(rules.itemsets, rules)
    found, again = unpack(packed)
    assert not found.counted
    assert [itemset for itemset, _ in found] == [itemset for itemset, _ in rules.itemsets]
    assert {count for _, count in found} <= {None}
    assert again is not None
    assert again.to_arrow().equals(rules.to_arrow())
    assert repacked(packed) == packed


def test_no_rules_are_not_the_same_as_none_asked_for() -> None:
    rules = decided([["a"], ["b"]])
    assert len(rules) == 0
    assert unpack(pack(rules.itemsets, rules)).rules is not None
    assert unpack(pack(rules.itemsets)).rules is None
    assert digest(pack(rules.itemsets, rules)) != digest(pack(rules.itemsets))


def test_rules_that_follow_from_counts_are_not_packed() -> None:
    with pytest.raises(ValueError, match="follow from the counts"):
        pack(mined(ROWS), association_rules(mined(ROWS), Decimal(0)))


def test_equal_itemsets_pack_alike_whatever_their_dictionary() -> None:
    found = mined(ROWS)
    items = (*reversed(found.items), "never seen")
    place = np.array([items.index(item) for item in found.items], np.int32)
    levels = [(np.sort(place[sets][::-1], axis=1), counts[::-1]) for sets, counts in reversed(found.levels)]
    assert digest(pack(Itemsets(items, levels, found.n_rows))) == digest(pack(found))
    without = Itemsets(items, levels, found.n_rows, counted=False)
    assert digest(pack(without)) == digest(pack(uncounted(found))) != digest(pack(found))


def test_other_itemsets_pack_otherwise() -> None:
    blank = pack(Itemsets(("a b",), [(np.array([[0]], np.int32), np.array([2]))], 4))
    apart = pack(Itemsets(("a", "b"), [(np.array([[0, 1]], np.int32), np.array([2]))], 4))
    assert digest(blank) != digest(apart)


@pytest.mark.parametrize("packed", [pack(mined(ROWS)), pack(decided(ROWS).itemsets, decided(ROWS))])
@given(st.integers(0, 10_000), st.integers(1, 255))
def test_changed_bytes_never_pass_unseen(packed: bytes, position: int, change: int) -> None:
    changed = bytearray(packed)
    changed[position % len(changed)] ^= change
    with contextlib.suppress(ValueError):
        assert repacked(bytes(changed)) == bytes(changed)


@pytest.mark.parametrize("spoil", [lambda p: p[:-1], lambda p: p + b"\0", lambda p: b"", lambda p: b"PARQUET1" + p[8:]])
@pytest.mark.parametrize("packed", [pack(mined(ROWS)), pack(decided(ROWS).itemsets, decided(ROWS))])
def test_cut_and_foreign_bytes_are_refused(packed: bytes, spoil: Callable[[bytes], bytes]) -> None:
    with pytest.raises(ValueError, match=r"."):
        unpack(spoil(packed))


SPOILT_RULES = {
    "a rule names an itemset that does not exist": lambda r: replace(r, whole=r.whole + 1000),
    "not the parts of its itemset": lambda r: replace(r, consequent=r.antecedent),
    "not distinct or not in ascending order": lambda r: replace(
        r, whole=r.whole[::-1], antecedent=r.antecedent[::-1], consequent=r.consequent[::-1]
    ),
    "are not distinct": lambda r: replace(
        r,
        whole=np.repeat(r.whole, 2),
        antecedent=np.repeat(r.antecedent, 2),
        consequent=np.repeat(r.consequent, 2),
    ),
}


@pytest.mark.parametrize("problem", SPOILT_RULES)
def test_rules_that_are_none_are_refused(problem: str) -> None:
    rules = decided(ROWS)
    assert len(rules) > 1
    with pytest.raises(ValueError, match=problem):
        unpack(pack(rules.itemsets, SPOILT_RULES[problem](rules)))
