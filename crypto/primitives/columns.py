"""A party's private columns of bits, one bit a row, as products take them."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from crypto.primitives.bit_matrix import unpack_bits

Columns = NDArray[np.uint8]
"""Shape (columns, at least ⌈rows / 8⌉): packed bits, the first row's lowest; what is behind the last means nothing."""


def check_columns(columns: Columns, rows: int, used: NDArray[np.int64]) -> None:
    """Refuses columns of another type or too short ones, and numbers of columns that there are not.

    Raises:
        ValueError: They are not as they must be.
    """
    if columns.dtype != np.uint8 or columns.ndim != 2 or columns.shape[1] < -(-rows // 8):
        raise ValueError(f"columns of {rows} rows are packed bytes, {-(-rows // 8)} or more each")
    if len(used) and not 0 <= used.min() <= used.max() < len(columns):
        raise ValueError(f"a product names a column outside the {len(columns)} that this party has")


def bits_of(packed: NDArray[np.uint8], rows: tuple[int, int]) -> NDArray[np.uint8]:
    """Some rows of packed columns along the last axis, each 0 or 1.

    Args:
        packed: Columns, or one of them.
        rows: First row, a multiple of 8, and the one after the last.
    """
    start, stop = rows
    return unpack_bits(packed[..., start // 8 : -(-stop // 8)], stop - start)
