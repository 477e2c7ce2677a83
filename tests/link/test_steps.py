"""Another attempt goes on only from steps that both of every two parties have kept of the very same frames."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import replace

import numpy as np
import pytest

from link.disclosure import Declared
from link.journal import Known, MemoryJournal
from link.session import Session
from link.steps import begin, openings, step
from protos.v1.link_pb2 import Frame
from tests.errors import fails
from tests.world import Observer, run_parties

PARTIES = ("north", "south", "east")
ALL = frozenset(PARTIES)
DECLARED = [Declared("part", ALL, "a part", 9, "in each step"), Declared("whole", ALL, "the sum", 9, "in each step")]


class Attempts:
    """A job of two steps, in each of which all send their parts to south, who opens the sum: what it says, all keep."""

    def __init__(self) -> None:
        self.journals = {party: MemoryJournal() for party in PARTIES}
        self.taken: Counter[str] = Counter()
        self.number = 0

    async def _sum(self, session: Session, name: str) -> Known:
        self.taken[name] += 1
        lane, parts = session.lane(f"{name}/sum"), np.array([1], np.uint32)
        if session.me != "south":
            await lane.open("part", parts, to=("south",))
            return Known(int((await lane.receive_opened("south", "whole", np.uint32, (1,)))[0]))
        for peer in lane.others:
            parts = parts + await lane.receive_opened(peer, "part", np.uint32, (1,))
        await lane.open("whole", parts)
        return Known(int(parts[0]))

    def run(self, *, dies_after: str = "", observe: Observer | None = None) -> Mapping[str, list[int]]:
        """One more attempt; it may end once all have kept a step."""
        self.number += 1
        self.taken.clear()

        async def role(session: Session) -> list[int]:
            await begin(session, self.journals[session.me])
            lane, found = session.lane("task"), []
            for name in ("first", "second"):
                found.append(int((await step(lane, name, lambda name=name: self._sum(lane, name))).public))
                if name == dies_after:
                    return found
            return found

        declared = [*DECLARED, openings(PARTIES)]
        return run_parties(PARTIES, role, declared=declared, attempt=self.number, seed=self.number, observe=observe)


def test_what_two_parties_kept_of_the_same_frames_is_not_taken_again() -> None:
    job = Attempts()
    job.run(dies_after="first")
    assert job.run() == {party: [3, 3] for party in PARTIES}
    assert set(job.taken) == {"second"}
    assert job.run() == {party: [3, 3] for party in PARTIES}
    assert not job.taken


def test_a_result_that_all_have_kept_of_a_frame_that_was_changed_ends_the_job() -> None:
    """All know the same wrong sum, and the attempt dies before receipts: only what led to it shows it."""
    job = Attempts()

    def change(frame: Frame) -> None:
        if (frame.sender, frame.receiver, frame.lane) == ("north", "south", "/task/first/sum"):
            frame.body = frame.body.replace(b"\x01\x00\x00\x00", b"\x07\x00\x00\x00")

    assert job.run(dies_after="first", observe=change) == {party: [9] for party in PARTIES}
    with fails("E400"):
        job.run()


def test_a_step_that_one_party_has_of_another_attempt_is_taken_again_by_all() -> None:
    job = Attempts()
    job.run()
    east = job.journals["east"]
    east.kept[1] = replace(east.kept[1], session=bytes(32))
    assert job.run() == {party: [3, 3] for party in PARTIES}
    assert job.taken == {"second": 3}


def test_a_journal_that_was_put_back_has_no_steps_of_a_later_attempt() -> None:
    """East dies before it keeps a step that it had kept in the attempt before, and has that one again."""
    job = Attempts()
    job.run()
    before = MemoryJournal(job.journals["east"].kept)
    job.journals["south"].kept.pop()  # so that the second step is taken anew
    job.run()
    job.journals["east"] = before
    sessions = {party: [each.session for each in journal.kept] for party, journal in job.journals.items()}
    assert sessions["east"][0] == sessions["north"][0]
    assert sessions["east"][1] != sessions["north"][1] == sessions["south"][1]
    assert job.run() == {party: [3, 3] for party in PARTIES}
    assert job.taken == {"second": 3}


@pytest.mark.parametrize("party", PARTIES)
def test_a_party_that_says_that_other_frames_led_to_a_step_ends_the_job(party: str) -> None:
    job = Attempts()
    job.run()
    liar = job.journals[party]
    liar.kept[0] = replace(liar.kept[0], frames=dict.fromkeys(liar.kept[0].frames, bytes(32)))
    with fails("E400"):
        job.run()
