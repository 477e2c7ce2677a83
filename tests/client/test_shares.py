"""How a device and a fleet share ε: by a series over windows, by a secret coin, and by answers that wait their turn."""

from __future__ import annotations

import stat
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from client.budget import Budget
from client.description import Description, Span
from client.drawing import Turn, drawn
from client.fleet import Fleet
from client.fleet_state.coins import FleetCoins
from client.fleet_state.memo import FleetMemo
from client.fleet_state.sliding import FleetSliding
from client.outcome import LedgerState, Status
from client.reporter import FrequencyClient
from crypto.primitives.randomness import Randomness
from ldp.aggregator import Aggregator
from ldp.domain import Domain
from ldp.longitudinal.two_rounds import LongitudinalDirectEncoding
from ldp.mechanism import Mechanism
from ldp.registry import oracle
from ldp.streams.allocation import budgets
from ldp.streams.sampled import Sampled
from ldp.streams.sliding_memo import SlidingMemo
from link.errors import InputDataError
from tests.client.devices import DAY, KEY, device
from tests.client.node import BEGIN, HOUR, LABELS, PARTY, Direct, Kept, Node, announced, spec_of
from tests.errors import fails

DOMAIN = Domain(4, LABELS)
GEOMETRIC = {"series": "geometric", "ratio": None, "exponent": None, "errors": None}
TERMS = budgets("geometric", 1.0)
KEEPS = LongitudinalDirectEncoding(DOMAIN, 0.5, 1.0)
PRICE = Fraction(KEEPS.exact_permanent_epsilon)
MEMO = {"memo": {"w": 5, "epsilon": "2.0"}}


def shared(spec: dict[str, Any], mechanism: Mechanism[Any]) -> Kept:
    return Kept("homepages", mechanism, spec_of(mechanism.name, 1.0, "1h", **spec), LABELS)


# -- a series of budgets ----------------------------------------------------------------------------------------------
class Falling(Kept):
    """Rounds with the budgets of a geometric series."""

    def round(self, number: int) -> Any:
        mechanism = oracle("grr", DOMAIN, float(TERMS[number]))
        times = {"opens": BEGIN + number * HOUR, "closes": BEGIN + (number + 1) * HOUR}
        return announced(mechanism, number, **times), mechanism


def falling() -> Falling:
    spec = spec_of("grr", "1.0", "1h", budget=GEOMETRIC)
    return Falling("homepages", oracle("grr", DOMAIN, 1.0), spec, LABELS)


def test_each_window_is_charged_with_its_own_term(tmp_path: Path) -> None:
    node = Node(falling())
    client, connection, spent = device(tmp_path, node), Direct(node), Fraction(0)
    for number, term in enumerate(TERMS):
        assert client.ledger_state(KEY) == LedgerState(number, spent, Fraction(1), len(TERMS))
        outcome = client.report(KEY, "south")
        spent += term
        assert (outcome.status, outcome.charge, client.spent()) == (Status.REPORTED, term, spent)
        assert client.report(KEY, "south").status is Status.ALREADY
        node.now += HOUR
        if number + 1 < len(TERMS):
            assert client.report(KEY, "south").status is Status.NO_ROUND  # its mechanism is not known yet
            client.follow(connection, "homepages")
    assert spent == sum(TERMS) <= 1


def test_a_window_that_is_missed_is_not_made_up_for(tmp_path: Path) -> None:
    node = Node(falling())
    client = device(tmp_path, node)
    node.now += 2 * HOUR
    client.follow(Direct(node), "homepages")
    assert client.report(KEY, "south").charge == TERMS[2]


@pytest.mark.parametrize(
    ("number", "changes"),
    [(1, {}), (0, {"step": 1}), (0, {"period": 3}), (40, {"period": 40, "step": 40})],
    ids=["more", "step", "period", "beyond"],
)
def test_budgets_out_of_their_order_are_refused(tmp_path: Path, number: int, changes: dict[str, int]) -> None:
    kept, mechanism = falling(), oracle("grr", DOMAIN, float(TERMS[0]))
    asked = announced(mechanism, number, opens=BEGIN, closes=BEGIN + HOUR, **changes)
    kept.rounds = [(asked, mechanism)]
    with fails("E402") as found:
        device(tmp_path, Node(kept))
    assert found.value.party == PARTY


def test_a_fleet_spends_the_terms_too() -> None:
    node = Node(falling())
    fleet = Fleet(50, seed=1, budget=Budget("0.9"), clock=lambda: node.now)
    values = np.array(["south"] * 50, dtype=object)
    for number in range(5):
        done = fleet.report(Direct(node), "homepages", values)
        within = sum(TERMS[: number + 1]) <= Fraction("0.9")
        assert (done.counted, done.over_budget) == ((50, 0) if within else (0, 50))
        node.now += HOUR
    assert node.collections["homepages"].received


# -- a secret coin ----------------------------------------------------------------------------------------------------
HALF = {"sampling": {"probability": "1/2"}}
SAMPLED = Sampled.for_budget("grr", DOMAIN, 1.0, Fraction(1, 2))


def test_a_covered_report_is_charged_with_what_it_spends(tmp_path: Path) -> None:
    node = Node(shared(HALF, SAMPLED))
    client = device(tmp_path, node)
    outcome = client.report(KEY, "south")
    assert (outcome.status, outcome.charge) == (Status.REPORTED, Fraction(SAMPLED.epsilon))
    assert SAMPLED.epsilon <= 1.0 < SAMPLED.oracle.epsilon


def test_everybody_sends_whatever_the_coin_says(tmp_path: Path) -> None:
    """The node sees as many reports as clients, of one form; whose coin fell how is written nowhere."""
    node = Node(shared(HALF, SAMPLED))
    fleet = Fleet(400, seed=2, clock=lambda: node.now)
    done = fleet.report(Direct(node), "homepages", np.array(["south"] * 400, dtype=object))
    assert (done.counted, done.not_selected) == (400, 0)
    kept = node.collections["homepages"]
    assert len({len(data) for _, _, data in kept.received}) == 1
    gathered = Aggregator(SAMPLED)
    for _, _, data in kept.received:
        gathered.add(SAMPLED.read(data))
    found = gathered.estimate()
    # Six standard deviations: a chance of 2·10^-9 for each of the four values.
    assert (np.abs(found.counts - [0, 400, 0, 0]) <= 6 * np.sqrt(found.variances)).all()


@pytest.mark.parametrize(
    "mechanism", [oracle("grr", DOMAIN, 1.0), Sampled.for_budget("grr", DOMAIN, 1.0, Fraction(3, 4))]
)
def test_a_node_that_leaves_out_the_coin_is_refused(tmp_path: Path, mechanism: Mechanism[Any]) -> None:
    with fails("E402") as found:
        device(tmp_path, Node(shared(HALF, mechanism)))
    assert found.value.party == PARTY


# -- answers that wait ------------------------------------------------------------------------------------------------
def reported(client: FrequencyClient, node: Node) -> Any:
    """What the device's kept answers say that it reported last."""
    memo = client.store.memo(node.collections["homepages"].id, KEEPS.fingerprint)
    assert memo is not None
    return SlidingMemo.from_bytes(memo, KEEPS).reported


def test_new_values_wait_until_the_span_has_budget(tmp_path: Path) -> None:
    node = Node(shared(MEMO, KEEPS))
    values = ["north", "south", "east", "east", "east", "east", "east", "north", "north", "other"]
    told, charges = [], []
    for value in values:
        # The device stops after each report, and goes on from its folder.
        with FrequencyClient.open(tmp_path, budget=Budget(100), clock=lambda: node.now) as client:
            client.follow(Direct(node), "homepages")
            charges.append(client.report(KEY, value).charge)
            told.append(reported(client, node))
            ledger_state = client.ledger_state(KEY)
        assert ledger_state is not None
        assert ledger_state.spent <= ledger_state.epsilon == 2
        assert ledger_state.steps == 5
        node.now += HOUR
    assert "".join(each[0] for each in told) == "nssssee" + "nno"
    assert [charge > 0 for charge in charges] == [value in "0159" for value in "0123456789"]
    assert stat.S_IMODE((tmp_path / "client.db").stat().st_mode) == 0o600


def test_every_window_has_a_report_whatever_the_value_does(tmp_path: Path) -> None:
    """Silence would tell that a value is new; here neither the span nor the device's own budget causes any."""
    node = Node(shared(MEMO, KEEPS))
    client = device(tmp_path, node, budget=Budget(float(PRICE * 3), 400))
    for turn in range(40):
        assert client.report(KEY, LABELS[turn % 4]).reported
        node.now += HOUR
    assert client.spent() == 3 * PRICE  # the fourth value is never reported
    assert client.deliver(Direct(node)).late == 40


def test_a_device_without_any_budget_says_nothing(tmp_path: Path) -> None:
    node = Node(shared(MEMO, KEEPS))
    client = device(tmp_path, node, budget=Budget("0.1"))
    outcome = client.report(KEY, "south")
    assert outcome.status is Status.REFUSED
    assert "0.1" in outcome.sentence
    assert client.ledger_state(KEY) == LedgerState(0, Fraction(0), Fraction(2), 5)


def test_steps_that_outrun_the_clock_are_refused(tmp_path: Path) -> None:
    """A node that lets steps go by too soon would make a span be over before its time."""
    node = Node(shared(MEMO, KEEPS))
    kept = node.collections["homepages"]
    kept.spec["window"]["start"] = "2020-01-01T00:00:00Z"  # any step can be claimed to have begun
    client = device(tmp_path, node)
    assert client.report(KEY, "north").reported
    for number in range(1, 4):
        kept.rounds = [(announced(KEEPS, number, step=7 * number, opens=BEGIN, closes=BEGIN + DAY), KEEPS)]
        client.follow(Direct(node), "homepages")
        outcome = client.report(KEY, LABELS[number])
        assert outcome.status is Status.REFUSED
        assert "has not begun yet" in outcome.sentence


def test_steps_of_the_past_are_refused(tmp_path: Path) -> None:
    node = Node(shared(MEMO, KEEPS))
    node.now += 9 * HOUR
    client = device(tmp_path, node)
    assert client.report(KEY, "north").reported
    kept = node.collections["homepages"]
    kept.rounds = [(announced(KEEPS, 30, step=3, opens=BEGIN, closes=BEGIN + DAY), KEEPS)]
    client.follow(Direct(node), "homepages")
    outcome = client.report(KEY, "south")
    assert (outcome.status, outcome.charge) == (Status.REFUSED, 0)


def test_a_mechanism_that_keeps_nothing_is_refused(tmp_path: Path) -> None:
    with fails("E402"):
        device(tmp_path, Node(shared(MEMO, oracle("grr", DOMAIN, 0.5))))


def test_damaged_answers_are_not_drawn_anew() -> None:
    for damaged in (b"", b"x" * 40):
        with pytest.raises(InputDataError):
            drawn(KEEPS, "south", damaged, Randomness.from_seed(1), Turn(5, Fraction(2), 0))


@settings(max_examples=60, deadline=None)
@given(
    st.integers(1, 6),
    st.integers(1, 3),
    st.lists(st.tuples(st.integers(0, 3), st.lists(st.integers(0, 3), min_size=3, max_size=3)), max_size=25),
)
def test_a_fleet_waits_as_devices_do(w: int, answers: int, moves: list[tuple[int, list[int]]]) -> None:
    """Of every client the fleet reports the value that a memo of its own would."""
    epsilon, clients, step = answers * PRICE, np.arange(3), 0
    memo = FleetMemo(KEEPS, FleetCoins(bytes(32), np.arange(96, dtype=np.uint8).reshape(3, 32)), b"collection")
    fleet = FleetSliding(3, memo, Span(w, epsilon))
    single = [SlidingMemo.drawn(KEEPS, w, epsilon, Randomness.from_seed(each)) for each in range(3)]
    for ahead, values in moves:
        step += ahead
        labels = [LABELS[value] for value in values]
        keys, anew = memo.keys(clients, np.array(labels, dtype=object)), np.ones(3, dtype=np.bool_)
        assert fleet.may_report(step, clients, keys, anew).all()
        told = fleet.turn(step, clients, keys, anew)
        memo.report(told, step)
        for each, label in zip(single, labels, strict=True):
            each.report(step, label)
        assert (told % (1 << 32)).tolist() == [LABELS.index(str(each.reported)) for each in single]


def test_a_fleet_repeats_its_last_answers_and_is_never_silent() -> None:
    node = Node(shared(MEMO, KEEPS))
    fleet = Fleet(30, seed=1, budget=Budget(float(PRICE * 3), 400), clock=lambda: node.now)
    for turn in range(12):
        values = np.array([LABELS[(turn + client) % 4] for client in range(30)], dtype=object)
        assert fleet.report(Direct(node), "homepages", values).counted == 30
        node.now += HOUR
    poor = Fleet(2, seed=1, budget=Budget("0.5"), clock=lambda: node.now)
    done = poor.report(Direct(node), "homepages", np.array(LABELS[:2], dtype=object))
    assert (done.counted, done.over_budget) == (0, 2)


# -- descriptions -----------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    "tables",
    [
        {"budget": {}},
        {"budget": GEOMETRIC | {"series": "fibonacci"}},
        {"budget": GEOMETRIC | {"ratio": "1.5"}},
        {"budget": GEOMETRIC | {"series": "uniform"}},
        {"budget": GEOMETRIC | {"series": "p-series", "exponent": "nan"}},
        {"budget": GEOMETRIC | {"series": "by-error", "errors": ["1e99999"]}},
        {"budget": GEOMETRIC | {"series": "by-error", "errors": 3}},
        {"budget": GEOMETRIC, "continual": {"method": "lpu", "w": 3}},
        {"budget": GEOMETRIC, "window": None},
        {"budget": GEOMETRIC, "collection": {"mechanism": "grr", "epsilon": "1e-400"}},
        {"budget": GEOMETRIC, "collection": {"mechanism": "grr", "epsilon": "9" * 2000}},
        {"sampling": {"probability": "2"}},
        {"sampling": {"probability": "1e999999999"}},
        {"sampling": {"probability": 0.5}},
        {"memo": {"w": 0, "epsilon": "1"}},
        {"memo": {"w": 3, "epsilon": "-1"}},
        {"memo": {"w": 3, "epsilon": "NaN"}},
        {"memo": {"w": 3, "epsilon": 1}},
        {"memo": {"w": 3, "epsilon": "1"}, "window": None},
    ],
    ids=str,
)
def test_tables_that_are_none_make_no_description(tables: dict[str, Any]) -> None:
    kept = shared({}, KEEPS)
    kept.spec = spec_of("grr", "1.0", "1h") | tables
    with fails("E402") as found:
        Description.read(kept.describe(BEGIN).SerializeToString(), PARTY, "homepages")
    assert found.value.party == PARTY
