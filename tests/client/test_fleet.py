"""Fleets: as many devices at once, by the same rules."""

from __future__ import annotations

from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from client.budget import Budget
from client.fleet import Fleet
from client.fleet_state.ledger import FleetLedger
from client.pseudonym import pseudonym, pseudonyms
from crypto.primitives.randomness import Randomness
from ldp.aggregator import Aggregator
from ldp.budget import float_below
from ldp.domain import Domain
from ldp.heavy_hitters.bit_strings import Texts
from ldp.heavy_hitters.prefix_extending import PrefixExtending
from ldp.longitudinal.bit_flip import BitFlip
from ldp.longitudinal.one_bit_mean import OneBitMean
from ldp.mechanism import Mechanism
from ldp.rappor.mechanism import Rappor
from ldp.registry import oracle
from ldp.reports import Reports
from link.transports.grpc_errors import ConnectionBroken
from protos.v1.frequency_pb2 import COUNTED, DUPLICATE
from tests.client.node import BEGIN, HOUR, LABELS, Direct, Kept, Node, announced, homepages, served, spec_of
from tests.errors import fails
from tests.ldp.contract import ERROR, chi_square_p

pytestmark = pytest.mark.turn(3)

VALUES = np.array(["south"] * 600 + ["east"] * 400, dtype=object)


def fleet(node: Node, clients: int = 1000, **more: Any) -> Fleet:
    return Fleet(clients, seed=1, clock=lambda: node.now, **more)


def grr(epsilon: float = 1.0) -> Mechanism[Any]:
    return oracle("grr", Domain(4, LABELS), epsilon)


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 2**53), st.integers(0, 40), st.binary(min_size=16, max_size=16))
def test_pseudonyms_of_many_are_those_of_each(period: int, clients: int, collection: bytes) -> None:
    secrets = np.frombuffer(Randomness.from_seed(clients).bytes(32 * clients), np.uint8).reshape(clients, 32)
    many = pseudonyms(secrets, collection, period)
    assert many.shape == (clients, 16)
    assert [each.tobytes() for each in many] == [pseudonym(each.tobytes(), collection, period) for each in secrets]


def test_every_client_reports_once_in_a_period() -> None:
    kept = homepages(grr())
    node = Node(kept)
    clients = fleet(node)
    done = clients.report(Direct(node), "homepages", VALUES, batch=128)
    assert (done.round, done.counted, done.acknowledged) == (0, 1000, 1000)
    again = clients.report(Direct(node), "homepages", VALUES)
    assert (again.already, again.counted) == (1000, 0)
    node.now += HOUR
    some = np.array([5, 700, 2])
    done = clients.report(Direct(node), "homepages", VALUES[some], who=some)
    assert (done.round, done.counted) == (1, 3)
    assert len(kept.counted) == 1003
    whole = Aggregator(grr()).add(Reports.concatenated([grr().read(data) for _, _, data in kept.received[:1000]]))
    estimate = whole.estimate()  # type: ignore[var-annotated]
    errors = np.abs(estimate.counts - [0, 600, 400, 0]) / np.sqrt(estimate.variances)
    assert errors.max() < 5.5  # an error of 10^-7


def test_what_leaves_follows_the_channel() -> None:
    mechanism = grr()
    kept = homepages(mechanism)
    node = Node(kept)
    Fleet(4000, clock=lambda: node.now).report(Direct(node), "homepages", np.array(["east"] * 4000, dtype=object))
    reports = Reports.concatenated([mechanism.read(data) for _, _, data in kept.received])
    row = np.array([float(p) for p in mechanism.channel()[2]])
    assert chi_square_p(np.bincount(mechanism.outcomes(reports), minlength=4), row * 4000) > ERROR


@pytest.mark.parametrize("breaks", [[0], [2, 3], [0, 0, 1]], ids=str)
def test_a_connection_that_breaks_counts_nobody_twice(breaks: list[int]) -> None:
    kept = homepages(grr())
    node = Node(kept)
    with served(node) as service, service.connect() as connection:
        service.servicer.breaks = list(breaks)
        heard: list[int] = []
        done = fleet(node).report(connection, "homepages", VALUES, batch=100, in_flight=3, tell=heard.append)
    assert done.acknowledged == len(kept.counted) == 1000
    assert 0 < done.duplicate <= node.statuses[DUPLICATE]
    assert node.statuses[COUNTED] == 1000
    assert len(set(kept.received)) == 1000
    assert heard == sorted(heard)
    assert heard[-1] == 1000


def test_what_has_no_receipt_is_delivered_later() -> None:
    kept = homepages(grr())
    node = Node(kept)
    clients = fleet(node)
    with pytest.raises(ConnectionBroken):
        clients.report(Direct(node, [False, False, True]), "homepages", VALUES, batch=100)
    assert (clients.waiting, len(kept.counted)) == (100, 300)
    done = clients.deliver(Direct(node))
    assert (done.duplicate, clients.waiting) == (100, 0)
    rest = clients.report(Direct(node), "homepages", VALUES)
    assert (rest.already, rest.counted) == (300, 700)
    assert len(kept.counted) == len(set(kept.received)) == 1000


@pytest.mark.parametrize(
    ("mechanism", "values"),
    [
        (BitFlip(Domain(4, LABELS), 1.0, sampled=4), VALUES),
        (OneBitMean(1.0, 0.0, 1.0), np.array([0.0] * 600 + [1.0] * 400)),
        (Rappor(0.5, 0.0, 1.0, bits=32, hashes=1, cohorts=4), VALUES),
    ],
    ids=lambda each: getattr(each, "name", None),
)
def test_kept_answers_stay(mechanism: Mechanism[Any], values: Any) -> None:
    """All three send answers as they were kept: a client with the same value sends the same again."""
    kept = homepages(mechanism)
    node = Node(kept)
    clients = fleet(node)
    sent = []
    for turn in range(4):
        shown = values if turn % 2 == 0 else values[::-1]
        assert clients.report(Direct(node), "homepages", shown, batch=300).counted == 1000
        sent.append([data for number, _, data in kept.received if number == turn])
        node.now += HOUR
    assert sent[0] == sent[2]
    assert sent[1] == sent[3]
    assert sent[0] != sent[1]


def test_the_second_round_is_drawn_anew() -> None:
    kept = homepages(oracle("l-grr", Domain(4, LABELS), 1.0))
    node = Node(kept)
    clients = fleet(node)
    for _ in range(2):
        clients.report(Direct(node), "homepages", VALUES)
        node.now += HOUR
    assert [data for number, _, data in kept.received if number == 0] != [
        data for n, _, data in kept.received if n == 1
    ]


def test_budgets_hold_for_each_client() -> None:
    node = Node(homepages(grr()))
    clients = fleet(node, budget=Budget(2, days=1))
    outcomes = []
    for turn in range(4):
        who = np.arange(1000) if turn != 1 else np.arange(300)
        done = clients.report(Direct(node), "homepages", VALUES[who], who=who)
        outcomes.append((done.counted, done.over_budget))
        node.now += HOUR
    assert outcomes == [(1000, 0), (300, 0), (700, 300), (0, 1000)]
    node.now = BEGIN + 24 * HOUR
    assert clients.report(Direct(node), "homepages", VALUES).counted == 1000


@pytest.mark.parametrize(("epsilon", "total", "most"), [("0.1", "0.3", 3), ("0.001", "0.0031", 3), ("0.7", 4.9, 7)])
def test_budgets_are_used_up_to_the_last(epsilon: str, total: float | str, most: int) -> None:
    node = Node(homepages(grr(float_below(Decimal(epsilon)))))
    clients = fleet(node, 2, budget=Budget(total))
    counted = []
    for _ in range(most + 2):
        counted.append(clients.report(Direct(node), "homepages", VALUES[:2]).counted)
        node.now += HOUR
    assert counted == [2] * most + [0, 0]


def test_a_budget_allows_what_repeats_a_kept_answer() -> None:
    node = Node(homepages(BitFlip(Domain(4, LABELS), 1.0, sampled=4)))
    clients = fleet(node, budget=Budget(1))
    assert clients.report(Direct(node), "homepages", VALUES).counted == 1000
    node.now += HOUR
    changed = VALUES.copy()
    changed[:10] = "north"
    done = clients.report(Direct(node), "homepages", changed)
    assert (done.counted, done.over_budget) == (990, 10)


def test_the_ledger_of_continual_release_holds_for_each_client() -> None:
    kept = homepages(grr())
    kept.spec = spec_of("grr", 1, "1h", continual={"method": "lpu", "w": 3})
    kept.rounds = [
        (announced(grr(), step, share="1/2", opens=BEGIN + step * HOUR, closes=BEGIN + (step + 1) * HOUR), grr())
        for step in range(8)
    ]
    node = Node(kept)
    clients = fleet(node)
    for step in range(8):
        node.now = BEGIN + step * HOUR
        done = clients.report(Direct(node), "homepages", VALUES)
        assert done.counted + done.not_selected + done.over_budget == 1000
        assert (done.over_budget > 0) == (step > 0)
    counts = np.bincount([number for number, _, _ in kept.received], minlength=8)
    assert counts[0] > 350  # half of 1000
    for last in range(2, 8):
        assert counts[last - 2 : last + 1].sum() <= 1000


def test_a_node_cannot_hasten_the_steps_of_a_fleet() -> None:
    kept = homepages(grr())
    kept.spec = spec_of("grr", 1, "1h", continual={"method": "lsp", "w": 20})
    kept.spec["window"]["start"] = "2000-01-01T00:00:00+00:00"
    node = Node(kept)
    clients = fleet(node)

    def counted(number: int, step: int) -> int:
        times = {"opens": node.now - 60, "closes": node.now + 3540}
        kept.rounds = [(announced(grr(), number, step=step, **times), grr())]
        return clients.report(Direct(node), "homepages", VALUES).counted

    assert counted(0, 0) == 1000
    node.now += 1
    for number in range(1, 10):
        with fails("E402"):
            counted(number, 20 * number)
    node.now += 19 * HOUR
    assert counted(20, 19) == 0  # the window of steps is not over
    assert counted(21, 20) == 1000
    node.now += 40 * HOUR
    assert counted(61, 40) == 1000
    assert len(kept.received) == 3000


def stream(steps: int, w: int, method: str = "lpu", share: str = "") -> Kept:
    """Continual release in steps of an hour."""
    kept = homepages(grr())
    kept.spec = spec_of("grr", 1, "1h", continual={"method": method, "w": w})
    times = [{"opens": BEGIN + step * HOUR, "closes": BEGIN + (step + 1) * HOUR} for step in range(steps)]
    kept.rounds = [(announced(grr(), step, share=share, **times[step]), grr()) for step in range(steps)]
    return kept


@pytest.mark.parametrize(
    ("begin", "fifths"),
    [
        (0, [5, 0, 0, 0, 0]),
        (2, [3, 0, 0, 1, 1]),  # those whose last report would lie before the stream may report at once
        (9, [1, 1, 1, 1, 1]),
    ],
)
def test_who_joins_a_stream_late_waits_for_a_uniform_number_of_steps(begin: int, fifths: list[int]) -> None:
    w, n = 5, 5000
    kept = stream(begin + w, w)
    node = Node(kept)
    clients = fleet(node, n)
    for step in range(begin, begin + w):
        node.now = BEGIN + step * HOUR
        done = clients.report(Direct(node), "homepages", np.array(["south"] * n, dtype=object))
        assert done.over_budget == (0 if step == begin else sum(number < step for number, _, _ in kept.received))
    counts = np.bincount([number for number, _, _ in kept.received], minlength=begin + w)[begin:]
    counts = np.append(counts, np.zeros(w - len(counts), np.int64))
    expected = np.array(fifths) * n / w
    assert counts.sum() == n
    assert not counts[expected == 0].any()
    possible = expected > 0
    assert possible.sum() == 1 or chi_square_p(counts[possible], expected[possible]) > ERROR


def test_all_who_are_there_from_the_beginning_may_report_at_once() -> None:
    kept = stream(3, 3, share="1/3")
    node = Node(kept)
    clients = fleet(node, 3000)
    values = np.array(["south"] * 3000, dtype=object)
    sent = []
    for step in range(3):
        node.now = BEGIN + step * HOUR
        sent.append(clients.report(Direct(node), "homepages", values).counted)
    # 1/3 of those that have not reported: 1000, 667, 444 on average; an error of 10^-9
    assert all(abs(count - mean) < 6 * mean**0.5 for count, mean in zip(sent, (1000, 667, 444), strict=True))


@settings(max_examples=60, deadline=None)
@given(data=st.data(), w=st.integers(1, 5), most=st.integers(1, 4))
def test_ledgers_of_many_are_exact(data: st.DataObject, w: int, most: int) -> None:
    ledger, spent = FleetLedger(6, w, Fraction(most)), [dict[int, Fraction]() for _ in range(6)]
    step = 0
    for _ in range(data.draw(st.integers(0, 12))):
        step += data.draw(st.integers(0, 3))
        amount = Fraction(data.draw(st.integers(1, 8)), 4)
        asked = np.array(sorted(data.draw(st.sets(st.integers(0, 5)))), dtype=np.int64)
        allowed = ledger.allows(step, asked, amount)
        for client, may in zip(asked.tolist(), allowed.tolist(), strict=True):
            within = sum((value for at, value in spent[client].items() if at > step - w), Fraction(0))
            assert may == (within + amount <= most)
            if may:
                spent[client][step] = spent[client].get(step, Fraction(0)) + amount
        ledger.spend(asked[allowed], amount)
    if step:
        assert not ledger.allows(step - 1, np.arange(6), Fraction(0)).any()


def test_a_search_finds_what_is_frequent() -> None:
    plan = PrefixExtending(Texts(2), 4.0, 2, groups=2)
    spec = spec_of("prefix-extending", 4, "1h", collection={"text_bytes": 2, "k": 2, "parameters": {"groups": 2}})
    kept = Kept("homepages", plan.oracle(0), spec)
    first = plan.oracle(0)
    kept.rounds = [(announced(first, 0, period=0, opens=BEGIN, closes=BEGIN + HOUR), first)]
    node = Node(kept)
    clients = fleet(node, 4000)
    values = np.array(["ab"] * 2500 + ["xy"] * 1500, dtype=object)
    counted = []
    for which in range(2):
        done = clients.report(Direct(node), "homepages", values)
        counted.append(done.counted)
        assert done.not_selected + done.already + done.counted == 4000
        made = kept.rounds[which][1]
        reports = [made.read(data) for number, _, data in kept.received if number == which]
        estimate = Aggregator(made).add(Reports.concatenated(reports)).estimate()
        best = made.best(estimate, 2)  # type: ignore[attr-defined]
        if which == 0:
            second = plan.oracle(1, tuple(sorted(made.prefix(each) for each in best)))  # type: ignore[attr-defined]
            times = {"opens": BEGIN + HOUR, "closes": BEGIN + 2 * HOUR}
            kept.rounds.append((announced(second, 1, period=0, **times), second))
        node.now += HOUR
    assert sum(counted) == 4000
    assert [plan.strings.decode(made.prefix(each)) for each in best] == ["ab", "xy"]  # type: ignore[attr-defined]


def test_values_and_clients_must_match() -> None:
    node = Node(homepages(grr()))
    with fails("E101"):
        fleet(node).report(Direct(node), "homepages", ["south"] * 3)
    with fails("E101"):
        fleet(node, 3).report(Direct(node), "homepages", ["south", "nowhere", "east"])
    for who in ([1, 1], [0, 3], [-1, 0]):
        with fails("E101"):
            fleet(node, 3).report(Direct(node), "homepages", ["south"] * 2, who=np.array(who))
    with fails("E100"):
        Fleet(0)


def test_without_a_round_nobody_reports() -> None:
    node = Node(homepages(grr()))
    node.collections["homepages"].closed = True
    assert fleet(node).report(Direct(node), "homepages", VALUES).round is None
