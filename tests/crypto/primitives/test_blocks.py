from __future__ import annotations

import hashlib

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from crypto.primitives.blocks import BLOCK_BYTES, MAX_BLOCKS, MAX_ELEMENT_BYTES, blocks_needed, decode, encode, fake
from crypto.primitives.embedding import contents, embed
from crypto.primitives.randomness import Randomness

elements = st.one_of(
    st.text(max_size=40).map(lambda text: text.encode()),
    st.binary(max_size=300),
    st.integers(0, 20).map(bytes),
    st.sampled_from([bytes(126), bytes(127), b"a" * 16, b"a" * 17, b"\x90" + bytes(16), b"\0", b""]),
)


@given(st.lists(elements), st.integers(0, 3))
def test_elements_come_back(given_elements: list[bytes], spare: int) -> None:
    width = max((blocks_needed(len(element)) for element in given_elements), default=1) + spare
    tuples = encode(given_elements, width)
    assert tuples.shape == (len(given_elements), width, BLOCK_BYTES)
    assert decode(tuples) == given_elements
    assert encode(given_elements).shape[1] == width - spare


@given(st.lists(elements, unique=True, min_size=1))
def test_all_blocks_of_different_elements_differ(given_elements: list[bytes]) -> None:
    rows = encode(given_elements, blocks_needed(max(map(len, given_elements))) + 1).reshape(-1, BLOCK_BYTES)
    assert len({row.tobytes() for row in rows}) == len(rows)


@pytest.mark.parametrize("length", [0, 16, 126, 127, 4352, 4353, 10_000, MAX_ELEMENT_BYTES])
def test_long_and_monotonous_elements(length: int) -> None:
    element = b"a" * length
    tuples = encode([element])
    assert decode(tuples) == [element]
    assert len({row.tobytes() for row in tuples[0]}) == tuples.shape[1]


def test_the_sizes_are_as_stated() -> None:
    assert [blocks_needed(length) for length in (0, 16, 17, 33, 34, 126, 127)] == [1, 1, 2, 2, 3, 8, 8]
    assert blocks_needed(MAX_ELEMENT_BYTES) == MAX_BLOCKS
    with pytest.raises(ValueError, match="65,535"):
        blocks_needed(MAX_ELEMENT_BYTES + 1)


def test_the_format_is_as_stated() -> None:
    domain = b"".join(
        len(part).to_bytes(8, "big") + part for part in (b"comine-1:ristretto255:aes128ctr:sha256", b"element tag")
    )
    element = bytes(range(1, 21))
    tag = hashlib.sha256(domain + b"\x14" + element).digest()[:12]
    expected = [tag + b"\0\x14" + element[:16], tag + b"\1" + element[16:] + bytes(13)]
    assert [row.tobytes() for row in encode([element])[0]] == expected


def test_elements_that_do_not_fit_are_named_by_position_only() -> None:
    with pytest.raises(ValueError, match="element 1 does not fit the 1 blocks") as caught:
        encode([b"short", b"a secret that is too long"], 1)
    assert "secret" not in str(caught.value)


@pytest.mark.parametrize("width", [0, -1, MAX_BLOCKS + 1])
def test_bad_widths_are_refused(random: Randomness, width: int) -> None:
    with pytest.raises(ValueError, match="blocks"):
        encode([b"a"], width)
    with pytest.raises(ValueError, match="blocks"):
        fake(random, 1, width)


@pytest.mark.parametrize("width", [1, 2, 5])
def test_fakes_decode_to_nothing(random: Randomness, width: int) -> None:
    fakes = fake(random, 200, width)
    assert fakes.shape == (200, width, BLOCK_BYTES)
    assert decode(fakes) == [None] * 200
    rows = {row.tobytes() for row in fakes.reshape(-1, BLOCK_BYTES)}
    assert len(rows) == 200 * width
    # mark ‖ 16 random bytes
    assert (fakes[:, 0, 13] == 0x90).all()
    assert len({row.tobytes() for row in fakes[:, 0, 14:]}) == 200


def test_common_fakes_are_equal_and_others_are_not() -> None:
    key = bytes(range(32))
    assert (fake(Randomness.from_key(key), 5, 2) == fake(Randomness.from_key(key), 5, 2)).all()
    assert not (fake(Randomness.from_os(), 5, 2) == fake(Randomness.from_key(key), 5, 2)).all(axis=(1, 2)).any()


def test_real_and_fake_survive_embedding_and_shuffling(random: Randomness) -> None:
    names = [f"öl={i}\0".encode() * 3 for i in range(30)]
    tuples = np.concatenate((encode(names, 3), fake(random, 10, 3)))[random.permutation(40)]
    points = embed(tuples.reshape(-1, BLOCK_BYTES))
    back = decode(contents(points).reshape(40, 3, BLOCK_BYTES))
    assert sorted(name for name in back if name is not None) == sorted(names)
    assert back.count(None) == 10


def malformed(tuples: NDArray[np.uint8], complaint: str) -> None:
    with pytest.raises(ValueError, match=f"element 1 is malformed: it {complaint}"):
        decode(tuples)


def test_any_changed_bit_is_found() -> None:
    genuine = encode([b"first", b"an element of three blocks and more text", b"third"], 3)
    assert decode(genuine)[1] is not None
    for block in range(3):
        for byte in range(BLOCK_BYTES):
            for bit in (1, 0x80):
                changed = genuine.copy()
                changed[1, block, byte] ^= bit
                with pytest.raises(ValueError, match="element 1 is malformed"):
                    decode(changed)


def test_exchanged_blocks_are_found() -> None:
    genuine = encode([b"first", b"an element of three blocks and more text", b"another one of three blocks, longer"], 3)
    swapped = genuine.copy()
    swapped[1, [0, 1]] = swapped[1, [1, 0]]
    malformed(swapped, "has a block in the wrong position")
    mixed = genuine.copy()
    mixed[1, 2] = genuine[2, 2]
    malformed(mixed, "has blocks of different tags")


def test_a_second_encoding_is_refused() -> None:
    genuine = encode([b"first", b"second"], 2)
    padded = genuine.copy()
    padded[1, 1, 20] = 1
    malformed(padded, "has .*|its padding is not empty")

    def with_mark(string: bytes) -> NDArray[np.uint8]:
        domain = b"".join(
            len(part).to_bytes(8, "big") + part for part in (b"comine-1:ristretto255:aes128ctr:sha256", b"element tag")
        )
        tag = hashlib.sha256(domain + string).digest()[:12]
        payload = string.ljust(34, b"\0")
        rows = [tag + bytes([i]) + payload[17 * i : 17 * i + 17] for i in range(2)]
        changed = genuine.copy()
        changed[1] = np.frombuffer(b"".join(rows), dtype=np.uint8).reshape(2, BLOCK_BYTES)
        return changed

    assert decode(with_mark(b"\x06second")) == [b"first", b"second"]
    assert decode(with_mark(b"\x90" + bytes(16))) == [b"first", None]
    wrong = "it has a wrong mark|it has a wrong mark"
    for string in (b"\x7f\0\6second", b"\x90second", b"\x86second", b"\xff\0\x10" + bytes(16), b"\x22" + bytes(33)):
        with pytest.raises(ValueError, match=f"element 1 is malformed: ({wrong}|its tag does not match)"):
            decode(with_mark(string))


def test_arrays_of_a_wrong_shape_are_refused() -> None:
    for wrong in (np.zeros((2, 30), np.uint8), np.zeros((2, 1, 29), np.uint8), np.zeros((2, 1, 30), np.int8)):
        with pytest.raises(ValueError, match="shape"):
            decode(wrong)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="blocks"):
        decode(np.zeros((2, 0, 30), np.uint8))
    assert decode(np.zeros((0, 3, 30), np.uint8)) == []


def test_a_large_batch(random: Randomness) -> None:
    names = [b"%016d" % i for i in range(20_000)]
    tuples = encode(names, 1)
    assert tuples.shape == (20_000, 1, 30)
    assert decode(tuples) == names
