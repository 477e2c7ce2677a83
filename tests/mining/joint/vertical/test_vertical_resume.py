"""Another attempt of a vertical job: it ends as the first would have, skips what was kept, and refuses what differs."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from decimal import Decimal
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from crypto.protocols.sums.pairwise import agree
from link.journal import MemoryJournal, Step
from link.session import Session
from link.steps import begin
from link.steps import openings as steps_openings
from mining.joint.parameters import JointItemsets, RuleParameters
from mining.joint.vertical.aligned import Aligned
from mining.joint.vertical.choice import is_dealt
from mining.joint.vertical.disclosure import openings
from mining.joint.vertical.mine import mine_aligned
from mining.joint.vertical.parameters import Mode, VerticalMining
from protos.v1.link_pb2 import Frame, Opening
from tests.errors import fails
from tests.examples import examples
from tests.link.kept_steps import results
from tests.mining.joint.vertical.test_vertical import columns_of, tables
from tests.mining.joint.vertical.vertical_world import dealings_of, helper_of
from tests.world import run_parties

pytestmark = pytest.mark.turn(6)

Kept = dict[str, tuple[Step, ...]]
COMMON = 1  # the step before the first level


def attempt(
    data: Mapping[str, Aligned],
    task: VerticalMining,
    kept: Kept | None = None,
    *,
    seed: int = 0,
    observe: Callable[[Frame], None] = lambda frame: None,
) -> tuple[dict[str, JointItemsets], Kept]:
    """One attempt: each party's outcome, and the steps that it had kept at the end."""
    parties = tuple(data)
    journals = {party: MemoryJournal(() if kept is None else kept[party]) for party in parties}
    dealt = dealings_of(parties, seed) if is_dealt(task, parties) else {}

    async def role(session: Session) -> JointItemsets:
        lane, me = session.lane("task"), session.me
        await begin(session, journals[me])
        secrets = await agree(lane.lane("keys"))
        return await mine_aligned(lane, secrets, data[me], task, dealings=dealt.get(me))

    declared = (*openings(task, parties), steps_openings(parties))
    number = 1 if kept is None else 2
    outcome = run_parties(parties, role, declared=declared, observe=observe, seed=seed, deadline_s=240, attempt=number)
    return outcome, {party: tuple(Step.unpack(each.pack()) for each in journals[party].kept) for party in parties}


def levels_of(steps: tuple[Step, ...]) -> list[Step]:
    return [step for step in steps if "itemsets of" in step.name]


def found(outcome: JointItemsets) -> Any:
    """What there is to compare."""
    itemsets = None if outcome.itemsets is None else list(outcome.itemsets.rows())
    rules = None if outcome.rules is None else outcome.rules.to_arrow().select(["antecedent", "consequent"]).to_pylist()
    return outcome.n_rows, itemsets, rules


PEOPLE = 24


def people(everywhere: bool = True) -> dict[str, Aligned]:
    """Three parties whose items occur together often, so that there are four levels."""
    random = np.random.default_rng(5)
    presence = {party: [True] * PEOPLE for party in "abc"}
    if not everywhere:
        presence = {party: list(random.random(PEOPLE) < 0.9) for party in "abc"}
    bits = {party: {f"{party}{k}=v": list(random.random(PEOPLE) < 0.85) for k in range(2)} for party in "abc"}
    return {party: columns_of(bits[party], presence[party], everywhere=everywhere) for party in "abc"}


def task_of(mode: Mode = "intersection", **more: Any) -> VerticalMining:
    return VerticalMining(8, ("a", "b"), ("a", "b"), "a", mode, **more)


@pytest.mark.parametrize("engine", ["ot", "replicated"])
@pytest.mark.parametrize("mode", ["intersection", "union"])
@given(tables(), st.integers(1, 4), st.data())
@examples(1, 2)
def test_an_attempt_from_any_level_gives_what_one_without_a_failure_gives(
    engine: str, mode: Mode, case: Any, least: int, data: st.DataObject
) -> None:
    bits, presence, n = case
    if mode == "intersection":
        presence = {party: [True] * n for party in presence}
    parties = tuple(bits)
    n_common = sum(all(presence[party][row] for party in parties) for row in range(n))
    if not n_common:
        return
    disclose = data.draw(st.sampled_from(["candidates", "supports", "frequent"]))
    rules = RuleParameters(Decimal("0.6")) if disclose == "frequent" and data.draw(st.booleans()) else None
    learners = tuple(data.draw(st.lists(st.sampled_from(parties), min_size=1, unique=True)))
    compute = tuple(data.draw(st.permutations(parties))[:2])
    task = VerticalMining(min(least, n_common), learners, compute, parties[0], mode, disclose=disclose)
    task = replace(task, engine=engine, helper=helper_of(engine, parties), rules=rules)
    columns = {party: columns_of(bits[party], presence[party], everywhere=mode == "intersection") for party in parties}
    first, kept = attempt(columns, task)
    assert all(
        (level.known.learned is None) == (disclose == "frequent" or p not in learners)
        for p in kept
        for level in levels_of(kept[p])
    )
    came = {party: levels[: data.draw(st.integers(0, len(levels)))] for party, levels in kept.items()}
    again, kept_again = attempt(columns, task, came, seed=1)
    for party in parties:
        assert found(again[party]) == found(first[party])
        assert results(kept_again[party]) == results(kept[party])


@pytest.mark.parametrize(
    ("mode", "disclose", "k"),
    [("intersection", "frequent", 2), ("intersection", "candidates", 3), ("union", "supports", 1)],
)
def test_another_attempt_sends_nothing_of_the_levels_that_were_kept(mode: Mode, disclose: Any, k: int) -> None:
    data, task = people(mode == "intersection"), task_of(mode, disclose=disclose)
    _, kept = attempt(data, task)
    assert len(levels_of(kept["a"])) > 3
    frames: list[Frame] = []
    attempt(data, task, {party: steps[: COMMON + k] for party, steps in kept.items()}, seed=1, observe=frames.append)
    lanes = {frame.lane for frame in frames}
    past = [lane for lane in lanes if any(f"/level-{j}" in lane for j in range(1, k + 1))]
    assert past == []
    assert not lanes & {"/task/items", "/task/presence", "/task/common"}
    assert any(f"/level-{k + 1}" in lane for lane in lanes)
    assert any("/kept" in lane for lane in lanes)


def test_with_rules_only_supports_of_frequent_itemsets_are_shared_again() -> None:
    rules = RuleParameters(Decimal("0.7"))
    data, task = people(), task_of(disclose="frequent", rules=rules)
    first, kept = attempt(data, task)
    frames: list[Frame] = []
    again, _ = attempt(
        data, task, {party: steps[: COMMON + 2] for party, steps in kept.items()}, seed=1, observe=frames.append
    )
    assert found(again["a"]) == found(first["a"])
    past = {frame.lane for frame in frames if "/level-1" in frame.lane or "/level-2" in frame.lane}
    assert past
    assert all("/again" in lane for lane in past)
    assert not any("comparison" in lane or "decision" in lane for lane in past)


def test_a_first_attempt_compares_nothing() -> None:
    frames: list[Frame] = []
    attempt(people(), task_of(), observe=frames.append)
    assert not any("/kept" in frame.lane for frame in frames)


def test_what_another_attempt_opens_shows_supports_to_no_outsider() -> None:
    """Party c learns no supports: what it is sent of the levels kept does not change with them."""

    def sent(levels: Kept) -> dict[tuple[str, str], list[bytes]]:
        shown: dict[tuple[str, str], list[bytes]] = {}

        def observe(frame: Frame) -> None:
            if "/kept" in frame.lane:
                shown.setdefault((frame.sender, frame.receiver), []).append(Opening.FromString(frame.body).values)

        attempt(people(), task_of(), levels, seed=1, observe=observe)
        return shown

    _, kept = attempt(people(), task_of())
    others = dict(kept)
    for learner in "ab":
        others[learner] = tuple(
            each if each.known.learned is None else changed(each, learned=each.known.learned + 1)
            for each in kept[learner]
        )
    before, after = sent(kept), sent(others)
    assert {pair for pair in before if before[pair] != after[pair]} == {("a", "b"), ("b", "a")}


def changed(step: Step, **known: Any) -> Step:
    return replace(step, known=replace(step.known, **known))


def damaged(steps: tuple[Step, ...], what: str) -> tuple[Step, ...]:
    """Another result of the common rows, or of level 2."""
    rows, one, two, *rest = steps
    if what == "sets":
        fewer = None if two.known.learned is None else two.known.learned[1:]
        return (rows, one, changed(two, public=two.known.public[1:], learned=fewer), *rest)
    if what == "supports":
        return (rows, one, changed(two, learned=two.known.learned + 1), *rest)
    return (changed(rows, public=rows.known.public + 1), one, two, *rest)


@pytest.mark.parametrize(("liar", "what"), [("b", "sets"), ("b", "supports"), ("b", "rows"), ("c", "sets")])
def test_a_party_that_kept_another_result_is_named(liar: str, what: str) -> None:
    _, kept = attempt(people(), task_of())
    kept[liar] = damaged(kept[liar], what)
    with fails("E400") as caught:
        attempt(people(), task_of(), kept, seed=1)
    assert liar in caught.value.message
    assert caught.value.party is not None


def test_other_rows_than_before_end_the_attempt() -> None:
    _, kept = attempt(people(), task_of())
    fewer = {party: damaged(steps, "rows") for party, steps in kept.items()}
    with fails("E400"):
        attempt(people(), task_of(), fewer, seed=1)


def test_a_level_that_gives_something_else_than_before_ends_the_attempt() -> None:
    """Party b has lost its journal, and brings other rows."""
    data, task = people(), task_of()
    _, kept = attempt(data, task)
    full = {item: [True] * PEOPLE for item in ("b0=v", "b1=v")}
    held = {**data, "b": columns_of(full, [True] * PEOPLE, everywhere=True)}
    with fails("E400"):
        attempt(held, task, {**kept, "b": ()}, seed=1)
