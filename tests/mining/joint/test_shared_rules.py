"""Rules decided on shares are those that the pooled supports give, and nothing else is told."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from decimal import Decimal
from fractions import Fraction
from typing import Any, Literal

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from crypto.protocols.comparison.two_party import TwoParty
from crypto.protocols.sums.pairwise import agree
from link.disclosure import Declared
from link.errors import MalformedMessage
from link.session import Session
from mining.counting import count_itemsets
from mining.data.transactions import Transactions
from mining.itemsets import Itemsets
from mining.joint import shared_rules
from mining.joint.horizontal.tally import HorizontalTally
from mining.joint.parameters import HorizontalMining, RuleParameters
from mining.joint.shared_rules import (
    ConfidenceTest,
    decide_rules,
    receivers,
    rule_steps,
    rules_learned,
    rules_openings,
)
from mining.miner import frequent_itemsets
from mining.rules import growth as rule_growth
from mining.rules.association import Rules, association_rules
from protos.v1.link_pb2 import Frame, Opening
from tests.crypto.protocols.two_party_world import assert_alike, assert_uniform, payload_of, shapes_of
from tests.errors import fails
from tests.examples import examples
from tests.mining.joint.itemsets_world import datasets
from tests.world import run_parties

pytestmark = pytest.mark.turn(3)

Rows = Sequence[Sequence[str]]
ITEMS = ["a", "b", "c", "d", "two words", "ミルク"]
CONFIDENCES = [Decimal(text) for text in ("0", "1", "0.5", "0.6", "0.3333", "0.6667", "0.75", "1E-9", "0.999999")]


def task_for(
    parties: Sequence[str], min_confidence: str | Decimal, consequent: Literal["any", "single"] = "any", **more: Any
) -> HorizontalMining:
    return HorizontalMining(
        1,
        learners=more.pop("learners", tuple(parties)),
        merger=parties[0],
        compute=more.pop("compute", (parties[0], parties[1])),
        disclose="frequent",
        rules=RuleParameters(Decimal(min_confidence), consequent),
        **more,
    )


def pooled(data: Mapping[str, Rows], min_count: int) -> Itemsets:
    rows = [row for party in data.values() for row in party]
    return frequent_itemsets(Transactions.from_rows(rows), min_count).canonical()


def uncounted(itemsets: Itemsets) -> Itemsets:
    levels = [(sets, np.zeros(len(sets), np.int64)) for sets, _ in itemsets.levels]
    return Itemsets(itemsets.items, levels, itemsets.n_rows, counted=False)


def run(
    data: Mapping[str, Rows], task: HorizontalMining, min_count: int = 1, *, seed: int = 0, **world: Any
) -> dict[str, Rules | None]:
    assert task.rules is not None
    parties, known = tuple(data), uncounted(pooled(data, min_count))

    async def role(session: Session) -> Rules | None:
        pair = session.me in task.compute and task.helper is None
        two_party = TwoParty(session.lane("two-party"), task.compute) if pair else None
        rows = Transactions.from_rows(data[session.me])
        secrets = await agree(session.lane("keys"))
        tally = await HorizontalTally.open(session.lane("task"), secrets, two_party, {}, task, rows.n_rows, 1)
        counts = count_itemsets(rows.onto(known.items), [sets for sets, _ in known.levels])
        assert task.rules is not None
        return await decide_rules(tally, known, counts, task.rules)

    line = Declared("rows", frozenset(parties), "rows", 1, "now")
    return run_parties(parties, role, declared=[line, *rules_openings(task, parties)], seed=seed, **world)


def sides(rules: Rules | None) -> list[tuple[tuple[str, ...], tuple[str, ...]]]:
    assert rules is not None
    table = rules.to_arrow()
    return [
        (tuple(a), tuple(c))
        for a, c in zip(table["antecedent"].to_pylist(), table["consequent"].to_pylist(), strict=True)
    ]


def expected(data: Mapping[str, Rows], task: HorizontalMining, min_count: int = 1) -> Rules:
    assert task.rules is not None
    return association_rules(pooled(data, min_count), task.rules.min_confidence, consequent=task.rules.consequent)


@st.composite
def cases(draw: st.DrawFn) -> tuple[dict[str, Rows], HorizontalMining, int]:
    data = draw(datasets(ITEMS))
    min_count = draw(st.integers(1, 4))
    confidence = draw(st.sampled_from(CONFIDENCES) | st.decimals(0, 1, places=3))
    ratios = [
        Fraction(rule["count"], rule["antecedent_count"])
        for rule in association_rules(pooled(data, min_count), Decimal(0)).to_arrow().to_pylist()
    ]
    finite = sorted({Decimal(r.numerator) / r.denominator for r in ratios if 10**6 % r.denominator == 0})
    if finite and draw(st.booleans()):  # exactly what some rule has
        confidence = draw(st.sampled_from(finite))
    parties = draw(st.permutations(list(data)))
    learners = tuple(draw(st.lists(st.sampled_from(parties), min_size=1, unique=True)))
    consequent: Literal["any", "single"] = draw(st.sampled_from(["any", "single"]))
    helper = draw(st.none() | st.sampled_from(parties[2:])) if len(parties) > 2 else None
    return data, task_for(parties, confidence, consequent, learners=learners, helper=helper), min_count


@given(cases())
@examples(2, 30)
def test_they_are_the_rules_of_the_pooled_rows(case: tuple[dict[str, Rows], HorizontalMining, int]) -> None:
    data, task, min_count = case
    right = expected(data, task, min_count)
    for party, found in run(data, task, min_count).items():
        if party not in task.learners:
            assert found is None
            continue
        assert sides(found) == sides(right)
        assert found is not None
        assert not found.itemsets.counted
        table = found.to_arrow()
        assert table.column_names == right.to_arrow().column_names
        assert all(table[name].null_count == len(table) for name in table.column_names[2:])


DATA: dict[str, Rows] = {
    "north": [["a", "b", "c"], ["a", "b"], ["a"], ["c", "d"]] * 3,
    "south": [["a", "b", "c", "d"], ["b", "c"], ["d"]] * 4,
    "east": [["a", "c"], ["a", "b", "c"], []] * 2,
}


@pytest.mark.parametrize("transport", ["memory", "grpc"])
def test_the_computing_parties_need_not_learn_the_rules_nor_come_first(transport: str) -> None:
    task = task_for(tuple(DATA), "0.6", compute=("east", "south"), learners=("north",))
    found = run(DATA, task, transport=transport)
    assert sides(found["north"]) == sides(expected(DATA, task))
    assert found["south"] is found["east"] is None


def test_batches_beyond_what_is_examined_at_one_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rule_growth, "FRONTIER", 7)
    task = task_for(tuple(DATA), "0.4")
    assert sides(run(DATA, task)["south"]) == sides(expected(DATA, task))


@pytest.mark.parametrize(("confidence", "rules"), [("0.6", 1), ("0.601", 0), ("0.6000000000001", 0), ("0.5999999", 1)])
def test_the_boundary_is_exact(confidence: str, rules: int) -> None:
    """a ⇒ b has 3 of 5."""
    data = {"x": [["a", "b"], ["a"]], "y": [["a", "b"], ["a"]], "z": [["a", "b"], ["b"], ["b"], ["b"], ["b"]]}
    assert sides(run(data, task_for(tuple(data), confidence))["z"]) == [(("a",), ("b",))] * rules


def test_without_a_least_confidence_nothing_is_sent() -> None:
    task, frames = task_for(tuple(DATA), "0"), []
    assert sides(run(DATA, task, observe=frames.append)["south"]) == sides(expected(DATA, task))
    assert not any(frame.lane.startswith("/task/rules") for frame in frames)
    assert rules_openings(task, tuple(DATA)) == ()


def test_single_items_have_no_rules_and_nothing_is_sent() -> None:
    data: dict[str, Rows] = {"x": [["a"], ["b"]], "y": [["a"]]}
    frames: list[Frame] = []
    assert sides(run(data, task_for(tuple(data), "0.5"), observe=frames.append)["y"]) == []
    assert not any(frame.lane.startswith("/task/rules") for frame in frames)


def test_a_confidence_of_too_many_digits_is_named() -> None:
    task = task_for(tuple(DATA), "0.1234567890123456789")
    with fails("E100"):
        run(DATA, task)


def test_a_confidence_of_many_digits_that_can_be_reduced_is_not() -> None:
    assert ConfidenceTest.of(Decimal("0.5000000000000000000000"), 1000).den == 2


def test_more_rules_than_are_wanted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shared_rules.RuleGrowth.__init__, "__kwdefaults__", {"max_rules": 3})
    with fails("E100"):
        run(DATA, task_for(tuple(DATA), "0.1"))


def test_more_rules_than_are_examined_or_declared(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shared_rules, "MAX_EXAMINED", 20)
    task = task_for(tuple(DATA), "0.1")
    (line,) = rules_openings(task, tuple(DATA))
    assert line.maximum == 20
    with fails("E100"):
        run(DATA, task)


def test_what_is_declared_holds_all_that_a_short_job_can_examine() -> None:
    task = task_for(tuple(DATA), "1E-6", max_length=2, max_candidates=6)  # six pairs, each both ways
    (line,) = rules_openings(task, tuple(DATA))
    assert line.maximum == 12


@given(st.integers(1, 10**6), st.decimals(0, 1, places=4).filter(bool), st.data())
@settings(deadline=None)
def test_the_width_has_room_for_every_difference(n_rows: int, confidence: Decimal, data: st.DataObject) -> None:
    test = ConfidenceTest.of(confidence, n_rows)
    antecedent = data.draw(st.integers(1, n_rows) | st.just(n_rows))
    both = data.draw(st.integers(0, antecedent) | st.sampled_from([0, antecedent]))
    difference = test.den * both - test.num * antecedent
    assert -(1 << (test.width - 1)) <= difference < 1 << (test.width - 1)
    assert 8 * test.word.itemsize >= test.width
    assert (difference >= 0) == (Fraction(both, antecedent) >= Fraction(confidence))


# -- what is told ------------------------------------------------------------------------------------------------------
def opened(frames: Sequence[Frame]) -> list[tuple[str, str, str, int]]:
    messages = [(f, Opening.FromString(f.body)) for f in frames if f.type == Opening.DESCRIPTOR.full_name]
    return [(f.sender, f.receiver, m.label, m.number) for f, m in messages if f.last]


def test_only_bits_are_opened_and_only_to_those_who_go_on() -> None:
    data = {**DATA, "west": [["a", "d"], ["b"]]}
    task, frames = task_for(tuple(data), "0.6", learners=("east",)), []
    found = run(data, task, observe=frames.append)
    ours = [frame for frame in frames if frame.lane.startswith("/task/rules")]
    assert {label for _, _, label, _ in opened(ours)} == {"rules"}
    assert {(sender, receiver) for sender, receiver, _, _ in opened(ours)} == {
        *(("north", to) for to in ("south", "east")),
        *(("south", to) for to in ("north", "east")),
    }
    (line,) = rules_openings(task, tuple(data))
    assert line.recipients == {"north", "south", "east"}
    assert sum(number for s, r, _, number in opened(ours) if (s, r) == ("north", "east")) <= line.maximum
    assert {frame.receiver for frame in ours if frame.sender == "west"} == {"north"}
    assert not any(frame.receiver == "west" for frame in ours)
    assert found["west"] is None
    told = rules_learned(task, tuple(data))
    assert [entry.who for entry in told] == [("north", "south", "east"), ("west",)]


def test_a_computing_partys_view_depends_on_the_rules_alone() -> None:
    """All supports double, but neither the number of rows nor the itemsets nor the rules change: the shapes are equal,
    the bits that are opened are equal, and what else is received stays uniform.

    Each of the three tests on histograms wrongly fails with probability 10⁻⁶.
    """
    once = {party: [*rows, *[[]] * len(rows)] for party, rows in DATA.items()}
    twice = {party: [*rows, *rows] for party, rows in DATA.items()}
    task = task_for(tuple(DATA), "0.6", compute=("north", "east"), learners=("south",))
    assert sides(expected(once, task)) == sides(expected(twice, task))
    assert dict(pooled(once, 1)) == {itemset: count // 2 for itemset, count in pooled(twice, 1) if count is not None}
    views: list[tuple[list[Any], list[int], np.ndarray]] = []
    for data in (once, twice):
        shapes, bits, payload = [], [], []
        for seed in range(4):
            frames: list[Frame] = []
            run(data, task, seed=seed, observe=frames.append)
            seen = [f for f in frames if f.lane.startswith("/task/rules") and f.receiver == "north"]
            shapes.append(shapes_of(seen))
            bits.append(bits_to("south", frames))
            secret = [f for f in seen if f.type.endswith(("MaskedValues", "MaskedOperands", "LeafTables"))]
            payload.append(payload_of(secret, "east"))
        assert all(shape == shapes[0] for shape in shapes)
        assert all(found == bits[0] for found in bits)
        views.append((shapes[0], bits[0], np.concatenate(payload)))
    (shape, bit, one), (shape_2, bit_2, two) = views
    assert shape == shape_2
    assert bit == bit_2
    assert_uniform(one)
    assert_uniform(two)
    assert_alike(one, two)


def bits_to(receiver: str, frames: Sequence[Frame]) -> list[int]:
    """The bits that a learner makes of what both holders open to it."""
    parts: dict[str, list[int]] = {}
    for frame in frames:
        if frame.lane.startswith("/task/rules") and frame.receiver == receiver:
            message = Opening.FromString(frame.body)
            bits = np.unpackbits(np.frombuffer(message.values, np.uint8), count=message.number, bitorder="little")
            parts.setdefault(frame.sender, []).extend(bits.tolist())
    return [one ^ other for one, other in zip(*parts.values(), strict=True)]


def test_a_holder_that_opens_another_number_of_bits_is_named() -> None:
    def observe(frame: Frame) -> None:
        if frame.type == Opening.DESCRIPTOR.full_name and frame.receiver == "north":
            message = Opening.FromString(frame.body)
            if message.label == "rules":
                message.values += bytes(1)
                frame.body = message.SerializeToString()

    task = task_for(tuple(DATA), "0.6", learners=("south",))
    with pytest.raises(MalformedMessage) as caught:
        run(DATA, task, observe=observe)
    assert caught.value.party == "south"


# -- the plan ----------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("consequent", ["any", "single"])
def test_the_steps_are_those_where_every_rule_is_examined(consequent: Literal["any", "single"]) -> None:
    """With a confidence that every rule reaches, the plan's most is what happens."""
    task, frames = task_for(tuple(DATA), "1E-6", consequent), []
    run(DATA, task, observe=frames.append)
    sent: dict[str, int] = {}
    for frame in frames:
        ours = frame.lane.startswith("/task/rules") and (frame.sender, frame.receiver) == ("north", "south")
        if ours and frame.last and frame.type == Opening.DESCRIPTOR.full_name:
            sent[frame.lane] = Opening.FromString(frame.body).number
    itemsets = pooled(DATA, 1)
    assert task.rules is not None
    steps = rule_steps([len(sets) for sets, _ in itemsets.levels], itemsets.n_rows, task.rules)
    assert tuple(sent.values()) == steps.batches
    assert steps.sums == len(itemsets)
    test = ConfidenceTest.of(task.rules.min_confidence, itemsets.n_rows)
    assert (steps.word_bytes, steps.width) == (test.word.itemsize, test.width)
    nothing = rule_steps([3, 2], 10, replace(task.rules, min_confidence=Decimal(0)))
    assert (nothing.sums, nothing.batches) == (0, ())


def test_who_goes_on() -> None:
    task = task_for(("a", "b", "c", "d"), "0.5", compute=("c", "b"), learners=("d", "b"))
    assert receivers(task, ("a", "b", "c", "d")) == ("b", "c", "d")
