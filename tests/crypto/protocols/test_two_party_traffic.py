"""What the cost functions of two computing parties say, against real runs: byte for byte."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from crypto.primitives.sharing import AdditiveShare
from crypto.primitives.xor_sharing import XorShare
from crypto.protocols.comparison import comparison
from crypto.protocols.comparison.comparison import at_least, equal_to
from crypto.protocols.comparison.costs import (
    ComparisonWork,
    agreement_traffic,
    comparison_senders,
    comparison_traffic,
    comparison_work,
    open_bits_traffic,
    open_values_traffic,
    shared_sum_traffic,
)
from crypto.protocols.comparison.shared_bits import open_bits, open_values
from crypto.protocols.comparison.two_party import TwoParty
from crypto.protocols.sums.costs import agreement_traffic as pairwise_traffic
from crypto.protocols.sums.pairwise import agree
from crypto.protocols.sums.secure_sum import shared_sum
from crypto.protocols.transfers import table_transfers
from crypto.protocols.transfers.extension_seeds import FIELD_BITS
from link.costs import Costs
from link.disclosure import Declared
from link.session import Session
from link.traffic import Traffic, greeting
from tests.crypto.protocols.test_plan_traffic import WORDS, compare
from tests.examples import examples, slowly
from tests.world import SUITE, run_parties

NAMES = ("north", "south", "east", "w")


def entered(names: tuple[str, ...]) -> Traffic:
    traffic = Traffic(names)
    greeting(traffic, SUITE, {})
    return traffic


@pytest.mark.parametrize("field_bits", FIELD_BITS)
def test_the_agreement(field_bits: int) -> None:
    async def role(session: Session) -> Costs:
        parties = TwoParty(session.lane("two"), NAMES[:2], field_bits=field_bits)
        lane = session.lane("anything")
        await parties.both(lane.lane(f"to {parties.peer}"), lane.lane(f"to {parties.me}"))
        return session.costs

    traffic = entered(NAMES[:2])
    agreement_traffic(traffic, "/two", NAMES[:2], field_bits=field_bits)
    compare(traffic, run_parties(NAMES[:2], role))


@settings(max_examples=20)
@given(st.integers(2, 4), st.integers(0, 3000), st.sampled_from(sorted(WORDS)), st.permutations(NAMES))
def test_shared_sums_and_openings(parties: int, values: int, word: int, order: list[str]) -> None:
    names = NAMES[:parties]
    first, second, *_ = (name for name in order if name in names)
    holders, to = (first, second), names[1:]

    async def role(session: Session) -> Costs:
        counts = np.zeros(values, WORDS[word])
        share = await shared_sum(session.lane("sum"), await agree(session), counts, holders)
        bits = None
        if share is not None:
            bits = XorShare(np.zeros((11, -(-values // 8)), np.uint8), values, session.me, holders)
        await open_bits(session.lane("bits"), bits, label="words", holders=holders, number=values, width=11, to=to)
        await open_values(
            session.lane("values"), share, label="sums", holders=holders, number=values, word=np.dtype(f"u{word}").type
        )
        return session.costs

    lines = [Declared(label, frozenset(names), "test", values, "now") for label in ("words", "sums")]
    traffic = entered(names)
    pairwise_traffic(traffic, "")
    shared_sum_traffic(traffic, "/sum", values=values, word_bytes=word, holders=holders)
    open_bits_traffic(traffic, "/bits", "words", holders, number=values, width=11, to=to)
    open_values_traffic(traffic, "/values", "sums", holders, number=values, word_bytes=word)
    actual = run_parties(names, role, declared=lines)
    for party, costs in actual.items():
        assert (traffic.bytes_sent(party), traffic.bytes_received(party)) == (costs.bytes_sent, costs.bytes_received)
    # Who opens does not wait for what is opened to it, so the longest chain may be shorter than the steps in a row.
    assert max(costs.rounds for costs in actual.values()) <= traffic.rounds


def compared(number: int, width: int, order: bool, field_bits: int) -> dict[str, Costs]:
    holders = NAMES[:2]

    async def role(session: Session) -> Costs:
        parties = TwoParty(session.lane("two"), holders, field_bits=field_bits)
        if len(comparison_senders(holders, number, width, order=order)) == 2:
            await parties.prepare()
        elif parties.is_first:
            await parties.sending(session.lane("first"))
        else:
            await parties.receiving(session.lane("first"))
        share = AdditiveShare(np.arange(number, dtype=np.uint64), session.me, holders)
        function: Any = at_least if order else equal_to
        await function(session.lane("compare"), parties, share, 3, width)
        return session.costs

    return run_parties(holders, role)


def expected(number: int, width: int, order: bool, field_bits: int) -> Traffic:
    traffic, holders = entered(NAMES[:2]), NAMES[:2]
    senders = comparison_senders(holders, number, width, order=order)
    agreement_traffic(traffic, "/two", holders, senders=senders, field_bits=field_bits)
    comparison_traffic(traffic, "/compare", holders, number=number, width=width, order=order, field_bits=field_bits)
    return traffic


@examples(10, 25)
@example(number=300, width=64, order=True, field_bits=3)
@example(number=300, width=7, order=True, field_bits=3)
@example(number=300, width=6, order=False, field_bits=3)
@example(number=300, width=16, order=False, field_bits=2)
@given(st.integers(1, 3000), st.integers(2, 64), st.booleans(), st.sampled_from(FIELD_BITS[:4]))
def test_comparisons(number: int, width: int, order: bool, field_bits: int) -> None:
    compare(expected(number, width, order, field_bits), compared(number, width, order, field_bits))


@pytest.mark.parametrize(("order", "width"), slowly(product([True, False], [6, 9, 14, 18, 40]), now=range(0, 10, 3)))
def test_comparisons_in_many_pieces(width: int, order: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(comparison, "BLOCK", 512)
    monkeypatch.setattr(comparison, "BOTH_WAYS", 512)
    monkeypatch.setattr(table_transfers, "BATCH", 1024)
    compare(expected(2777, width, order, 3), compared(2777, width, order, 3))


def test_the_work_of_comparisons() -> None:
    assert comparison_work(1000, 9) == ComparisonWork(3000, 24_000, 0, 9000)
    assert comparison_work(1000, 7) == ComparisonWork(2000, 16_000, 0, 8000)
    assert comparison_work(1000, 6, order=False) == comparison_work(1000, 7)
    wide = comparison_work(1000, 24)
    assert wide == ComparisonWork(8000, 60_000, 4000, 48_000)
