"""Encoding of rows."""

from __future__ import annotations

import dataclasses
import itertools

import numpy as np
import pytest

from mining.data.transactions import Transactions

ROWS = [["b", "a", "b"], [], ["ä", "c"], ["a"]]


def decoded(transactions):
    cuts = transactions.offsets
    return [
        [transactions.items[i] for i in transactions.indices[start:stop]] for start, stop in itertools.pairwise(cuts)
    ]


def test_rows_are_sets_and_the_dictionary_is_in_byte_order():
    transactions = Transactions.from_rows(ROWS)
    assert transactions.items == ("a", "b", "c", "ä")
    assert decoded(transactions) == [["a", "b"], [], ["c", "ä"], ["a"]]
    assert (transactions.n_rows, transactions.n_items, transactions.n_occurrences) == (4, 4, 5)
    assert transactions.item_counts().tolist() == [2, 1, 1, 1]
    assert transactions.nbytes == 5 * 8 + 5 * 4


def test_occurrences_may_come_in_any_order_and_twice():
    rows = np.array([3, 0, 2, 0, 0, 2])
    codes = np.array([1, 0, 3, 1, 0, 2])
    transactions = Transactions.from_occurrences(["b", "a", "c", "ä"], rows, codes, 4)
    assert decoded(transactions) == decoded(Transactions.from_rows(ROWS))


def test_no_rows():
    for transactions in (Transactions.empty(), Transactions.from_rows([])):
        assert (transactions.n_rows, transactions.n_items, transactions.n_occurrences) == (0, 0, 0)


def test_another_dictionary_keeps_the_rows():
    moved = Transactions.from_rows(ROWS).onto(["new", "c", "a"])
    assert decoded(moved) == [["a"], [], ["c"], ["a"]]
    assert moved.item_counts().tolist() == [0, 1, 2]
    assert decoded(Transactions.from_rows(ROWS).onto(["ä", "b", "a"])) == [["b", "a"], [], ["ä"], ["a"]]
    with pytest.raises(ValueError, match="twice"):
        Transactions.from_rows(ROWS).onto(["a", "a"])


def test_a_part_of_the_rows():
    assert decoded(Transactions.from_rows(ROWS).between(1, 3)) == [[], ["c", "ä"]]


def test_values_are_not_shown_and_fields_do_not_change():
    transactions = Transactions.from_rows([["secret"]])
    assert repr(transactions) == "Transactions(rows=1, items=1, occurrences=1)"
    with pytest.raises(dataclasses.FrozenInstanceError):
        transactions.items = ()
