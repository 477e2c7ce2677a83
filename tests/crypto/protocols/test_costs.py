"""What the cost functions of protocols say, against runs: bytes as closely as plans promise, and every round."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

from crypto.primitives.shares import ring_matrix
from crypto.primitives.shares.additive import AdditiveShare
from crypto.primitives.shares.xor import XorShare
from crypto.protocols.comparison import comparison, lifting
from crypto.protocols.comparison.comparison import at_least
from crypto.protocols.comparison.costs import (
    ComparisonWork,
    agreement_traffic,
    comparison_traffic,
    comparison_work,
    look_up_traffic,
    opened_traffic,
    shared_sum_traffic,
)
from crypto.protocols.comparison.shared_bits import open_bits, open_values
from crypto.protocols.comparison.shared_lookup import look_up
from crypto.protocols.comparison.two_party import TwoParty
from crypto.protocols.products import shared_products
from crypto.protocols.products.class_counts import class_counts
from crypto.protocols.products.costs import (
    class_counts_traffic,
    pair_products_traffic,
    pair_products_work,
    replicated_flops,
    spanning_counts_traffic,
    spanning_products_traffic,
    spanning_products_work,
)
from crypto.protocols.products.ot_matrix import all_pairs, pair_products
from crypto.protocols.products.replicated_counts import spanning_counts
from crypto.protocols.products.shared_products import spanning_products
from crypto.protocols.sums.costs import maximum_traffic, sum_traffic
from crypto.protocols.sums.masked_maximum import masked_maximum
from crypto.protocols.sums.secure_sum import secure_sum, shared_sum
from crypto.protocols.transfers import table_transfers, vector_transfers
from link.disclosure import Declared
from link.session import Session
from link.traffic import Traffic
from tests.traffic import Part, assert_planned, costs_of

pytestmark = pytest.mark.turn(3)

NAMES = ("north", "south", "east", "w")
LABELS = ("counts", "bits", "sums", "maximum")
SHORT: tuple[tuple[Any, str, int], ...] = (
    (vector_transfers, "STRETCH", 512),
    (vector_transfers, "BATCH", 1024),
    (lifting, "BLOCK", 256),
    (ring_matrix, "BLOCK_WORDS", 1024),
    (comparison, "BLOCK", 512),
    (comparison, "BOTH_WAYS", 512),
    (table_transfers, "BATCH", 1024),
    (shared_products, "KEPT_BYTES", 8192),
    (shared_products, "LEAST_ROWS", 1024),
)
EXACT = range(1)


@dataclass(frozen=True)
class Case:
    """A protocol at one size.

    Attributes:
        parties: How many.
        part: What each party does.
        enter: The cost function.
        rounds: How many more a run may take than planned.
    """

    parties: int
    part: Part
    enter: Callable[[Traffic], None]
    rounds: range = EXACT


# -- sums and openings -------------------------------------------------------------------------------------------------
def sums(parties: int, values: int, receivers: int) -> Case:
    to = NAMES[:receivers]

    async def part(lane: Session, secrets: Any, pairs: Any) -> Any:
        return await secure_sum(lane, secrets, np.zeros(values, np.uint32), label="counts", to=to)

    return Case(parties, part, lambda traffic: sum_traffic(traffic, 4 * values, to))


def maxima(parties: int, most: int) -> Case:
    async def part(lane: Session, secrets: Any, pairs: Any) -> Any:
        return await masked_maximum(lane, secrets, (most // 2, 0), (most, 5), label="maximum")

    return Case(parties, part, lambda traffic: maximum_traffic(traffic, (most, 5)))


def openings(parties: int, values: int) -> Case:
    """Who opens does not wait for what is opened to it, so that a run takes fewer rounds than these one by one."""
    holders = NAMES[1:3] if parties > 2 else NAMES[:2]

    async def part(lane: Session, secrets: Any, pairs: Any) -> Any:
        share = await shared_sum(lane.lane("sum"), secrets, np.zeros(values, np.uint64), holders)
        bits = None
        if share is not None:
            bits = XorShare(np.zeros((11, -(-values // 8)), np.uint8), values, lane.me, holders)
        await open_bits(lane.lane("b"), bits, label="bits", holders=holders, number=values, width=11, to=NAMES[:1])
        await open_values(lane.lane("v"), share, label="sums", holders=holders, number=values)

    def enter(traffic: Traffic) -> None:
        shared_sum_traffic(traffic, 8 * values, holders)
        opened_traffic(traffic, 11 * values // 8, holders, NAMES[:1])
        opened_traffic(traffic, 8 * values, holders)

    return Case(parties, part, enter, range(-1, 1))


# -- two parties -------------------------------------------------------------------------------------------------------
def agreements() -> Case:
    async def part(lane: Session, secrets: Any, pairs: Any) -> Any:
        await TwoParty(lane, NAMES[:2]).prepare()

    return Case(2, part, lambda traffic: agreement_traffic(traffic, NAMES[:2]))


def comparisons(number: int, width: int) -> Case:
    holders = NAMES[:2]

    async def part(lane: Session, secrets: Any, pairs: dict[str, TwoParty]) -> Any:
        (parties,) = pairs.values()
        share = AdditiveShare(np.arange(number, dtype=np.uint64), lane.me, holders)
        await at_least(lane, parties, share, 3, width)

    return Case(2, part, lambda traffic: comparison_traffic(traffic, holders, number=number, width=width))


def looked_up(number: int, entries: int) -> Case:
    holders = NAMES[:2]

    async def part(lane: Session, secrets: Any, pairs: dict[str, TwoParty]) -> Any:
        (parties,) = pairs.values()
        return await look_up(
            lane, parties, AdditiveShare(np.zeros(number, np.uint32), lane.me, holders), np.zeros(entries, bool)
        )

    return Case(2, part, lambda traffic: look_up_traffic(traffic, holders, number=number, entries=entries))


# -- products ----------------------------------------------------------------------------------------------------------
def pairs_of(rows: int, columns: tuple[int, int]) -> Case:
    pairs, own = all_pairs(*columns), np.zeros((max(columns), -(-rows // 8)), np.uint8)

    async def part(lane: Session, secrets: Any, two: dict[str, TwoParty]) -> Any:
        return await pair_products(lane, next(iter(two.values())), own, rows, pairs)

    return Case(2, part, lambda traffic: pair_products_traffic(traffic, NAMES[:2], rows=rows, pairs=pairs))


def classes(rows: int, sizes: tuple[int, int]) -> Case:
    async def part(lane: Session, secrets: Any, two: dict[str, TwoParty]) -> Any:
        return await class_counts(lane, next(iter(two.values())), np.zeros(rows, np.int64), sizes)

    return Case(2, part, lambda traffic: class_counts_traffic(traffic, NAMES[:2], rows=rows, sizes=sizes))


ITEMSETS = [{"north": i, "south": j, "east": k} for i in range(3) for j in range(3) for k in range(2)]
ITEMSETS += [{"south": i, "east": j} for i in range(3) for j in range(3)]


def replicated(parties: int, rows: int, three: tuple[str, str, str], itemsets: Sequence[dict[str, int]]) -> Case:
    two = tuple(name for name in NAMES if name in three[:2])
    own = np.zeros((3, -(-rows // 8)), np.uint8)

    async def part(lane: Session, secrets: Any, pairs: dict[str, TwoParty]) -> Any:
        pair = pairs[next(name for name in two if name != lane.me)] if lane.me in two else None
        return await spanning_counts(lane, secrets, three, pair, own, rows, list(itemsets))

    return Case(
        parties,
        part,
        lambda traffic: spanning_counts_traffic(traffic, three, (two[0], two[1]), rows=rows, itemsets=itemsets),
    )


def spanning(parties: int, rows: int, two: tuple[str, str], itemsets: Sequence[dict[str, int]]) -> Case:
    own = np.zeros((3, -(-rows // 8)), np.uint8)

    async def part(lane: Session, secrets: Any, pairs: dict[str, TwoParty]) -> Any:
        return await spanning_products(lane, secrets, pairs, own, rows, itemsets, two)

    return Case(parties, part, lambda traffic: spanning_products_traffic(traffic, two, rows=rows, itemsets=itemsets))


CASES = {
    "a sum": sums(3, 100, 3),
    "a sum of two": sums(2, 40_000, 2),
    "a sum in slices": sums(4, 40_000, 3),
    "a sum for one": sums(4, 40_000, 1),
    "a long sum": sums(3, 500_000, 3),
    "a maximum": maxima(3, 60),
    "a large maximum": maxima(4, 8_000),
    "openings of two": openings(2, 5_000),
    "openings of three": openings(3, 5_000),
    "openings of four": openings(4, 20_000),
    "an agreement": agreements(),
    "short comparisons": comparisons(5_000, 6),
    "comparisons in two digits": comparisons(3_000, 11),
    "comparisons in three digits": comparisons(700, 17),
    "comparisons in a tree": comparisons(2_777, 30),
    "comparisons of long numbers": comparisons(999, 64),
    "a table of few entries": looked_up(5_000, 30),
    "a table of many entries": looked_up(500, 5_000),
    "classes of the first": classes(3_000, (40, 6)),
    "classes of the second": classes(700, (1, 30)),
    "pairs": pairs_of(5_003, (4, 6)),
    "pairs of many columns": pairs_of(1_000, (9, 20)),
    "pairs of many rows": pairs_of(20_000, (2, 1)),
    "replicated": replicated(3, 5_003, NAMES[:3], ITEMSETS),
    "replicated of four": replicated(4, 9_000, ("w", "south", "north"), ITEMSETS),
    "replicated of pairs": replicated(4, 2_000, ("east", "w", "north"), ITEMSETS[-9:]),
    "spanning": spanning(3, 5_003, ("north", "south"), ITEMSETS),
    "spanning of four": spanning(4, 2_000, ("south", "w"), ITEMSETS),
    "spanning of pairs": spanning(3, 9_000, ("north", "east"), ITEMSETS[-9:]),
}


@pytest.mark.parametrize("pieces", ["whole", "in pieces"])
@pytest.mark.parametrize("name", CASES)
def test_a_protocol_sends_what_is_planned(name: str, pieces: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """As it is, and with blocks and batches so short that there are several of each."""
    if pieces == "in pieces":
        for module, size, value in SHORT:
            monkeypatch.setattr(module, size, value)
    case = CASES[name]
    parties = NAMES[: case.parties]
    traffic = Traffic(parties)
    case.enter(traffic)
    declared = [Declared(label, frozenset(parties), "test", 1 << 24, "now") for label in LABELS]
    assert_planned(traffic, costs_of(parties, case.part, declared=declared), case.rounds)


# -- work --------------------------------------------------------------------------------------------------------------
def test_the_work_of_comparisons() -> None:
    assert comparison_work(1000, 9) == ComparisonWork(3000, 24_000, 0, 9000)
    assert comparison_work(1000, 7) == ComparisonWork(2000, 16_000, 0, 8000)
    assert comparison_work(1000, 24) == ComparisonWork(8000, 60_000, 4000, 48_000)


def test_the_work_of_products() -> None:
    """1,000 rows: 6 columns choose, each for 10, filled up to 6,016 transfers; 60 sums of chunks are lifted."""
    pairs = pair_products_work(1000, all_pairs(6, 10))
    lifted = 60 * 8
    assert (pairs.transfers, pairs.words) == (6016 + lifted, 60 * 1000 + lifted)
    itemsets = [{"a": 0, "b": 0, "c": k} for k in range(2)]
    work = spanning_products_work(512, itemsets, ("a", "b", "c", "d"))
    assert {pair: each.words for pair, each in work.items() if each.words} == {
        ("a", "b"): 512,
        ("a", "c"): 1024,
        ("b", "c"): 1024,
    }
    assert replicated_flops(512, itemsets, ("a", "b", "c", "d")) == 12 * 512 * 2
