"""What a session leaves in the log: when it is written, what is in it, and what is not."""

from __future__ import annotations

import base64
import errno
import hashlib
import os
import re
import struct
from pathlib import Path
from typing import Any

import pytest
from google.protobuf.message import Message

from jobs.audit.catalogue import EVENTS, read_event
from jobs.audit.checks.verification import verification
from jobs.audit.checks.verify import check_log
from jobs.audit.conviction_events import EvidenceKept
from jobs.audit.events import SessionBegan, Transcript, ValuesOpened
from jobs.run import PartyRun
from link.core import HELLO_LANE, Transport
from link.disclosure import Ledger, session_key
from link.errors import ProtocolViolation, ResourceError
from link.session import Session
from protos.v1.link_pb2 import Frame
from protos.v1.verified_pb2 import DealtKey
from tests.jobs.audit.world import DATA, PARTIES, World, weekly

PAGE = Path(__file__).parents[3] / "docs" / "tasks" / "audit.md"


class _Watched:
    """Notes for each frame that leaves what the party's log holds by then."""

    def __init__(self, inner: Transport, log: Path, seen: list[tuple[str, str]]) -> None:
        self._inner, self._log, self._seen = inner, log, seen

    def attach(self, receiver: Any) -> None:
        self._inner.attach(receiver)

    async def send(self, to: str, frame: Frame) -> None:
        self._seen.append((frame.lane, self._log.read_text()))
        await self._inner.send(to, frame)

    async def close(self, *, hurried: bool = False) -> None:
        await self._inner.close(hurried=hurried)


def test_the_session_is_on_disk_before_a_protocol_frame_leaves(tmp_path: Path):
    world = World(tmp_path)
    seen: list[tuple[str, str]] = []
    world.run(wrap=lambda party, t: _Watched(t, world.log(party), seen))
    lanes = {lane for lane, _ in seen}
    assert len(lanes) > 2
    for lane, log in seen:
        assert ("session-began" in log) == (lane != HELLO_LANE)


def test_what_a_log_holds_of_a_session(tmp_path: Path):
    world = World(tmp_path)
    job, ends = world.run()
    for party in PARTIES:
        run = ends[party]
        assert isinstance(run, PartyRun)
        events = [record.event for record in check_log(world.log(party), world.trust).records]
        (began,) = (event for event in events if isinstance(event, SessionBegan))
        (opened,) = (event for event in events if isinstance(event, ValuesOpened))
        (transcript,) = (event for event in events if isinstance(event, Transcript))
        assert (began.job, began.session, began.parties) == (job, run.session_id, PARTIES)
        assert [(o.label, o.recipients, o.number, o.size_bytes, o.mac) for o in opened.openings] == [
            (o.label, o.recipients, o.number, o.size_bytes, o.mac) for o in run.opened
        ]
        assert transcript.complete
        for peer, account in run.accounts.items():
            theirs = ends[peer].accounts[party]  # type: ignore[union-attr]
            assert account.theirs == theirs.mine
            assert transcript.peers[peer].mine == account.mine.SerializeToString(deterministic=True)


SENTINEL = "zebra-finch"
N_ROWS = 54_321


def test_no_value_of_the_data_is_in_the_log(tmp_path: Path):
    """No item, no row, no count: not in words, not in numbers, not inside base64."""
    world = World(tmp_path)
    data = dict(DATA)
    data["north"] = [[SENTINEL, f"{SENTINEL}-{i % 3}"] for i in range(N_ROWS)]
    data["south"] = data["east"] = [[SENTINEL]] * 5
    _, ends = world.run(data=data)
    run = ends["north"]
    assert isinstance(run, PartyRun)
    assert run.outcome.finding is not None
    counts = {N_ROWS, run.outcome.n_rows, *(count for _, count in run.outcome.finding.itemsets.rows())}
    for party in PARTIES:
        for file in (world.log(party), world.log(party).with_name("audit.log.head")):
            text = file.read_bytes()
            pieces = [text, *_decoded(text)]
            for piece in pieces:
                assert SENTINEL.encode() not in piece
                for count in counts:
                    assert not re.search(rb"(?<![0-9a-f])%d(?![0-9a-f])" % count, piece)
            for piece in pieces[1:]:
                assert not any(struct.pack("<q", count) in piece for count in counts)


def _decoded(text: bytes) -> list[bytes]:
    """All that is base64 in a text, and what is base64 in that."""
    found = []
    for match in re.findall(rb'"([A-Za-z0-9+/]{16,}={0,2})"', text):
        if len(match) % 4 == 0:
            raw = base64.b64decode(match)
            found += [raw, *_decoded(raw)]
    return found


def test_events_have_no_place_for_anything_else():
    for name in EVENTS:
        with pytest.raises(ValueError, match=name):
            read_event(name, {"items": ["milk"]})
    with pytest.raises(ValueError, match="no event 'rows'"):
        read_event("rows", {})


def test_each_mac_is_of_the_bytes_that_left(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Masked or not: whoever had them could show with the session's key that these left, and no others."""
    world = World(tmp_path)
    issued: list[tuple[bytes, int, str, bytes]] = []
    real = Ledger.issue

    def issue(ledger: Ledger, label: str, values: Any, number: int, to: Any) -> None:
        issued.append((ledger.key, len(ledger.record), label, bytes(values)))
        real(ledger, label, values, number, to)

    monkeypatch.setattr(Ledger, "issue", issue)
    world.run()
    (told,) = (
        record.event
        for record in check_log(world.log("south"), world.trust).records
        if isinstance(record.event, ValuesOpened)
    )
    key = world.keys["south"]
    own = session_key(key.secret, told.session)
    values = {number: (label, opened) for known, number, label, opened in issued if known == own}
    assert len(values) == len(told.openings) > 0
    for number, (label, opened) in values.items():
        line = told.openings[number]
        assert key.opening_mac(told.session, number, label, opened) == line.mac
        changed = bytes([opened[0] ^ 1]) + opened[1:]
        assert key.opening_mac(told.session, number, label, changed) != line.mac
        assert key.opening_mac(bytes(32), number, label, opened) != line.mac
    assert len({line.mac for line in told.openings}) == len(told.openings)


BASKETS = [["bread", "butter", "milk"], ["bread", "milk"], ["bread", "butter"], ["milk", "butter"]]


def documented(tmp_path: Path) -> World:
    """A job whose files lie where the page of audits looks for them."""
    (tmp_path / "state").mkdir()
    world = World(tmp_path / "state")
    job, ends = world.run(data=dict.fromkeys(PARTIES, BASKETS))
    world.write_result(tmp_path / "result", weekly(), job, ends)
    return world


def test_a_dispute_is_settled_as_documented(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    """The page's own lines, on the log, the key and the result of a job that was run."""
    documented(tmp_path)
    monkeypatch.chdir(tmp_path)
    (block,) = re.findall(r"^```python\n(.*?)^```", PAGE.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)
    exec(block, {})
    assert capsys.readouterr().out == "result: True\n"
    table = tmp_path / "result" / "itemsets.csv"
    table.write_text(table.read_text().replace(",9,", ",8,", 1))
    exec(block, {})
    assert capsys.readouterr().out == "result: False\n"


def test_a_masked_opening_is_not_settled_by_its_value(tmp_path: Path):
    """What leaves of a sum is masked, so the sum has another MAC, and so has the party's own number."""
    world = documented(tmp_path)
    for party in PARTIES:
        (told,) = (
            record.event
            for record in check_log(world.log(party), world.trust).records
            if isinstance(record.event, ValuesOpened)
        )
        assert told.openings[0].label == "rows"
        for value in (len(BASKETS), len(PARTIES) * len(BASKETS)):
            claimed = value.to_bytes(told.openings[0].size_bytes, "little")
            assert world.keys[party].opening_mac(told.session, 0, "rows", claimed) != told.openings[0].mac


def test_where_the_log_cannot_be_written_nothing_happens(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    world = World(tmp_path)
    seen: list[tuple[str, str]] = []
    handle = world.logs["north"].handle
    real = os.write

    def full(target: int, data: memoryview) -> int:
        if target == handle and b"session-began" in bytes(data):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return real(target, data)

    monkeypatch.setattr(os, "write", full)
    _, ends = world.run(wrap=lambda party, t: _Watched(t, world.log(party), seen if party == "north" else []))
    assert isinstance(ends["north"], ResourceError)
    assert "No space left" in ends["north"].message
    assert {lane for lane, _ in seen} == {HELLO_LANE, "abort"}
    assert not any(isinstance(end, PartyRun) for end in ends.values())


def test_evidence_is_kept_and_logged_where_a_party_is_caught(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """South deals another component to east than it has committed to, and signs that."""
    real = Session.send

    async def lying(session: Session, to: str, message: Message) -> None:
        if (session.me, to) == ("south", "east") and isinstance(message, DealtKey):
            message.key = bytes(32)
        await real(session, to, message)

    monkeypatch.setattr(Session, "send", lying)
    (tmp_path / "items.txt").write_text("item0\nitem1\n")
    world = World(tmp_path)
    tables = {"trust": {"helper": "east", "security": "malicious"}}
    universe = {"universe": str(tmp_path / "items.txt"), "strategy": "level-wise"}
    job, ends = world.run(weekly(tables=tables, **universe))
    world.stop()
    for party, named in (("north", None), ("east", "south")):  # north has it from others
        end = ends[party]
        assert isinstance(end, ProtocolViolation)
        assert end.party == named
        assert named or "east says: south has dealt" in end.message
    assert [party for party in PARTIES if (world.folder / party / "evidence").exists()] == ["east"]
    path = world.folder / "east" / "evidence" / f"{job.hex()}.json"
    assert path.stat().st_mode & 0o777 == 0o600
    log = check_log(world.log("east"), world.identities["east"].trust)
    (kept,) = (record.event for record in log.records if isinstance(record.event, EvidenceKept))
    assert (kept.accused, kept.rule) == ("south", "dealing")
    assert kept.sha256 == hashlib.sha256(path.read_bytes()).digest()
    document = verification([world.log("east")], [], world.identities["east"].trust, [path])
    assert document.good, document.findings
    assert document.evidence[0].convicts
