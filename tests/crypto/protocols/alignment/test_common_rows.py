"""Rows by the hashes of their identifiers."""

from __future__ import annotations

import numpy as np

from crypto.protocols.alignment.common_rows import rows_at


def test_positions_have_the_rows_of_their_hashes() -> None:
    """Zeros at the end of a hash are part of it."""
    hashes = [b"ab\0\0", b"\0\0\0\0", b"zzzz", b"abcd"]
    hashed = np.frombuffer(b"".join(hashes), np.uint8).reshape(4, 4)
    positions = [b"zzzz", b"ab", b"", b"zzzzz", b"\0\0\0\0", b"none", b"ab\0\0"]
    assert rows_at(positions, hashed).tolist() == [2, -1, -1, -1, 1, -1, 0]
    assert rows_at([], hashed).tolist() == []
    assert rows_at(positions[:2], hashed[:0]).tolist() == [-1, -1]
