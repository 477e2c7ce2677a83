"""How a device reports, and what its owner allows."""

from __future__ import annotations

import dataclasses
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from client.budget import Budget
from client.outcome import Status
from client.pseudonym import pseudonym
from client.reporter import CollectionKey, FrequencyClient
from ldp.budget import float_below
from ldp.domain import Domain
from ldp.heavy_hitters.bit_strings import Texts
from ldp.heavy_hitters.fragment_puzzle import SequenceFragmentPuzzle
from ldp.longitudinal.bit_flip import BitFlip
from ldp.longitudinal.one_bit_mean import OneBitMean
from ldp.mechanism import Mechanism
from ldp.rappor.mechanism import Rappor
from ldp.registry import oracle
from link.errors import ConfigurationError, InputDataError
from protos.v1.frequency_pb2 import COUNTED
from tests.client.devices import DAY, KEY, device, grr
from tests.client.node import BEGIN, HOUR, LABELS, PARTY, Direct, Node, announced, homepages, spec_of
from tests.clock import Clock
from tests.errors import fails
from tests.examples import slowly

pytestmark = pytest.mark.turn(3)


# -- the way of a report ----------------------------------------------------------------------------------------------
def test_a_report_is_made_once_in_a_period_and_counted_once(tmp_path: Path) -> None:
    node = Node(homepages(grr()))
    client = device(tmp_path, node)
    made = client.report(KEY, "south")
    assert (made.status, made.charge, made.reported) == (Status.REPORTED, 1, True)
    assert client.report(KEY, "south").status is Status.ALREADY
    assert client.deliver(Direct(node)).counted == 1
    assert client.deliver(Direct(node)) == dataclasses.replace(client.deliver(Direct(node)), counted=0)
    assert client.report(KEY, "south").status is Status.ALREADY
    node.now += HOUR
    assert client.report(KEY, "south").status is Status.REPORTED
    assert client.deliver(Direct(node)).counted == 1
    assert node.statuses == {COUNTED: 2}
    assert client.spent() == 2


def test_pseudonyms_of_periods_and_collections_have_nothing_in_common(tmp_path: Path) -> None:
    node = Node(homepages(grr(0.001)), homepages(grr(0.001), "others"))
    client = device(tmp_path, node)
    for _ in range(20):
        for name in node.collections:
            client.report(CollectionKey(PARTY, name), "east")
        client.deliver(Direct(node))
        node.now += HOUR
    names = [name for kept in node.collections.values() for _, name, _ in kept.received]
    assert len(set(names)) == 40
    bits = np.unpackbits(np.frombuffer(b"".join(names), np.uint8).reshape(40, 16), axis=1)
    distances = [int((bits[a] != bits[b]).sum()) for a in range(40) for b in range(a)]
    assert min(distances) > 128 * 0.5 - 45  # 780 pairs of 128 fair bits; an error of 10^-12
    secret = client.store.secret
    assert names[0] == pseudonym(secret, node.collections["homepages"].id, 0)
    assert all(secret[:8] not in data for kept in node.collections.values() for _, _, data in kept.received)


def test_offline_windows_are_reckoned_from_what_was_announced(tmp_path: Path) -> None:
    kept = homepages(grr(0.5), grace=2 * HOUR)
    node = Node(kept)
    client = device(tmp_path, node)
    for _ in range(4):
        assert client.report(KEY, "south").reported
        node.now += HOUR
    node.now -= HOUR / 2  # rounds 0 … 3 are made, round 3 is open, 2 and 1 are in their grace
    done = client.deliver(Direct(node))
    assert (done.counted, done.late) == (3, 1)
    assert sorted({number for number, _, _ in kept.received}) == [1, 2, 3]
    assert client.waiting() == 0
    assert client.spent() == 2  # what was late is not given back


def test_a_limited_number_of_periods_ends(tmp_path: Path) -> None:
    kept = homepages(grr())
    kept.spec["window"]["periods"] = 2
    node = Node(kept)
    client = device(tmp_path, node)
    node.now += HOUR
    assert client.report(KEY, "south").reported
    node.now += HOUR
    assert client.report(KEY, "south").status is Status.NO_ROUND


def test_a_report_that_is_early_by_the_services_clock_waits(tmp_path: Path) -> None:
    node = Node(homepages(grr()))
    clock = Clock(BEGIN)
    client = FrequencyClient.open(tmp_path, clock=clock)
    client.follow(Direct(node), "homepages")
    clock.now += HOUR
    assert client.report(KEY, "south").reported
    assert client.deliver(Direct(node)).waiting == 1
    node.now += HOUR
    assert client.deliver(Direct(node)).counted == 1


def test_a_closed_collection_takes_nothing(tmp_path: Path) -> None:
    node = Node(homepages(grr()))
    client = device(tmp_path, node)
    assert client.report(KEY, "south").reported
    node.collections["homepages"].closed = True
    done = client.deliver(Direct(node))
    assert (done.refused, done.sentences) == (1, ("the collection is closed",))
    node.now += HOUR
    made = client.report(KEY, "south")
    assert made.status is Status.NO_ROUND
    assert "closed" in made.sentence


def test_the_outbox_is_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("client.reporter.MOST_WAITING", 2)
    node = Node(homepages(grr()))
    client = device(tmp_path, node)
    outcomes = []
    for _ in range(3):
        outcomes.append(client.report(KEY, "south").status)
        node.now += HOUR
    assert outcomes == [Status.REPORTED, Status.REPORTED, Status.FULL]
    assert client.spent() == 2
    node.now += 100 * DAY
    assert client.deliver(Direct(node)).expired == 2
    assert client.waiting() == 0


# -- values -----------------------------------------------------------------------------------------------------------
OTHERS: list[tuple[Mechanism[Any], Any, Any]] = [
    (oracle("oue", 6, 1.0), 5, 6),
    (OneBitMean(1.0, low=0.0, high=10.0), 2.5, 11.0),
    (Rappor.for_budget(1.0, 2.0), "a text", 7),
    (SequenceFragmentPuzzle(Texts(4), 4.0, 3), "ab", "abcde"),
    (grr(), "south", "nowhere"),
]


@pytest.mark.parametrize(("mechanism", "good", "bad"), OTHERS, ids=lambda each: getattr(each, "name", None))
def test_values_of_every_kind(tmp_path: Path, mechanism: Mechanism[Any], good: Any, bad: Any) -> None:
    node = Node(homepages(mechanism))
    client = device(tmp_path, node)
    with pytest.raises(InputDataError):
        client.report(KEY, bad)
    assert (client.spent(), client.waiting()) == (0, 0)
    assert client.report(KEY, good).reported
    assert client.deliver(Direct(node)).counted == 1


def test_unknown_values_may_stand_for_others(tmp_path: Path) -> None:
    node = Node(homepages(grr(16.0)))
    client = device(tmp_path, node, budget=Budget(100))
    assert client.report(KEY, "nowhere", unknown="other").reported
    client.deliver(Direct(node))
    ((_, _, data),) = node.collections["homepages"].received
    assert grr(16.0).read(data).fields[0][0] == LABELS.index("other")  # an error of 4·10^-7
    node.now += HOUR
    with fails("E101"):
        client.report(KEY, "nowhere", unknown="misc")


def test_a_collection_must_be_followed_first(tmp_path: Path) -> None:
    with fails("E100"):
        FrequencyClient.open(tmp_path).report(KEY, "south")


# -- budgets ----------------------------------------------------------------------------------------------------------
def test_the_budget_bounds_all_collections_together(tmp_path: Path) -> None:
    node = Node(homepages(grr(0.75)), homepages(grr(0.5), "others"))
    client = device(tmp_path, node, budget=Budget("1.5", days=1))
    assert client.report(KEY, "south").reported
    assert client.report(CollectionKey(PARTY, "others"), "south").reported
    node.now += HOUR
    refused = client.report(KEY, "south")
    assert refused.status is Status.REFUSED
    assert "0.25 is left" in refused.sentence
    node.now = BEGIN + DAY - 1
    assert client.report(KEY, "south").status is Status.REFUSED
    node.now = BEGIN + DAY
    client.follow(Direct(node), "homepages")
    assert client.report(KEY, "south").reported
    assert client.spent() == Fraction(3, 4)


def test_the_owners_limits_count(tmp_path: Path) -> None:
    node = Node(homepages(grr(2.0)))
    client = device(tmp_path, node, budget=Budget(8, max_epsilon="1.5"))
    assert "at most 1.5" in client.report(KEY, "south").sentence
    client = device(tmp_path, node, budget=Budget(8, mechanisms=["olh"]))
    assert "does not report by grr" in client.report(KEY, "south").sentence
    assert client.budget == FrequencyClient.open(tmp_path).budget  # which the folder keeps
    client = device(tmp_path, node, budget=Budget(8))
    assert client.report(KEY, "south").reported


@pytest.mark.parametrize(
    "wrong",
    [
        {"epsilon": -1},
        {"epsilon": float("nan")},
        {"epsilon": "much"},
        {"epsilon": "1e999999999"},
        {"max_epsilon": "1e-999999999"},
        {"days": 0},
        {"days": 401},
        {"max_epsilon": float("inf")},
        {"epsilon": True},
    ],
)
def test_a_wrong_budget_is_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(ConfigurationError):
        Budget(**wrong)


@pytest.mark.parametrize("total", ["0.3", 0.3])
def test_a_budget_is_used_up_to_the_last(tmp_path: Path, total: float | str) -> None:
    node = Node(homepages(grr(float_below(Decimal("0.1")))))
    client = device(tmp_path, node, budget=Budget(total))
    made = []
    for _ in range(5):
        made.append(client.report(KEY, "south").status)
        node.now += HOUR
    assert made == [Status.REPORTED] * 3 + [Status.REFUSED] * 2
    assert Fraction(3, 10) - Fraction(1, 10**15) < client.spent() <= Fraction(3, 10)


def test_a_clock_that_goes_back_frees_no_budget(tmp_path: Path) -> None:
    node = Node(homepages(grr(1.0)))
    client = device(tmp_path, node, budget=Budget(1, days=1))
    node.now = BEGIN + 5 * DAY
    assert client.report(KEY, "south").reported
    node.now = BEGIN + HOUR
    assert client.report(KEY, "south").status is Status.REFUSED
    node.now = BEGIN + 5 * DAY + HOUR
    assert client.report(KEY, "south").status is Status.REFUSED
    node.now = BEGIN + 6 * DAY
    client.follow(Direct(node), "homepages")
    assert client.report(KEY, "south").reported


def test_a_clock_that_is_ahead_frees_no_budget(tmp_path: Path) -> None:
    """A charge is past when the device's clock and the time that a node has told both say so."""
    node, clock = Node(homepages(grr(1.0))), Clock(BEGIN)
    client = FrequencyClient.open(tmp_path, budget=Budget(1, days=1), clock=clock)
    client.follow(Direct(node), "homepages")
    assert client.report(KEY, "south").reported
    clock.now += 500 * DAY  # longer than charges are kept
    outcome = client.report(KEY, "south")
    assert outcome.status is Status.REFUSED
    assert "no node has announced that time yet" in outcome.sentence
    client.follow(Direct(node), "homepages")
    assert client.report(KEY, "south").status is Status.REFUSED
    assert client.spent() == 1
    clock.now = node.now = BEGIN + DAY
    client.follow(Direct(node), "homepages")
    assert client.spent() == 0
    assert client.report(KEY, "south").reported


@pytest.mark.parametrize("told", [BEGIN + 500 * DAY, 1e300])
def test_a_node_that_is_ahead_frees_no_budget(tmp_path: Path, told: float) -> None:
    node, clock = Node(homepages(grr(1.0))), Clock(BEGIN)
    client = FrequencyClient.open(tmp_path, budget=Budget(1, days=1), clock=clock)
    client.follow(Direct(node), "homepages")
    assert client.report(KEY, "south").reported
    kept = node.collections["homepages"]
    kept.describe = lambda _, describe=kept.describe: _at(describe(BEGIN), told)  # type: ignore[method-assign]
    client.follow(Direct(node), "homepages")
    clock.now += 5 * HOUR
    assert client.report(KEY, "south").status is Status.REFUSED
    clock.now += DAY  # what was told is worth no more than what the clock said then
    assert client.report(KEY, "south").status is Status.REFUSED


def _at(sent: Any, now: float) -> Any:
    sent.now = now
    return sent


def test_a_clock_that_was_back_for_a_while_frees_no_budget(tmp_path: Path) -> None:
    """As that of a device without a battery, which starts in the past until it finds a network."""
    node = Node(homepages(grr(1.0)))
    client = device(tmp_path, node, budget=Budget(1, days=1))
    node.now = BEGIN + 5 * DAY
    assert client.spent() == 0
    node.now = BEGIN
    assert client.report(KEY, "south").reported
    node.now = BEGIN + 5 * DAY + HOUR
    assert client.spent() == 1
    assert client.report(KEY, "south").status is Status.REFUSED


def test_the_ledger_of_continual_release_holds(tmp_path: Path) -> None:
    kept = homepages(grr(0.5))
    kept.spec = spec_of("grr", 1, "1h", continual={"method": "lbd", "w": 3})
    steps = [0, 1, 1, 2, 3, 4]
    kept.rounds = [
        (
            announced(grr(0.5), number, step=step, opens=BEGIN + step * HOUR + half, closes=BEGIN + (step + 1) * HOUR),
            grr(0.5),
        )
        for number, (step, half) in enumerate(zip(steps, [0, 0, HOUR / 2, 0, 0, 0], strict=True))
    ]
    node = Node(kept)
    client = device(tmp_path, node, budget=Budget(100))
    outcomes = []
    for each, _ in kept.rounds:
        node.now = each.opens
        client.follow(Direct(node), "homepages")
        outcomes.append(client.report(KEY, "south").status)
    spent = [step for step, outcome in zip(steps, outcomes, strict=True) if outcome is Status.REPORTED]
    assert spent == [0, 1, 3, 4]  # the second half of step 1, and step 2, would exceed ε within three steps


@pytest.mark.parametrize(("method", "begin"), slowly([("lpa", 7), ("lpu", 1), ("lpu", 0), ("lba", 7)], now=[0, 2]))
def test_who_joins_a_stream_late_waits_before_the_first_report(tmp_path: Path, method: str, begin: int) -> None:
    w = 4
    kept = homepages(grr(0.25))
    kept.spec = spec_of("grr", 0.25, "1h", continual={"method": method, "w": w})
    kept.rounds = [
        (announced(grr(0.25), step, opens=BEGIN + step * HOUR, closes=BEGIN + (step + 1) * HOUR), grr(0.25))
        for step in range(begin, begin + 2 * w)
    ]
    node = Node(kept)
    waits = []
    for each in range(24):
        reported = []
        for step in range(begin, begin + 2 * w):
            node.now = BEGIN + step * HOUR
            client = device(tmp_path / str(each), node)  # which is opened anew in each step
            made = client.report(KEY, "south")
            if made.reported:
                reported.append(step - begin)
            else:
                assert made.status is Status.REFUSED
                assert method == "lba" or "begun to take part, within its last 4 steps" in made.sentence
            client.close()
        assert reported == [reported[0], reported[0] + w]
        waits.append(reported[0])
    # A wait of 1 or 2 steps from step 1 on would say that the last report was before the stream.
    possible = {0: {0}, 1: {0, 3}, 7: {0, 1, 2, 3}}[begin] if method != "lba" else {0}
    assert set(waits) <= possible
    assert len(set(waits)) > 1 or len(possible) == 1  # an error of 10^-7


@pytest.mark.parametrize("name", ["l-grr", "l-osue", "dbitflip"])
def test_a_value_that_changes_costs_once_for_each_new_answer(tmp_path: Path, name: str) -> None:
    mechanism = (
        BitFlip(Domain(4, LABELS), 1.0, sampled=4) if name == "dbitflip" else oracle(name, Domain(4, LABELS), 1.0)
    )
    permanent = Fraction(mechanism.exact_permanent_epsilon)
    node = Node(homepages(mechanism))
    client = device(tmp_path, node, budget=Budget(2 * permanent, days=30))
    outcomes = []
    for value in ("south", "south", "east", "south", "east", "north", "south", "north"):
        made = client.report(KEY, value)
        outcomes.append((made.status, made.charge))
        client.deliver(Direct(node))
        node.now += HOUR
    new, again = (Status.REPORTED, permanent), (Status.REPORTED, Fraction(0))
    refused = (Status.REFUSED, Fraction(0))
    assert outcomes == [new, again, new, again, again, refused, again, refused]
    assert client.spent() == 2 * permanent
    assert node.statuses == {COUNTED: 6}


def test_steps_cannot_be_over_before_their_time(tmp_path: Path) -> None:
    kept = homepages(grr(1.0))
    kept.spec = spec_of("grr", 1, "1h", continual={"method": "lbu", "w": 1})
    kept.rounds = [(announced(grr(), 0, step=7, opens=BEGIN, closes=BEGIN + HOUR), grr())]
    client = device(tmp_path, Node(kept))
    made = client.report(KEY, "south")
    assert made.status is Status.REFUSED
    assert "has not begun yet" in made.sentence
