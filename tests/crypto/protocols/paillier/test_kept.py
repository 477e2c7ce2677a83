"""Dot products by Paillier encryption, call after call: right, encrypted once, and masked anew each time."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from gmpy2 import mpz
from hypothesis import given
from hypothesis import strategies as st

from crypto.primitives.bit_matrix import pack_bits
from crypto.primitives.paillier.ciphertexts import Ciphertexts
from crypto.primitives.paillier.pool import ZeroPool
from crypto.primitives.paillier.zeros import OwnerZeros
from crypto.primitives.randomness import Randomness
from crypto.primitives.shares.additive import reconstruct
from crypto.protocols.comparison.two_party import TwoParty
from crypto.protocols.paillier import kept as paillier_kept
from crypto.protocols.paillier.kept import KeptColumns, KeptRows, Names, evaluate_kept, hold_kept
from crypto.protocols.products.ot_matrix import Pairs, all_pairs
from link.session import Session
from protos.v1.link_pb2 import Frame
from protos.v1.paillier_pb2 import PaillierKey
from tests.crypto.protocols.paillier.calls import (
    BITS,
    KEY,
    KINDS,
    Bits,
    columns,
    replies_of,
    residue_parts,
    rows_of,
)
from tests.crypto.protocols.two_party_world import A, B, assert_alike, assert_uniform, shapes_of
from tests.examples import examples
from tests.paillier_world import empty_pool, small_key
from tests.world import below, run_parties

pytestmark = pytest.mark.turn(6)


@dataclass(frozen=True)
class Call:
    """One of several calls: the columns of both, which pairs, and what the holder's are called."""

    a: Bits
    b: Bits
    pairs: Pairs
    names: Names | None

    @property
    def products(self) -> Any:
        return (self.a.astype(np.uint64) @ self.b.T.astype(np.uint64))[self.pairs[:, 0], self.pairs[:, 1]]


def run(calls: Sequence[Call], *, frames: list[Frame] | None = None, seed: int = 0) -> list[Any]:
    """The products of each call."""
    rows = calls[0].a.shape[1]

    async def holder(session: Session) -> Any:
        kept, pool, found = KeptColumns(rows, BITS), empty_pool(), []
        for number, call in enumerate(calls):
            lane = session.lane(f"dot{number}")
            share = await hold_kept(lane, B, KEY, pool, kept, pack_bits(call.a), call.pairs, call.names)
            found.append(await share.exact(lane.lane("exact"), TwoParty(session.lane(f"pair{number}"), (A, B))))
        return found

    async def evaluator(session: Session) -> Any:
        kept, found = KeptRows(KeptColumns(rows, BITS)), []
        for number, call in enumerate(calls):
            lane = session.lane(f"dot{number}")
            share = await evaluate_kept(lane, A, kept, pack_bits(call.b), call.pairs, call.names)
            found.append(await share.exact(lane.lane("exact"), TwoParty(session.lane(f"pair{number}"), (A, B))))
        return found

    out = run_parties((A, B), {A: holder, B: evaluator}, observe=below("/dot", frames), seed=seed, deadline_s=60)
    return [reconstruct([one, other]) for one, other in zip(out[A], out[B], strict=True)]


def of_call(frames: Sequence[Frame], number: int) -> list[Frame]:
    return [frame for frame in frames if frame.lane == f"/dot{number}"]


@examples(2, 10)
@given(
    rows=st.sampled_from([0, 1, 8, 9, 200]) | st.integers(0, 300),
    width=st.integers(1, 40),
    other=st.integers(1, 4),
    kinds=st.tuples(KINDS, KINDS),
    seed=st.integers(0, 2**32),
    n_calls=st.integers(1, 4),
    least=st.sampled_from([0, 2]),
)
def test_products_are_those_of_numpy(
    rows: int, width: int, other: int, kinds: Any, seed: int, n_calls: int, least: int
) -> None:
    """Calls that name some of the same columns, in other orders; and what is sent is what both reckon beforehand."""
    rng, calls = np.random.default_rng(seed), []
    every = columns(rng, width, rows, kinds[0])
    for _ in range(n_calls):
        chosen = rng.permutation(width)[: rng.integers(1, width + 1)]
        pairs = all_pairs(len(chosen), other)
        pairs = pairs[rng.integers(0, len(pairs), rng.integers(1, 20))]  # some of them twice
        names = None if rng.random() < 0.2 else [f"column {number}" for number in chosen.tolist()]
        calls.append(Call(every[chosen], columns(rng, other, rows, kinds[1]), pairs, names))
    frames: list[Frame] = []
    for call, found in zip(calls, run(calls, frames=frames, seed=seed), strict=True):
        assert (found == call.products).all()
    reckoned, encrypted = KeptColumns(rows, BITS), set[Any]()
    for number, call in enumerate(calls):
        parts = reckoned.parts(call.pairs, call.names)
        assert sum(part.requests for part in parts) == len(rows_of(of_call(frames, number)))
        assert sum(part.replies for part in parts) == len(replies_of(of_call(frames, number)))
        for part in reckoned.keep(parts):
            assert part.names is not None
            assert not encrypted.intersection(part.names)
            encrypted.update(part.names)
    assert sum(frame.type == PaillierKey.DESCRIPTOR.full_name for frame in frames) == 1


def some_calls(seed: int = 1, *, ones: bool = False, n_calls: int = 3) -> list[Call]:
    """The same columns of the holder with others of the evaluator, call after call."""
    rng = np.random.default_rng(seed)
    a = np.full((12, 100), True) if ones else rng.random((12, 100)) < 0.5
    return [
        Call(a, np.full((30, 100), ones) if ones else rng.random((30, 100)) < 0.5, all_pairs(12, 30), range(12))
        for _ in range(n_calls)
    ]


def test_what_is_kept_is_not_sent_again() -> None:
    frames: list[Frame] = []
    calls = some_calls()
    assert all((found == call.products).all() for call, found in zip(calls, run(calls, frames=frames), strict=True))
    sent = [len(rows_of(of_call(frames, number))) for number in range(3)]
    assert sent[0] > 0
    assert sent[1:] == [0, 0]


def test_more_than_is_kept_is_sent_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(paillier_kept, "MOST_KEPT_BYTES", 0)
    frames: list[Frame] = []
    calls = some_calls()
    assert all((found == call.products).all() for call, found in zip(calls, run(calls, frames=frames), strict=True))
    first, *others = (len(rows_of(of_call(frames, number))) for number in range(3))
    assert others == [first, first]


# -- what is seen ------------------------------------------------------------------------------------------------------
def test_what_the_holder_decrypts_is_under_masks_in_every_call() -> None:
    """All blocks of all products in a reply: their low bytes are uniform, whether products are zero or as large as
    they can be, and in both calls on the same columns: chi-square, error 1e-6 each.
    """
    seen = []
    for ones in (False, True):
        frames: list[Frame] = []
        calls = some_calls(ones=True, n_calls=2)
        calls = [Call(call.a, call.b & ones, call.pairs, call.names) for call in calls]
        run(calls, frames=frames)
        reckoned = KeptColumns(100, BITS)
        for number, call in enumerate(calls):
            (part,) = reckoned.parts(call.pairs, call.names)
            reckoned.keep([part])
            assert part.joins > 1
            plaintexts = KEY.decrypt(Ciphertexts(KEY.public, replies_of(of_call(frames, number))))
            layout = part.arrangement.layout
            size, blocks = layout.slots_bits // 8, part.joins * layout.rows
            of_block = [p >> block * layout.block_bits for p in plaintexts[:-1] for block in range(blocks)]
            octets = b"".join((value & ((mpz(1) << 8 * size) - 1)).to_bytes(size, "little") for value in of_block)
            seen.append(np.frombuffer(octets, np.uint8))
            assert_uniform(seen[-1])
            assert max(plaintexts).bit_length() <= blocks * layout.block_bits
    for other in seen[1:]:
        assert_alike(seen[0], other)


def test_replies_from_the_same_ciphertexts_have_nothing_in_common() -> None:
    """The evaluator multiplies the same ciphertexts by the same columns in each call: residue parts are all different,
    so that the key's holder can neither link two replies nor confirm a guess.
    """
    frames: list[Frame] = []
    one = some_calls(n_calls=1)[0]
    run([one, one, one], frames=frames)
    residues = residue_parts(Ciphertexts(KEY.public, replies_of(frames)))
    assert len(set(residues)) == len(residues) > 6


def test_both_views_have_the_same_shape_whatever_the_bits() -> None:
    shapes = []
    for seed in range(2):
        frames: list[Frame] = []
        run(some_calls(seed, ones=seed == 0), frames=frames)
        shapes.append(shapes_of(frames))
    assert shapes[0] == shapes[1]


# -- wrong messages and calls ------------------------------------------------------------------------------------------
ONES, PAIRS = np.ones((2, 9), np.bool_), all_pairs(2, 2)


def test_wrong_calls_are_refused() -> None:
    with pytest.raises(ValueError, match="at least one"):
        KeptColumns(9, BITS).parts(np.empty((0, 2), np.int64), None)
    with pytest.raises(ValueError, match="outside the 2"):
        run([Call(ONES, ONES, np.array([[2, 0]]), None)])
    other = ZeroPool(OwnerZeros.of(small_key(), Randomness.from_seed(1)))

    async def holder(session: Session) -> Any:
        return await hold_kept(session, B, KEY, other, KeptColumns(9, BITS), pack_bits(ONES), PAIRS, None)

    async def nothing(session: Session) -> None:
        """Waits for nobody."""

    with pytest.raises(TypeError, match="a pool under the key itself"):
        run_parties((A, B), {A: holder, B: nothing})
