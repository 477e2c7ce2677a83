from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from crypto.primitives.shares import ring_matrix
from crypto.primitives.shares.additive import reconstruct
from crypto.protocols.comparison.two_party import TwoParty
from crypto.protocols.products.dealer import deal, pair_products
from crypto.protocols.products.ot_matrix import all_pairs
from crypto.protocols.sums.pairwise import agree
from link.session import Session
from protos.v1.link_pb2 import Frame
from tests.crypto.protocols.products_world import (
    packed,
    pair_counts,
    payloads,
    table,
    views_without_common_rows,
)
from tests.crypto.protocols.two_party_world import HOLDERS, A, B, assert_uniform
from tests.examples import examples
from tests.world import below, run_parties

DEALER = "d"
ALL = (*HOLDERS, DEALER, "e")


def run(
    columns: Any,
    rows: int,
    pairs: Any,
    *,
    instead: Mapping[str, Any] | None = None,
    frames: list[Frame] | None = None,
    **options: Any,
) -> dict[str, Any]:
    own = packed(columns)

    async def role(session: Session) -> Any:
        secrets = await agree(session)
        lane = session.lane("work")
        if instead and session.me in instead:
            return await instead[session.me](lane, secrets)
        if session.me == DEALER:
            return await deal(lane, secrets, HOLDERS, rows=rows, pairs=pairs)
        if session.me not in HOLDERS:
            return None
        two = TwoParty(session.lane("pair"), HOLDERS)
        return await pair_products(lane, secrets, two, DEALER, own[session.me], rows, pairs)

    return run_parties(ALL, role, observe=below("/work", frames), **options)


def counted(*args: Any, **options: Any) -> list[int]:
    out = run(*args, **options)
    return reconstruct([out[A], out[B]]).tolist()


@examples(4, 12)
@given(data=st.data(), rows=st.integers(0, 500), seed=st.integers(0, 2**32))
def test_against_numpy(data: st.DataObject, rows: int, seed: int) -> None:
    numbers = [data.draw(st.integers(1, 20)) for _ in HOLDERS]
    columns = table(HOLDERS, numbers, rows, data.draw(st.sampled_from([0.0, 0.2, 1.0])), seed)
    pair = st.tuples(*(st.integers(0, number - 1) for number in numbers))
    pairs = np.array(data.draw(st.lists(pair, max_size=40)), np.int64).reshape(-1, 2)
    assert counted(columns, rows, pairs, seed=seed) == pair_counts(columns[A], columns[B], pairs)


def test_several_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ring_matrix, "BLOCK_WORDS", 1024)
    columns = table(HOLDERS, (3, 4), 5001, 0.5, 0)
    pairs = all_pairs(3, 4)
    assert counted(columns, 5001, pairs, transport="grpc") == pair_counts(columns[A], columns[B], pairs)


def test_the_dealer_gets_no_frame_and_what_it_sends_depends_on_no_data() -> None:
    sent = []
    for density in (0.0, 1.0):
        frames: list[Frame] = []
        run(table(HOLDERS, (5, 6), 900, density, 0), 900, all_pairs(5, 6), frames=frames)
        assert {frame.receiver for frame in frames} <= set(HOLDERS)
        sent.append([frame.body for frame in frames if frame.sender == DEALER])
    # The same seed gives the same session and the same masks, so that any difference would come from the data.
    assert sent[0] == sent[1]


def test_messages_and_shares_do_not_depend_on_the_columns() -> None:
    """Three tables with no common row: each party's view is uniform and alike; probability of error 1e-6 a test."""
    runs = views_without_common_rows(counted, 3000)
    assert sum(len(octets) for octets in payloads(runs[0]).values()) > 4 * 7 * 3000


def test_each_share_is_uniform() -> None:
    out = run(table(HOLDERS, (64, 64), 100, 1.0, 0), 100, all_pairs(64, 64))
    for holder in HOLDERS:
        assert_uniform(out[holder].values.view(np.uint8))


def test_a_dealer_is_a_third_party() -> None:
    async def role(session: Session) -> None:
        secrets = await agree(session)
        with pytest.raises(ValueError, match="third party"):
            await deal(session.lane("1"), secrets, HOLDERS, rows=8, pairs=all_pairs(1, 1))
        two = TwoParty(session.lane("pair"), HOLDERS)
        with pytest.raises(ValueError, match="third party"):
            await pair_products(session.lane("2"), secrets, two, B, np.zeros((1, 1), np.uint8), 8, all_pairs(1, 1))

    run_parties(HOLDERS, role)
