"""A transport from outside meets the checks that are for all of them; one that does not is found out."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager

import pytest

from crypto.primitives.randomness import Randomness
from link.core import Receiver, Transport
from link.errors import ComineError
from link.transports.conformance import CHECKS, Check, Kit, run
from link.transports.conformance import checks as named
from link.transports.memory import Hub, MemoryTransport
from protos.v1.link_pb2 import Frame
from tests.extensions.socket_transport import opened


@pytest.mark.parametrize("check", CHECKS)
def test_it_gives_a_session_what_it_needs(check: Check) -> None:
    run(check, Kit(opened, Randomness.from_seed(0)))


class Broken:
    """A transport in memory that changes what it carries."""

    def __init__(self, inner: MemoryTransport, how: str) -> None:
        self._inner, self._how = inner, how

    def attach(self, receiver: Receiver) -> None:
        self._inner.attach(receiver)

    async def send(self, to: str, frame: Frame) -> None:
        changed = Frame.FromString(frame.SerializeToString())
        if self._how == "body" and frame.body:
            changed.body = frame.body[:-1] + bytes([frame.body[-1] ^ 1])
        if self._how == "lane" and frame.lane.startswith("/"):
            changed.lane = "/elsewhere"
        await self._inner.send(to, changed)

    async def close(self, *, hurried: bool = False) -> None:
        await self._inner.close(hurried=hurried)


@pytest.mark.parametrize(
    ("how", "check"),
    [
        ("body", named.frames_of_a_lane_arrive_in_order),
        ("body", named.bulk_goes_both_ways_before_anyone_reads),
        ("lane", named.lanes_are_independent),
    ],
)
def test_a_transport_that_changes_frames_is_found_out(how: str, check: Check) -> None:
    @asynccontextmanager
    async def broken(parties: Sequence[str], job_id: bytes) -> AsyncIterator[dict[str, Transport]]:
        hub = Hub()
        yield {party: Broken(hub.endpoint(party), how) for party in parties}

    with pytest.raises((AssertionError, ComineError)):
        run(check, Kit(broken, Randomness.from_seed(0)))
