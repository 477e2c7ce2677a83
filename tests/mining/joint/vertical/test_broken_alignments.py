"""An alignment that breaks amid its messages is made anew by another attempt, which finds the same under fresh keys."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

import numpy as np
import pytest

from crypto.protocols.alignment import alignment
from crypto.protocols.alignment.disclosure import Mode
from crypto.protocols.comparison.two_party import pairs_of
from link.errors import PeerError
from link.journal import MemoryJournal, Step
from link.session import Session
from link.steps import begin
from link.steps import openings as steps_openings
from mining.joint.align import LABELS, AlignedRows, RowAlignment, align, openings
from protos.v1.link_pb2 import Frame, Opening
from tests.crypto.protocols.alignment.worlds import UNIFORM, kind_of
from tests.mining.joint.vertical.test_align import places, table_of
from tests.world import run_parties

PEOPLE: Final = {"a": range(14), "b": range(4, 20), "c": range(2, 13)}
IDS: Final = {name: [f"person {number}" for number in own] for name, own in PEOPLE.items()}
RUNS: Final[tuple[tuple[Mode, str, int], ...]] = (  # of two parties, lists of so many places are long
    ("intersection", "ab", 1024),
    ("intersection", "ab", 16),
    ("intersection", "abc", 1024),
    ("cardinality", "ab", 1024),
    ("cardinality", "abc", 1024),
    ("union", "ab", 1024),
    ("union", "abc", 1024),
)


class Attempt:
    """One attempt of an alignment, which may break before one of its frames.

    Attributes:
        frames: Those of the alignment that went out.
        journals: What each party keeps.
        found: What each party has found; nothing where it broke.
    """

    def __init__(self, mode: Mode, parties: str, number: int, breaks_at: int | None = None) -> None:
        self.frames = list[Frame]()
        self.journals = {name: MemoryJournal() for name in parties}
        self.found: Mapping[str, AlignedRows] = {}
        self._task, self._parties, self._number, self._breaks_at = RowAlignment("a", mode), parties, number, breaks_at

    def run(self, kept: Mapping[str, Sequence[Step]]) -> Attempt:
        """Runs it with what the attempt before has left."""
        self.journals = {name: MemoryJournal(kept.get(name, ())) for name in self._parties}
        tables = {name: table_of(IDS[name]) for name in self._parties}

        async def role(session: Session) -> AlignedRows:
            await begin(session, self.journals[session.me])
            return await align(session.lane("task"), pairs_of(session), tables[session.me], self._task)

        self.found = run_parties(
            self._parties,
            role,
            declared=(*openings(self._task, tuple(self._parties)), steps_openings(tuple(self._parties))),
            observe=self._look,
            seed=self._number,
            attempt=self._number,
        )
        return self

    @property
    def kept(self) -> dict[str, tuple[Step, ...]]:
        """By party the steps that it has kept."""
        return {name: tuple(Step.unpack(step.pack()) for step in each.kept) for name, each in self.journals.items()}

    def opened(self) -> list[str]:
        """Labels of what has been opened of the alignment."""
        return [Opening.FromString(frame.body).label for frame in self.frames if kind_of(frame) == "Opening"]

    def pieces(self) -> set[bytes]:
        """All 16 bytes that stand together in what has to look random."""
        bodies = [frame.body for frame in self.frames if kind_of(frame) in UNIFORM]
        return {body[start : start + 16] for body in bodies for start in range(16, len(body) - 16)}

    def _look(self, frame: Frame) -> None:
        if not frame.lane.startswith("/task"):
            return
        if len(self.frames) == self._breaks_at:
            raise PeerError("this node was killed", party=frame.sender)
        self.frames.append(frame)


def outcome(found: Mapping[str, AlignedRows]) -> tuple[set[int | None], dict[str, dict[str, int]]]:
    """How many rows are common, and by party each id's position."""
    rows = {name: each.rows for name, each in found.items() if each.rows is not None}
    return {each.n_common for each in found.values()}, {name: places(IDS[name], own) for name, own in rows.items()}


def expected(mode: Mode, parties: str) -> tuple[set[int | None], dict[str, set[str]]]:
    """The same of the pooled tables, but for the positions."""
    common = set.intersection(*(set(IDS[name]) for name in parties))
    if mode == "union":
        return {None}, {name: set(IDS[name]) for name in parties}
    return {len(common)}, {} if mode == "cardinality" else dict.fromkeys(parties, common)


@pytest.mark.parametrize(("mode", "parties", "long"), RUNS)
def test_what_breaks_amid_an_alignment_is_made_anew(
    mode: Mode, parties: str, long: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(alignment, "LONG_LISTS", long)
    whole = Attempt(mode, parties, 1).run({})
    for breaks_at in (len(whole.frames) // 2, len(whole.frames) - 1):
        broken = Attempt(mode, parties, 1, breaks_at)
        with pytest.raises(PeerError):
            broken.run({})
        assert [frame.body for frame in broken.frames] == [frame.body for frame in whole.frames[:breaks_at]]
        if breaks_at < len(whole.frames) - 1:
            assert not any(broken.kept.values())
            if mode != "union":  # where the first party's positions are opened first, which are those of random slots
                assert not {label for label in broken.opened() if label.startswith(LABELS[mode])}
        again = Attempt(mode, parties, 2).run(broken.kept)
        number, at = outcome(again.found)
        assert (number, {name: set(own) for name, own in at.items()}) == expected(mode, parties)
        everywhere = dict[str, int]()
        assert all(everywhere.setdefault(*each) == each[1] for own in at.values() for each in own.items())
        assert len(set(everywhere.values())) == len(everywhere)
        assert len(again.frames) == len(whole.frames)
        assert not again.pieces() & broken.pieces()
        if mode == "intersection":
            assert at == outcome(whole.found)[1]
        assert {len(steps) for steps in again.kept.values()} == {1}


@pytest.mark.parametrize(("mode", "parties", "long"), RUNS[2::2])
def test_what_only_some_have_kept_is_made_anew(
    mode: Mode, parties: str, long: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The last message may reach some alone: these have the outcome, and the others ask for it again."""
    monkeypatch.setattr(alignment, "LONG_LISTS", long)
    whole = Attempt(mode, parties, 1).run({})
    again = Attempt(mode, parties, 2).run({**whole.kept, "b": ()})
    assert len(again.frames) == len(whole.frames)
    assert not again.pieces() & whole.pieces()
    if mode != "union":  # whose positions belong to their session
        one, other = (outcome(each.found) for each in (whole, again))
        assert one == other
    third = Attempt(mode, parties, 3).run(again.kept)
    assert not [frame for frame in third.frames if kind_of(frame) in UNIFORM]
    assert all(np.array_equal(third.found[name].rows, again.found[name].rows) for name in parties if mode == "union")
