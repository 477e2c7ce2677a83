"""Rounds begin and end by the clock, whatever the clock and the node do: none twice, none at a wrong time."""

from __future__ import annotations

import math
from collections.abc import Iterator
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crypto.primitives.randomness import Randomness
from jobs.collections.spec import CollectionSpec
from ldp.aggregator import Aggregator
from ldp.domain import Domain
from ldp.frequency_oracle import FrequencyOracle
from ldp.heavy_hitters.prefix_extending import PrefixHashing, PrefixServer
from party.services.frequency.schedule import LATE, USERS, Plan, Schedule, Search, release_of, schedule_of
from tests.party.services.frequency.specs import spec_of

CREATED = 1_700_000_000.25

Moves = st.lists(
    st.tuples(st.floats(-30, 400, allow_nan=False), st.booleans(), st.sampled_from([0, 0, 1, 40])),
    min_size=1,
    max_size=25,
)
"""Seconds that pass, whether the node runs at the end of them, and how many report to each round that is open then."""


class Run:
    """A collection whose node runs at some moments only; like the service, but without anything on disk."""

    def __init__(self, spec: CollectionSpec) -> None:
        size = spec.collection.size
        self.schedule: Schedule = schedule_of(spec, None if size is None else Domain(size), CREATED)
        self.state = self.schedule.initial
        self.open: dict[int, Plan] = {}
        self.reports: dict[int, Aggregator[Any]] = {}
        self.opened: list[Plan] = []
        self.results: dict[int, bytes] = {}
        self.rng = Randomness.from_seed(1)

    def advance(self, now: float) -> None:
        """What the node does when it looks at the clock."""
        for number, plan in sorted(self.open.items()):
            if plan.closes and plan.closes <= now:
                self.end(number)
        while (begun := self.schedule.begin(self.state, bool(self.open), now)) is not None:
            self.open[begun.number], self.state = begun, begun.state
            self.reports[begun.number] = Aggregator(begun.mechanism)
            self.opened.append(begun)

    def end(self, number: int) -> None:
        """Ends one round."""
        outcome = self.schedule.end(self.state, number, self.reports[number])
        self.state, self.results[number] = outcome.state, outcome.result
        del self.open[number]

    def report(self, number: int, n: int) -> None:
        """n clients report the first value of the domain."""
        mechanism = self.open[number].mechanism
        value: Any = "ab" if isinstance(mechanism, PrefixHashing) else 0
        self.reports[number].add(mechanism.privatise([value] * n, self.rng))

    def play(self, moves: list[tuple[float, bool, int]]) -> Iterator[float]:
        """The moments at which the node runs."""
        now = CREATED
        self.advance(now)
        for passed, runs, reports in moves:
            now += passed
            if runs:
                self.advance(now)
                for number in list(self.open):
                    self.report(number, reports)
                yield now


@given(moves=Moves)
def test_one_round_is_open_until_the_collection_is_closed(moves: list[tuple[float, bool, int]]) -> None:
    run = Run(spec_of())
    for _ in run.play(moves):
        assert list(run.open) == [0]
        assert run.schedule.wake(run.state, [0.0], CREATED) == math.inf
    assert [(plan.number, plan.closes, plan.share) for plan in run.opened] == [(0, 0.0, "")]


@given(moves=Moves, grace=st.sampled_from(["0s", "7s", "25s", "70s"]), periods=st.sampled_from([None, 1, 5]))
def test_windows_are_open_exactly_in_their_time(
    moves: list[tuple[float, bool, int]], grace: str, periods: int | None
) -> None:
    run = Run(spec_of(window={"length": "10s", "grace": grace, "periods": periods}))
    margin, latest = int(grace[:-1]), CREATED
    for now in run.play(moves):
        should = {n for n in range(1200) if CREATED + 10 * n <= now < CREATED + 10 * n + 10 + margin}
        should = {n for n in should if periods is None or n < periods}
        if now >= latest:
            assert set(run.open) == should
        latest = max(latest, now)
        wake = run.schedule.wake(run.state, [plan.closes for plan in run.open.values()], now)
        assert wake > now
        if run.schedule.is_over(run.state, now):
            assert periods is not None
            assert run.schedule.wake(run.state, [], now) == math.inf
    numbers = [plan.number for plan in run.opened]
    assert numbers == sorted(set(numbers))
    assert all(plan.period == plan.step == plan.number for plan in run.opened)
    assert all(
        (plan.opens, plan.closes) == (CREATED + 10 * n, CREATED + 10 * n + 10 + margin)
        for n, plan in zip(numbers, run.opened, strict=True)
    )


@given(moves=Moves, periods=st.sampled_from([None, 1, 2]))
def test_a_search_goes_on_round_by_round(moves: list[tuple[float, bool, int]], periods: int | None) -> None:
    spec = spec_of(
        mechanism="prefix-extending",
        epsilon="4.0",
        text_bytes=2,
        k=2,
        parameters={"groups": 3},
        window={"length": "10s", "periods": periods},
    )
    run = Run(spec)
    assert isinstance(run.schedule, Search)
    plan, server = run.schedule.plan, None
    for now in run.play(moves):
        assert len(run.open) <= 1
        assert run.schedule.wake(run.state, [each.closes for each in run.open.values()], now) > now
    for before, after in zip([None, *run.opened], run.opened, strict=False):
        assert after.closes - after.opens == pytest.approx(10)
        assert after.purpose == "prefixes"
        assert after.period == after.number // 3
        assert after.period < (periods or math.inf)
        which = after.number % 3
        if which == 0:
            server = PrefixServer(plan)
        else:  # only after a round with reports, and about what it found
            assert before is not None
            assert server is not None
            assert before.number == after.number - 1
            server.reports = run.reports[before.number]
            server.advance()
        assert server is not None
        assert server.oracle.fingerprint == after.mechanism.fingerprint
        if before is not None:
            assert after.opens >= before.closes - 1e-6
            if which == 0:
                assert not len(run.reports[before.number]) or before.number % 3 == 2
                assert after.period == before.period + 1


METHODS = ["lbu", "lsp", "lbd", "lba", "lpu", "lpd", "lpa"]


@given(moves=Moves, method=st.sampled_from(METHODS), w=st.integers(1, 4))
def test_continual_release_never_exceeds_its_budget(moves: list[tuple[float, bool, int]], method: str, w: int) -> None:
    run = Run(spec_of(epsilon="1.5", window={"length": "10s"}, continual={"method": method, "w": w, "users": 40}))
    for now in run.play(moves):
        assert len(run.open) <= 1
        assert run.schedule.wake(run.state, [each.closes for each in run.open.values()], now) > now
    by_window: dict[int, list[Plan]] = {}
    for plan in run.opened:
        window = math.floor((plan.opens - CREATED) / 10 + 1e-6)
        by_window.setdefault(window, []).append(plan)
        assert plan.period == plan.number
    numbers = [plan.number for plan in run.opened]
    assert numbers == list(range(len(numbers)))
    steps = [plans[0].step for plans in by_window.values()]
    assert steps == sorted(set(steps))
    for first in by_window:
        within = [plan for at, plans in by_window.items() if first <= at < first + w for plan in plans]
        spent = sum((Fraction(plan.mechanism.epsilon) for plan in within), Fraction(0))
        if method.startswith("lb") or method == "lsp":
            assert spent <= Fraction(3, 2)
            assert all(plan.share == "" for plan in within)
        else:
            assert all(plan.mechanism.epsilon <= 1.5 for plan in within)
    two = method in ("lbd", "lba", "lpd", "lpa")
    for window, plans in by_window.items():
        assert [plan.purpose for plan in plans] in (
            [["dissimilarity"], ["dissimilarity", "publication"]] if two else [["publication"]]
        )
        begins = CREATED + 10 * window
        assert plans[0].opens == pytest.approx(begins)
        assert plans[-1].closes == pytest.approx(begins + (5 if two and len(plans) == 1 else 10))
    for result in filter(None, run.results.values()):
        release = release_of(result)
        assert release.frequencies.shape == release.variances.shape == (8,)


def test_a_step_publishes_what_has_changed_and_else_repeats() -> None:
    run = Run(spec_of(epsilon="6.0", window={"length": "10s"}, continual={"method": "lba", "w": 2}))
    fresh: list[bool] = []
    for second in range(80):
        run.advance(CREATED + second)
        for number, plan in run.open.items():
            if not len(run.reports[number]):
                mechanism = plan.mechanism
                assert isinstance(mechanism, FrequencyOracle)
                run.reports[number].add(mechanism.privatise([0 if second < 40 else 5] * 5000, run.rng))
    for result in run.results.values():
        if result:
            fresh.append(release_of(result).fresh)
    assert fresh[0]
    assert set(fresh[1:]) == {True, False}
    last = release_of([result for result in run.results.values() if result][-1])
    assert last.frequencies.argmax() == 5


def test_a_missed_beginning_is_left_out_but_a_little_lateness_is_not() -> None:
    for late, begins in ((0, True), (10 * LATE, True), (10 * LATE + 0.5, False)):
        run = Run(spec_of(window={"length": "10s"}, continual={"method": "lbu", "w": 3}))
        run.advance(CREATED + 50 + late)
        assert bool(run.open) is begins
        assert all(plan.step == 0 for plan in run.opened)
        run.advance(CREATED + 60)
        assert len(run.open) == 1
    assert USERS > 0
