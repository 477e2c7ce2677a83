"""Joint horizontal mining equals the pooled oracle, for every strategy, split and threshold."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from decimal import Decimal

import numpy as np
import pytest
from hypothesis import HealthCheck, given
from hypothesis import strategies as st

from crypto.protocols.sums.secure_sum import secure_sum
from mining.data.transactions import Transactions
from mining.joint import tally
from mining.joint.disclosure import openings
from mining.joint.horizontal import tally as horizontal_tally
from mining.joint.horizontal import universe
from mining.joint.horizontal.mine import mine
from mining.joint.parameters import HorizontalMining, JointItemsets
from protos.v1.link_pb2 import Frame, Opening
from tests.errors import fails
from tests.examples import examples
from tests.mining.joint.itemsets_world import datasets, supports
from tests.mining.joint.oracle import Rows, least_count, pooled_supports
from tests.world import run_parties

pytestmark = pytest.mark.turn(6)

ITEMS = ["a", "b", "c", "bread, white", 'quo"te', "[x]", "ünï", "ミルク", " lead", "e" * 40]


def task_for(data: Mapping[str, Rows], min_support: int | Decimal, **parameters: object) -> HorizontalMining:
    parties = tuple(data)
    return replace(
        HorizontalMining(min_support, learners=parties, merger=parties[0], compute=parties[:2]), **parameters
    )  # type: ignore[arg-type]


def run(data: Mapping[str, Rows], task: HorizontalMining, seed: int = 0, **world: object) -> dict[str, JointItemsets]:
    async def role(session):
        return await mine(session.lane("task"), Transactions.from_rows(data[session.me]), task)

    return run_parties(list(data), role, declared=openings(task, tuple(data)), seed=seed, **world)  # type: ignore[arg-type]


@st.composite
def cases(draw: st.DrawFn) -> tuple[dict[str, Rows], HorizontalMining]:
    data = draw(datasets(ITEMS))
    n_rows = sum(map(len, data.values()))
    fractions = st.decimals("0.0001", "1", places=4)
    min_support: int | Decimal = draw(st.integers(1, n_rows) | fractions)
    parties = list(data)
    task = task_for(
        data,
        min_support,
        strategy=draw(st.sampled_from(["auto", "level-wise", "one-shot"])),
        disclose=draw(st.sampled_from(["candidates", "supports"])),
        compute=tuple(draw(st.permutations(parties)))[:2],
        prefer=draw(st.sampled_from(["balanced", "disclosure", "speed"])),
        thin=draw(st.booleans()),
        universe=draw(st.sampled_from(["frequent-items", "all-items"])),
        union=draw(st.sampled_from(["maximal", "all"])),
        lambda_=draw(st.decimals("0", "0.99", places=2)),
        max_length=draw(st.none() | st.integers(1, 4)),
        merger=draw(st.sampled_from(parties)),
        learners=tuple(draw(st.lists(st.sampled_from(parties), min_size=1, unique=True))),
    )
    others = [party for party in parties if party not in task.compute]
    if task.is_shared and others and draw(st.booleans()):
        task = replace(task, helper=draw(st.sampled_from(others)))
    return data, task


@given(cases())  # each of them a whole job
@examples(1, 8, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])
def test_joint_result_equals_pooled(case: tuple[dict[str, Rows], HorizontalMining]) -> None:
    data, task = case
    expected = pooled_supports(data, task.min_support, task.max_length)
    results = run(data, task)
    assert {r.n_rows for r in results.values()} == {sum(map(len, data.values()))}
    for party, result in results.items():
        if party in task.learners:
            assert supports(result) == expected
        else:
            assert result.itemsets is None


def test_a_frequent_pair_of_an_infrequent_item_ends_a_job_that_decides_both_at_once(monkeypatch):
    """Counts of pairs and of items are invented one by one: here the items' are."""
    data: dict[str, Rows] = {name: [["a", "b"]] * 2 for name in ("x", "y", "z")}
    options = {"universe": "catalogue", "catalogue": ("a", "b"), "strategy": "level-wise"}
    task = task_for(data, 4, **options, helper="z", security="malicious")
    monkeypatch.setattr(universe, "counts_of", lambda data, items: np.zeros(len(items), np.int64))
    with fails("E400"):
        run(data, task)


@pytest.mark.parametrize(
    "settings",
    [
        {"universe": "frequent-items", "strategy": "level-wise"},
        {"universe": "frequent-items", "strategy": "level-wise", "thin": True},
        {"universe": "all-items", "strategy": "one-shot", "lambda_": Decimal(0)},
    ],
)
def test_where_one_of_three_may_deviate_unions_are_checked_too(settings: dict[str, object]) -> None:
    data = {"x": [["a", "b", "e"], ["a", "b"], ["b"]] * 7, "y": [["a", "b", "c"]] * 9, "z": [["d"]]}
    results = run(data, task_for(data, 20, helper="z", security="malicious", **settings))
    assert {party: supports(result) for party, result in results.items()} == dict.fromkeys(
        data, pooled_supports(data, 20)
    )
    assert {result.strategy for result in results.values()} == {settings["strategy"]}


@pytest.mark.parametrize("disclose", ["supports", "frequent"])
@pytest.mark.parametrize("parties", [3, 4])
def test_where_one_of_three_may_deviate(parties: int, disclose: str) -> None:
    """Parties without a row, and without one of the catalogue's items, take part as others do."""
    data: dict[str, Rows] = {"x": [["a", "b", "e"], ["a", "b"], ["b"]] * 3, "y": [["a", "b", "c"]] * 2, "z": []}
    data |= {"w": [["d", "b", "a"]]} if parties == 4 else {}
    task = task_for(
        data,
        4,
        universe="catalogue",
        catalogue=("a", "b", "c", "d"),
        strategy="level-wise",
        disclose=disclose,
        helper="z",
        security="malicious",
        learners=("y", *tuple(data)[3:]),
    )
    results = run(data, task)
    expected = {itemset: n for itemset, n in pooled_supports(data, 4).items() if "e" not in itemset}
    assert {result.n_rows for result in results.values()} == {sum(map(len, data.values()))}
    for name, result in results.items():
        if name not in task.learners:
            assert result.itemsets is None
        elif disclose == "supports":
            assert supports(result) == expected
        else:
            assert set(supports(result)) == set(expected)


@pytest.mark.parametrize("disclose", ["supports", "frequent"])
@pytest.mark.parametrize("parties", [2, 3, 4])
def test_where_one_of_two_may_deviate(parties: int, disclose: str) -> None:
    """Items and pairs are decided one after the other, since candidates are dear; and nobody else computes."""
    data: dict[str, Rows] = {"x": [["a", "b", "e"], ["a", "b"], ["b"]] * 3, "y": [["a", "b", "c"]] * 2}
    data |= {"z": list[list[str]](), "w": [["d", "b", "a"]]} if parties == 4 else {"z": [["a", "b"]]}
    data = dict(list(data.items())[:parties])
    task = task_for(
        data,
        4,
        universe="catalogue",
        catalogue=("a", "b", "c", "d"),
        strategy="level-wise",
        disclose=disclose,
        security="malicious",
        learners=("x", "y"),
    )
    results = run(data, task)
    expected = {itemset: n for itemset, n in pooled_supports(data, 4).items() if "e" not in itemset}
    assert {result.n_rows for result in results.values()} == {sum(map(len, data.values()))}
    for name, result in results.items():
        if name not in task.learners:
            assert result.itemsets is None
        elif disclose == "supports":
            assert supports(result) == expected
        else:
            assert set(supports(result)) == set(expected)


@pytest.mark.parametrize("strategy", ["level-wise", "one-shot"])
def test_threshold_so_low_that_a_small_party_counts_everything(strategy: str) -> None:
    """τ falls to 1 at the party with one long basket: its 2^30 subsets must neither be enumerated nor missed."""
    long = [f"i{k:02}" for k in range(30)]
    data = {"small": [long], "big": [["i00", "i01"], *([item] for item in long)], "empty": []}
    task = task_for(data, 2, strategy=strategy, lambda_=Decimal("0.99"))
    results = run(data, task)
    assert supports(results["empty"]) == pooled_supports(data, 2)
    assert results["big"].strategy == "level-wise"


@pytest.mark.parametrize("parties", [2, 3, 5])
@pytest.mark.parametrize("settings", [{"strategy": "one-shot"}, {"thin": True}])
def test_no_union_shows_a_row_where_a_threshold_may_be_one(settings: dict[str, object], parties: int) -> None:
    """Whatever the job asks for: some count that no party needs more than one row for is decided on level by level."""
    data = {f"p{k}": [["a", "b", f"own {k}"], ["a", "b"]] for k in range(parties)}
    task = task_for(data, parties, lambda_=Decimal("0.999999"), **settings)
    seen: list[str] = []
    results = run(data, task, observe=lambda frame: seen.append(frame.lane))
    assert supports(results["p0"]) == pooled_supports(data, parties)
    assert not any("/itemsets" in lane or "/thin" in lane for lane in seen)


@pytest.mark.parametrize("thin", [False, True])
def test_thinning_holds_where_level_wise_follows_one_shot(thin: bool) -> None:
    long = [f"i{k:02}" for k in range(30)]
    data = {"small": [long, long], "big": [["i00", "i01"], *([item] for item in long)]}
    task = task_for(data, 3, strategy="one-shot", lambda_=Decimal("0.99"), thin=thin)
    seen: list[str] = []
    results = run(data, task, observe=lambda frame: seen.append(frame.lane))
    assert supports(results["big"]) == pooled_supports(data, 3)
    assert any("/thin" in lane for lane in seen) == thin


def test_a_catalogue_is_the_universe() -> None:
    data = {"x": [["a", "b"], ["a"]], "y": [["a", "b"]]}
    task = task_for(data, 2, universe="catalogue", catalogue=("a", "b", "c"))
    seen: list[str] = []
    results = run(data, task, observe=lambda frame: seen.append(frame.lane))
    assert supports(results["x"]) == pooled_supports(data, 2)
    assert not any("union" in lane for lane in seen)


@pytest.mark.parametrize("strategy", ["level-wise", "one-shot"])
@pytest.mark.parametrize("stranger", ["", "secret item"])
def test_an_item_outside_the_catalogue_is_as_if_it_were_nowhere(strategy: str, stranger: str) -> None:
    """Whether somebody has such an item changes nothing that the others see: no error, no frame's size."""
    seen: list[tuple[str, int]] = []
    data = {"x": [["a", "b", *filter(None, [stranger])], ["a"]], "y": [["a", "b"]]}
    task = task_for(data, 1, universe="catalogue", catalogue=("a", "b", "c"), strategy=strategy)
    results = run(data, task, observe=lambda frame: seen.append((frame.lane, len(frame.body))))
    plain = {"x": [["a", "b"], ["a"]], "y": [["a", "b"]]}
    assert supports(results["y"]) == pooled_supports(plain, 1)
    without: list[tuple[str, int]] = []
    run(plain, task, observe=lambda frame: without.append((frame.lane, len(frame.body))))
    assert sorted(seen) == sorted(without)


def test_no_rows_anywhere() -> None:
    data: dict[str, Rows] = {"x": [], "y": []}
    with fails("E101"):
        run(data, task_for(data, Decimal("0.5")))


def test_count_above_all_rows() -> None:
    data = {"x": [["a"]], "y": [["a"]]}
    with fails("E100"):
        run(data, task_for(data, 3))  # not how many: the sentence reaches the coordinator


@pytest.mark.parametrize(("label", "wrong"), [("rows", 1 << 63), ("rows", -3), ("supports", 1 << 7), ("supports", -3)])
@pytest.mark.parametrize("strategy", ["level-wise", "one-shot"])
def test_sums_that_no_counts_have_are_no_result(
    label: str, wrong: int, strategy: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A party that adds nonsense is noticed where the sum is below one's own count, or above what there can be."""
    data = {"x": [["a", "b"]] * 4, "y": [["a"]], "z": [["b"]]}

    async def sum_of(session, secrets, values, **options):
        if session.me == "z" and options["label"] == label:
            values = values + values.dtype.type(wrong % (1 << 8 * values.itemsize))
        return await secure_sum(session, secrets, values, **options)

    for module in (horizontal_tally, tally):
        monkeypatch.setattr(module, "secure_sum", sum_of)
    with fails("E400"):
        run(data, task_for(data, 2, strategy=strategy))


def test_a_first_learner_that_tells_no_bits_is_named() -> None:
    data = {"x": [["a", "b"]] * 4, "y": [["a"]], "z": [["b"]]}

    def observe(frame: Frame) -> None:
        if frame.type == Opening.DESCRIPTOR.full_name:
            message = Opening.FromString(frame.body)
            if message.label == "frequent":
                message.values = bytes([2]) * message.number
                frame.body = message.SerializeToString()

    with fails("E402") as caught:
        run(data, task_for(data, 2, learners=("y",), disclose="candidates"), observe=observe)
    assert caught.value.party == "y"


def test_a_partys_own_floor_ends_the_job_before_any_item_is_named() -> None:
    data = {"x": [["a", "b"]] * 4, "y": [["a"]], "z": [["b"]]}
    task = task_for(data, Decimal("0.5"))  # comes to 3
    lanes: set[str] = set()

    async def role(session):
        least = 4 if session.me == "y" else 1
        return await mine(session.lane("task"), Transactions.from_rows(data[session.me]), task, least)

    with fails("E300") as caught:
        run_parties(list(data), role, declared=openings(task, tuple(data)), observe=lambda frame: lanes.add(frame.lane))
    assert caught.value.party == "y"
    assert not any(frame.startswith("/task/level") for frame in lanes)


@pytest.mark.parametrize("prefer", ["disclosure", "speed"])
def test_too_many_candidates(prefer: str) -> None:
    data = {"x": [[f"i{k}" for k in range(40)]] * 2, "y": [["i0"]]}
    with fails("E100"):
        run(data, task_for(data, 2, max_candidates=100, prefer=prefer))


def test_a_job_without_an_end_stops_before_it_fills_the_machines() -> None:
    """Each subset of a row of 20 items is frequent: longer itemsets take more room, and so fewer may be tried."""
    data = {"x": [[f"i{k:02}" for k in range(20)]], "y": [["i00"]], "z": [["i01"]]}
    lanes: set[str] = set()
    with fails("E100"):
        run(data, task_for(data, 1, max_candidates=20_000), observe=lambda frame: lanes.add(frame.lane))
    assert any("level-4" in lane for lane in lanes)
    assert not any("level-5" in lane for lane in lanes)
    run(data, task_for(data, 1, max_candidates=20_000, max_length=4))


def test_rounds_of_one_shot_do_not_grow_with_the_length_of_itemsets() -> None:
    """But by the questions that the unions take, of four rounds each."""

    def rounds(length: int) -> set[int]:
        questions = set[str]()
        row = [f"i{k}" for k in range(length)]
        data = {p: [row] * 20 for p in ("x", "y", "z")}
        task = task_for(data, Decimal("0.9"), strategy="one-shot")

        async def role(session):
            lane = session.lane("task")
            await mine(lane, Transactions.from_rows(data[session.me]), task)
            return session.costs.rounds

        def observe(frame: Frame) -> None:
            if "/question" in frame.lane:
                questions.add(frame.lane.split("/question")[0] + frame.lane.split("/question")[1].split("/")[0])

        declared = openings(task, tuple(data))
        found = set(run_parties(list(data), role, declared=declared, observe=observe).values())
        return {number - 4 * len(questions) for number in found}

    assert rounds(2) == rounds(10)


def test_exact_fractions() -> None:
    """0.07 · 100 is 7 exactly, though 0.07 * 100 is above 7 in binary floating point."""
    data = {"x": [["a"]] * 7 + [[]] * 40, "y": [["b"]] * 6 + [[]] * 47}
    assert least_count(Decimal("0.07"), 100) == 7
    assert set(supports(run(data, task_for(data, Decimal("0.07")))["x"])) == {frozenset("a")}
