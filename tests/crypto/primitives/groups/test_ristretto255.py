from __future__ import annotations

import hashlib
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from numpy.typing import NDArray

from crypto.primitives.groups import ristretto255 as group
from crypto.primitives.randomness import Randomness

pytestmark = pytest.mark.usefixtures("either_sodium")


def packed(rows: Sequence[bytes | str]) -> NDArray[np.uint8]:
    raw = [bytes.fromhex(row) if isinstance(row, str) else row for row in rows]
    return np.frombuffer(b"".join(raw), dtype=np.uint8).reshape(len(raw), -1)


def little(number: int) -> bytes:
    return number.to_bytes(32, "little")


def some_points(random: Randomness, size: int) -> NDArray[np.uint8]:
    return group.from_uniform_bytes(packed([random.bytes(64) for _ in range(size)]))


# RFC 9496, appendix A


def test_multiples_of_the_generator(vectors, reference) -> None:
    encodings = vectors("ristretto255_rfc9496")["multiples_of_the_generator"]
    assert group.base_multiply(packed([little(k) for k in range(1, 16)])).tobytes().hex() == "".join(encodings[1:])
    generator = packed(encodings[1:2])
    for k in range(1, 16):
        assert group.multiply(generator, little(k)).tobytes().hex() == encodings[k]
    points = packed(encodings)
    assert group.is_valid_points(points).all()
    assert (group.add(points[:-1], np.repeat(generator, 15, axis=0)) == points[1:]).all()
    assert (group.subtract(points[1:], np.repeat(generator, 15, axis=0)) == points[:-1]).all()
    base = reference.decode(points[1].tobytes())
    assert [reference.encode(reference.multiply(base, k)).hex() for k in range(16)] == encodings


def test_bad_encodings_are_refused_everywhere(vectors, reference) -> None:
    bad = vectors("ristretto255_rfc9496")["bad_encodings"]
    assert len(bad) == 29
    points = packed([row["encoding"] for row in bad])
    assert not group.is_valid_points(points).any()
    assert all(reference.decode(point.tobytes()) is None for point in points)
    good = group.base_multiply(packed([little(7)]))
    for point in points:
        batch = np.concatenate((good, point[None], good))
        others = np.repeat(good, 3, axis=0)
        for act in (
            lambda batch=batch: group.multiply(batch, little(5)),
            lambda batch=batch: group.multiply_each(batch, packed([little(5)] * 3)),
            lambda batch=batch, others=others: group.add(batch, others),
            lambda batch=batch, others=others: group.add(others, batch),
            lambda batch=batch, others=others: group.subtract(others, batch),
        ):
            with pytest.raises(ValueError, match="row 1 "):
                act()


def test_elements_from_uniform_bytes(vectors, reference) -> None:
    rows = vectors("ristretto255_rfc9496")["from_uniform_bytes"]
    points = group.from_uniform_bytes(packed([row["uniform"] for row in rows]))
    for row, point in zip(rows, points, strict=True):
        uniform = bytes.fromhex(row["uniform"])
        assert point.tobytes().hex() == row["element"] == reference.from_uniform_bytes(uniform).hex()
        if row["label"] is not None:
            assert hashlib.sha512(row["label"].encode()).digest() == uniform


def test_hashing_to_the_group(vectors) -> None:
    given = vectors("hash_to_ristretto255_rfc9497")
    messages = [bytes.fromhex(row["input"]) for row in given["vectors"]]
    hashed = group.hash_to_group(messages, given["domain"].encode())
    blinded = group.multiply(hashed, bytes.fromhex(given["blind"]))
    assert [row.tobytes().hex() for row in blinded] == [row["blinded_element"] for row in given["vectors"]]


# Against the oracle, and on our own account


def test_operations_agree_with_the_oracle(random: Randomness, reference) -> None:
    left, right, scalars = some_points(random, 5), some_points(random, 5), group.random_scalars(random, 5)
    results = {
        "add": group.add(left, right),
        "each": group.multiply_each(left, scalars),
        "one": group.multiply(left, scalars[0].tobytes()),
    }
    for i in range(5):
        p, q = reference.decode(left[i].tobytes()), reference.decode(right[i].tobytes())
        k, first = (int.from_bytes(scalars[j].tobytes(), "little") for j in (i, 0))
        assert reference.encode(reference.add(p, q)) == results["add"][i].tobytes()
        assert reference.encode(reference.multiply(p, k)) == results["each"][i].tobytes()
        assert reference.encode(reference.multiply(p, first)) == results["one"][i].tobytes()


def test_validity_agrees_with_the_oracle(random: Randomness, reference) -> None:
    candidates = packed([random.bytes(32) for _ in range(200)]).copy()
    candidates[::2, 0] &= 0xFE
    candidates[::2, 31] &= 0x7F
    valid = group.is_valid_points(candidates)
    assert valid.tolist() == [reference.decode(row.tobytes()) is not None for row in candidates]
    assert 5 < valid.sum() < 50


def test_a_set_top_bit_is_no_second_name(random: Randomness) -> None:
    points = some_points(random, 3)
    points[1, 31] |= 0x80
    assert group.is_valid_points(points).tolist() == [True, False, True]
    with pytest.raises(ValueError, match="row 1 "):
        group.multiply(points, little(3))


def test_the_identity_is_valid_but_never_multiplied(random: Randomness) -> None:
    points = np.concatenate((some_points(random, 2), packed([group.IDENTITY])))
    assert group.is_valid_points(points).all()
    with pytest.raises(ValueError, match="row 2 "):
        group.multiply(points, little(3))
    assert group.subtract(points, points).tobytes() == group.IDENTITY * 3


def test_scalars_are_reduced_and_inverted(random: Randomness) -> None:
    for _ in range(20):
        a = group.random_scalar(random)
        assert group.scalar_invert(a) == little(pow(int.from_bytes(a, "little"), -1, group.ORDER))
        wide = random.bytes(64)
        assert group.scalar_reduce(wide) == little(int.from_bytes(wide, "little") % group.ORDER)


@pytest.mark.parametrize("scalar", [bytes(32), little(group.ORDER), b"\xff" * 32, bytes(31), bytes(33)])
def test_bad_scalars_are_refused(random: Randomness, scalar: bytes) -> None:
    for act in (
        lambda: group.multiply(some_points(random, 1), scalar),
        lambda: group.scalar_invert(scalar),
        lambda: group.check_scalar(scalar),
    ):
        with pytest.raises(ValueError, match="scalar"):
            act()


def test_operands_of_a_wrong_length_are_refused() -> None:
    with pytest.raises(ValueError, match="64 bytes"):
        group.scalar_reduce(bytes(32))


def test_a_zero_among_many_scalars_is_named(random: Randomness) -> None:
    scalars = group.random_scalars(random, 4)
    scalars[2] = 0
    for act in (
        lambda: group.base_multiply(scalars),
        lambda: group.multiply_each(some_points(random, 4), scalars),
    ):
        with pytest.raises(ValueError, match="row 2 "):
            act()


@pytest.mark.parametrize(
    "array",
    [np.zeros((2, 31), np.uint8), np.zeros(32, np.uint8), np.zeros((2, 32), np.int8), np.zeros((1, 2, 32), np.uint8)],
)
def test_arrays_of_a_wrong_shape_are_refused(array: NDArray[np.uint8]) -> None:
    for act in (
        lambda: group.is_valid_points(array),
        lambda: group.multiply(array, little(1)),
        lambda: group.base_multiply(array),
        lambda: group.from_uniform_bytes(array),
    ):
        with pytest.raises(ValueError, match="shape"):
            act()


def test_batches_of_different_lengths_are_refused(random: Randomness) -> None:
    with pytest.raises(ValueError, match="paired"):
        group.add(some_points(random, 2), some_points(random, 3))


def test_empty_batches() -> None:
    empty = np.zeros((0, 32), np.uint8)
    assert group.multiply(empty, little(3)).shape == (0, 32)
    assert group.is_valid_points(empty).shape == (0,)
    assert group.hash_to_group([], b"d").shape == (0, 32)


def test_views_of_any_layout_serve(random: Randomness) -> None:
    points, scalar = some_points(random, 6), group.random_scalar(random)
    expected = group.multiply(points, scalar)
    assert (group.multiply(points[::-1], scalar) == expected[::-1]).all()
    assert (group.multiply(np.asfortranarray(points), scalar) == expected).all()
    points.flags.writeable = False
    assert (group.multiply(points, scalar) == expected).all()


def test_chunks_can_run_in_threads(random: Randomness) -> None:
    points, scalar = some_points(random, 64), group.random_scalar(random)
    with ThreadPoolExecutor(4) as pool:
        chunks = pool.map(lambda start: group.multiply(points[start : start + 8], scalar), range(0, 64, 8))
    assert (np.concatenate(list(chunks)) == group.multiply(points, scalar)).all()


def test_domains_separate_and_are_bounded() -> None:
    a, b = group.hash_to_group([b"x"], b"one"), group.hash_to_group([b"x"], b"two")
    assert a.tobytes() != b.tobytes()
    for domain in (b"", bytes(256)):
        with pytest.raises(ValueError, match="domain"):
            group.hash_to_group([b"x"], domain)


def test_random_scalars_are_redrawn_when_zero() -> None:
    class Stream:
        draws = iter([bytes(64), little(group.ORDER) + bytes(32), little(5) + bytes(32)])

        def bytes(self, size: int) -> bytes:
            return next(self.draws)

    assert group.random_scalar(Stream()) == little(5)  # type: ignore[arg-type]


def test_the_generator_has_the_stated_order() -> None:
    generator = group.base_multiply(packed([little(1)]))
    last = group.multiply(generator, little(group.ORDER - 1))
    assert group.add(generator, last).tobytes() == group.IDENTITY
