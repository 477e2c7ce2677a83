from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from crypto.primitives.shares.additive import AdditiveShare, reconstruct
from crypto.protocols.comparison.shared_bits import open_bits
from crypto.protocols.comparison.two_party import TwoParty
from crypto.protocols.paillier import arrangement as paillier_arrangement
from crypto.protocols.paillier import dot as paillier_dot
from crypto.protocols.paillier import rows as paillier_rows
from crypto.protocols.paillier.arrangement import Arrangement
from crypto.protocols.paillier.dot import declared
from crypto.protocols.products.ot_matrix import all_pairs
from link.disclosure import Declared
from link.runtime.process_executor import ProcessExecutor
from link.session import Session
from protos.v1.link_pb2 import Frame, Opening
from protos.v1.oblivious_transfer_pb2 import EncryptedMessages, ExtensionCheck, ExtensionRows
from protos.v1.paillier_pb2 import EncryptedRows, MaskedProducts
from tests.crypto.protocols.paillier.calls import (
    BITS,
    KINDS,
    LABEL,
    Part,
    Result,
    both,
    columns,
    evaluator,
    holder,
    products,
    run,
)
from tests.crypto.protocols.two_party_world import A, B, assert_alike, assert_uniform
from tests.examples import examples
from tests.world import run_parties

pytestmark = pytest.mark.turn(3)


@examples(4, 25)
@given(
    result=st.sampled_from(["opened", "doubled"]),
    rows=st.sampled_from([0, 1, 7, 8, 9, 64, 200]) | st.integers(0, 300),
    width=st.integers(1, 60),
    other=st.integers(1, 4),
    kinds=st.tuples(KINDS, KINDS),
    seed=st.integers(0, 2**32),
    some=st.booleans(),
)
def test_products_are_those_of_numpy(
    result: Result, rows: int, width: int, other: int, kinds: Any, seed: int, some: bool
) -> None:
    rng = np.random.default_rng(seed)
    a, b = columns(rng, width, rows, kinds[0]), columns(rng, other, rows, kinds[1])
    pairs = all_pairs(width, other)
    if some:  # in any order, some of them twice
        pairs = pairs[rng.integers(0, len(pairs), min(10, len(pairs)))]
    want = (a.astype(np.uint64) @ b.T.astype(np.uint64))[pairs[:, 0], pairs[:, 1]]
    got = products(result, both(result, a, b, pairs, seed=seed), rows)
    assert (got == want).all()


@pytest.mark.parametrize("transport", ["memory", "grpc"])
def test_over_both_transports(transport: Any) -> None:
    rng = np.random.default_rng(1)
    a, b = rng.random((3, 500)) < 0.4, rng.random((2, 500)) < 0.4
    pairs = all_pairs(3, 2)
    out = run_parties(
        (A, B),
        {A: holder("opened", a, pairs), B: evaluator("opened", b, pairs)},
        declared=[declared(LABEL, A, 6, when="at the end")],
        transport=transport,
    )
    assert (out[A].reshape(3, 2) == a.astype(int) @ b.T).all()


@pytest.mark.slow
def test_with_worker_processes() -> None:
    rng = np.random.default_rng(2)
    a, b = rng.random((40, 1500)) < 0.4, rng.random((2, 1500)) < 0.4
    pairs, workers = all_pairs(40, 2), ProcessExecutor(2)
    try:
        out = run(holder("opened", a, pairs, workers=workers), evaluator("opened", b, pairs, workers=workers))
    finally:
        workers.close()
    assert (out[A].reshape(40, 2) == a.astype(int) @ b.T).all()


def test_rows_come_in_windows(monkeypatch: pytest.MonkeyPatch) -> None:
    """With messages of 8 ciphertexts and windows of one message the holder waits for the evaluator, again and again."""
    monkeypatch.setattr(paillier_arrangement, "CHUNK_BYTES", 1)
    monkeypatch.setattr(paillier_rows, "WINDOW", 1)
    rng, frames = np.random.default_rng(3), list[Frame]()
    a, b = rng.random((50, 133)) < 0.4, rng.random((1, 133)) < 0.4
    pairs = all_pairs(50, 1)
    assert Arrangement.of(133, pairs, BITS).layout.rows == 2
    out = both("opened", a, b, pairs, frames=frames)
    assert (out[A] == a.astype(int) @ b[0]).all()
    kinds = [frame.type.rpartition(".")[2] for frame in frames]
    assert kinds.count("EncryptedRows") == 9
    assert kinds.count("RowsTaken") == 7
    last = max(i for i, kind in enumerate(kinds) if kind == "EncryptedRows")
    assert kinds.index("RowsTaken") < last


def test_doubled_shares_are_compared() -> None:
    rng = np.random.default_rng(4)
    a, b = rng.random((12, 90)) < 0.6, rng.random((3, 90)) < 0.6
    pairs = all_pairs(12, 3)
    counts = (a.astype(int) @ b.T).reshape(-1)
    thresholds = np.concatenate([counts[:12], counts[12:24] + 1, np.full(12, 30)]).astype(np.uint64).clip(0, 90)

    def compared(part: Part) -> Part:
        async def role(session: Session) -> Any:
            share = await part(session)
            parties = TwoParty(session.lane("pair"), (A, B))
            found = []
            for name, threshold in (("each", thresholds), ("all", 32), ("none", 0), ("rows", 90)):
                bits = await share.reach(session.lane(name), parties, threshold)
                found.append(await open_bits(session, bits, label="bits", holders=(A, B), number=36))
            return found

        return role

    allowed = [Declared("bits", frozenset((A, B)), "bits", 1000, "at the end")]
    out = run(compared(holder("doubled", a, pairs)), compared(evaluator("doubled", b, pairs)), allowed=allowed)
    for party in (A, B):
        each, all_of, none, rows = out[party]
        assert (each == (counts >= thresholds)).all()
        assert (all_of == (counts >= 32)).all()
        assert none.all()
        assert (rows == (counts >= 90)).all()


@examples(2, 12)
@given(
    rows=st.sampled_from([0, 1, 2, 63, 64, 127, 128]) | st.integers(0, 300),
    width=st.integers(1, 40),
    other=st.integers(1, 4),
    kinds=st.tuples(KINDS, KINDS),
    seed=st.integers(0, 2**32),
    turned=st.booleans(),
)
def test_doubled_shares_are_made_exact(rows: int, width: int, other: int, kinds: Any, seed: int, turned: bool) -> None:
    """Whichever comes first in the agreement of the two."""
    rng, frames = np.random.default_rng(seed), list[Frame]()
    a, b = columns(rng, width, rows, kinds[0]), columns(rng, other, rows, kinds[1])
    pairs = all_pairs(width, other)

    def exact(part: Part) -> Part:
        async def role(session: Session) -> Any:
            share = await part(session)
            parties = TwoParty(session.lane("pair"), (B, A) if turned else (A, B))
            return await share.exact(session.lane("dot").lane("exact"), parties)

        return role

    out = run(exact(holder("doubled", a, pairs)), exact(evaluator("doubled", b, pairs)), frames=frames, seed=seed)
    assert {share.holders for share in out.values()} == {(A, B)}
    assert (reconstruct([out[A], out[B]]) == (a.astype(np.uint64) @ b.T.astype(np.uint64)).reshape(-1)).all()
    sent = {(frame.sender, frame.type.rpartition(".")[2]) for frame in frames if frame.lane.endswith("/exact")}
    assert sent == {(A, "EncryptedMessages"), (B, "ExtensionRows"), (B, "ExtensionCheck")}


def test_carries_and_wraps_are_made_exact() -> None:
    """All shares of small numbers: 2·product + β for each β, with every first share of their width."""
    rows, width = 3, 4
    numbers = np.repeat(np.arange(2 * rows + 2, dtype=np.uint64), 1 << width)
    first = np.tile(np.arange(1 << width, dtype=np.uint64), 2 * rows + 2)
    shares = {A: first, B: (numbers - first) & np.uint64((1 << width) - 1)}

    async def role(session: Session) -> Any:
        doubled = paillier_dot.DoubledShare(rows, AdditiveShare(shares[session.me], session.me, (A, B)))
        return await doubled.exact(session.lane("exact"), TwoParty(session.lane("pair"), (A, B)))

    out = run(role, role)
    assert (reconstruct([out[A], out[B]]) == numbers >> np.uint64(1)).all()


def test_what_makes_shares_exact_is_uniform() -> None:
    """Both directions, whatever the products: chi-square of their bytes, error 1e-6 each; and both views alike."""
    seen: dict[str, list[NDArray[np.uint8]]] = {A: [], B: []}
    for ones in (False, True):
        frames: list[Frame] = []
        number = 3000
        values = {A: np.full(number, 8 * ones, np.uint64), B: np.full(number, 7, np.uint64)}

        async def role(session: Session, values: dict[str, NDArray[np.uint64]] = values) -> Any:
            doubled = paillier_dot.DoubledShare(3, AdditiveShare(values[session.me], session.me, (A, B)))
            return await doubled.exact(session.lane("dot"), TwoParty(session.lane("pair"), (A, B)))

        run(role, role, frames=frames, seed=int(ones))
        for sender, kinds in ((A, [EncryptedMessages]), (B, [ExtensionRows, ExtensionCheck])):
            data = b"".join(
                kind.FromString(frame.body).data
                for frame in frames
                for kind in kinds
                if frame.type == kind.DESCRIPTOR.full_name
            )
            seen[sender].append(np.frombuffer(data, np.uint8))
            assert_uniform(seen[sender][-1])
    for views in seen.values():
        assert_alike(*views)


def test_doubled_shares_show_nothing_and_are_no_numbers() -> None:
    a = b = np.ones((1, 3), np.bool_)
    out = both("doubled", a, b, all_pairs(1, 1))
    assert repr(out[A]) == "<DoubledShare of length 1>"
    with pytest.raises(TypeError):
        _ = out[A] + out[B]


@pytest.mark.parametrize(("asked", "requests", "replies"), [(slice(None), 334, 12), (slice(1, None), 1000, 4)])
def test_bytes_and_rounds(asked: slice, requests: int, replies: int) -> None:
    rng, frames = np.random.default_rng(5), list[Frame]()
    a, b = rng.random((40, 1000)) < 0.2, rng.random((4, 1000)) < 0.2
    pairs = all_pairs(40, 4)[asked]
    arrangement = Arrangement.of(1000, pairs, BITS)
    assert (arrangement.requests, arrangement.replies) == (requests, replies)
    rounds = {}

    def counted(part: Part) -> Part:
        async def role(session: Session) -> Any:
            before = session.costs.rounds
            await part(session)
            rounds[session.me] = session.costs.rounds - before

        return role

    run(counted(holder("opened", a, pairs)), counted(evaluator("opened", b, pairs)), frames=frames)
    assert rounds[A] == 2
    sent = {A: b"", B: b"", "opened": b""}
    for frame in frames:
        kind = frame.type.rpartition(".")[2]
        if kind == "EncryptedRows":
            sent[A] += EncryptedRows.FromString(frame.body).data
        elif kind == "MaskedProducts":
            sent[B] += MaskedProducts.FromString(frame.body).data
        elif kind == "Opening":
            sent["opened"] += Opening.FromString(frame.body).values
    assert len(sent[A]) == requests * BITS // 4
    assert len(sent[B]) == replies * BITS // 4
    assert len(sent["opened"]) == 8 * len(pairs)


def test_the_plan_of_a_hundred_thousand_rows() -> None:
    """What the documentation says of 50 × 50 columns."""
    found = {
        (asked, bits): Arrangement.of(100_000, all_pairs(50, 50)[:asked], bits).requests * bits // 4
        for asked in (2500, 2499)
        for bits in (2048, 3072)
    }
    assert found == {
        (2500, 2048): 25_600_000,
        (2500, 3072): 25_600_512,
        (2499, 2048): 102_400_000,
        (2499, 3072): 76_800_000,
    }
