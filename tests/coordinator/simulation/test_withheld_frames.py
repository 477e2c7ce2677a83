"""A party that keeps back what it owes to one other: that one keeps all others waiting, and is not named alone."""

from __future__ import annotations

import pytest

from coordinator.jobs.failures import Failure, root_cause
from link.core import Receiver, Transport
from link.errors import DeadlineExceeded
from protos.v1.link_pb2 import Frame
from tests.coordinator.simulation.still_time import InlineExecutor, run_still
from tests.coordinator.simulation.whole_job import DATA, VERIFIED, job, run_job

pytestmark = pytest.mark.turn(2)


class Withholding:
    """One party's transport, which keeps back what it sends to `peer` on lanes after some frames."""

    def __init__(self, inner: Transport, peer: str, after: int) -> None:
        self._inner, self._peer, self._left = inner, peer, after

    def attach(self, receiver: Receiver) -> None:
        self._inner.attach(receiver)

    async def send(self, to: str, frame: Frame) -> None:
        if to == self._peer and frame.lane.startswith("/"):
            self._left -= 1
            if self._left < 0:
                return
        await self._inner.send(to, frame)

    async def close(self, *, hurried: bool = False) -> None:
        await self._inner.close(hurried=hurried)


@pytest.mark.parametrize(("cheat", "peer"), [("east", "south"), ("north", "south"), ("south", "north")])
@pytest.mark.parametrize("after", [0, 3, 10, 25])
def test_a_party_that_is_kept_waiting_is_not_named_alone(cheat: str, peer: str, after: int) -> None:
    def wrap(party: str, transport: Transport) -> Transport:
        return Withholding(transport, peer, after) if party == cheat else transport

    ends = run_still(run_job(job(**VERIFIED), DATA, InlineExecutor(), wrap=wrap))
    failures = [Failure(party, end) for party, end in ends.items() if isinstance(end, BaseException)]
    assert len(failures) == len(DATA)
    error = root_cause(failures, DATA)
    assert isinstance(error, DeadlineExceeded)
    assert error.party in (None, cheat)
    assert cheat in error.message
    assert peer in error.message
