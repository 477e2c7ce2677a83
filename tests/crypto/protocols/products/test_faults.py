"""Products of private columns when frames come twice and when parties are lost."""

from __future__ import annotations

import asyncio
from typing import Any

import numpy as np
import pytest

from crypto.primitives.shares.additive import reconstruct
from crypto.protocols.comparison.two_party import TwoParty, pairs_of
from crypto.protocols.products import dealer
from crypto.protocols.products.ot_matrix import all_pairs, pair_products
from crypto.protocols.products.replicated_counts import spanning_counts
from crypto.protocols.products.shared_products import spanning_products
from crypto.protocols.sums.pairwise import agree
from link.errors import ComineError
from link.session import Session
from tests.crypto.protocols.products_world import itemset_counts, packed, pair_counts, table
from tests.crypto.protocols.sums.summing import Twice, outcomes
from tests.examples import in_turn

PARTIES = ("p0", "p1", "p2")
HOLDERS = PARTIES[:2]
ROWS = 300
COLUMNS = table(PARTIES, (2, 2, 2), ROWS, 0.7, 0)
PAIRS = all_pairs(2, 2)
FRAMES = (1, 2, 3, 4, 6, 8)
ITEMSETS = [dict.fromkeys(PARTIES, 1), {"p0": 0, "p1": 0}]


def two_of(session: Session) -> TwoParty:
    return TwoParty(session.lane("two"), HOLDERS)


async def by_transfers(session: Session) -> Any:
    if session.me not in HOLDERS:
        return None
    return await pair_products(session.lane("work"), two_of(session), packed(COLUMNS)[session.me], ROWS, PAIRS)


async def with_a_dealer(session: Session) -> Any:
    secrets, lane, own = await agree(session), session.lane("work"), packed(COLUMNS)[session.me]
    if session.me not in HOLDERS:
        return await dealer.deal(lane, secrets, HOLDERS, rows=ROWS, pairs=PAIRS)
    return await dealer.pair_products(lane, secrets, two_of(session), PARTIES[2], own, ROWS, PAIRS)


async def replicated(session: Session) -> Any:
    secrets, two = await agree(session), two_of(session) if session.me in HOLDERS else None
    own = packed(COLUMNS)[session.me]
    return await spanning_counts(session.lane("work"), secrets, PARTIES, two, own, ROWS, ITEMSETS)


async def all_parties(session: Session) -> Any:
    secrets, pairs, own = await agree(session), pairs_of(session.lane("pairs")), packed(COLUMNS)[session.me]
    return await spanning_products(session.lane("work"), secrets, pairs, own, ROWS, ITEMSETS, HOLDERS)


ENGINES = {
    by_transfers: pair_counts(COLUMNS["p0"], COLUMNS["p1"], PAIRS),
    with_a_dealer: pair_counts(COLUMNS["p0"], COLUMNS["p1"], PAIRS),
    replicated: itemset_counts(COLUMNS, ITEMSETS),
    all_parties: itemset_counts(COLUMNS, ITEMSETS),
}


@pytest.mark.parametrize("engine", ENGINES)
def test_frames_that_come_twice_change_nothing(engine: Any) -> None:
    ended = outcomes(engine, 3, transport=Twice)
    assert reconstruct([ended[holder] for holder in HOLDERS]).tolist() == ENGINES[engine]


@pytest.mark.costly
@pytest.mark.parametrize(
    ("engine", "victim", "frame"),
    in_turn([(engine, victim, frame) for engine in ENGINES for victim in PARTIES for frame in FRAMES], 5),
)
def test_a_party_that_is_lost_is_named_or_was_done(engine: Any, victim: str, frame: int) -> None:
    ended = outcomes(engine, 3, crash=(victim, frame))
    if not isinstance(ended[victim], asyncio.CancelledError):
        return  # it sends fewer frames
    for party in set(PARTIES) - {victim}:
        result = ended[party]
        if isinstance(result, ComineError):
            assert result.party == victim
        else:
            assert party not in HOLDERS or np.asarray(result.values).size == len(ENGINES[engine])
    if victim in HOLDERS and frame <= 3:
        assert any(isinstance(ended[holder], ComineError) for holder in HOLDERS if holder != victim)
