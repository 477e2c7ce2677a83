"""What a dealer computes for the products of two parties' columns, see `dealer`: it takes part in nothing else."""

from __future__ import annotations

from typing import Final

import numpy as np

from crypto.primitives.shares.masks import Words
from crypto.primitives.shares.ring_matrix import matrix_product, random_matrix, row_blocks
from link.randomness import RandomStream

WORD: Final = np.uint32


def dealt_products(first: RandomStream, second: RandomStream, rows: int, columns: tuple[int, int]) -> Words:
    """What the second holder gets: A·Bᵀ less the first's part of it.

    Args:
        first: The stream in common with the first holder.
        second: The one in common with the second.
        rows: Length of the columns.
        columns: How many each holder has.
    """
    total: Words = np.zeros(columns, WORD)
    for start, stop in row_blocks(rows, sum(columns)):
        a = random_matrix(first, (columns[0], stop - start), WORD)
        b = random_matrix(second, (columns[1], stop - start), WORD)
        total += matrix_product(a, b, WORD)
    total -= random_matrix(first, columns, WORD)
    return total
