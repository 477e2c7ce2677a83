"""Level 1 at positions: the pooled result, and not a word of an item that is not frequent."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping
from dataclasses import replace
from decimal import Decimal

import numpy as np
import pytest
from hypothesis import HealthCheck, given
from hypothesis import strategies as st
from numpy.typing import NDArray

from crypto.protocols.alignment.bins import table_of
from link.session import Session
from mining.data.transactions import Transactions
from mining.joint.disclosure import LOCALLY_FREQUENT, learned, openings
from mining.joint.horizontal import hidden_universe
from mining.joint.horizontal.hidden_disclosure import hidden_learned, hidden_openings
from mining.joint.horizontal.hidden_sizes import HiddenSizes
from mining.joint.horizontal.mine import mine
from mining.joint.horizontal.tally import HorizontalTally
from mining.joint.parameters import HorizontalMining, JointItemsets
from protos.v1.link_pb2 import Frame, Opening
from tests.errors import fails
from tests.examples import crossed, examples
from tests.mining.joint.itemsets_world import datasets, supports
from tests.mining.joint.oracle import Rows, least_count, pooled_supports
from tests.world import run_parties

pytestmark = pytest.mark.turn(6)

ITEMS = ["a", "b", "c", "bread, white", 'quo"te', "[x]", "ünï", "ミルク", " lead", "e" * 40, "\0", "é", "é"]


def task_for(data: Mapping[str, Rows], min_support: int | Decimal, **parameters: object) -> HorizontalMining:
    parties = tuple(data)
    task = HorizontalMining(min_support, learners=parties, merger=parties[0], universe="hidden", compute=parties[:2])
    return replace(task, **parameters)  # type: ignore[arg-type]


def run(data: Mapping[str, Rows], task: HorizontalMining, seed: int = 0, **world: object) -> dict[str, JointItemsets]:
    async def role(session: Session) -> JointItemsets:
        return await mine(session.lane("task"), Transactions.from_rows(data[session.me]), task)

    declared = [*openings(task, tuple(data)), *hidden_openings(task, tuple(data))]
    return run_parties(list(data), role, declared=declared, seed=seed, **world)  # type: ignore[arg-type]


@st.composite
def cases(draw: st.DrawFn) -> tuple[dict[str, Rows], HorizontalMining]:
    data = draw(datasets(ITEMS))
    n_rows = sum(map(len, data.values()))
    parties = list(data)
    task = task_for(
        data,
        draw(st.integers(1, n_rows) | st.decimals("0.0001", "1", places=4)),
        disclose=draw(st.sampled_from(["candidates", "supports", "frequent"])),
        strategy=draw(st.sampled_from(["level-wise", "one-shot"])),
        lambda_=draw(st.decimals("0", "0.99", places=2)),
        max_length=draw(st.none() | st.integers(1, 3)),
        merger=draw(st.sampled_from(parties)),
        learners=tuple(draw(st.lists(st.sampled_from(parties), min_size=1, unique=True))),
        bound=draw(st.sampled_from([None, len(ITEMS), 20])) if draw(st.booleans()) else None,
    )
    return data, task


@given(cases())  # each of them a whole job
@examples(1, 6, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])
def test_the_result_equals_the_pooled_one(case: tuple[dict[str, Rows], HorizontalMining]) -> None:
    data, task = case
    if task.strategy == "one-shot" and task.bound is not None:
        task = replace(task, strategy="level-wise")  # whose sets of itemsets have bounds of their own
    expected = pooled_supports(data, task.min_support, task.max_length)
    for party, result in run(data, task).items():
        if party not in task.learners:
            assert result.itemsets is None
        elif task.disclose == "frequent":
            assert set(supports(result)) == set(expected)
        else:
            assert supports(result) == expected


NOTHING: dict[str, Rows] = {"x": [["a"], ["b"], []], "y": [["c"], ["d"]], "z": []}


@pytest.mark.parametrize("disclose", ["candidates", "supports", "frequent"])
def test_where_nothing_is_frequent_no_name_is_said(disclose: str) -> None:
    frames: list[Frame] = []
    for result in run(NOTHING, task_for(NOTHING, 2, disclose=disclose), observe=frames.append).values():
        assert supports(result) == {}
    assert not any("/items" in frame.lane for frame in frames)


def test_all_parties_but_one_are_empty() -> None:
    data: dict[str, Rows] = {"x": [], "y": [["a", "b"]] * 3 + [["c"]], "z": [[]]}
    for result in run(data, task_for(data, 3)).values():
        assert supports(result) == pooled_supports(data, 3)


# -- what is said ----------------------------------------------------------------------------------------------------
# "rare" items are held by one, two or all parties, some locally frequent there, and frequent nowhere altogether.
RARE = ["rare-and-telling", "rare-elsewhere", "rare-everywhere"]
COMMON = ["bread and butter", "milk from here"]


def shops(rare: Mapping[str, list[str]], sizes: Mapping[str, int]) -> dict[str, Rows]:
    """The same frequent items everywhere; of rare ones what is given."""
    return {
        name: [[*COMMON, *rare[name]]] * 4 + [[*COMMON]] * (size - 4 - size // 4) + [[]] * (size // 4)
        for name, size in sizes.items()
    }


SIZES = {"north": 20, "south": 20, "east": 20}
WORLDS = {
    "of one": {"north": RARE[:1], "south": [], "east": []},
    "of nobody": {"north": RARE[:1], "south": RARE[1:2], "east": RARE[2:]},
    "of all": {"north": RARE[:1], "south": RARE[:1], "east": []},
}
SHARE = Decimal("0.3")


def opened(frames: list[Frame], label: str) -> dict[str, bytes]:
    """By lane and receiver, what was opened under a label."""
    found: dict[str, bytes] = defaultdict(bytes)
    for frame in frames:
        if frame.type == Opening.DESCRIPTOR.full_name:
            message = Opening.FromString(frame.body)
            if message.label == label:
                found[f"{frame.lane} {frame.receiver}"] += message.values
    return found


@pytest.mark.parametrize(("world", "disclose"), crossed(WORLDS, ["candidates", "supports", "frequent"]))
def test_names_of_items_that_are_not_frequent_are_nowhere(world: str, disclose: str) -> None:
    data, frames = shops(WORLDS[world], SIZES), list[Frame]()
    task = task_for(data, SHARE, disclose=disclose, strategy="level-wise")
    assert least_count(SHARE, 60) == 18
    results = run(data, task, observe=frames.append)
    for result in results.values():
        assert result.itemsets is not None
        assert set(result.itemsets.items) == set(COMMON)
    everything = b"".join(frame.body for frame in frames)
    for name in RARE:
        assert all(name.encode()[start : start + 8] not in everything for start in range(len(name) - 8))
    assert opened(frames, "items")


def structure(frames: list[Frame], party: str) -> Counter[tuple[object, ...]]:
    """Kinds, order and sizes of what a party receives at level 1.

    Not the rounds: parts that run beside each other count on from what came last, which is a matter of timing.
    """
    lanes = ("/task/item-positions", "/task/level-1", "/task/items")
    received = [f for f in frames if f.receiver == party and f.lane.startswith(lanes)]
    return Counter((f.sender, f.lane, f.seq, f.type, f.last, len(f.body)) for f in received)


def answers_of(frames: list[Frame]) -> dict[str, bytes]:
    """By question about names, what all parties' shares come to."""
    found: dict[str, dict[str, bytes]] = defaultdict(dict)
    for frame in frames:
        if frame.lane.startswith("/task/items/union/question") and frame.type == Opening.DESCRIPTOR.full_name:
            found[frame.lane][frame.sender] = Opening.FromString(frame.body).values
    return {
        lane: bytes(np.bitwise_xor.reduce([np.frombuffer(part, np.uint8) for part in parts.values()]))
        for lane, parts in found.items()
    }


@pytest.mark.parametrize(("bound", "disclose"), crossed([None, 6], ["supports", "frequent"]))
def test_a_view_depends_on_sizes_and_the_frequent_items_alone(bound: int | None, disclose: str) -> None:
    """Whatever rare items the others hold or share, a party gets the same kinds and sizes of frames, and what is opened
    of the candidates is as much: as many positions, of which as many are frequent."""
    views: dict[str, list[object]] = defaultdict(list)
    for rare in WORLDS.values():
        data, frames = shops(rare, SIZES), list[Frame]()
        task = task_for(data, SHARE, disclose=disclose, strategy="level-wise", bound=bound)
        run(data, task, observe=frames.append)
        answers = answers_of(frames)
        assert answers
        for party in SIZES:
            bits = [v for where, v in opened(frames, "frequent").items() if where == f"/task/level-1 {party}"]
            ones = [sum(np.frombuffer(value, np.uint8).tolist()) for value in bits]
            views[party].append((structure(frames, party), answers, [len(value) for value in bits], len(ones)))
    for seen in views.values():
        assert all(view == seen[0] for view in seen)


def frequent_positions(frames: list[Frame]) -> list[int]:
    """Where all parties see that something is frequent."""
    shares: dict[str, NDArray[np.uint8]] = {}
    for frame in frames:
        if frame.type == Opening.DESCRIPTOR.full_name and frame.lane == "/task/level-1":
            shares[frame.sender] = np.frombuffer(Opening.FromString(frame.body).values, np.uint8)
    bits = np.bitwise_xor.reduce(list(shares.values()))
    assert len(bits) == 3 * 64 // 8  # as many positions as all lists have places, whatever the parties hold
    return np.flatnonzero(np.unpackbits(bits, bitorder="little")).tolist()


def test_frequent_positions_are_as_many_as_frequent_items_and_new_in_every_run() -> None:
    """Whoever holds them: of one holder alone, of several, of all."""
    data: dict[str, Rows] = {"north": [["n", "all"]] * 4, "south": [["all", "two"]] * 4, "east": [["all", "two"]] * 4}
    seen = []
    for seed in range(3):
        frames: list[Frame] = []
        run(data, task_for(data, 4, disclose="frequent", bound=3, max_length=1), seed=seed, observe=frames.append)
        seen.append(frequent_positions(frames))
    assert [len(places) for places in seen] == [3, 3, 3]
    assert seen[0] != seen[1] != seen[2] != seen[0]


# -- what is stated --------------------------------------------------------------------------------------------------
def test_all_that_is_opened_is_stated() -> None:
    data, frames = shops(WORLDS["of all"], SIZES), list[Frame]()
    task = task_for(data, SHARE, strategy="level-wise")
    lines = {line.label: line for line in hidden_openings(task, tuple(data))}
    run(data, task, observe=frames.append)
    labels = {Opening.FromString(f.body).label for f in frames if f.type == Opening.DESCRIPTOR.full_name}
    assert set(lines) <= labels
    assert "frequent items" in lines["items"].what
    assert lines["item_positions"].recipients == set(data)
    labelled = {line.label: line for line in hidden_openings(replace(task, bound=9), tuple(data))}
    assert labelled["item_positions"].maximum == table_of(64).sparse


def test_what_is_learned_as_data() -> None:
    three, two = ({name: [["a"]] for name in names} for names in (("x", "y", "z"), ("x", "y")))
    for data in (three, two):
        parties = tuple(data)
        said = [line.exact for line in hidden_learned(task_for(data, 1, disclose="supports"), parties)]
        assert any("names of the frequent items" in what and "no other names" in what for what in said)
        assert any("that the other does" in what for what in said) == (data is two)
        assert any("position of each of its own items, not" in what for what in said)
        assert not any("support of every item" in what or "locally" in what for what in said)
        said = [line.exact for line in hidden_learned(task_for(data, 1, disclose="candidates", bound=9), parties)]
        assert any("support of every item" in what and "how many items there are" in what for what in said)
        assert sum("more than 64 items" in what for what in said) == 1


@pytest.mark.parametrize("universe", ["frequent-items", "hidden"])
def test_what_is_told_of_local_counts_is_said_wherever_local_thresholds_decide(universe: str) -> None:
    data = {name: [["a"]] for name in ("x", "y", "z")}
    lines = learned(task_for(data, 1, universe=universe, strategy="level-wise"), tuple(data))
    assert any(line.exact == LOCALLY_FREQUENT for line in lines) == (universe != "hidden")


# -- faults ----------------------------------------------------------------------------------------------------------
def test_more_items_than_the_bound_end_the_job_before_anything_is_said() -> None:
    data: dict[str, Rows] = {"x": [[f"item {number}" for number in range(65)]], "y": [["a"]]}
    frames: list[Frame] = []
    with fails("E104"):
        run(data, task_for(data, 1, bound=2), observe=frames.append)
    assert not any("/row-union/" in frame.lane and "/length" not in frame.lane for frame in frames)
    assert not any("/level-1" in frame.lane for frame in frames)


def test_a_frequent_item_whose_name_is_too_long() -> None:
    data: dict[str, Rows] = {"x": [["l" * 134]], "y": [["a"]]}
    with fails("E104"):
        run(data, task_for(data, 1))
    run(data, task_for(data, 1, max_item_bytes=134))


@pytest.mark.parametrize("parties", [2, 3])
def test_names_that_are_not_those_of_the_frequent_positions_are_refused(
    parties: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A party that does not say the name of an item which only it holds."""
    rows: dict[str, Rows] = {"x": [["a"]] * 3, "y": [["only here"]] * 3, "z": []}
    data = dict(list(rows.items())[:parties])
    names = hidden_universe.frequent_names

    async def silent(tally: HorizontalTally, mine: list[str], number: int) -> tuple[str, ...]:
        return await names(tally, [] if tally.session.me == "y" else mine, number)

    monkeypatch.setattr(hidden_universe, "frequent_names", silent)
    with fails("E400") as caught:
        run(data, task_for(data, 2))
    assert (caught.value.party is not None) == (parties == 2)


def test_positions_that_cannot_be_end_the_job() -> None:
    data = shops(WORLDS["of all"], SIZES)

    def spoil(frame: Frame) -> None:
        if frame.type == Opening.DESCRIPTOR.full_name and frame.sender == "south":
            opening = Opening.FromString(frame.body)
            if opening.label == "item_positions":
                opening.values = b"\xff" * len(opening.values)
                frame.body = opening.SerializeToString()

    with fails("E400"):
        run(data, task_for(data, SHARE), observe=spoil)


# -- costs -----------------------------------------------------------------------------------------------------------
def test_where_nothing_is_frequent_no_names_are_counted() -> None:
    sizes = HiddenSizes.of({"x": 3, "y": 9}, 0, 1, None, 20)
    assert sizes.names is None
    assert sizes.items.positions == 2 * 64
