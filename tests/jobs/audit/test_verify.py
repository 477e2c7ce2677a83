"""One log: any change of it is found, and located."""

from __future__ import annotations

import datetime as dt
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from cryptography import x509
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from jobs.audit.checks.verification import verification
from jobs.audit.checks.verify import CheckedLog, check_log
from jobs.audit.entry import line, unsigned_head
from jobs.audit.events import Approved, CertificateChanged, Ended, NodeStarted, PlanAsked, SessionBegan
from jobs.audit.log import AuditLog, head_path
from jobs.audit.place import trust_in
from link.pki.authority import Authority
from link.pki.trust import Trust
from protos.v1.control_pb2 import SignedApproval
from tests.errors import fails
from tests.jobs.audit.world import PARTIES, World

pytestmark = pytest.mark.turn(3)

AUTHORITY = Authority.create()
TRUST = Trust(AUTHORITY.certificate_pem)


@pytest.fixture(scope="module")
def original(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Trust]:
    """A log with every kind of entry about a job, a torn line and a renewed certificate."""
    world = World(tmp_path_factory.mktemp("world"))
    world.run()
    world.stop()
    path = world.log("north")
    with path.open("ab") as file:
        file.write(b'{"seq":12,"ti')
    log = AuditLog.open(path, world.authority.issue("north"))
    log.append(NodeStarted.now("1.0"))
    log.append(NodeStarted.now("1.0"))
    log.close()
    checked = check_log(path, world.trust)
    assert checked.findings == ()
    assert len({record.event.event for record in checked.records}) == 13
    return path, world.trust


def tampered(original: tuple[Path, Trust], folder: Path, change: Callable[[list[bytes]], list[bytes]]) -> CheckedLog:
    """The check of a copy whose lines were changed."""
    path, trust = original
    copy = folder / "audit.log"
    lines = path.read_bytes().splitlines(keepends=True)
    copy.write_bytes(b"".join(change(lines)))
    shutil.copy(head_path(path), head_path(copy))
    return check_log(copy, trust)


def _flipped(data: bytes, at: int, mask: int) -> bytes:
    return data[:at] + bytes([data[at] ^ mask]) + data[at + 1 :]


@settings(max_examples=80, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_any_changed_byte_is_found_and_located(original: tuple[Path, Trust], tmp_path: Path, data: st.DataObject):
    contents = original[0].read_bytes()
    lines = contents.splitlines(keepends=True)
    number = data.draw(st.integers(0, len(lines) - 1), "line")
    keys = [b'"seq":', b'"time":', b'"event":', b'"fields":', b'"prev":', b'"certificate":"', b'"signature":']
    starts = [lines[number].rfind(key) for key in keys if key in lines[number]] or [0]
    near = data.draw(st.sampled_from([*starts, 0, len(lines[number]) - 1]), "field")
    at = data.draw(st.integers(near, min(near + 90, len(lines[number]) - 1)), "byte")
    mask = data.draw(st.integers(1, 255), "mask")

    def change(lines: list[bytes]) -> list[bytes]:
        return [*lines[:number], _flipped(lines[number], at, mask), *lines[number + 1 :]]

    found = [finding.line for finding in tampered(original, tmp_path, change).findings]
    assert number + 1 in found


def test_every_byte_of_the_last_line_and_of_the_head(original: tuple[Path, Trust], tmp_path: Path):
    path, trust = original
    copy = tmp_path / "audit.log"
    contents, head = path.read_bytes(), head_path(path).read_bytes()
    begin = contents[:-1].rfind(b"\n") + 1
    head_path(copy).write_bytes(head)
    for at in range(begin, len(contents), 13):
        copy.write_bytes(_flipped(contents, at, 1))
        assert check_log(copy, trust).findings[0].line == contents.count(b"\n")
    copy.write_bytes(contents)
    for at in range(0, len(head), 29):
        head_path(copy).write_bytes(_flipped(head, at, 1))
        (finding,) = check_log(copy, trust).findings
        assert finding.file == head_path(copy)


@settings(max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_removed_doubled_and_swapped_lines_are_found(original: tuple[Path, Trust], tmp_path: Path, data: st.DataObject):
    size = original[0].read_bytes().count(b"\n")
    one = data.draw(st.integers(1, size - 2), "one")
    other = data.draw(st.integers(one + 1, size - 1), "other")
    how = data.draw(st.sampled_from(["removed", "doubled", "swapped"]), "how")

    def change(lines: list[bytes]) -> list[bytes]:
        if how == "removed":
            return lines[:one] + lines[other:]
        if how == "doubled":
            return lines[:other] + lines[one:other] + lines[other:]
        lines[one], lines[other] = lines[other], lines[one]
        return lines

    assert tampered(original, tmp_path, change).findings


@pytest.mark.parametrize("cut", [1, 2, 5])
def test_a_cut_off_end_is_found(original: tuple[Path, Trust], tmp_path: Path, cut: int):
    checked = tampered(original, tmp_path, lambda lines: lines[:-cut])
    (finding,) = checked.findings
    assert finding.file == head_path(checked.path)
    assert "cut off" in finding.what


def test_a_head_that_is_gone_is_found(original: tuple[Path, Trust], tmp_path: Path):
    path, trust = original
    copy = shutil.copy(path, tmp_path / "audit.log")
    (finding,) = check_log(copy, trust).findings
    assert "no head" in finding.what


def test_one_change_gives_one_finding(original: tuple[Path, Trust], tmp_path: Path):
    def change(lines: list[bytes]) -> list[bytes]:
        lines[3] = lines[3].replace(b'"by":"policy"', b'"by":"nobody"')
        return lines

    (finding,) = tampered(original, tmp_path, change).findings
    assert (finding.line, finding.entry) == (4, 3)
    assert "line was changed" in finding.what
    assert str(finding).startswith(f"{tmp_path / 'audit.log'}, line 4 (entry 3): ")


def test_lines_of_another_log_do_not_fit(tmp_path: Path):
    """A line that the party signed itself, in another log, is found by the chain."""
    north = AUTHORITY.issue("north")
    lines = []
    for name in ("one", "other"):
        (tmp_path / name).mkdir()
        log = AuditLog.open(tmp_path / name / "audit.log", north)
        for _ in range(3):
            log.append(PlanAsked(coordinator=name, spec_digest=bytes(32)))
        lines.append(log.path.read_bytes().splitlines(keepends=True))
    path = tmp_path / "one" / "audit.log"
    path.write_bytes(b"".join([*lines[0][:2], lines[1][2], lines[0][3]]))
    findings = check_log(path, TRUST).findings
    assert [finding.line for finding in findings] == [3]
    assert "does not follow" in findings[0].what


def test_a_log_outlives_its_certificate(tmp_path: Path):
    """What was signed while a certificate was good stays good."""
    then = dt.datetime.now(dt.UTC) - dt.timedelta(minutes=1)
    log = AuditLog.open(tmp_path / "audit.log", AUTHORITY.issue("north", valid_days=1), now=lambda: then)
    log.append(NodeStarted.now("1.0"))
    assert check_log(log.path, TRUST).findings == ()
    late = then + dt.timedelta(days=2)
    log.now = lambda: late
    log.append(NodeStarted.now("1.0"))
    log.append(NodeStarted.now("1.0"), NodeStarted.now("1.0"))
    checked = check_log(log.path, TRUST)
    (finding,) = checked.findings
    assert (finding.line, finding.entry) == (3, 2)
    assert finding.what.startswith("entries 2 to 4 were signed after the certificate of north had expired on ")
    assert "the signature and the chain hold" in finding.what
    assert [record.late for record in checked.records] == [False, False, True, True, True]
    assert verification([log.path], [], TRUST).logs[0].entries == 2


def test_a_log_goes_on_after_its_certificate(tmp_path: Path):
    """The next certificate's entries hold; each run of late ones is told once, and a change among them is found."""
    path = tmp_path / "audit.log"
    now = dt.datetime.now(dt.UTC)
    old, new = AUTHORITY.issue("north", valid_days=1), AUTHORITY.issue("north")
    for identity, late in ((old, False), (old, True), (new, False), (old, True)):
        log = AuditLog.open(path, identity, now=lambda late=late: now + dt.timedelta(days=2 * late))
        log.append(NodeStarted.now("1.0"))
        log.append(NodeStarted.now("1.0"))
        log.close()
    found = check_log(path, TRUST).findings
    assert [finding.entry for finding in found] == [3, 8]
    assert found[0].what.startswith("entries 3 to 4 were signed after")
    lines = path.read_bytes().splitlines(keepends=True)
    lines[3] = lines[3].replace(b'"1.0"', b'"1.1"')
    path.write_bytes(b"".join(lines))
    changed = [finding for finding in check_log(path, TRUST).findings if finding.line == 4]
    assert any("the line was changed, or north did not write it" in finding.what for finding in changed)


def test_a_node_whose_clock_ran_slow(tmp_path: Path):
    then = dt.datetime.now(dt.UTC) - dt.timedelta(days=1)
    log = AuditLog.open(tmp_path / "audit.log", AUTHORITY.issue("north"), now=lambda: then)
    (finding,) = check_log(log.path, TRUST).findings
    assert finding.what.startswith("it was signed before the certificate of north begins, on ")


def test_a_late_head_vouches_for_no_entry_that_is_not_late(tmp_path: Path):
    """Whoever has a revoked key can cut a log and sign a head for what is left."""
    then = dt.datetime.now(dt.UTC) - dt.timedelta(minutes=1)
    north = AUTHORITY.issue("north", valid_days=1)
    log = AuditLog.open(tmp_path / "audit.log", north, now=lambda: then)
    log.append(NodeStarted.now("1.0"))
    last = check_log(log.path, TRUST).records[-1].entry
    signed = unsigned_head(last.seq, then + dt.timedelta(days=2), last.digest, north.certificate_pem)
    head_path(log.path).write_bytes(line(signed, north.sign(signed)) + b"\n")
    (finding,) = check_log(log.path, TRUST).findings
    assert finding.file == head_path(log.path)
    assert finding.what.startswith("the head was signed after the certificate of north had expired on ")


def test_a_job_in_late_entries(tmp_path: Path):
    """Own approvals and receipts are late with their entries, which is said once; what they hold is still checked."""
    world = World(tmp_path)
    world.logs["north"].close()
    world.identities["north"] = north = world.authority.issue("north", valid_days=1)
    late = world.now + dt.timedelta(days=2)
    world.logs["north"] = log = AuditLog.open(world.log("north"), north, now=lambda: late)
    job, _ = world.run()
    (found,) = verification([world.log(party) for party in PARTIES], [], world.trust).findings
    assert (found.file, found.entry) == (str(log.path), 2)
    assert found.what.startswith("entries 2 to 10 were signed after the certificate of north had expired on ")
    forged = SignedApproval.FromString(world.approvals["north"].SerializeToString())
    forged.approval = world.approvals["south"].approval
    log.append(Approved.of(forged, job, "policy"))
    checked = check_log(log.path, world.trust)
    assert [finding.entry for finding in checked.findings] == [2, 11]
    assert checked.findings[1].what.startswith("the signature of north is wrong")


@pytest.mark.parametrize(("days", "accused"), [(0, 2), (2000, 0)])
def test_a_late_entry_accuses_nobody(tmp_path: Path, days: int, accused: int):
    """Whoever has a revoked key could write of sessions that never were."""
    begun = SessionBegan(job=bytes(32), session=bytes(32), attempt=1, parties=PARTIES)
    world = World(tmp_path)
    world.now += dt.timedelta(days=days)
    world.logs["north"].append(begun)
    told = [found.what for found in verification([*map(world.log, PARTIES)], [], world.trust).findings]
    assert sum(" lacks session " in what for what in told) == accused


def test_a_revocation_takes_nothing_from_what_was_signed_before(tmp_path: Path):
    authority = Authority.create()
    authority.write(tmp_path / "pki")
    then = dt.datetime.now(dt.UTC) - dt.timedelta(minutes=1)
    north = authority.issue("north")
    log = AuditLog.open(tmp_path / "audit.log", north, now=lambda: then)
    log.append(NodeStarted.now("1.0"))
    serial = x509.load_pem_x509_certificate(north.certificate_pem).serial_number
    authority.revoke(tmp_path / "pki", [serial])
    trust = trust_in(tmp_path / "pki" / "ca.crt", None)
    assert check_log(log.path, trust).findings == ()
    log.now = lambda: then + dt.timedelta(minutes=2)
    log.append(NodeStarted.now("1.0"))
    (finding,) = check_log(log.path, trust).findings
    assert finding.entry == 2
    assert finding.what.startswith("it was signed after the certificate of north was revoked on ")
    assert "not to be trusted" in finding.what
    assert (
        check_log(log.path, Trust(authority.certificate_pem)).findings == ()
    )  # without the list nothing is known of it


def test_a_foreign_log_is_not_believed(tmp_path: Path):
    log = AuditLog.open(tmp_path / "audit.log", Authority.create().issue("north"))
    checked = check_log(log.path, TRUST)
    assert checked.party == ""
    assert "not issued by this federation's authority" in checked.findings[0].what


def test_an_unknown_certificate_is_said_once(tmp_path: Path):
    path = tmp_path / "audit.log"
    AuditLog.open(path, AUTHORITY.issue("north")).close()
    log = AuditLog.open(path, AUTHORITY.issue("north"))
    for _ in range(3):
        log.append(Ended(job=bytes(32), state="succeeded"))
    lines = path.read_bytes().splitlines(keepends=True)
    changed = next(i for i, line in enumerate(lines) if CertificateChanged.event.encode() in line)
    path.write_bytes(b"".join(lines[:changed] + lines[changed + 1 :]))
    findings = check_log(path, TRUST).findings
    assert "which no line before it holds" in findings[0].what


@pytest.mark.parametrize("contents", [b"", b"\n", b"hello\n", b"{}\n{}\n", b"\xff\xfe\n", b"[" * 100_000 + b"\n"])
def test_what_is_no_log_is_a_finding(tmp_path: Path, contents: bytes):
    path = tmp_path / "audit.log"
    path.write_bytes(contents)
    checked = check_log(path, TRUST)
    assert (checked.party, checked.records, len(checked.findings)) == ("", (), 1)


def test_a_log_that_is_not_there(tmp_path: Path):
    with fails("E100"):
        check_log(tmp_path / "audit.log", TRUST)
