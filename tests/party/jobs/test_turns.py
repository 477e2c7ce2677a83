"""Turns at a node: a fair order, places that are true, and no two jobs that wait for each other."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from link.errors import JobCancelled
from party.jobs import turns
from party.jobs.limits import JobLimits
from party.jobs.turns import Turn, Turns
from tests.errors import fails


def job(number: int) -> bytes:
    return number.to_bytes(32, "big")


def at_once(running: int, of_one: int = 64, memory: int | None = None) -> JobLimits:
    return JobLimits(running, of_one, open_of_one=256, proposals_of_one=240, memory=memory)


def asked(queue: Turns, *jobs: tuple[int, str]) -> list[Turn]:
    return [queue.ask(job(number), coordinator, float(number)) for number, coordinator in jobs]


def places(waiting: Sequence[Turn]) -> list[int]:
    return [turn.place for turn in waiting]


def test_turns_go_round_the_coordinators_and_the_first_job_of_each_goes_first() -> None:
    queue = Turns(at_once(2), "north")
    waiting = asked(queue, *((i, "ann") for i in range(5)), (5, "bob"), (6, "bob"), (7, "eve"))
    # Ann holds both; then Bob and Eve, who hold none, and Bob's second before Ann's third.
    assert places(waiting) == [0, 0, 4, 5, 6, 1, 3, 2]
    queue.end(job(0))
    assert places(waiting)[1:] == [0, 2, 4, 5, 0, 3, 1]
    queue.end(job(1))
    assert places(waiting)[2:] == [1, 3, 4, 0, 2, 0]


def test_a_coordinator_with_many_jobs_keeps_nobody_waiting_behind_them() -> None:
    queue = Turns(at_once(1), "north")
    asked(queue, *((i, "ann") for i in range(100)))
    (late,) = asked(queue, (1000, "bob"))
    assert late.place == 1


def test_a_job_that_begins_without_asking_waits_for_nobody_and_passes_nobody() -> None:
    queue = Turns(at_once(1), "north")
    assert queue.claim(job(1), "ann")
    assert queue.runs(job(1))
    (second,) = asked(queue, (2, "bob"))
    assert not queue.claim(job(3), "ann")
    queue.end(job(1))
    assert second.place == 0
    assert not queue.claim(job(3), "ann")
    assert queue.claim(job(2), "bob")


def test_a_turn_that_nobody_holds_any_more_goes_on_but_that_of_a_job_that_runs() -> None:
    queue = Turns(at_once(1), "north")
    first, second, third = asked(queue, (1, "ann"), (2, "bob"), (3, "eve"))
    queue.drop(first)
    assert (second.place, third.place) == (0, 1)
    assert queue.claim(job(2), "bob")
    queue.drop(second)
    assert third.place == 1
    queue.end(job(2))
    assert third.place == 0


def test_who_asks_again_takes_over_and_keeps_the_place() -> None:
    async def test() -> None:
        queue = Turns(at_once(1), "north")
        _, second, third = asked(queue, (1, "ann"), (2, "ann"), (3, "ann"))
        (again,) = asked(queue, (2, "ann"))
        assert (again.place, third.place) == (1, 2)
        with fails("E401", party="north"):
            await anext(second.places())
        queue.drop(second)  # the call that was given up ends late
        assert again.place == 1
        queue.end(job(1))
        (once_more,) = asked(queue, (2, "ann"))
        assert once_more.place == 0
        queue.drop(again)
        assert once_more.place == 0
        assert third.place == 1

    asyncio.run(test())


def test_who_waits_hears_of_each_place_of_the_end_and_of_the_start() -> None:
    async def test() -> None:
        queue = Turns(at_once(1), "north")
        first, second, third = asked(queue, (1, "ann"), (2, "ann"), (3, "ann"))
        heard = third.places()
        assert await anext(heard) == 2
        queue.end(job(1))
        assert await anext(heard) == 1
        queue.end(job(2), JobCancelled("enough"))
        with pytest.raises(JobCancelled):
            await anext(second.places())
        assert await anext(heard) == 0
        queue.claim(job(3), "ann")
        assert [place async for place in heard] == []
        del first

    asyncio.run(test())


def test_only_so_many_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(turns, "MAX_WAITING", 2)
    queue = Turns(at_once(1), "north")
    _, second, _ = asked(queue, (1, "ann"), (2, "ann"), (3, "ann"))
    with fails("E103", party="north"):
        asked(queue, (4, "bob"))
    queue.drop(second)
    asked(queue, (4, "bob"), (4, "bob"))


def test_jobs_beyond_their_coordinators_limit_wait_and_let_others_pass() -> None:
    queue = Turns(at_once(3, of_one=1), "north")
    first, second, other = asked(queue, (1, "ann"), (2, "ann"), (3, "bob"))
    assert places((first, second, other)) == [0, 1, 0]
    assert not queue.claim(job(4), "bob")
    queue.end(job(1))
    assert second.place == 0
    queue.allow(at_once(3, of_one=2))
    assert queue.claim(job(4), "bob")


def test_what_jobs_at_once_take_of_memory_is_bounded_and_no_large_one_is_passed_for_ever() -> None:
    queue = Turns(at_once(4, memory=10), "north")
    sizes = {1: 6, 2: 6, 3: 1, 4: 99}
    first, second, third, fourth = (queue.ask(job(n), f"of {n}", float(n), size) for n, size in sizes.items())
    assert places((first, second, third, fourth)) == [0, 1, 2, 3]  # the third would fit, and the second never again
    assert not queue.claim(job(5), "of 5", 0)
    queue.end(job(1))
    assert places((second, third, fourth)) == [0, 0, 1]
    queue.end(job(2))
    assert fourth.place == 1
    queue.end(job(3))
    assert fourth.place == 0  # alone it fits always
    assert not queue.claim(job(6), "of 6", 1)


@settings(max_examples=100, deadline=None)
@given(st.data())
def test_everybody_is_served_and_nobody_twice_before_who_holds_less(data: st.DataObject) -> None:
    most = data.draw(st.integers(1, 4))
    queue, waiting, held = Turns(at_once(most), "north"), dict[int, Turn](), dict[int, Turn]()
    for number in range(data.draw(st.integers(1, 40))):
        if held and data.draw(st.booleans()):
            ended = data.draw(st.sampled_from(sorted(held)))
            queue.end(held.pop(ended).job_id)
        else:
            name = data.draw(st.sampled_from("abc"))
            (waiting[number],) = asked(queue, (number, name))
        shares = Counter(turn.coordinator for turn in held.values())
        for each in [each for each, turn in waiting.items() if turn.place == 0]:
            held[each] = waiting.pop(each)
            shares[held[each].coordinator] += 1
        assert len(held) <= most
        assert not waiting or len(held) == most
        assert sorted(turn.place for turn in waiting.values()) == list(range(1, len(waiting) + 1))
        for name in "abc":
            own = [turn.place for number, turn in sorted(waiting.items()) if turn.coordinator == name]
            assert own == sorted(own)
        for turn in waiting.values():
            if turn.place == 1:  # the next one is of a coordinator that holds no more than any other that waits
                assert shares[turn.coordinator] == min(shares[other.coordinator] for other in waiting.values())


PARTIES = ("east", "north", "south", "west")


@settings(max_examples=75, deadline=None)
@given(
    jobs=st.lists(st.sets(st.sampled_from(PARTIES), min_size=2), min_size=1, max_size=12),
    most=st.tuples(*(st.integers(1, 2) for _ in PARTIES)),
    choices=st.lists(st.integers(0, 1000), min_size=400, max_size=400),
)
def test_jobs_that_take_their_turns_in_the_order_of_names_all_end_in_any_schedule(
    jobs: list[set[str]], most: tuple[int, ...], choices: list[int]
) -> None:
    """As `coordinator.jobs.turns` takes them: a step is one job asking its next party, beginning, or ending."""
    queues = {name: Turns(at_once(number), name) for name, number in zip(PARTIES, most, strict=True)}
    held: dict[int, list[Turn]] = {number: [] for number in range(len(jobs))}
    choice = iter(choices)
    while held:
        able = [number for number, own in held.items() if not own or own[-1].place == 0]
        assert able, "all wait for each other"
        number = able[next(choice, 0) % len(able)]
        left = sorted(jobs[number])[len(held[number]) :]
        if left:
            held[number].append(queues[left[0]].ask(job(number), "abc"[number % 3], float(number)))
            continue
        for name in jobs[number]:
            assert queues[name].claim(job(number), "abc"[number % 3])
            queues[name].end(job(number))
        del held[number]
