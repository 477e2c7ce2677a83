"""Which engine `auto` takes: by the trust that a job allows, and by what it says of sizes and of the network."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from mining.joint.vertical.choice import allowed_engines, choose_engine, chosen_engine
from mining.joint.vertical.parameters import COORDINATOR, Expectation, Mode, VerticalMining

PLAIN = VerticalMining(1, ("a",), ("a", "b"), "a", engine="auto")
SLOW = 1e4  # bytes per second


def expecting(task: VerticalMining, **changes: Any) -> VerticalMining:
    return replace(task, expectation=replace(task.expectation, **changes))


def test_a_fast_network_calls_for_transfers_and_a_slow_one_for_encryption() -> None:
    assert chosen_engine(PLAIN).name == "ot"
    assert chosen_engine(expecting(PLAIN, bytes_per_s=SLOW)).name == "paillier"


def test_few_columns_are_never_worth_encryption() -> None:
    assert chosen_engine(expecting(PLAIN, bytes_per_s=SLOW, items=2)).name == "ot"


def test_where_all_products_are_of_three_encryption_saves_nothing() -> None:
    three = replace(expecting(PLAIN, parties=3, bytes_per_s=SLOW, rows=1000), mode="union")
    choice = choose_engine(three)
    ot, paillier = choice.costs
    assert (ot.engine, choice.engine) == ("ot", "ot")
    assert ot.bytes_sent == paillier.bytes_sent


@pytest.mark.parametrize("mode", ["intersection", "union"])
@pytest.mark.parametrize("parties", [2, 3, 5])
@pytest.mark.parametrize("bytes_per_s", [1e4, 1e6, 1e9])
def test_no_helper_is_added(mode: Mode, parties: int, bytes_per_s: float) -> None:
    task = replace(expecting(PLAIN, parties=parties, bytes_per_s=bytes_per_s, rows=1000, items=10), mode=mode)
    assert allowed_engines(task) == ("paillier", "ot")
    assert chosen_engine(task).name != "replicated"
    helped = replace(task, helper=COORDINATOR if parties == 2 else "c")
    assert set(allowed_engines(helped)) == {"paillier", "ot", "replicated"}
    costs = choose_engine(helped).costs
    seconds = [choose_engine(helped).seconds(cost) for cost in costs]
    assert chosen_engine(helped).name == costs[0].engine
    assert seconds == sorted(seconds)


def test_a_named_engine_is_taken_whatever_it_costs() -> None:
    assert chosen_engine(replace(expecting(PLAIN, bytes_per_s=SLOW), engine="ot")).name == "ot"


def test_the_reason_names_what_was_compared() -> None:
    reason = choose_engine(expecting(PLAIN, rows=5000, items=20)).reason
    assert "takes ot" in reason
    assert "5,000 common rows, 20 frequent items a party, density 0.2 and 1000 Mbit/s" in reason
    assert "against paillier" in reason
    assert "allows none to help" in reason
    helped = choose_engine(replace(PLAIN, helper=COORDINATOR)).reason
    assert "takes replicated" in helped
    assert "allows a helper" in helped


def test_more_parties_and_items_are_reckoned_as_few() -> None:
    many = choose_engine(expecting(PLAIN, parties=64, items=100_000))
    assert (many.assumed.parties, many.engine) == (3, "ot")
    assert many.assumed.items < 100
    assert Expectation() == PLAIN.expectation
