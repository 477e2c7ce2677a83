"""Mining under distributed noise: without its noise it is the pooled result, and its noise is what the budget says."""

from __future__ import annotations

import math
from collections import defaultdict
from decimal import Decimal
from itertools import combinations
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from crypto.primitives.randomness import Randomness
from crypto.protocols.sums.pairwise import agree
from crypto.protocols.sums.secure_sum import declared, secure_sum
from link.errors import ComineError, MalformedMessage
from mining.data.transactions import Transactions
from mining.joint.distributed import budget, noisy_sum
from mining.joint.distributed import mine as protocol
from mining.joint.distributed.budget import given_contributions, length_noise, rows_noise
from mining.joint.distributed.disclosure import openings
from mining.joint.distributed.mine import mine
from mining.joint.distributed.parameters import DistributedMining
from mining.joint.hybrid.openings import open_document
from mining.joint.parameters import RuleParameters
from mining.limits import MAX_ITEM_BYTES
from protos.v1.link_pb2 import Frame, Opening
from tests.errors import fails
from tests.mining.joint.distributed.distributed_world import (
    is_closed,
    run,
    silence,
    supports,
    task_for,
    truncated_items,
    truncated_sets,
)
from tests.mining.joint.oracle import Rows, pooled_supports
from tests.world import run_parties

pytestmark = pytest.mark.turn(6)

ITEMS = ["a", "b", "c", "bread, white", "ünï", "ミルク", "e" * 40]
PARTIES = ("north", "south", "east", "west", "middle")

rows = st.lists(st.lists(st.sampled_from(ITEMS), max_size=6), max_size=8)


@st.composite
def cases(draw: st.DrawFn) -> tuple[dict[str, Rows], DistributedMining]:
    """Two to five parties with as many rows as they like, perhaps none."""
    data = {name: draw(rows) for name in PARTIES[: draw(st.integers(2, 5))]}
    n_rows = max(1, sum(map(len, data.values())))
    task = task_for(
        data,
        draw(st.integers(1, n_rows) | st.decimals("0.05", "1", places=2)),
        catalogue=tuple(sorted(ITEMS)),
        max_length=draw(st.integers(1, 5)),
        colluding=draw(st.integers(0, len(data) - 2)),
        noise=draw(st.sampled_from(["discrete-gaussian", "skellam"])),
        learners=tuple(draw(st.lists(st.sampled_from(list(data)), min_size=1, unique=True))),
    )
    return data, task


@given(cases())  # each of them a whole job
@settings(max_examples=15, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])
def test_without_noise_and_truncation_it_is_the_pooled_result(case: tuple[dict[str, Rows], DistributedMining]) -> None:
    data, task = case
    assert task.min_support is not None
    n_rows = sum(map(len, data.values()))
    expected = pooled_supports(data, task.min_support, task.max_length) if n_rows else {}
    with pytest.MonkeyPatch.context() as patch:
        silence(patch)
        results = run(data, task)
    for party, result in results.items():
        assert result.n_rows == max(1, n_rows)
        if party in task.learners:
            assert supports(result) == expected
        else:
            assert result.estimated is None


@pytest.mark.parametrize("transport", ["memory", "grpc"])
@pytest.mark.parametrize("noise", ["discrete-gaussian", "skellam"])
def test_every_sum_is_that_of_truncated_counts_and_all_shares(
    noise: str, transport: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Counts by brute force over the pooled rows, truncated as documented; what is opened less all shares is these."""
    random = np.random.default_rng(3)
    names = [f"item {k:02}" for k in range(12)]
    data: dict[str, Rows] = {
        party: [[names[k] for k in np.flatnonzero(random.random(12) < 0.6)] for _ in range(size)]
        for party, size in (("north", 300), ("south", 200), ("east", 0))
    }
    shares: dict[int, list[np.ndarray]] = defaultdict(list)
    sums: list[np.ndarray] = []
    sent: dict[str, list[np.ndarray]] = defaultdict(list)
    drawn, summed = budget.SumNoise.share, protocol.noisy_sum

    def share(self: Any, size: int, source: Any) -> np.ndarray:
        shares[size].append(drawn(self, size, source))
        return shares[size][-1]

    async def watched(session: Any, secrets: Any, counts: np.ndarray, *others: Any) -> Any:
        sent[session.path].append(counts)
        opened = await summed(session, secrets, counts, *others)
        if session.me == "north":
            sums.append(opened)
        return opened

    monkeypatch.setattr(budget.SumNoise, "share", share)
    monkeypatch.setattr(protocol, "noisy_sum", watched)
    task = task_for(data, 60, contributions=(5, 9, 1000), colluding=1, noise=noise, max_length=3)
    results = run(data, task, transport=transport)
    levels = [f"/task/level-{length}" for length in (1, 2, 3)]
    sizes = ["/task/sizes-1", "/task/sizes-2"]
    assert list(sent) == ["/task/rows", sizes[0], levels[0], sizes[1], *levels[1:]]
    told = dict(zip(sent, sums, strict=True))
    for opened, path in zip(sums, sent, strict=True):
        counts = np.sum(sent[path], axis=0)
        assert (opened - np.sum(shares[len(opened)], axis=0)).tolist() == counts.tolist()
    pooled = [row for party in data.values() for row in party]
    long = sum(len(row) > 5 for row in pooled)
    assert np.sum(sent[sizes[0]], axis=0).tolist() == [len(pooled) - long, long]
    many = sum(math.comb(len(row), 2) > 9 for row in pooled)
    assert np.sum(sent[sizes[1]], axis=0)[2:].tolist() == [len(pooled) - many, many]
    kept = [truncated_items(row, 5) for row in pooled]
    assert np.sum(sent[levels[0]], axis=0).tolist() == [sum(name in row for row in kept) for name in names]
    assert len(np.sum(sent[levels[1]], axis=0)) == len(list(combinations(names, 2)))  # all items are frequent here
    order = _expected_order(int(told["/task/rows"][0]), told[levels[0]], names)
    pairs = np.array(truncated_sets(pooled, order, 9))
    counted = dict(zip(map(frozenset, combinations(names, 2)), np.sum(sent[levels[1]], axis=0).tolist(), strict=True))
    assert [counted[pair] for pair in order] == pairs.tolist()
    assert {party: supports(result) for party, result in results.items()} == dict.fromkeys(
        data, supports(results["north"])
    )


def _expected_order(n_rows: int, singles: np.ndarray, names: list[str]) -> list[frozenset[str]]:
    """Pairs by the product of their items' noisy counts, of equal ones the first."""
    count = dict(zip(names, np.maximum(singles, 1).tolist(), strict=True))
    pairs = list(combinations(names, 2))
    return [frozenset(pair) for pair in sorted(pairs, key=lambda p: -(count[p[0]] * count[p[1]] / n_rows))]


def test_noise_in_the_result_has_the_deviation_that_it_tells() -> None:
    """2,000 items that every row has: the sum of squares by σ² is chi-square, 10^-9 of it beyond 6.1 deviations."""
    items = [f"i{k:04}" for k in range(2000)]
    data: dict[str, Rows] = {"north": [items] * 350, "south": [items] * 250, "east": [items] * 400}
    for noise in ("discrete-gaussian", "skellam"):
        task = task_for(data, 1, max_length=1, colluding=1, noise=noise, epsilon=Decimal(8))
        found = run(data, task, seed=5)["south"].estimated.itemsets
        assert found is not None
        ((sets, counts, deviations),) = found.levels
        assert len(sets) == 2000
        sigma = length_noise(task, 3, 1, 2000).sigma
        assert set(deviations.tolist()) == {sigma}
        assert abs((((counts - 1000) / sigma) ** 2).sum() - 2000) < 6.1 * np.sqrt(2 * 2000)


def test_the_number_of_rows_is_noisy() -> None:
    data: dict[str, Rows] = {"north": [["a"]] * 900, "south": [["a"]] * 100}
    task = task_for(data, Decimal("0.5"), max_length=1)
    told = {run(data, task, seed)["north"].n_rows for seed in range(12)}
    assert len(told) > 3
    assert all(abs(n - 1000) < 8 * rows_noise(task, 2).sigma for n in told)  # 12 of them: 10^-14


# -- what is asked for -------------------------------------------------------------------------------------------------
BASKETS: dict[str, Rows] = {
    "north": [["a", "b", "c"]] * 500 + [["a", "b"]] * 300 + [["d"]] * 200,
    "south": [["a", "b", "c"]] * 400 + [["c"]] * 300 + [["e", "a"]] * 100,
    "east": [],
}


@pytest.mark.parametrize("seed", range(3))
def test_the_k_largest(seed: int) -> None:
    """Counts 1,300, 1,200, 1,200, … are far from 900, the next, by the noise of these contributions."""
    task = task_for(BASKETS, None, top_k=4, contributions=(3, 3, 1), colluding=1)
    found = supports(run(BASKETS, task, seed)["east"])
    assert set(found) == {frozenset(x) for x in ("a", "b", "c", "ab")}


def test_the_k_largest_of_those_that_are_frequent() -> None:
    asked = {"contributions": (3, 3, 1), "colluding": 1}
    all_of_them = supports(run(BASKETS, task_for(BASKETS, 1250, **asked))["east"])
    assert set(all_of_them) == {frozenset("a")}
    more = supports(run(BASKETS, task_for(BASKETS, 1250, top_k=3, **asked))["east"])
    assert set(more) == {frozenset("a")}
    fewer = set(supports(run(BASKETS, task_for(BASKETS, 700, top_k=3, **asked))["east"]))
    assert len(fewer) == 3
    assert fewer < {frozenset(x) for x in ("a", "b", "c", "ab")}  # of which all but the first are as frequent


def test_fewer_than_k_where_the_rest_is_lost_in_noise() -> None:
    task = task_for(BASKETS, None, top_k=1000, colluding=1, catalogue=(*"abc", *(f"no {k}" for k in range(500))))
    found = supports(run(BASKETS, task)["north"])
    assert {frozenset(x) for x in ("a", "b", "c", "ab", "abc")} <= set(found)
    assert len(found) < 200


@pytest.mark.parametrize("seed", range(4))
def test_every_subset_of_what_is_told_is_told(seed: int) -> None:
    """Also where noise puts an itemset above the bar and its subset below."""
    random = np.random.default_rng(seed)
    data: dict[str, Rows] = {
        party: [[f"i{k}" for k in np.flatnonzero(random.random(9) < 0.55)] for _ in range(150)]
        for party in ("north", "south")
    }
    for asked in ({"min_support": 90}, {"min_support": None, "top_k": 30}):
        task = task_for(data, **asked, contributions=(9, 30, 30, 20))
        found = set(supports(run(data, task, seed)["north"]))
        assert is_closed(found)
        if "top_k" in asked:
            assert len(found) == 30


@pytest.mark.parametrize("consequent", ["any", "single"])
def test_rules_have_intervals(consequent: Any) -> None:
    rules = RuleParameters(Decimal("0.6"), consequent)
    result = run(BASKETS, task_for(BASKETS, 500, contributions=(3, 3, 1), colluding=1, rules=rules))["east"]
    assert result.estimated is not None
    assert result.estimated.rules is not None
    told = {(rule.antecedent, rule.consequent): rule for rule in result.estimated.rules.rules}
    assert (("b",), ("a",)) in told
    assert (("a",), ("c",)) in told
    assert ((("b",), ("a", "c")) in told) == (consequent == "any")
    for (antecedent, whole), rule in told.items():
        assert 0.6 <= rule.confidence <= 1
        assert rule.low <= rule.confidence <= rule.high
        assert not set(antecedent) & set(whole)
    exact = {(("b",), ("a",)): 1.0, (("a",), ("c",)): 900 / 1300, (("a", "b"), ("c",)): 900 / 1200}
    for sides, confidence in exact.items():  # three intervals of 95 %, with a seed where they hold
        assert told[sides].low <= confidence <= told[sides].high


# -- items -------------------------------------------------------------------------------------------------------------
def test_items_that_the_catalogue_does_not_name_are_left_out_without_a_word() -> None:
    data = BASKETS | {"east": [["a", "secret"]] * 300}
    task = task_for(data, 200, catalogue=("a", "b", "z"), contributions=(3, 3, 1))
    assert set(supports(run(data, task)["north"])) == {frozenset("a"), frozenset("b"), frozenset("ab")}


def test_items_are_named_by_noisy_counts() -> None:
    data = BASKETS | {"east": [["a", "rare"], ["once"]]}
    task = task_for(data, 600, catalogue=None, contributions=(4, 4, 2), colluding=1)
    told: dict[str, str] = {}

    def observe(frame: Frame) -> None:
        if frame.type == Opening.DESCRIPTOR.full_name and frame.lane == "/task/items":
            told[frame.sender] = Opening.FromString(frame.body).values.decode()

    found = supports(run(data, task, observe=observe)["east"])
    assert {frozenset(x) for x in ("a", "b", "c", "ab", "ac", "bc", "abc")} == set(found)
    assert told == {"north": '["a","b","c","d"]', "south": '["a","b","c","e"]', "east": "[]"}


def test_no_items_anywhere() -> None:
    data: dict[str, Rows] = {"north": [], "south": [["a"]]}
    for result in run(data, task_for(data, 1, catalogue=None)).values():
        assert supports(result) == {}


@pytest.mark.parametrize(
    "packed", [b'["b","a"]', b'["a","a"]', b'["a", "b"]', b'{"a":1}', b"[1]", b"\xff", b"[" * 5000, b'["\\ud800"]', b""]
)
def test_a_party_that_opens_no_list_of_items_is_named(packed: bytes) -> None:
    task = task_for(BASKETS, 600, catalogue=None)

    async def wrong(session: Any) -> None:
        lane = session.lane("task")
        secrets = await agree(lane.lane("keys"))
        rows, random = np.zeros(1, np.int64), Randomness.from_os()
        await noisy_sum.noisy_sum(lane.lane("rows"), secrets, rows, rows_noise(task, 3), "noisy_rows", random)
        await open_document(lane.lane("items"), "items", packed, 1, session.others)
        await session.lane("end").gather(Opening)

    async def right(session: Any) -> Any:
        return await mine(session.lane("task"), Transactions.from_rows(BASKETS[session.me]), task)

    with fails("E402") as caught:
        run_parties(
            list(BASKETS),
            {"north": right, "south": wrong, "east": right},
            declared=openings(task, tuple(BASKETS)),
        )
    assert caught.value.party == "south"


# -- errors ------------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("label", ["noisy_rows", "noisy_supports"])
@pytest.mark.parametrize("wrong", [1 << 62, -(1 << 62)])
def test_sums_beyond_all_counts_end_the_job(label: str, wrong: int, monkeypatch: pytest.MonkeyPatch) -> None:
    async def sum_of(session: Any, secrets: Any, values: np.ndarray, **options: Any) -> Any:
        if session.me == "east" and options["label"] == label:
            values = values + np.uint64(wrong % (1 << 64))
        return await secure_sum(session, secrets, values, **options)

    monkeypatch.setattr(noisy_sum, "secure_sum", sum_of)
    with fails("E400"):
        run(BASKETS, task_for(BASKETS, 600))


@pytest.mark.parametrize("size", [0, 4, 6, 30_000])
def test_another_number_of_sums_is_malformed_and_names_its_sender(size: int) -> None:
    task = task_for(BASKETS, 600)
    noise = length_noise(task, 3, 1, 5)

    async def role(session: Any) -> Any:
        secrets = await agree(session.lane("keys"))
        counts = np.zeros(size if session.me == "south" else 5, np.int64)
        random = Randomness.from_os()
        return await noisy_sum.noisy_sum(session.lane("sum"), secrets, counts, noise, "noisy_supports", random)

    line = declared("noisy_supports", BASKETS, 1 << 20, what="x", when="y")
    with pytest.raises(ComineError) as caught:
        run_parties(["north", "south"], role, declared=[line])
    assert isinstance(caught.value, MalformedMessage)


def test_too_many_candidates() -> None:
    data: dict[str, Rows] = {"north": [[f"i{k}" for k in range(40)]] * 900, "south": []}
    with fails("E100"):
        run(data, task_for(data, 300, contributions=(40,), max_candidates=100))


def test_too_many_named_items() -> None:
    data: dict[str, Rows] = {"north": [[f"i{k}" for k in range(9)]] * 900, "south": []}
    with fails("E100"):
        run(data, task_for(data, 300, contributions=(9,), catalogue=None, max_candidates=5))


def test_items_that_cannot_be_named_are_left_out_without_a_word() -> None:
    """An error would tell of a record, behind no noise at all."""
    longest = "y" * MAX_ITEM_BYTES
    data: dict[str, Rows] = {"north": [["a", longest, longest + "z"]] * 900, "south": []}
    found = run(data, task_for(data, 300, contributions=(9,), catalogue=None, max_length=1))["south"].estimated.itemsets
    assert found is not None
    assert set(found.items) == {"a", longest}


def test_a_partys_own_floor_ends_the_job_before_any_support_is_opened() -> None:
    task, lanes = task_for(BASKETS, 600), set[str]()

    async def role(session: Any) -> Any:
        least = 601 if session.me == "south" else 600
        return await mine(session.lane("task"), Transactions.from_rows(BASKETS[session.me]), task, least)

    with fails("E300") as caught:
        run_parties(
            list(BASKETS),
            role,
            declared=openings(task, tuple(BASKETS)),
            observe=lambda frame: lanes.add(frame.lane) if frame.sender == "south" else None,
        )
    assert caught.value.party == "south"
    assert not any(lane.startswith("/task/level") for lane in lanes)


def test_contributions_are_no_more_than_candidates() -> None:
    """Three items: a record counts to three at most, whatever the job says, and the noise is that of three."""
    data: dict[str, Rows] = {"north": [["a", "b", "c"]] * 400, "south": []}
    task = task_for(data, 200, contributions=(1000,), max_length=2)
    found = run(data, task)["north"].estimated.itemsets
    assert found is not None
    assert [set(deviations.tolist()) for _, _, deviations in found.levels] == [
        {length_noise(task, 2, length, 3).sigma} for length in (1, 2)
    ]
    assert given_contributions(task, 1) == 1000
