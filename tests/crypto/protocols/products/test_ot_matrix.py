from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from crypto.primitives.shares.additive import reconstruct
from crypto.protocols.comparison import lifting
from crypto.protocols.comparison.lifting import lift_sums
from crypto.protocols.comparison.two_party import TwoParty
from crypto.protocols.products import chunk_counts
from crypto.protocols.products.chunk_counts import ChunkCounts, number_of_chunks
from crypto.protocols.products.ot_matrix import Arrangement, all_pairs, pair_products
from crypto.protocols.transfers import vector_transfers
from crypto.protocols.transfers.vector_transfers import (
    Segment,
    batches,
    in_blocks,
    receive_vectors,
    rounds,
    send_vectors,
    stretches,
    transfers_of,
)
from link.session import Session
from protos.v1.link_pb2 import Frame
from tests.crypto.protocols.products_world import (
    packed,
    pair_counts,
    payloads,
    table,
    views_without_common_rows,
)
from tests.crypto.protocols.two_party_world import HOLDERS, A, B, assert_uniform, run_two
from tests.errors import fails

pytestmark = pytest.mark.turn(3)


def counted(columns: Any, rows: int, pairs: Any, **options: Any) -> list[int]:
    own = packed(columns)
    out = run_two(lambda lane, two: pair_products(lane, two, own[lane.me], rows, pairs), **options)
    return reconstruct([out[A], out[B]]).tolist()


# -- correctness -------------------------------------------------------------------------------------------------------
@settings(max_examples=25, deadline=None)
@example(data=None, rows=127, seed=0)
@given(data=st.none() | st.data(), rows=st.integers(0, 600), seed=st.integers(0, 2**32))
def test_against_numpy(data: st.DataObject | None, rows: int, seed: int) -> None:
    numbers, density, chosen = [3, 4], 1.0, None
    if data is not None:
        numbers = [data.draw(st.integers(1, 40)) for _ in HOLDERS]
        density = data.draw(st.sampled_from([0.0, 0.2, 1.0]))
        pair = st.tuples(*(st.integers(0, number - 1) for number in numbers))
        chosen = data.draw(st.none() | st.lists(pair, max_size=60))
    columns = table(HOLDERS, numbers, rows, density, seed)
    pairs = all_pairs(*numbers) if chosen is None else np.array(chosen, np.int64).reshape(-1, 2)
    assert counted(columns, rows, pairs, seed=seed) == pair_counts(columns[A], columns[B], pairs)


@pytest.mark.parametrize("width", [1, 2, 15, 16, 17, 33])
@pytest.mark.parametrize("swapped", [False, True])
def test_every_width_of_a_transfer_and_either_chooser(width: int, swapped: bool) -> None:
    numbers = (width, 1) if swapped else (1, width)
    columns = table(HOLDERS, numbers, 300, 0.5, width)
    pairs = all_pairs(*numbers)
    assert Arrangement.of(300, pairs).second_chooses == (width == 1 or swapped)
    assert counted(columns, 300, pairs) == pair_counts(columns[A], columns[B], pairs)


def test_several_stretches_batches_windows_and_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(vector_transfers, "STRETCH", 512)
    monkeypatch.setattr(vector_transfers, "BATCH", 1024)
    monkeypatch.setattr(vector_transfers, "MAX_WIDTH", 3)
    monkeypatch.setattr("crypto.protocols.products.ot_matrix.MAX_WIDTH", 3)
    monkeypatch.setattr(lifting, "BLOCK", 64)
    columns = table(HOLDERS, (5, 4), 5003, 0.6, 1)
    pairs = all_pairs(5, 4)
    assert rounds(len(Arrangement.of(5003, pairs).work)) > 4
    assert counted(columns, 5003, pairs) == pair_counts(columns[A], columns[B], pairs)


def test_over_grpc_streams() -> None:
    columns = table(HOLDERS, (20, 30), 20_000, 0.2, 1)
    pairs = all_pairs(20, 30)
    assert counted(columns, 20_000, pairs, transport="grpc") == pair_counts(columns[A], columns[B], pairs)


@given(st.integers(0, 200_000))
def test_stretches_cover_the_rows(rows: int) -> None:
    cut = stretches(rows)
    assert [start for start, _ in cut] == [0, *(stop for _, stop in cut[:-1])][: len(cut)]
    assert sum(stop - start for start, stop in cut) == rows
    assert all(start % 8 == 0 and 0 < stop - start <= vector_transfers.STRETCH for start, stop in cut)
    assert number_of_chunks(rows) >= rows / chunk_counts.CHUNK_ROWS


@given(st.integers(0, 100_000), st.lists(st.integers(0, 1024), max_size=30))
def test_batches_hold_every_transfer_once(rows: int, widths: list[int]) -> None:
    cut = batches(rows, widths, np.uint8)
    done: dict[int, int] = {}
    for batch in cut:
        assert 0 < transfers_of(batch) <= vector_transfers.BATCH
        for segment in batch:
            assert done.get(segment.column, 0) == segment.rows[0]
            done[segment.column] = segment.rows[1]
    assert done == {column: rows for column, width in enumerate(widths) if width and rows}


def test_a_chunk_never_reaches_its_top_bit() -> None:
    rows = vector_transfers.STRETCH * 2 + 77
    counts = ChunkCounts(rows, [0], 1)
    for stretch in stretches(rows):
        counts.keep(Segment(0, stretch, 1), 0, np.ones((stretch[1] - stretch[0], 1), np.uint8))
    assert counts.words.max() <= 127
    assert counts.words.sum(dtype=np.int64) == rows


@pytest.mark.parametrize("word", [np.uint8, np.uint16, np.uint32])
def test_vectors_of_every_word(word: Any) -> None:
    """What the receiver keeps exceeds what the sender keeps by choice · correlation, modulo 2^w."""
    rows, widths = 300, [5, 0, 9]
    generator = np.random.default_rng(0)
    x = {c: generator.integers(0, 2**32, (w, rows), dtype=np.uint32).astype(word) for c, w in enumerate(widths) if w}
    choices = generator.integers(0, 2, (3, rows)).astype(np.uint8)
    kept = {h: {c: np.zeros((rows, w), word) for c, w in enumerate(widths) if w} for h in HOLDERS}

    async def part(lane: Session, two: TwoParty) -> None:
        def keep(segment: Segment, first: int, words: Any) -> None:
            kept[lane.me][segment.column][slice(*segment.rows), first : first + words.shape[1]] = words

        work = batches(rows, widths, word)
        if lane.me == A:
            blocks = {c: in_blocks(v) for c, v in x.items()}
            await send_vectors(lane, B, await two.sending(lane), work, word, lambda s: blocks[s.column], keep)
        else:
            receiver = await two.receiving(lane)
            await receive_vectors(lane, A, receiver, work, word, lambda s: choices[s.column, slice(*s.rows)], keep)

    run_two(part)
    for column, values in x.items():
        difference = kept[B][column] - kept[A][column]
        assert (difference == (values * choices[column].astype(word)).T).all()


@settings(max_examples=25, deadline=None)
@given(data=st.data(), bits=st.sampled_from([8, 16, 32]), seed=st.integers(0, 2**32))
def test_lifted_sums(data: st.DataObject, bits: int, seed: int) -> None:
    shape = data.draw(st.tuples(st.integers(0, 6), st.integers(0, 6)))
    word = np.dtype(f"u{bits // 8}").type
    generator = np.random.default_rng(seed)
    edges = np.array([0, 2 ** (bits - 1) - 1, 1], word)
    values = np.where(generator.random(shape) < 0.5, generator.choice(edges, shape), 5).astype(word)
    first = np.where(generator.random(shape) < 0.5, generator.choice(edges, shape), generator.integers(0, 2**bits))
    words = {A: first.astype(word), B: values - first.astype(word)}
    out = run_two(lambda lane, two: lift_sums(lane, two, words[lane.me]), seed=seed)
    assert reconstruct([out[A], out[B]]).tolist() == values.sum(axis=1, dtype=np.uint64).tolist()


# -- what the parties see ----------------------------------------------------------------------------------------------
def test_messages_and_shares_do_not_depend_on_the_columns() -> None:
    """Three tables with no common row: each party's view is uniform and alike; probability of error 1e-6 a test."""
    views_without_common_rows(counted, 3000)


def test_each_share_is_uniform() -> None:
    columns = table(HOLDERS, (64, 64), 200, 1.0, 0)
    own = packed(columns)
    out = run_two(lambda lane, two: pair_products(lane, two, own[lane.me], 200, all_pairs(64, 64)))
    for holder in HOLDERS:
        assert_uniform(out[holder].values.view(np.uint8))


# -- costs -------------------------------------------------------------------------------------------------------------
MORE, CHECK = 64 * 256 // 8, 64  # transfers that mask the check, and it


def test_traffic_is_as_it_was() -> None:
    """Known answers for 1,000 rows, 6 × 10 columns and k = 2: the chooser has 6; and the checks of a batch each way."""
    frames: list[Frame] = []
    counted(table(HOLDERS, (6, 10), 1000, 0.5, 0), 1000, all_pairs(6, 10), frames=frames, field_bits=2)
    sizes = {key: len(octets) for key, octets in payloads(frames).items()}
    assert sizes == {
        (A, B, "ExtensionRows"): 8 * 6016 + MORE,
        (A, B, "ExtensionCheck"): CHECK,
        (B, A, "EncryptedMessages"): 1000 * 60,
        (B, A, "ExtensionRows"): 8 * 512 + MORE,
        (B, A, "ExtensionCheck"): CHECK,
        (A, B, "EncryptedMessages"): 8 * 60 * 8,
    }


# -- misuse and malice -------------------------------------------------------------------------------------------------
def test_rows_and_columns_are_checked() -> None:
    columns = packed(table(HOLDERS, (2, 2), 16, 0.5, 0))
    for rows, pairs in ((17, all_pairs(2, 2)), (16, all_pairs(3, 3)), (16, np.array([[-1, -1]]))):
        with pytest.raises(ValueError, match=r"rows are packed bytes|outside the 2"):
            run_two(lambda lane, two, r=rows, p=pairs: pair_products(lane, two, columns[lane.me], r, p))


@pytest.mark.parametrize("rows", [{A: 100, B: 300}, {A: 300, B: 100}])
def test_other_rows_are_noticed_and_named(rows: dict[str, int]) -> None:
    columns = packed(table(HOLDERS, (2, 2), 300, 0.5, 0))
    with fails("E402") as caught:
        run_two(lambda lane, two: pair_products(lane, two, columns[lane.me], rows[lane.me], all_pairs(2, 2)))
    assert caught.value.party in HOLDERS
