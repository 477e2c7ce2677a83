from __future__ import annotations

import hashlib

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from crypto.primitives.blocks import BLOCK_BYTES, ELEMENT_BYTES, are_encodings, decode, encode, fake
from crypto.primitives.groups.embedding import contents, embed
from crypto.primitives.randomness import Randomness

elements = st.binary(min_size=16, max_size=16) | st.sampled_from([bytes(16), b"a" * 16, b"\xff" * 16, bytes(15) + b"a"])
DOMAIN = b"".join(
    len(part).to_bytes(8, "big") + part for part in (b"comine-1:ristretto255:aes128ctr:sha256", b"element tag")
)


@given(st.lists(elements))
def test_elements_come_back(given_elements: list[bytes]) -> None:
    blocks = encode(given_elements)
    assert blocks.shape == (len(given_elements), BLOCK_BYTES)
    assert are_encodings(blocks).all()
    assert decode(blocks) == given_elements


@given(st.lists(elements, unique=True))
def test_blocks_of_different_elements_differ(given_elements: list[bytes]) -> None:
    assert len({row.tobytes() for row in encode(given_elements)}) == len(given_elements)


def test_the_format_is_as_stated() -> None:
    element = bytes(range(1, 17))
    tag = hashlib.sha256(DOMAIN + b"\x10" + element).digest()[:12]
    assert encode([element]).tobytes() == tag + b"\0\x10" + element


@pytest.mark.parametrize("length", [0, 15, 17, 32])
def test_elements_of_another_length_are_named_by_position_only(length: int) -> None:
    with pytest.raises(ValueError, match="element 1 must have 16 bytes") as caught:
        encode([bytes(ELEMENT_BYTES), b"s" * length])
    assert "ss" not in str(caught.value)


def test_fakes_decode_to_nothing(random: Randomness) -> None:
    fakes = fake(random, 200)
    assert fakes.shape == (200, BLOCK_BYTES)
    assert decode(fakes) == [None] * 200
    # mark ‖ 16 random bytes
    assert (fakes[:, 13] == 0x90).all()
    assert len({row.tobytes() for row in fakes[:, 14:]}) == 200


def test_common_fakes_are_equal_and_others_are_not() -> None:
    key = bytes(range(32))
    assert (fake(Randomness.from_key(key), 5) == fake(Randomness.from_key(key), 5)).all()
    assert not (fake(Randomness.from_os(), 5) == fake(Randomness.from_key(key), 5)).all(axis=1).any()


def test_real_and_fake_survive_embedding_and_shuffling(random: Randomness) -> None:
    names = [b"%016d" % i for i in range(30)]
    blocks = np.concatenate((encode(names), fake(random, 10)))[random.permutation(40)]
    back = decode(contents(embed(blocks)))
    assert sorted(name for name in back if name is not None) == names
    assert back.count(None) == 10


def test_any_changed_bit_is_found() -> None:
    genuine = encode([b"%016d" % number for number in range(3)])
    for byte in range(BLOCK_BYTES):
        for bit in (1, 0x80):
            changed = genuine.copy()
            changed[1, byte] ^= bit
            assert are_encodings(changed).tolist() == [True, False, True]
            with pytest.raises(ValueError, match="block 1 is malformed"):
                decode(changed)


def test_a_second_encoding_is_refused() -> None:
    def with_mark(head: bytes, marked: bytes) -> NDArray[np.uint8]:
        tag = hashlib.sha256(DOMAIN + marked).digest()[:12]
        return np.frombuffer(tag + head + marked, np.uint8).reshape(1, BLOCK_BYTES)

    assert decode(with_mark(b"\0", b"\x10" + b"e" * 16)) == [b"e" * 16]
    assert decode(with_mark(b"\0", b"\x90" + bytes(16))) == [None]
    for mark in (0, 0x0F, 0x11, 0x7F, 0x80, 0x8F, 0xFF):
        assert not are_encodings(with_mark(b"\0", bytes([mark]) + bytes(16))).any()
    assert not are_encodings(with_mark(b"\1", b"\x10" + bytes(16))).any()


def test_arrays_of_a_wrong_shape_are_refused() -> None:
    for wrong in (np.zeros((2, 29), np.uint8), np.zeros((2, 1, 30), np.uint8), np.zeros((2, 30), np.int8)):
        with pytest.raises(ValueError, match="shape"):
            decode(wrong)  # type: ignore[arg-type]
    assert decode(np.zeros((0, 30), np.uint8)) == []


def test_a_large_batch() -> None:
    names = [b"%016d" % i for i in range(20_000)]
    assert decode(encode(names)) == names
