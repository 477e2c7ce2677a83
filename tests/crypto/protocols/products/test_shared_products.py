from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from crypto.primitives.shares.additive import reconstruct
from crypto.protocols.comparison.two_party import pairs_of
from crypto.protocols.products import shared_products
from crypto.protocols.products.chains import chains, heads
from crypto.protocols.products.shared_products import row_blocks, spanning_products, word_for
from crypto.protocols.sums.pairwise import agree
from crypto.protocols.transfers import vector_transfers
from link.session import Session
from protos.v1.link_pb2 import Frame
from tests.crypto.protocols.products_world import assert_views_alike, itemset_counts, packed, table
from tests.crypto.protocols.two_party_world import assert_uniform
from tests.examples import examples
from tests.world import below, run_parties

pytestmark = pytest.mark.turn(6)

PARTIES = ("a", "b", "c", "d", "e")


def run(
    columns: Any,
    rows: int,
    itemsets: Any,
    *,
    two: tuple[str, str] = ("a", "b"),
    instead: Mapping[str, Any] | None = None,
    frames: list[Frame] | None = None,
    **options: Any,
) -> dict[str, Any]:
    own = packed(columns)

    async def role(session: Session) -> Any:
        secrets, pairs, lane = await agree(session), pairs_of(session.lane("pairs")), session.lane("work")
        if instead and session.me in instead:
            return await instead[session.me](lane, pairs)
        return await spanning_products(lane, secrets, pairs, own[session.me], rows, itemsets, two)

    return run_parties(tuple(columns), role, observe=below("/work", frames), **options)


@examples(2, 12)
@given(data=st.data(), rows=st.integers(0, 400), seed=st.integers(0, 2**32))
def test_against_numpy(data: st.DataObject, rows: int, seed: int) -> None:
    parties = PARTIES[: data.draw(st.integers(2, 5))]
    numbers = [data.draw(st.integers(1, 3)) for _ in parties]
    columns = table(parties, numbers, rows, data.draw(st.sampled_from([0.0, 0.8, 1.0])), seed)
    first, second = sorted(data.draw(st.permutations(range(len(parties))))[:2])
    two = (parties[first], parties[second])
    members = st.lists(st.sampled_from(parties), min_size=2, unique=True)
    itemset = members.flatmap(
        lambda names: st.fixed_dictionaries({n: st.integers(0, len(columns[n]) - 1) for n in names})
    )
    itemsets = data.draw(st.lists(itemset, max_size=10))
    out = run(columns, rows, itemsets, two=two, seed=seed)
    assert reconstruct([out[name] for name in two]).tolist() == itemset_counts(columns, itemsets)
    assert all(out[name] is None for name in parties if name not in two)


@pytest.mark.parametrize("rows", [127, 128, 32_767, 32_768])
def test_all_rows_at_the_edges_of_words(rows: int) -> None:
    """A count of all rows is the largest that a word must hold with its top bit free."""
    columns = {name: np.ones((1, rows), np.bool_) for name in PARTIES[:3]}
    out = run(columns, rows, [dict.fromkeys(PARTIES[:3], 0)])
    assert reconstruct([out["a"], out["b"]]).tolist() == [rows]
    assert rows < 1 << (8 * np.dtype(word_for(rows)).itemsize - 1)


def test_rows_that_no_word_holds_are_refused() -> None:
    with pytest.raises(ValueError, match="too long"):
        word_for(2**31)


def test_several_stretches_groups_and_windows(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(vector_transfers, "STRETCH", 256)
    monkeypatch.setattr(vector_transfers, "BATCH", 512)
    monkeypatch.setattr(shared_products, "MAX_WIDTH", 2)
    columns = table(PARTIES[:4], (3, 3, 3, 3), 2345, 0.9, 0)
    itemsets = [{"a": i, "b": j, "c": k, "d": 0} for i in range(3) for j in range(2) for k in range(2)]
    itemsets += [{"a": 2, "b": 1}, {"a": 2, "b": 1}, {"b": 2, "d": 1}]
    out = run(columns, 2345, itemsets, transport="grpc")
    assert reconstruct([out["a"], out["b"]]).tolist() == itemset_counts(columns, itemsets)


@examples(2, 12)
@given(rows=st.integers(0, 300), least=st.integers(1, 100), kept=st.integers(1, 1 << 12), seed=st.integers(0, 2**32))
def test_blocks_of_rows_add_up(rows: int, least: int, kept: int, seed: int) -> None:
    columns = table(PARTIES[:3], (2, 2, 2), rows, 0.8, seed)
    itemsets = [{"a": i, "b": j, "c": k} for i in range(2) for j in range(2) for k in range(2)] + [{"a": 0, "c": 1}]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(shared_products, "LEAST_ROWS", least)
        patch.setattr(shared_products, "KEPT_BYTES", kept)
        blocks = row_blocks(rows, chains(itemsets, PARTIES))
        out = run(columns, rows, itemsets, seed=seed)
    assert [row for start, stop in blocks for row in range(start, stop)] == list(range(rows))
    assert all(start % 8 == 0 for start, _ in blocks)
    assert reconstruct([out["a"], out["b"]]).tolist() == itemset_counts(columns, itemsets)


def test_blocks_bound_what_is_kept_of_rows() -> None:
    itemsets = chains([{"a": i, "b": j, "c": 0} for i in range(40) for j in range(40)], PARTIES)
    blocks = row_blocks(10**7, itemsets)
    assert max(stop - start for start, stop in blocks) * 4 * 1600 <= shared_products.LEAST_ROWS * 4 * 1600
    assert row_blocks(10**5, itemsets) == [(0, 10**5)]
    few = row_blocks(10**7, itemsets[:10])
    assert max(stop - start for start, stop in few) * 4 * 10 <= shared_products.KEPT_BYTES


def test_products_in_common_are_made_once() -> None:
    itemsets = [{"a": 0, "b": 0, "c": k} for k in range(3)] + [{"a": 0, "b": 0}, {"b": 0, "c": 1, "d": 0}]
    assert heads(chains(itemsets, PARTIES)) == [[(("a", 0), ("b", 0)), (("b", 0), ("c", 1))]]


@pytest.mark.parametrize("colluders", ["bcd", "acd"])
def test_what_all_but_one_party_see_does_not_depend_on_its_column(colluders: str) -> None:
    """Equal results (no common row) for different columns of the one that is left: its messages are alike.

    Probability of error 1e-6 a test.
    """
    rows, runs, shares = 4000, [], []
    parties = PARTIES[:4]
    (left,) = set(parties) - set(colluders)
    itemsets = [dict.fromkeys(parties, 0), {"a": 0, "b": 0, "c": 0}, {"b": 0, "d": 0, "c": 1}]
    for seed, density in enumerate((0.0, 1.0, 0.5)):
        columns = {name: np.zeros((2, rows), np.bool_) for name in colluders}
        columns[left] = table([left], [2], rows, density, 5)[left]
        frames: list[Frame] = []
        out = run({name: columns[name] for name in parties}, rows, itemsets, frames=frames, seed=seed)
        assert not reconstruct([out["a"], out["b"]]).any()
        runs.append([frame for frame in frames if frame.sender == left])
        shares.append(out)
    assert_views_alike(runs)


def test_each_share_is_uniform() -> None:
    columns = {name: np.ones((16, 64), np.bool_) for name in "abc"}
    itemsets = [{"a": i, "b": j, "c": k} for i in range(16) for j in range(8) for k in range(4)]
    out = run(columns, 64, itemsets, two=("a", "c"))
    for holder in ("a", "c"):
        assert_uniform(out[holder].values.view(np.uint8))


def test_misuse() -> None:
    columns = table(PARTIES[:3], (1, 1, 1), 8, 0.5, 0)
    for two, itemsets, words in (
        (("a", "a"), [{"a": 0, "b": 0}], "two different parties"),
        (("a", "x"), [{"a": 0, "b": 0}], "two different parties"),
        (("a", "b"), [{"a": 0}], "two parties of the job or more"),
        (("a", "b"), [{"a": 0, "b": 1}], "outside the 1"),
    ):
        with pytest.raises(ValueError, match=words):
            run(columns, 8, itemsets, two=two)
