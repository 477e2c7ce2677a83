"""Calls that break on the way to a party: what is said again, for how long, and what people are told meanwhile."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from datetime import datetime
from types import SimpleNamespace
from typing import Any, cast

import pytest

from coordinator.cli.terminal.live import notes, waiting_for
from coordinator.jobs import party_calls
from coordinator.jobs.driver import Driver
from coordinator.jobs.lifecycle import Away, Job, Signal, Stand, State, step
from coordinator.jobs.party_calls import begin, follow
from coordinator.jobs.progress import unwatched
from link.errors import ComineError, ResourceError, UnexpectedMessage
from link.transports.grpc_errors import ConnectionBroken, NotTheParty
from protos.v1.control_pb2 import RUNNING, SUCCEEDED, DealRequest, JobEvent
from tests.errors import fails

FAR = datetime(2100, 1, 1, 12).timestamp()
BROKEN = ConnectionBroken("the connection to south broke", party="south")
FULL = ResourceError("south has no room on its disk", party="south")
NOT_ASKED = UnexpectedMessage("south has not asked for what was dealt to it", party="south")


@pytest.fixture(autouse=True)
def _quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(party_calls, "RETRY_S", 0.01)
    monkeypatch.setattr(party_calls, "LACKING_S", 0.1)


class South:
    """A party whose answers to `start` and `deal` are given; None is a good one, and the last is given again."""

    party, address = "south", "127.0.0.1:1"

    def __init__(self, *answers: ComineError | None) -> None:
        self.answers, self.calls = list(answers), 0
        self.lost: list[ComineError | None] = []

    async def answer(self, *_: object) -> None:
        self.calls += 1
        error = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        if error is not None:
            raise error

    start = answer

    async def watch(self, _: bytes) -> AsyncIterator[JobEvent]:
        for label in (b"a", b"a", b"b"):
            yield JobEvent(state=RUNNING, deal=DealRequest(label=label))
        yield JobEvent(state=SUCCEEDED)

    def away(self, _: str, error: ComineError | None) -> None:
        self.lost.append(error)

    def follow(self) -> None:
        asyncio.run(follow(cast(Any, self), b"job", self.away, unwatched, self.answer))

    def begin(self) -> None:
        asyncio.run(begin(cast(Any, self), b"job", 1, [], b"", self.away))


def test_what_is_dealt_is_sent_again_until_it_is_answered() -> None:
    south = South(BROKEN, BROKEN, NOT_ASKED, NOT_ASKED, None)
    south.follow()
    assert south.calls == 5
    assert south.lost == [BROKEN, BROKEN, None]


def test_what_nobody_asked_for_is_an_error_the_first_time() -> None:
    with fails("E401"):
        South(NOT_ASKED).follow()


@pytest.fixture
def _agrees(monkeypatch: pytest.MonkeyPatch) -> None:
    async def agrees(*_: object) -> bool:
        return True

    monkeypatch.setattr(party_calls, "agrees_still", agrees)


@pytest.mark.usefixtures("_agrees")
def test_a_party_that_lacks_something_is_tried_again_for_a_while_after_a_connection_broke() -> None:
    south = South(BROKEN, FULL, FULL, None)
    south.begin()
    assert (south.calls, south.lost) == (4, [BROKEN])
    south = South(BROKEN, FULL)
    with fails("E103"):
        south.begin()
    assert south.calls > 3
    south = South(FULL)
    with pytest.raises(ResourceError):
        south.begin()
    assert south.calls == 1


def test_a_driver_tells_why_only_where_somebody_else_answers() -> None:
    events: asyncio.Queue[object] = asyncio.Queue()
    driver: Any = SimpleNamespace(_watcher=unwatched, _events=events)
    for error in (BROKEN, NotTheParty("what answers at south:1 is not south", party="south"), None):
        Driver.away(driver, "south", error)
    told = [events.get_nowait() for _ in range(3)]
    assert told == [
        Away("south", True),
        Away("south", True, "what answers at south:1 is not south"),
        Away("south", False),
    ]


def test_people_read_why_a_node_is_not_talked_to_that_answers(capsys: pytest.CaptureFixture[str]) -> None:
    error = NotTheParty("what answers at south:1 is not south", party="south")
    job = Job.draft(("north", "south"), expires=FAR, deadline_s=60)._replace(state=State.RUNNING)
    tell = notes()
    for event in (Away("south", True), Away("south", True, error.message), Away("south", False), Signal.CLOCK):
        job, _ = step(job, event, 0.0)
        tell(job)
    first, second, third = capsys.readouterr().err.splitlines()
    until = f"trying again until 2100-01-01 {datetime.fromtimestamp(FAR):%H:%M}"
    assert first.endswith(f"; the job goes on there if its node runs; {until}")
    assert second.endswith(f"; {until} ({error.message})")
    assert third.endswith("south can be reached again")
    stands = dict.fromkeys(job.parties, Stand.APPROVED)
    job = job._replace(
        state=State.APPROVED, stands=stands, away=frozenset({"south"}), impostors={"south": error.message}
    )
    assert waiting_for(job).endswith(f"which cannot be reached ({error.message})")
