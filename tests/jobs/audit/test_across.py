"""Several logs and a result folder: what one party changed, hid or disputes is found beside the others."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Literal

import pytest

from jobs.audit.checks.across import compare, journals
from jobs.audit.checks.finding import Finding
from jobs.audit.checks.results import check_result
from jobs.audit.checks.verify import check_log
from jobs.audit.events import (
    Approved,
    Ended,
    Event,
    LogBegan,
    NodeStarted,
    Proposed,
    SessionBegan,
    Started,
    Transcript,
    ValuesOpened,
)
from jobs.audit.log import AuditLog, head_path
from jobs.consent import approve
from jobs.run import PartyRun
from link.core import Transport
from link.errors import PeerError
from link.pki.identity import Identity
from link.transcripts.receipts import sign_receipt
from protos.v1.control_pb2 import SignedApproval
from protos.v1.link_pb2 import Frame, Receipt, SignedReceipt
from tests.jobs.audit.world import PARTIES, World, weekly

pytestmark = pytest.mark.turn(6)


@pytest.fixture(scope="module")
def original(tmp_path_factory: pytest.TempPathFactory) -> tuple[World, bytes]:
    """Three parties that have run two jobs, and the result of the second; its id."""
    world = World(tmp_path_factory.mktemp("world"))
    world.run(nonce=b"1" * 16)
    job, ends = world.run(nonce=b"2" * 16)
    world.stop()
    world.write_result(world.folder / "result", weekly(), job, ends)
    return world, job


def found(world: World, *paths: Path) -> list[Finding]:
    logs = [check_log(path, world.trust) for path in paths or map(world.log, PARTIES)]
    assert [finding for log in logs for finding in log.findings] == []
    agreed, forks = journals(logs)
    return forks + compare(agreed)


def rewritten(world: World, folder: Path, change: Callable[[Event], Event | None], party: str = "south") -> Path:
    """The log of a party that wrote it anew, signed and chained, with other contents."""
    folder.mkdir(exist_ok=True)
    path = folder / "audit.log"
    log = AuditLog.open(path, world.identities[party])
    for record in check_log(world.log(party), world.trust).records:
        if not isinstance(record.event, LogBegan) and (event := change(record.event)) is not None:
            log.append(event)
    log.close()
    return path


def beside(world: World, path: Path) -> list[Finding]:
    return found(world, world.log("north"), path, world.log("east"))


def test_honest_logs_agree(original: tuple[World, bytes]):
    world, _ = original
    assert found(world) == []
    for party in PARTIES:
        assert found(world, world.log(party)) == []


@pytest.mark.parametrize("kind", [Proposed, Approved, Started, SessionBegan, Transcript])
def test_a_party_that_leaves_out_a_kind_of_entry(original: tuple[World, bytes], tmp_path: Path, kind: type[Event]):
    world, _ = original
    path = rewritten(world, tmp_path, lambda event: None if isinstance(event, kind) else event)
    findings = beside(world, path)
    assert findings
    assert all("south" in finding.what for finding in findings)


def test_a_party_that_leaves_out_a_whole_job(original: tuple[World, bytes], tmp_path: Path):
    world, job = original
    path = rewritten(world, tmp_path, lambda event: None if getattr(event, "job", None) == job else event)
    findings = beside(world, path)
    assert {finding.file for finding in findings} == {world.log("north"), world.log("east")}
    assert any("lacks session" in finding.what for finding in findings)
    assert any("lacks its approval" in finding.what for finding in findings)


def test_a_log_that_was_cut_with_its_head(original: tuple[World, bytes], tmp_path: Path):
    """An old copy of log and head is a good log; only the others know what it lacks."""
    world, _ = original
    kept = []

    def old(event: Event) -> Event | None:
        kept.append(event)
        return None if len(kept) > 12 else event

    assert beside(world, rewritten(world, tmp_path, old))


def test_a_job_written_twice(original: tuple[World, bytes], tmp_path: Path):
    world, job = original
    path = rewritten(world, tmp_path, lambda event: event)
    log = AuditLog.open(path, world.identities["south"])
    for record in check_log(world.log("south"), world.trust).records:
        if isinstance(record.event, SessionBegan) and record.event.job == job:
            log.append(record.event)
    (finding,) = beside(world, path)
    assert finding.file == path
    assert "two entries 'session-began'" in finding.what


@pytest.mark.parametrize(("state", "number"), [("cancelled", 0), ("succeeded", 1)])
def test_another_attempt_may_end_before_it_has_begun(
    original: tuple[World, bytes], tmp_path: Path, state: Literal["cancelled", "succeeded"], number: int
):
    """An end after an end is one of another attempt, but not where the job had succeeded."""
    world, job = original
    end = Ended(job=job, state=state)
    path = rewritten(world, tmp_path, lambda event: end if isinstance(event, Ended) and event.job == job else event)
    AuditLog.open(path, world.identities["south"]).append(Ended(job=job, state="cancelled"))
    findings = beside(world, path)
    assert len(findings) == number
    assert all("two entries 'ended'" in finding.what for finding in findings)


def test_another_approval_than_was_shown(original: tuple[World, bytes], tmp_path: Path):
    world, job = original

    def other(event: Event) -> Event:
        if isinstance(event, Approved) and event.job == job:
            return Approved.of(approve(job, "analyst", world.identities["south"], decided=7, by="Eve"), job, "Eve")
        return event

    findings = beside(world, rewritten(world, tmp_path, other))
    assert len(findings) == 3  # south's own entry of the start shows the first approval, too
    assert all("the approval of south" in finding.what for finding in findings)


def disputed(world: World, job: bytes, lane: str) -> Callable[[Event], Event]:
    """South tells of another head for one lane of what it got of north, everywhere in its log."""

    def change(event: Event) -> Event:
        if not isinstance(event, Transcript) or event.job != job:
            return event
        peers: dict[str, Any] = event.model_dump()["peers"]
        receipt = Receipt.FromString(SignedReceipt.FromString(event.peers["north"].mine).receipt)
        head = next(head for head in receipt.received if head.lane == lane)
        head.head = bytes(32)
        peers["north"] = {
            "mine": sign_receipt(receipt, world.identities["south"]).SerializeToString(deterministic=True),
            "theirs": None,
        }
        return Transcript(job=job, session=event.session, complete=False, peers=peers)

    return change


def test_a_disputed_lane_is_named(original: tuple[World, bytes], tmp_path: Path):
    world, job = original
    (record,) = (
        record
        for record in check_log(world.log("south"), world.trust).records
        if isinstance(record.event, Transcript) and record.event.job == job
    )
    receipt = Receipt.FromString(SignedReceipt.FromString(record.event.peers["north"].mine).receipt)
    lane = receipt.received[-1].lane
    findings = beside(world, rewritten(world, tmp_path, disputed(world, job, lane)))
    assert all("disputed" in finding.what for finding in findings)
    assert any(f"what north sent south in lane '{lane}'" in finding.what for finding in findings)
    assert any("the receipt that north got of south" in finding.what for finding in findings)
    (line,) = {finding.line for finding in findings if finding.file == world.log("north")}
    assert "transcript" in world.log("north").read_text().splitlines()[line - 1]


def test_a_log_written_anew_parts_from_an_older_copy(original: tuple[World, bytes], tmp_path: Path):
    world, _ = original
    old = tmp_path / "old" / "audit.log"
    old.parent.mkdir()
    shutil.copy(world.log("north"), old)
    shutil.copy(head_path(world.log("north")), head_path(old))
    assert found(world, world.log("north"), old) == []
    # the owner of the key goes back to the fourth line and writes other entries
    lines = old.read_bytes().splitlines(keepends=True)
    old.write_bytes(b"".join(lines[:4]))
    head_path(old).unlink()
    log = AuditLog.open(old, world.identities["north"])
    log.append(NodeStarted.now("2.0"))
    checked = [check_log(path, world.trust) for path in (world.log("north"), old)]
    _, forks = journals(checked)
    (fork,) = forks
    assert fork.line == 6  # the fifth line tells that the head was lost
    assert "one of them was written anew" in fork.what


def test_a_log_that_was_moved_away_and_begun_anew(tmp_path: Path):
    world = World(tmp_path)
    world.run(nonce=b"1" * 16)
    (tmp_path / "archive").mkdir()
    for file in (world.log("north"), head_path(world.log("north"))):
        file.rename(tmp_path / "archive" / file.name)
    world.logs["north"] = AuditLog.open(world.log("north"), world.identities["north"])
    world.run(nonce=b"2" * 16)
    archived = tmp_path / "archive" / "audit.log"
    assert found(world, archived, *map(world.log, PARTIES)) == []
    assert any("lacks session" in finding.what for finding in found(world))


class _Spoiled:
    """The transport of a party that signs a false receipt for south."""

    def __init__(self, inner: Transport, identity: Identity) -> None:
        self._inner, self._identity = inner, identity

    def attach(self, receiver: Any) -> None:
        self._inner.attach(receiver)

    async def send(self, to: str, frame: Frame) -> None:
        if frame.lane.endswith("/receipts") and to == "south":
            frame = Frame.FromString(frame.SerializeToString())
            receipt = Receipt.FromString(SignedReceipt.FromString(frame.body).receipt)
            receipt.sent[0].head = bytes(32)
            frame.body = sign_receipt(receipt, self._identity).SerializeToString(deterministic=True)
        await self._inner.send(to, frame)

    async def close(self, *, hurried: bool = False) -> None:
        await self._inner.close(hurried=hurried)


def test_a_dispute_while_the_job_runs_is_in_the_logs(tmp_path: Path):
    """A party that signs a false receipt fails the job, and the receipt is kept as evidence."""
    world = World(tmp_path)
    _, ends = world.run(wrap=lambda party, t: _Spoiled(t, world.identities[party]) if party == "north" else t)
    assert not isinstance(ends["south"], PartyRun)
    checked = check_log(world.log("south"), world.trust)
    (finding,) = checked.findings
    assert "disputed: south and north have signed different accounts of what north sent south" in finding.what
    assert "in lane" in finding.what


class _Lost:
    """A transport of a party that is lost in the middle of a job."""

    def __init__(self, inner: Transport, after: int) -> None:
        self._inner, self._left = inner, after

    def attach(self, receiver: Any) -> None:
        self._receiver = receiver
        self._inner.attach(receiver)

    async def send(self, to: str, frame: Frame) -> None:
        self._left -= 1
        if self._left < 0:
            raise PeerError("the network of this party is gone", party=to)
        await self._inner.send(to, frame)

    async def close(self, *, hurried: bool = False) -> None:
        await self._inner.close(hurried=hurried)


@pytest.mark.parametrize("after", [0, 4])
def test_a_failed_job_is_told_and_raises_no_alarm(tmp_path: Path, after: int):
    world = World(tmp_path)
    _, ends = world.run(weekly("1s"), wrap=lambda party, t: _Lost(t, after) if party == "north" else t)
    assert not any(isinstance(end, PartyRun) for end in ends.values())
    world.stop()
    assert found(world) == []
    for party in PARTIES:
        checked = check_log(world.log(party), world.trust)
        events = [record.event for record in checked.records]
        if any(isinstance(event, SessionBegan) for event in events):
            (transcript,) = (event for event in events if isinstance(event, Transcript))
            assert set(transcript.peers) == set(PARTIES) - {party}
            assert any(isinstance(event, ValuesOpened) for event in events)
        assert any(isinstance(event, Ended) for event in events)


# -- results ---------------------------------------------------------------------------------------------------------
def test_a_result_agrees_with_the_logs(original: tuple[World, bytes]):
    world, _ = original
    agreed, _ = journals([check_log(world.log(party), world.trust) for party in PARTIES])
    assert check_result(world.folder / "result", world.trust, agreed) == []
    assert check_result(world.folder / "result", world.trust, {}) == []


def _changes() -> Iterator[tuple[str, Callable[[dict[str, Any]], object], str]]:
    yield "rows", lambda r: r.update(n_rows=r["n_rows"] + 1), "number of rows"
    yield "session", lambda r: r.update(session_id="0" * 64), "another session"
    yield "job", lambda r: r.update(job_id="0" * 64), "another"
    yield "specification", lambda r: r.update(spec_digest="0" * 64), "spec_digest"
    yield "parameters", lambda r: r["parameters"]["itemsets"].update(min_support="0.1"), "parameters"
    yield "costs", lambda r: r["parties"]["north"].update(bytes_sent=1), "other costs"
    yield "a party", lambda r: r["receipts"].pop(), "one signed release of each party"
    yield "an approval", lambda r: r["consents"]["approvals"].pop(), "one approval of each party"
    yield "signature", lambda r: r["receipts"][0].update(signature=r["receipts"][1]["signature"]), "signature"
    yield "certificate", lambda r: r["receipts"][0].update(certificate=r["receipts"][0]["certificate"] + "\n"), "cert"
    yield "base64", lambda r: r["receipts"][0].update(release="?" + r["receipts"][0]["release"][1:]), "signed"
    yield "agreement", lambda r: r["receipts"][0].update(agrees_with=[]), "agreement"
    yield "form", lambda r: r.pop("receipts"), "not a result"


@pytest.mark.parametrize(("change", "what"), [c[1:] for c in _changes()], ids=[c[0] for c in _changes()])
def test_a_changed_result_is_found(
    original: tuple[World, bytes], tmp_path: Path, change: Callable[[dict[str, Any]], object], what: str
):
    world, _ = original
    copy = shutil.copytree(world.folder / "result", tmp_path / "copy")
    contents = json.loads((copy / "result.json").read_text())
    change(contents)
    (copy / "result.json").write_text(json.dumps(contents))
    for party in ((), PARTIES):
        agreed, _ = journals([check_log(world.log(party), world.trust) for party in party])
        findings = check_result(copy, world.trust, agreed)
        assert any(what in finding.what for finding in findings), findings
        assert all(finding.file == copy / "result.json" for finding in findings)


@pytest.mark.parametrize("name", ["itemsets.csv", "itemsets.parquet"])
def test_a_changed_table_is_found(original: tuple[World, bytes], tmp_path: Path, name: str):
    world, _ = original
    copy = shutil.copytree(world.folder / "result", tmp_path / "copy")
    if name == "itemsets.csv":
        text = (copy / name).read_text()
        (copy / name).write_text(text.replace("item0", "item9", 1))
    else:
        (copy / name).write_bytes((copy / name).read_bytes()[:-1])
    findings = check_result(copy, world.trust, {})
    assert findings
    assert all(name in finding.what for finding in findings)


@pytest.mark.parametrize("rules", [None, {"min_confidence": "0.5"}])
def test_a_result_without_supports_is_held_against_what_was_signed(tmp_path: Path, rules: dict[str, str] | None):
    (tmp_path / "world").mkdir()
    world, spec = World(tmp_path / "world"), weekly(disclose="frequent", rules=rules)
    job, ends = world.run(spec)
    world.stop()
    folder = world.write_result(tmp_path / "result", spec, job, ends)
    assert check_result(folder, world.trust, {}) == []
    tables = [folder / "itemsets.csv"] if rules is None else [folder / "itemsets.csv", folder / "rules.csv"]
    for table in tables:
        text = table.read_text()
        head, _, *more = text.splitlines(keepends=True)
        table.write_text("".join([head, *more]))
        findings = check_result(folder, world.trust, {})
        assert findings
        assert all(table.name in finding.what for finding in findings)
        table.write_text(text)
    itemsets = tables[0]
    itemsets.write_text(itemsets.read_text().replace(",,", ",7,0.1"))  # a count that nobody has signed
    findings = check_result(folder, world.trust, {})
    assert len(findings) == len(PARTIES)
    assert all("not hold the itemsets" in finding.what for finding in findings)


def test_a_release_that_no_log_tells_of(original: tuple[World, bytes], tmp_path: Path):
    world, _ = original
    path = rewritten(world, tmp_path, lambda event: None if event.event == "released" else event)
    agreed, _ = journals([check_log(path, world.trust)])
    (finding,) = check_result(world.folder / "result", world.trust, agreed)
    assert "the log of south has no such release" in finding.what


def test_approvals_can_be_read_back(original: tuple[World, bytes]):
    world, job = original
    agreed, _ = journals([check_log(world.log("north"), world.trust)])
    ((_, approved),) = agreed["north"].events(job, Approved)
    assert SignedApproval.FromString(approved.approval).certificate == world.identities["north"].certificate_pem
