from __future__ import annotations

import hashlib

import numpy as np
import pytest
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes
from hypothesis import given
from hypothesis import strategies as st

from crypto.primitives.groups.point_hash import points_of, words_of
from crypto.primitives.hashing import derive_key

KEY = bytes(range(16))
elements = st.binary(max_size=40) | st.sampled_from([b"", b"\0", b"\0" * 15, b"\0" * 16, b"a" * 15, b"a" * 16])


@given(st.lists(elements, unique=True, max_size=30))
def test_different_elements_have_different_points_each_by_itself(some):
    points = points_of(some, KEY)
    assert points.shape == (len(some), 2)
    assert len({point.tobytes() for point in points}) == len(some)
    assert all(np.array_equal(points_of([element], KEY)[0], point) for element, point in zip(some, points, strict=True))


def aes(label: str, plain: bytes, block: int = 0, blocks: int = 1) -> bytes:
    key = derive_key(KEY, "words of points", label, size=16 * blocks)[16 * block :][:16]
    return Cipher(algorithms.AES(key), modes.ECB()).encryptor().update(plain)


@pytest.mark.parametrize(
    ("element", "plain"),
    [
        (b"", bytes(16)),
        (b"abc", b"abc" + bytes(12) + b"\3"),
        (b"x" * 15, b"x" * 15 + b"\x0f"),
        (b"x" * 16, hashlib.blake2b(KEY + b"x" * 16, digest_size=16).digest()),
    ],
)
def test_points_are_as_defined(element, plain):
    assert points_of([element], KEY).tobytes() == aes("points", plain)


def test_words_are_as_defined():
    points = points_of([b"one", b"two"], KEY)
    words = words_of(points, KEY, 6, "purpose")
    for point, row in zip(points, words, strict=True):
        assert row.tobytes() == b"".join(aes("purpose", point.tobytes(), block, 3) for block in range(3))


def test_other_keys_and_purposes_give_other_words():
    points = points_of([b"one"], KEY)
    found = [words_of(points, key, 2, purpose).tobytes() for key in (KEY, bytes(16)) for purpose in ("a", "b")]
    assert len(set(found)) == 4
    assert points_of([b"one"], bytes(16)).tobytes() != points.tobytes()
