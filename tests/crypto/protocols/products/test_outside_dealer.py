from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from crypto.primitives.randomness import Randomness
from crypto.primitives.shares import ring_matrix
from crypto.primitives.shares.additive import reconstruct
from crypto.primitives.shares.masks import Words
from crypto.protocols.comparison.two_party import TwoParty
from crypto.protocols.products.dealt_products import WORD
from crypto.protocols.products.ot_matrix import all_pairs
from crypto.protocols.products.outside_dealer import (
    LABEL_BYTES,
    MAX_PRODUCTS,
    Dealer,
    Dealings,
    Wanted,
)
from crypto.protocols.products.outside_products import OutsideProducts
from link.session import Session
from protos.v1.link_pb2 import Frame
from tests.crypto.protocols.products_world import assert_views_alike, packed, pair_counts, table
from tests.crypto.protocols.two_party_world import HOLDERS, A, B, assert_alike, assert_uniform
from tests.errors import fails
from tests.examples import examples
from tests.world import below, run_parties

LABEL = bytes(LABEL_BYTES)


class Asked:
    """Keeps what a holder asks for."""

    def __init__(self, dealings: Dealings) -> None:
        self.seed, self._dealings, self.wanted = dealings.seed, dealings, list[Wanted]()

    async def products(self, wanted: Wanted) -> Words:
        self.wanted.append(wanted)
        return await self._dealings.products(wanted)


def run(
    columns: Any, rows: int, pairs: Any, *, lanes: int = 1, frames: list[Frame] | None = None, seed: int = 0
) -> tuple[dict[str, list[Any]], dict[str, Asked]]:
    own = packed(columns)
    dealer = Dealer(Randomness.from_seed(seed).derive("dealer"))
    dealings = {holder: Asked(each) for holder, each in zip(HOLDERS, dealer.here(), strict=True)}

    async def role(session: Session) -> Any:
        parties = TwoParty(session.lane("pair"), HOLDERS)
        products = OutsideProducts(dealings[session.me])
        work = [session.lane(f"work/{number}") for number in range(lanes)]
        return [await products.pair_products(lane, parties, own[session.me], rows, pairs) for lane in work]

    return run_parties(HOLDERS, role, observe=below("/work", frames), seed=seed), dealings


@examples(4, 15)
@given(data=st.data(), rows=st.integers(0, 500), seed=st.integers(0, 2**32))
def test_against_numpy(data: st.DataObject, rows: int, seed: int) -> None:
    numbers = [data.draw(st.integers(1, 20)) for _ in HOLDERS]
    columns = table(HOLDERS, numbers, rows, data.draw(st.sampled_from([0.0, 0.2, 1.0])), seed)
    pair = st.tuples(*(st.integers(0, number - 1) for number in numbers))
    pairs = np.array(data.draw(st.lists(pair, min_size=1, max_size=40)), np.int64).reshape(-1, 2)
    out, dealings = run(columns, rows, pairs, lanes=2, seed=seed)
    for one, other in zip(out[A], out[B], strict=True):
        assert reconstruct([one, other]).tolist() == pair_counts(columns[A], columns[B], pairs)
    assert not dealings[A].wanted
    assert len({wanted.label for wanted in dealings[B].wanted}) == 2
    assert {wanted.columns for wanted in dealings[B].wanted} == {tuple(len(np.unique(side)) for side in pairs.T)}


def test_several_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ring_matrix, "BLOCK_WORDS", 1024)
    columns, pairs = table(HOLDERS, (3, 4), 5001, 0.5, 0), all_pairs(3, 4)
    out, _ = run(columns, 5001, pairs)
    assert reconstruct([out[A][0], out[B][0]]).tolist() == pair_counts(columns[A], columns[B], pairs)


def test_what_the_dealer_is_told_and_what_parties_see_do_not_depend_on_the_columns() -> None:
    """Three tables with no common row, probability of error 1e-6 a statistical test."""
    rows, pairs, runs, asked = 3000, all_pairs(4, 3), [], []
    for seed, densities in enumerate([(0.0, 0.0), (1.0, 0.0), (0.0, 1.0)]):
        columns = {
            holder: table([holder], [number], rows, density, 0)[holder]
            for holder, number, density in zip(HOLDERS, (4, 3), densities, strict=True)
        }
        frames: list[Frame] = []
        out, dealings = run(columns, rows, pairs, frames=frames, seed=seed)
        assert not reconstruct([out[A][0], out[B][0]]).any()
        runs.append(frames)
        asked.append([(wanted.rows, wanted.columns) for wanted in dealings[B].wanted])
    assert_views_alike(runs)
    assert asked == [[(rows, (4, 3))]] * 3


def test_an_answer_follows_from_request_and_seeds_and_another_request_has_other_masks() -> None:
    dealer = Dealer(Randomness.from_seed(0))
    wanted = Wanted(LABEL, 1000, (64, 64))
    products = dealer.products(wanted)
    assert (products == dealer.products(wanted)).all()
    assert_uniform(products.view(np.uint8).ravel())
    masks = wanted.masks(dealer.seeds[0]).bytes(1 << 14)
    for other in (Wanted(LABEL, 1001, (64, 64)), Wanted(LABEL, 1000, (64, 63)), Wanted(b"\1" * 32, 1000, (64, 64))):
        drawn = other.masks(dealer.seeds[0]).bytes(1 << 14)
        assert drawn[:16] != masks[:16]
        assert_alike(np.frombuffer(drawn, np.uint8), np.frombuffer(masks, np.uint8))


def test_a_lane_serves_once() -> None:
    dealings = dict(zip(HOLDERS, Dealer(Randomness.from_seed(0)).here(), strict=True))
    columns = np.ones((1, 1), np.uint8)

    async def role(session: Session) -> None:
        parties, products = TwoParty(session.lane("pair"), HOLDERS), OutsideProducts(dealings[session.me])
        lane = session.lane("work")
        await products.pair_products(lane, parties, columns, 8, all_pairs(1, 1))
        with fails("E700"):
            await products.pair_products(lane, parties, columns, 8, all_pairs(1, 1))

    run_parties(HOLDERS, role)


@pytest.mark.parametrize("answer", [np.zeros((3, 2), WORD), np.zeros((2, 3), np.uint64)])
def test_an_answer_of_another_shape_is_refused(answer: Words) -> None:
    class Wrong:
        seed = bytes(32)

        async def products(self, wanted: Wanted) -> Words:
            return answer

    async def role(session: Session) -> None:
        parties = TwoParty(session.lane("pair"), HOLDERS)
        columns = np.ones((3, 1), np.uint8)
        await OutsideProducts(Wrong()).pair_products(session.lane("work"), parties, columns, 8, all_pairs(2, 3))

    with fails("E402"):
        run_parties(HOLDERS, role)


def test_requests_that_cannot_be() -> None:
    requests = json.loads((Path(__file__).parents[3] / "vectors" / "negative" / "dealer.json").read_text())["requests"]
    assert len(requests) >= 5
    for each in requests:
        with fails(each["refused"]):
            Wanted(bytes.fromhex(each["label"]), each["rows"], tuple(each["columns"]))
    assert requests[-1]["columns"][0] == MAX_PRODUCTS
    with pytest.raises(ValueError, match="32 bytes, not 3"):
        OutsideProducts(type("Short", (), {"seed": b"abc"})())
