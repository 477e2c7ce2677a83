"""What has come over connections and was not read: who is honest loses no connection, and nobody fills memory."""

from __future__ import annotations

import socket
from collections.abc import Callable

from hypothesis import given
from hypothesis import strategies as st

from party.node.unread import AROUND, MOST_OF_STRANGERS, MOST_UNREAD, WASTED_A_S, Unread, received, too_much
from tests.clock import Clock
from tests.examples import examples

END = ("10.0.0.1", 1)


@examples(25, 100)
@given(
    st.lists(st.tuples(st.integers(0, 8 << 20), st.integers(0, 2 << 20), st.floats(0, 30)), max_size=30),
    st.integers(0, MOST_UNREAD),
)
def test_whatever_was_read_and_however_long_ago_a_flood_is_found(
    messages: list[tuple[int, int, float]], waiting: int
) -> None:
    clock = Clock()
    unread, come = Unread(clock), 0
    for size, came, seconds in messages:  # some were compressed, and so longer than what came
        come += min(came, size)
        unread.read(END, size)
        clock.now += seconds
        assert unread.look({END: come})[END] <= 0
    assert unread.look({END: come + waiting})[END] <= waiting
    assert unread.look({END: come + waiting + MOST_UNREAD + 1})[END] > MOST_UNREAD - WASTED_A_S
    clock.now += 1.0
    flood = unread.look({END: come + waiting + 2 * MOST_UNREAD})[END]
    assert 2 * MOST_UNREAD - WASTED_A_S <= flood <= waiting + 2 * MOST_UNREAD


@examples(25, 100)
@given(
    st.lists(st.tuples(st.integers(0, WASTED_A_S), st.floats(0.1, 100)), min_size=1, max_size=60),
    st.integers(0, 4 << 20),
)
def test_what_comes_slowly_and_is_followed_by_no_message_adds_up(drops: list[tuple[int, float]], first: int) -> None:
    """Headers that do not end stay in memory, at whatever speed they come; no message can follow them."""
    clock = Clock()
    unread, come = Unread(clock), first
    unread.read(END, first)
    unread.look({END: come})
    before = come - first - first // 32 - AROUND
    for size, seconds in drops:
        come += size
        clock.now += seconds
        assert unread.look({END: come})[END] >= come - first - max(0, before)
    left = unread.look({END: come})[END]
    for _ in range(left // WASTED_A_S + 1):  # they did end
        clock.now += 1.0
        unread.read(END, 1)
        come += 1
        unread.look({END: come})
    assert unread.look({END: come})[END] <= 0


def test_a_message_excuses_nothing_that_comes_with_it_or_after_it() -> None:
    """Else whoever is silent for long, and then says something and floods, would fill memory."""
    clock = Clock()
    unread = Unread(clock)
    assert unread.look({END: 0}) == {END: 0}
    clock.now += 3600.0
    unread.read(END, 1)
    flood = 1 + 1024 + (32 << 20)
    assert unread.look({END: flood})[END] == 32 << 20
    clock.now += 0.1
    assert unread.look({END: flood})[END] == 32 << 20


@examples(25, 100)
@given(st.lists(st.tuples(st.integers(0, 8 << 20), st.integers(0, AROUND), st.floats(0, 1)), max_size=60))
def test_messages_that_are_read_leave_nothing_however_many_there_are(messages: list[tuple[int, int, float]]) -> None:
    clock = Clock()
    unread, come = Unread(clock), 0
    for size, around, seconds in messages:
        come += size + size // 64 + around  # frames of 16 KiB add less than a hundredth
        assert unread.look({END: come})[END] <= size + size // 64 + around
        unread.read(END, size)
        clock.now += seconds
        assert unread.look({END: come})[END] <= 0


def test_connections_that_have_ended_are_forgotten_and_another_at_the_same_end_begins_anew() -> None:
    unread = Unread(Clock())
    unread.read(END, 5 << 20)
    assert unread.look({END: 6 << 20})[END] < 1 << 20
    assert unread.look({}) == {}
    assert unread.look({END: 6 << 20}) == {END: 6 << 20}


@examples(25, 100)
@given(st.lists(st.tuples(st.sampled_from("abc"), st.integers(0, 40 << 20)), max_size=12))
def test_of_each_holder_the_fullest_connections_are_ended_and_no_more_than_must_be(held: list[tuple[str, int]]) -> None:
    ends = {("10.0.0.1", number): holder for number, (holder, _) in enumerate(held)}
    unread = {("10.0.0.1", number): size for number, (_, size) in enumerate(held)}
    most = {"a": MOST_UNREAD, "b": MOST_OF_STRANGERS, "c": MOST_UNREAD}
    ended = too_much(ends.items(), unread, most.__getitem__)
    for name, bound in most.items():
        kept = [unread[end] for end, holder in ends.items() if holder == name and end not in ended]
        lost = [unread[end] for end, holder in ends.items() if holder == name and end in ended]
        assert sum(kept) <= bound
        if lost:
            assert sum(kept) + min(lost) > bound
            assert max(kept, default=0) <= min(lost)


def test_the_kernel_counts_what_comes_whether_it_is_read_or_not() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server, socket.create_connection(server.getsockname()) as far:
        near, _ = server.accept()
        with near:
            assert received(near) == 0
            far.sendall(bytes(100_000))
            _until(lambda: received(near) == 100_000)
            near.recv(50_000)
            far.sendall(b"x")
            _until(lambda: received(near) == 100_001)


def _until(holds: Callable[[], bool]) -> None:
    while not holds():
        pass
