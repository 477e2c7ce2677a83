"""A frame whose header is changed on its way ends the job at once and its sender is named by all; nobody waits in vain.

Who has not seen it says by whose word. So does the sender, which does not know that its frame was changed.

A party that changes its frames before it makes their marks is one that keeps them back: it is waited for.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jobs.run import PartyRun
from link.core import HELLO_LANE, Receiver, Transport
from link.errors import ComineError, DeadlineExceeded, ProtocolViolation
from protos.v1.link_pb2 import Abort, Frame
from tests.coordinator.simulation.still_time import InlineExecutor, run_still
from tests.coordinator.simulation.whole_job import DATA, STRATEGIES, job, run_job
from tests.examples import examples

pytestmark = pytest.mark.turn(2)

PARTIES: Final = tuple(DATA)
LANES = ("/task", "/task/elsewhere", "", "hello", "/receipts", "/task/level-1", "abort", "/\N{SNOWMAN}")


class Altering:
    """One party's transport, which changes the frame with the number `at` that it sends to `peer`."""

    def __init__(self, inner: Transport, peer: str, at: int, change: Callable[[Frame], None]) -> None:
        self._inner, self._peer, self._left, self._change = inner, peer, at, change
        self.altered: Frame | None = None

    def attach(self, receiver: Receiver) -> None:
        self._inner.attach(receiver)

    async def send(self, to: str, frame: Frame) -> None:
        if to == self._peer and frame.type != Abort.DESCRIPTOR.full_name:
            if self._left == 0:
                before = frame.SerializeToString()
                self._change(frame)
                if frame.SerializeToString() != before:
                    self.altered = frame
            self._left -= 1
        await self._inner.send(to, frame)

    async def close(self, *, hurried: bool = False) -> None:
        await self._inner.close(hurried=hurried)


def put(field: str, value: object) -> Callable[[Frame], None]:
    return lambda frame: setattr(frame, field, value)


def other_end(frame: Frame) -> None:
    frame.last = not frame.last


CHANGES = st.one_of(
    st.sampled_from(LANES).map(lambda lane: put("lane", lane)),
    st.text(max_size=20).map(lambda lane: put("lane", lane)),
    st.integers(0, 5000).map(lambda seq: put("seq", seq)),
    st.just(other_end),
    st.integers(0, 1 << 30).map(lambda number: put("round", number)),
    st.sampled_from(("", "comine.v1.Opening", "comine.v1.Hello")).map(lambda kind: put("type", kind)),
    st.binary(max_size=40).map(lambda session: put("session", session)),
    st.sampled_from(PARTIES).map(lambda name: put("receiver", name)),
    st.binary(min_size=1, max_size=9).map(lambda mark: put("mark", mark)),
)


def ends(strategy: str, sender: str, peer: str, at: int, change: Callable[[Frame], None]) -> Frame | None:
    """Runs a job in which a frame is altered, and looks at how it ends everywhere; the altered frame."""
    found: list[Altering] = []

    def wrap(party: str, transport: Transport) -> Transport:
        if party != sender:
            return transport
        found.append(Altering(transport, peer, at, change))
        return found[0]

    runs = run_still(run_job(job(**STRATEGIES[strategy]), DATA, InlineExecutor(), wrap=wrap))
    for party, end in runs.items():
        if found[0].altered is None:
            assert isinstance(end, PartyRun), end
        elif party == peer or not isinstance(end, PartyRun):  # after its receipts a party may have gone
            assert isinstance(end, ComineError), end
            assert not isinstance(end, DeadlineExceeded), end
            assert sender in end.message, end
            if end.reporter is None or not isinstance(end, ProtocolViolation):
                assert end.party == sender, end
            else:
                assert (end.party, peer in end.message) == (None, True), end
    return found[0].altered


@pytest.mark.parametrize("strategy", STRATEGIES)
@examples(6, 12)
@given(st.permutations(PARTIES), st.floats(0, 1, exclude_max=True), CHANGES)
def test_a_header_that_was_changed_names_the_sender_at_once(
    strategy: str, parties: list[str], where: float, change: Callable[[Frame], None]
) -> None:
    ends(strategy, parties[0], parties[1], int(where * 40), change)


def test_on_a_strange_lane_from_the_first_frame_to_the_last() -> None:
    for change in (put("lane", "/task/elsewhere"), other_end):
        number, lanes = 0, set[str]()
        while (altered := ends("catalogue", PARTIES[1], PARTIES[2], number, change)) is not None:
            number += 1
            lanes.add(altered.lane)
        assert number >= 3
    assert HELLO_LANE in lanes
