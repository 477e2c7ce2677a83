from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from crypto.primitives.randomness import Randomness
from crypto.primitives.shares.additive import reconstruct
from crypto.primitives.shares.xor import share_bits
from crypto.protocols.comparison import conversion, multiplication
from crypto.protocols.comparison.conversion import to_additive
from crypto.protocols.comparison.multiplication import dot_product, multiply
from link.session import Session
from protos.v1.link_pb2 import Frame
from protos.v1.oblivious_transfer_pb2 import EncryptedMessages, ExtensionRows
from tests.crypto.protocols.two_party_world import HOLDERS, A, B, assert_alike, assert_uniform, run_two, shares_of
from tests.errors import fails
from tests.examples import examples

WORDS = st.lists(st.sampled_from([0, 1, 2**32, 2**63, 2**64 - 1]) | st.integers(0, 2**64 - 1), min_size=0, max_size=20)


def total(out: dict[str, Any]) -> list[int]:
    return reconstruct([out[A], out[B]]).tolist()


@examples(4, 15)
@given(x=WORDS, data=st.data(), seed=st.integers(0, 2**32))
def test_products_of_shared_numbers(x: list[int], data: st.DataObject, seed: int) -> None:
    y = data.draw(st.lists(st.integers(0, 2**64 - 1), min_size=len(x), max_size=len(x)))
    one, other = shares_of(x, seed), shares_of(y, seed + 1)
    out = run_two(lambda lane, two: multiply(lane, two, one[lane.me], other[lane.me]), seed=seed)
    assert total(out) == [a * b % 2**64 for a, b in zip(x, y, strict=True)]


@settings(max_examples=25, deadline=None)
@given(data=st.data(), size=st.integers(0, 400), seed=st.integers(0, 2**32))
def test_dot_products_of_private_bits(data: st.DataObject, size: int, seed: int) -> None:
    density = data.draw(st.sampled_from([0.0, 0.2, 1.0]))
    bits = {h: np.random.default_rng([seed, i]).random(size) <= density for i, h in enumerate(HOLDERS)}
    out = run_two(lambda lane, two: dot_product(lane, two, bits[lane.me]), seed=seed)
    assert total(out) == [int((bits[A] & bits[B]).sum())]


@settings(max_examples=25, deadline=None)
@given(data=st.data(), width=st.integers(1, 64), seed=st.integers(0, 2**32))
def test_shared_bits_become_numbers(data: st.DataObject, width: int, seed: int) -> None:
    words = data.draw(st.lists(st.integers(0, 2**width - 1), max_size=20))
    parts = share_bits(np.array(words, np.uint64), width, HOLDERS, Randomness.from_seed(seed))
    shares = dict(zip(HOLDERS, parts, strict=True))
    assert total(run_two(lambda lane, two: to_additive(lane, two, shares[lane.me]), seed=seed)) == words


def test_several_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(multiplication, "PRODUCT_BLOCK", 16)
    monkeypatch.setattr(multiplication, "DOT_BLOCK", 256)
    monkeypatch.setattr(conversion, "BLOCK", 100)
    generator = np.random.default_rng(0)
    x = generator.integers(0, 2**64 - 1, 50, dtype=np.uint64)
    shares = shares_of(x)
    bits = {h: generator.random(1000) < 0.5 for h in HOLDERS}
    words = dict(zip(HOLDERS, share_bits(x, 64, HOLDERS, Randomness.from_seed(1)), strict=True))
    assert total(run_two(lambda lane, two: multiply(lane, two, shares[lane.me], shares[lane.me]))) == (x * x).tolist()
    assert total(run_two(lambda lane, two: dot_product(lane, two, bits[lane.me]))) == [int((bits[A] & bits[B]).sum())]
    assert total(run_two(lambda lane, two: to_additive(lane, two, words[lane.me]))) == x.tolist()


@pytest.mark.parametrize(
    ("name", "rows", "corrections"),
    [("multiply", 2 * 64 * 5.375, 2 * 344), ("dot_product", 5.375, 8), ("to_additive", 5.375, 8)],
)
def test_traffic_an_element_is_as_it_was(name: str, rows: float, corrections: int) -> None:
    size = 1024
    numbers, bits = shares_of(np.zeros(size, np.uint64)), np.zeros(size, np.bool_)
    words = dict(zip(HOLDERS, share_bits(np.zeros(size, np.uint64), 1, HOLDERS, Randomness.from_seed(1)), strict=True))
    works = {
        "multiply": lambda lane, two: multiply(lane, two, numbers[lane.me], numbers[lane.me]),
        "dot_product": lambda lane, two: dot_product(lane, two, bits),
        "to_additive": lambda lane, two: to_additive(lane, two, words[lane.me]),
    }
    frames: list[Frame] = []
    run_two(works[name], frames=frames)
    for kind, expected in ((ExtensionRows, rows), (EncryptedMessages, corrections)):
        of_kind = [kind.FromString(f.body) for f in frames if f.type == kind.DESCRIPTOR.full_name]
        extra = 43 * 16 * len(of_kind) if kind is ExtensionRows else 0
        assert sum(len(message.data) for message in of_kind) == expected * size + extra


def test_messages_and_shares_do_not_depend_on_the_bits() -> None:
    """Vectors that are all zeros, or all ones at one party, give the same product; probability of error 1e-6 each."""
    seen: list[dict[str, np.ndarray]] = []
    for seed, (first, second) in enumerate([(0, 0), (1, 0), (0, 1)]):
        frames: list[Frame] = []
        bits = {A: np.full(1 << 14, first, np.bool_), B: np.full(1 << 14, second, np.bool_)}
        out = run_two(lambda lane, two, bits=bits: dot_product(lane, two, bits[lane.me]), seed=seed, frames=frames)
        assert total(out) == [0]
        seen.append(
            {
                kind.__name__: np.frombuffer(
                    b"".join(kind.FromString(f.body).data for f in frames if f.type == kind.DESCRIPTOR.full_name),
                    np.uint8,
                )
                for kind in (ExtensionRows, EncryptedMessages)
            }
        )
    for run in seen:
        for name, octets in run.items():
            assert_uniform(octets)
            assert_alike(octets, seen[0][name])


def test_lengths_must_agree() -> None:
    x, y = shares_of([1, 2]), shares_of([1])
    with pytest.raises(ValueError, match="length 2 and 1"):
        run_two(lambda lane, two: multiply(lane, two, x[lane.me], y[lane.me]))
    bits = {A: np.zeros(128, np.bool_), B: np.zeros(300, np.bool_)}

    async def part(lane: Session, two: Any) -> Any:
        return await dot_product(lane, two, bits[lane.me])

    with fails("E402") as caught:
        run_two(part)
    assert caught.value.party == B


def test_factors_in_short_words_are_refused() -> None:
    shares, short = shares_of([1, 2]), shares_of([1, 2], word=np.uint32)
    with pytest.raises(TypeError, match="64 bits"):
        run_two(lambda lane, two: multiply(lane, two, shares[lane.me], short[lane.me]))
