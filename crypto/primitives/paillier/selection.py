"""Products of selected ciphertexts: encrypted sums over the rows where a bit is set.

Many selections of one batch either multiply what they select, or, where they select much, share tables of the
products of every four ciphertexts (Arlazarov, Dinic, Kronrod and Faradžev 1970, the "four Russians"). Before that, rows
that all selections treat alike are multiplied into one. What is done follows from how many multiplications each way
needs; so does the time, which reveals how many bits are set, and how many rows are different.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import compress
from typing import Final

import numpy as np
from gmpy2 import mpz
from numpy.typing import NDArray

from crypto.primitives.paillier.ciphertexts import bytes_of, check_values, values_of
from crypto.primitives.paillier.public_key import PublicKey

Bits = NDArray[np.bool_]

_GROUP: Final = 4  # ciphertexts that share a table: best for some tens of selections
_TABLE_PRODUCTS: Final = (1 << _GROUP) - _GROUP - 1
_LOOKUP_COST: Final = 1.15  # of a multiplication by a table's entry, beside one by a selected ciphertext


def selected_products(values: Sequence[mpz], selection: Bits, modulus: mpz) -> list[mpz]:
    """Per column the product of the selected values: of ciphertexts, one of the sum of their plaintexts, not fresh.

    Args:
        values: n of them.
        selection: Shape (n, columns).
        modulus: Below which the products are.

    Returns:
        One a column; 1 where nothing is selected.
    """
    values, selection = alike_as_one(values, selection, modulus)
    patterns = _patterns(selection)
    with_tables = len(patterns) * _TABLE_PRODUCTS + _LOOKUP_COST * np.count_nonzero(patterns)
    if with_tables < np.count_nonzero(selection):
        return by_tables(values, patterns, modulus)
    return [_product(compress(values, column), modulus) for column in selection.T.tolist()]


def alike_as_one(values: Sequence[mpz], selection: Bits, modulus: mpz) -> tuple[Sequence[mpz], Bits]:
    """The products of rows that are selected alike, and their selections, where this saves multiplications."""
    selected = np.flatnonzero(selection.any(axis=1))
    distinct, row_of = np.unique(np.packbits(selection[selected], axis=1), axis=0, return_inverse=True)
    first = np.unpackbits(distinct, axis=1, count=selection.shape[1]).astype(np.bool_)
    if len(selected) + np.count_nonzero(first) >= np.count_nonzero(selection):
        return values, selection
    products = [mpz(1)] * len(distinct)
    for place, row in zip(selected.tolist(), row_of.reshape(-1).tolist(), strict=True):
        products[row] = products[row] * values[place] % modulus
    return products, first


def _product(values: compress[mpz], modulus: mpz) -> mpz:
    product = next(values, mpz(1))
    for value in values:
        product = product * value % modulus
    return product


def _patterns(selection: Bits) -> NDArray[np.uint8]:
    """Which of every four rows are selected, as a number 0 … 15; shape (⌈n / 4⌉, columns)."""
    rows, columns = selection.shape
    padded = np.zeros((-(-rows // _GROUP) * _GROUP, columns), np.uint8)
    padded[:rows] = selection
    weights = (1 << np.arange(_GROUP, dtype=np.uint8))[:, None]
    patterns: NDArray[np.uint8] = (padded.reshape(-1, _GROUP, columns) * weights).sum(axis=1, dtype=np.uint8)
    return patterns


def by_tables(values: Sequence[mpz], patterns: NDArray[np.uint8], modulus: mpz) -> list[mpz]:
    """The products that the patterns select, by tables of the products of few values each."""
    products = [mpz(1)] * patterns.shape[1]
    for number, row in enumerate(patterns.tolist()):
        table = [mpz(1)]
        for value in values[number * _GROUP : (number + 1) * _GROUP]:
            table += [value, *(entry * value % modulus for entry in table[1:])]
        products = [
            product * table[pattern] % modulus if pattern else product
            for product, pattern in zip(products, row, strict=True)
        ]
    return products


# -- for workers -------------------------------------------------------------------------------------------------------
@dataclass(frozen=True, repr=False)
class SelectionWanted:
    """A piece of work: encoded ciphertexts from elsewhere, and selections of them.

    Attributes:
        modulus: n of the key, which has been checked.
        data: `groups` batches of equally many encoded ciphertexts.
        groups: How many batches; all have the same selections.
        selection: Shape (ciphertexts of a batch, columns).
        checked: Whether the data are known to be ciphertexts.
    """

    modulus: int
    data: bytes
    groups: int
    selection: Bits
    checked: bool = False


def check_and_select(wanted: SelectionWanted) -> bytes:
    """The encoded products of each batch's selections, batch by batch.

    Raises:
        ValueError: Something among the data is no ciphertext.
    """
    key = PublicKey.trusted(wanted.modulus)
    values = values_of(key, wanted.data)
    if not wanted.checked:
        check_values(key, values)
    size = len(wanted.selection)
    if len(values) != size * wanted.groups:
        raise ValueError(f"{size * wanted.groups} ciphertexts were expected, not {len(values)}")
    batches = (values[start : start + size] for start in range(0, len(values), max(size, 1)))
    products = (selected_products(batch, wanted.selection, key.n_squared) for batch in batches)
    return b"".join(bytes_of(key, batch) for batch in products)
