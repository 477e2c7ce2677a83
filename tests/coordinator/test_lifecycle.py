"""The job's state machine: its table, every path through it, and that nothing outside it ever happens."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from coordinator.jobs.lifecycle import (
    MARGIN_S,
    MOVES,
    RELEASE_S,
    Act,
    Attend,
    Away,
    CancelAll,
    CancelAsked,
    Decided,
    Effect,
    Ended,
    Event,
    Job,
    Problem,
    Propose,
    Reported,
    Signal,
    Stand,
    Start,
    State,
    step,
)
from link.errors import BY_CODE

PARTIES = ("north", "south", "east")
EXPIRES = 1000.0
TERMINAL = {State.SUCCEEDED, State.FAILED, State.DENIED, State.CANCELLED, State.EXPIRED}


def draft() -> Job:
    return Job.draft(PARTIES, expires=EXPIRES, deadline_s=60)


def after(*events: Event, now: float = 0.0) -> tuple[Job, list[Effect]]:
    """A job after some events, and all effects so far."""
    job, performed = draft(), list[Effect]()
    for event in events:
        job, effects = step(job, event, now)
        performed += effects
    return job, performed


def decided(*approved: bool) -> list[Event]:
    return [Decided(party, yes) for party, yes in zip(PARTIES, approved, strict=True)]


def reported(stand: Stand) -> list[Event]:
    return [Reported(party, stand) for party in PARTIES]


PROPOSED: list[Event] = [Signal.TAKEN_UP]
AWAITING = [*PROPOSED, *decided(True, False, False)]
APPROVED = [*PROPOSED, *decided(True, True, True)]
RUNNING = [*APPROVED, Signal.STARTED]
RELEASING = [*RUNNING, *reported(Stand.DONE)]
PATHS: dict[State, list[Event]] = {
    State.DRAFT: [],
    State.PROPOSED: PROPOSED,
    State.AWAITING: AWAITING,
    State.APPROVED: APPROVED,
    State.RUNNING: RUNNING,
    State.RELEASING: RELEASING,
}


@pytest.mark.parametrize(("state", "most"), [(State.RUNNING, 60 + MARGIN_S), (State.RELEASING, RELEASE_S)])
def test_a_clock_that_was_set_back_between_two_drivers_lengthens_no_wait(state: State, most: float) -> None:
    job, _ = after(*PATHS[state], now=900.0)
    taken_up, _ = step(job, Signal.TAKEN_UP, 5.0)
    assert taken_up.until == 5.0 + most
    assert step(taken_up, Signal.CLOCK, 5.0 + most)[0].state in TERMINAL


def test_the_table_names_every_state_and_what_is_over_only_begins_again() -> None:
    assert set(MOVES) == set(State)
    for state in TERMINAL:
        assert MOVES[state] == ({State.APPROVED} if state in (State.FAILED, State.CANCELLED) else set())
    for state, moves in MOVES.items():
        assert state not in moves
        if state not in TERMINAL:  # what goes on can always be cancelled, and can always fail
            assert {State.CANCELLED, State.FAILED} <= moves


def test_every_state_is_reached_from_the_draft() -> None:
    seen, open_ = {State.DRAFT}, [State.DRAFT]
    while open_:
        new = MOVES[open_.pop()] - seen
        seen |= new
        open_ += new
    assert seen == set(State)


@pytest.mark.parametrize("state", PATHS)
def test_each_path_ends_in_its_state(state: State) -> None:
    job, _ = after(*PATHS[state])
    assert job.state is state


def test_a_job_that_all_policies_approve() -> None:
    job, effects = after(*RELEASING, *reported(Stand.RELEASED), Signal.RELEASED)
    assert job.state is State.SUCCEEDED
    assert effects == [
        *(Act.SAVE, Propose(PARTIES, again=False)),
        *(Act.SAVE, Start(again=False)),
        *(Act.SAVE, Act.FOLLOW),
        *(Act.SAVE, Act.FETCH),
        Act.SAVE,
    ]
    assert job.waits_for == ()


def test_a_job_that_people_approve() -> None:
    job, effects = after(*AWAITING)
    assert effects[-2:] == [Act.SAVE, Attend(("south", "east"))]
    assert job.waits_for == ("south", "east")
    job, effects = after(*AWAITING, Decided("east", True))
    assert (job.state, job.waits_for, effects[-1]) == (State.AWAITING, ("south",), Act.SAVE)
    job, effects = after(*AWAITING, Decided("east", True), Decided("south", True))
    assert job.state is State.APPROVED
    assert effects[-2:] == [Act.SAVE, Start(again=True)]


@pytest.mark.parametrize(
    ("state", "effect"),
    [
        (State.PROPOSED, Propose(PARTIES, again=True)),
        (State.AWAITING, Attend(("south", "east"))),
        (State.APPROVED, Start(again=True)),
        (State.RUNNING, Act.FOLLOW),
        (State.RELEASING, Act.FETCH),
    ],
)
def test_a_job_is_taken_up_where_it_stands(state: State, effect: Effect) -> None:
    job, _ = after(*PATHS[state])
    again, effects = step(job, Signal.TAKEN_UP, 1.0)
    assert again.state is state
    assert effects == (effect,)


@pytest.mark.parametrize("state", PATHS)
def test_the_clock_ends_what_waits_too_long(state: State) -> None:
    job, _ = after(*PATHS[state])
    assert step(job, Signal.CLOCK, job.until - 1) == (job, ())
    late, effects = step(job, Signal.CLOCK, job.until)
    assert late.problem is not None
    assert late.problem.code == "E600"
    early = state in (State.DRAFT, State.AWAITING, State.APPROVED)
    assert late.state is (State.EXPIRED if early else State.FAILED)
    assert effects == ((Act.SAVE,) if state is State.DRAFT else (CancelAll(late.problem.message), Act.SAVE))


def test_the_clock_names_who_was_waited_for() -> None:
    def words(*events: Event) -> str:
        job, _ = after(*events)
        problem = step(job, Signal.CLOCK, job.until)[0].problem
        assert problem is not None
        return problem.message

    assert "before south and east had decided" in words(*AWAITING)
    assert "started at south;" in words(*APPROVED, Away("south", True))
    assert "waited for north and east" in words(*RUNNING, Reported("south", Stand.DONE))
    assert "east did not hand over" in words(*RELEASING, *reported(Stand.RELEASED)[:2])
    assert "south and east did not answer" in words(*PROPOSED, Decided("north", True))


def test_a_coordinator_that_comes_back_late_asks_before_it_gives_up() -> None:
    for path, effect in ((RUNNING, Act.FOLLOW), (RELEASING, Act.FETCH)):
        job, _ = after(*path)
        now = job.until + 10_000
        again, effects = step(job, Signal.TAKEN_UP, now)
        assert effects == (effect,)
        assert again.until > now
    for path in (AWAITING, APPROVED):
        job, _ = after(*path)
        assert step(job, Signal.TAKEN_UP, EXPIRES)[0].state is State.EXPIRED


@pytest.mark.parametrize("state", PATHS)
def test_a_driver_that_stood_still_asks_before_it_gives_up(state: State) -> None:
    job, _ = after(*PATHS[state])
    assert step(job, Signal.WOKEN, job.until - 1) == (job, ())
    woken, effects = step(job, Signal.WOKEN, job.until + 1000)
    if state in (State.RUNNING, State.RELEASING):
        assert (woken.state, effects) == (state, ())
        assert woken.until > job.until + 1000
        assert step(woken, Signal.CLOCK, woken.until)[0].state is State.FAILED
    else:
        assert woken.over


@pytest.mark.parametrize(
    ("code", "state", "end"),
    [
        ("E300", State.PROPOSED, State.DENIED),
        ("E300", State.AWAITING, State.DENIED),
        ("E300", State.RUNNING, State.FAILED),
        ("E600", State.RUNNING, State.FAILED),
        ("E500", State.RUNNING, State.CANCELLED),
        ("E200", State.APPROVED, State.FAILED),
    ],
)
def test_a_problem_decides_how_a_job_ends(code: str, state: State, end: State) -> None:
    job, _ = after(*PATHS[state])
    problem = Problem(code, "because", "south")
    ended, effects = step(job, Ended(problem), 1.0)
    assert (ended.state, ended.problem) == (end, problem)
    assert effects == (CancelAll("because"), Act.SAVE)


def test_a_party_whose_clock_is_ahead_does_not_hide_who_has_not_decided() -> None:
    job, _ = after(*AWAITING)
    ended, _ = step(job, Ended(Problem("E600", "the proposal expired at east", "east")), job.until - 1)
    assert ended.state is State.EXPIRED
    assert ended.problem is not None
    assert "before south and east had decided" in ended.problem.message


@pytest.mark.parametrize("state", [State.AWAITING, State.APPROVED])
def test_a_party_whose_clock_is_far_ahead_is_named_where_the_job_expires_there(state: State) -> None:
    job, _ = after(*PATHS[state])
    ended, _ = step(job, Ended(Problem("E600", "the proposal expired at east", "east")), job.expires - 42)
    assert ended.state is State.EXPIRED
    assert ended.problem is not None
    assert ended.problem.message.startswith("the job expired at east before its time: the clock there is 42 s ahead of")


@pytest.mark.parametrize("state", PATHS)
def test_cancelling_ends_a_job_in_any_phase(state: State) -> None:
    job, _ = after(*PATHS[state])
    ended, effects = step(job, CancelAsked("no need"), 1.0)
    assert ended.state is State.CANCELLED
    assert ended.problem is not None
    assert ended.problem.message.endswith(": no need")
    assert effects[-1] == Act.SAVE
    assert any(isinstance(effect, CancelAll) for effect in effects) == (state is not State.DRAFT)


LOST = Ended(Problem("E200", "south was lost", "south"))


@pytest.mark.parametrize("end", [LOST, CancelAsked("no need"), Ended(Problem("E600", "too late"))])
def test_a_job_that_was_lost_is_approved_for_another_attempt(end: Event) -> None:
    lost, _ = after(*RUNNING, end)
    again, effects = step(lost, Signal.RESUMED, 1.0)
    assert (again.state, again.attempt, again.problem, again.until) == (State.APPROVED, 2, None, EXPIRES)
    assert set(again.stands.values()) == {Stand.APPROVED}
    assert effects == (Act.SAVE,)
    assert step(again, Signal.TAKEN_UP, 1.0)[1] == (Start(again=True),)
    third, _ = after(*RUNNING, end, Signal.RESUMED, Signal.STARTED, end, Signal.RESUMED)
    assert (third.state, third.attempt) == (State.APPROVED, 3)


@pytest.mark.parametrize(
    ("path", "now", "why"),
    [
        ([*RELEASING, *reported(Stand.RELEASED), Signal.RELEASED], 1.0, "it has succeeded"),
        ([*PROPOSED, Ended(Problem("E300", "no"))], 1.0, "it is denied"),
        ([*AWAITING, CancelAsked()], 1.0, "south and east had not approved it"),
        ([*RUNNING, Reported("south", Stand.DONE), LOST], 1.0, "south had done all of it"),
        ([*RUNNING, LOST], EXPIRES, "its proposal has expired"),
        (RUNNING, 1.0, "it is running"),
    ],
)
def test_other_jobs_are_not_begun_again(path: list[Event], now: float, why: str) -> None:
    job, _ = after(*path)
    assert job.hindrance(now) == why
    assert step(job, Signal.RESUMED, now) == (job, ())


def test_a_job_goes_on_by_itself_only_within_the_deadline_of_the_attempt_that_somebody_wanted() -> None:
    lost, _ = after(*RUNNING, LOST, now=100.0)
    again, effects = step(lost, Signal.RETRIED, 130.0)
    assert (again.state, again.attempt, again.until, again.lost) == (State.APPROVED, 2, 160.0, "south was lost")
    assert effects == (Act.SAVE,)
    running, _ = step(again, Signal.STARTED, 140.0)
    assert running.until == 160.0 + MARGIN_S
    late, _ = step(again, Signal.CLOCK, 160.0)
    assert late.state is State.FAILED
    assert late.problem is not None
    assert late.problem.code == "E200"
    assert not late.hindrance(160.0)  # somebody may resume it
    expired, _ = step(again, Ended(Problem("E600", "the proposal has expired", "south")), 140.0)
    assert expired.state is State.EXPIRED  # by a party's clock
    anew, _ = step(late, Signal.RESUMED, 200.0)
    assert (anew.until, anew.retried, anew.lost) == (EXPIRES, 0, "")
    begun, _ = step(anew, Signal.STARTED, 210.0)
    assert begun.until == 270.0 + MARGIN_S


PARTY = st.sampled_from((*PARTIES, "stranger"))
EVENTS: st.SearchStrategy[Event] = st.one_of(
    st.just(Signal.TAKEN_UP),
    st.builds(Decided, PARTY, st.booleans()),
    st.builds(Away, PARTY, st.booleans()),
    st.just(Signal.STARTED),
    st.builds(Reported, PARTY, st.sampled_from(Stand)),
    st.just(Signal.RELEASED),
    st.builds(Ended, st.builds(Problem, st.sampled_from(sorted(BY_CODE)), st.just("because"))),
    st.just(CancelAsked("why not")),
    st.just(Signal.CLOCK),
    st.just(Signal.RESUMED),
)


@given(st.lists(st.one_of(EVENTS, EVENTS.filter(lambda e: not isinstance(e, Ended | CancelAsked))), max_size=30))
@settings(max_examples=150)
def test_replaying_events_gives_the_same_job(events: list[Event]) -> None:
    assert after(*events) == after(*events)


class AnyOrder(RuleBasedStateMachine):
    """Events in any order, at any time, at a job in any state."""

    @initialize(state=st.sampled_from(sorted(PATHS)))
    def begin(self, state: State) -> None:
        self.now = 0.0
        self.job, _ = after(*PATHS[state])

    @rule(event=EVENTS, passed=st.sampled_from((0.0, 1.0, 100.0, 2000.0)))
    def happens(self, event: Event, passed: float) -> None:
        before, self.now = self.job, self.now + passed
        self.job, effects = step(before, event, self.now)
        if self.job.state is not before.state:
            assert self.job.state in MOVES[before.state]
            assert Act.SAVE in effects  # no move is forgotten when the driver dies
        if before.over and self.job != before:
            assert event is Signal.RESUMED
            assert (self.job.state, self.job.attempt) == (State.APPROVED, before.attempt + 1)
            assert self.now < EXPIRES
        elif before.over:
            assert effects == ()
        if self.job.over and self.job.state is not State.SUCCEEDED:
            assert self.job.problem is not None
        if any(isinstance(effect, Start) for effect in effects):
            assert self.job.state is State.APPROVED
        if self.job.state is State.APPROVED:
            assert set(self.job.stands.values()) == {Stand.APPROVED}

    @rule()
    def sleeps_past_all_deadlines(self) -> None:
        """Whatever a job waits for, time ends it."""
        end, _ = step(self.job, Signal.CLOCK, self.job.until)
        assert end.over

    @invariant()
    def waits_within_bounds(self) -> None:
        if not self.job.over:
            assert self.job.until < float("inf")
            assert self.job.waits_for or self.job.state in (State.DRAFT, State.RELEASING)
        if self.job.state is State.SUCCEEDED:
            assert set(self.job.stands.values()) == {Stand.RELEASED}


TestAnyOrder = AnyOrder.TestCase
TestAnyOrder.settings = settings(max_examples=75, stateful_step_count=25, deadline=None)
