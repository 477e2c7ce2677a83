"""The audit log: what is written, by one process or several, and what happens when a write or the file goes wrong."""

from __future__ import annotations

import datetime as dt
import errno
import json
import multiprocessing
import os
import stat
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import pytest
from cryptography import x509

from jobs.audit.checks.verify import check_log
from jobs.audit.entry import digest_of
from jobs.audit.events import Ended, HeadLost, LineTorn, NodeStarted, NodeStopped, PlanAsked
from jobs.audit.key import AuditKey
from jobs.audit.log import AuditLog, head_path
from link.pki.authority import Authority
from link.pki.identity import Identity
from link.pki.trust import Trust, fingerprint
from tests.errors import fails

pytestmark = pytest.mark.turn(6)

AUTHORITY = Authority.create()
NORTH = AUTHORITY.issue("north")
TRUST = Trust(AUTHORITY.certificate_pem)
EVENT = PlanAsked(coordinator="analyst", spec_digest=bytes(32))


def written(path: Path, number: int = 3, identity: Identity = NORTH) -> AuditLog:
    log = AuditLog.open(path, identity)
    for _ in range(number):
        log.append(EVENT)
    return log


def events(path: Path) -> list[str]:
    return [record.event.event for record in check_log(path, TRUST).records]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "audit.log"


def test_lines_have_the_documented_form(path: Path):
    written(path, 1).append(Ended(job=bytes(32), state="succeeded"))
    lines = path.read_bytes().split(b"\n")
    assert lines[-1] == b""
    previous = "0" * 64
    for number, line in enumerate(lines[:-1]):
        contents = json.loads(line)
        assert list(contents) == ["seq", "time", "event", "fields", "prev", "certificate", "signature"]
        assert contents["seq"] == number
        assert contents["prev"] == previous
        assert dt.datetime.fromisoformat(contents["time"]).tzinfo == dt.UTC
        assert line == json.dumps(contents, separators=(",", ":")).encode()
        previous = digest_of(line)
    first = json.loads(lines[0])
    assert first["event"] == "log-began"
    assert first["fields"] == {"format": 1, "party": "north", "certificate": NORTH.certificate_pem.decode()}
    assert json.loads(head_path(path).read_bytes())["entry"] == previous
    assert check_log(path, TRUST).findings == ()


def test_only_the_owner_may_read_it(path: Path):
    written(path)
    for file in (path, head_path(path)):
        assert stat.S_IMODE(file.stat().st_mode) == 0o600


def test_several_events_are_one_write(path: Path, monkeypatch: pytest.MonkeyPatch):
    log = written(path, 0)
    synced = []
    real = os.fsync
    monkeypatch.setattr(os, "fsync", lambda handle: (synced.append(handle), real(handle)))
    log.append(EVENT, EVENT, NodeStopped())
    assert len(synced) == 1
    assert events(path) == ["log-began", "plan-asked", "plan-asked", "node-stopped"]


def test_a_log_is_taken_up_again(path: Path):
    written(path).close()
    written(path).close()
    assert len(events(path)) == 7
    assert check_log(path, TRUST).findings == ()


def _write_many(path: Path, identity: Identity, times: int) -> None:
    log = AuditLog.open(path, identity)
    for _ in range(times):
        log.append(EVENT, EVENT)


def test_several_processes_and_threads_share_it(path: Path):
    log = written(path, 0)
    other = multiprocessing.get_context("spawn").Process(target=_write_many, args=(path, NORTH, 40))
    other.start()
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(lambda _: log.append(EVENT), range(40)))
    other.join()
    assert other.exitcode == 0
    checked = check_log(path, TRUST)
    assert checked.findings == ()
    assert len(checked.records) == 1 + 40 + 80


def test_another_certificate_is_told(path: Path):
    written(path).close()
    renewed = AUTHORITY.issue("north")
    written(path, 1, renewed)
    assert events(path)[-2:] == ["certificate-changed", "plan-asked"]
    assert check_log(path, TRUST).findings == ()


def test_two_processes_with_different_certificates(path: Path):
    old, new = written(path, 1), AuditLog.open(path, AUTHORITY.issue("north"))
    new.append(EVENT)
    old.append(EVENT)
    new.append(EVENT)
    assert events(path).count("certificate-changed") == 3
    assert check_log(path, TRUST).findings == ()


@pytest.mark.parametrize("torn", [b"{", b'{"seq":4,"time":"2026-', b"\0" * 5000, b"{}\n", b"a\nb\n"])
def test_a_torn_line_is_set_aside_and_told(path: Path, torn: bytes):
    written(path).close()
    before = path.read_bytes()
    with path.open("ab") as file:
        file.write(torn)
    assert check_log(path, TRUST).findings
    written(path, 1)
    assert path.read_bytes().startswith(before + torn)  # nothing is lost
    checked = check_log(path, TRUST)
    assert checked.findings == ()
    (told,) = [r.event for r in checked.records if isinstance(r.event, LineTorn)]
    assert (told.at, told.size_bytes) == (len(before), len(torn) + (not torn.endswith(b"\n")))


@pytest.mark.parametrize("cut", [1, 20, 300])
def test_a_crash_at_any_byte_of_a_write_is_survived(path: Path, cut: int, monkeypatch: pytest.MonkeyPatch):
    log = written(path)
    real = os.write

    def full(handle: int, data: memoryview) -> int:
        if real(handle, data[:cut]) == cut:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        raise AssertionError

    def dead(handle: int, size: int) -> None:  # a process that dies has no time to take back what it began
        raise OSError

    with monkeypatch.context() as patch:
        patch.setattr(os, "write", full)
        patch.setattr(os, "ftruncate", dead)
        with fails("E103"):
            log.append(NodeStarted.now("1"))
    log.append(NodeStopped())
    assert events(path)[-2:] == ["line-torn", "node-stopped"]
    assert check_log(path, TRUST).findings == ()


@pytest.mark.parametrize("point", ["write", "fsync", "head"])
def test_what_a_full_disk_refuses_leaves_nothing_behind(path: Path, point: str, monkeypatch: pytest.MonkeyPatch):
    """Or else it would be told once more when there is room, as if it had happened twice."""
    log = written(path)
    before, real = path.read_bytes(), os.write

    def refuse(*_: object) -> int:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    def half(handle: int, data: memoryview) -> int:
        return real(handle, data[:100]) if path.stat().st_size == len(before) else refuse()

    with monkeypatch.context() as patch:
        if point == "head":
            patch.setattr(log, "write_head", refuse)
        else:
            patch.setattr(os, point, half if point == "write" else refuse)
        with fails("E103"):
            log.append(NodeStarted.now("1"), NodeStopped())
    assert path.read_bytes() == before
    log.append(NodeStarted.now("1"))
    assert events(path)[-1] == "node-started"
    assert check_log(path, TRUST).findings == ()


def test_a_torn_attempt_to_set_aside(path: Path):
    written(path).close()
    with path.open("ab") as file:
        file.write(b'{"seq":4\n{"seq":4,"time"')
    written(path, 1)
    assert check_log(path, TRUST).findings == ()


def test_torn_bytes_that_change_later_are_found(path: Path):
    written(path).close()
    with path.open("ab") as file:
        file.write(b'{"seq":4')
    written(path, 1)
    path.write_bytes(path.read_bytes().replace(b'{"seq":4\n', b'{"seq":5\n'))
    assert "torn line" in check_log(path, TRUST).findings[-1].what


def lines_of(path: Path) -> list[bytes]:
    return path.read_bytes().splitlines(keepends=True)


def test_a_log_that_was_cut_is_not_taken_up(path: Path):
    written(path).close()
    path.write_bytes(b"".join(lines_of(path)[:-1]))
    with fails("E100"):
        AuditLog.open(path, NORTH)


def test_a_log_that_was_emptied_is_not_taken_up(path: Path):
    written(path).close()
    path.write_bytes(b"")
    with fails("E100"):
        AuditLog.open(path, NORTH)


def test_a_last_line_that_was_changed_is_not_taken_up(path: Path):
    written(path).close()
    path.write_bytes(path.read_bytes().replace(b'"seq":3', b'"seq":7'))
    with fails("E100"):
        AuditLog.open(path, NORTH)


def test_a_last_line_that_was_changed_but_for_its_number(path: Path):
    written(path).close()
    begin, sep, last = path.read_bytes().rpartition(b'"coordinator":"a')
    path.write_bytes(begin + sep.replace(b'"a', b'"b') + last)
    with fails("E100"):
        AuditLog.open(path, NORTH)


def test_a_forged_head_is_not_believed(path: Path):
    written(path).close()
    written(path.with_name("other"), 9).close()
    stranger = Authority.create().issue("north")
    written(path.with_name("forged"), 2, stranger).close()
    path.write_bytes(b"".join(lines_of(path)[:-1]))
    head_path(path.with_name("forged")).rename(head_path(path))
    with fails("E100"):
        AuditLog.open(path, NORTH)


@pytest.mark.parametrize("head", ["there", "lost", "behind"])
def test_a_log_is_taken_up_after_its_certificate_expired(path: Path, head: str):
    """A node ran past its certificate, and starts again with a new one."""
    expiring = AUTHORITY.issue("north", valid_days=1)
    log = written(path, 1, expiring)
    behind = head_path(path).read_bytes()
    log.now = lambda: dt.datetime.now(dt.UTC) + dt.timedelta(days=2)
    log.append(NodeStopped())
    log.close()
    if head != "there":
        head_path(path).write_bytes(behind if head == "behind" else b"")
    written(path, 1).close()
    found = [finding.entry for finding in check_log(path, TRUST).findings]
    assert found == ([2] if head != "lost" else [2, 4])  # 4 tells that the head was lost
    path.write_bytes(b"".join(lines_of(path)[:-1]))
    with fails("E100"):
        AuditLog.open(path, NORTH)


def test_a_log_is_taken_up_after_its_certificate_was_revoked_and_is_pinned_no_more(path: Path, tmp_path: Path):
    authority = Authority.create()
    authority.write(tmp_path / "pki")
    old, new = authority.issue("north"), authority.issue("north")
    written(path, 1, old).close()
    authority.revoke(tmp_path / "pki", [x509.load_pem_x509_certificate(old.certificate_pem).serial_number])
    trust = Trust.load(authority.certificate_pem, tmp_path / "pki" / "ca.crt")
    pin = fingerprint(x509.load_pem_x509_certificate(new.certificate_pem))
    pinned = replace(trust, pins={"party/north": frozenset({pin})})
    log = written(path, 1, replace(new, trust=pinned))
    head_path(path).write_bytes(b"")
    log.close()
    written(path, 1, replace(new, trust=pinned)).close()


def test_a_lost_head_is_told(path: Path):
    written(path).close()
    head_path(path).write_bytes(b"")  # as a power cut may leave it
    written(path, 1)
    checked = check_log(path, TRUST)
    assert [finding.entry for finding in checked.findings] == [4]
    assert "head had been lost" in checked.findings[0].what
    assert HeadLost.event not in events(path)


def test_a_head_that_lags_behind_is_caught_up(path: Path):
    log = written(path)
    old = head_path(path).read_bytes()
    log.append(EVENT)
    log.close()
    head_path(path).write_bytes(old)  # a crash after the entry and before the head
    assert check_log(path, TRUST).findings == ()
    written(path, 1)
    assert check_log(path, TRUST).findings == ()
    assert "log-began" in events(path)
    assert len(events(path)) == 6


@pytest.mark.parametrize("how", ["cut", "moved", "gone"])
def test_a_log_that_is_changed_while_in_use(path: Path, how: str):
    log = written(path)
    if how == "cut":
        os.truncate(path, 100)
    elif how == "moved":
        path.rename(path.with_name("away"))
        path.write_bytes(b"")
    else:
        path.unlink()
    with fails("E100"):
        log.append(EVENT)


def test_a_log_of_another_party_is_refused(path: Path):
    written(path).close()
    with fails("E100"):
        AuditLog.open(path, AUTHORITY.issue("south"))


def test_something_else_is_refused(path: Path):
    path.write_text("hello\n")
    with fails("E100"):
        AuditLog.open(path, NORTH)


def test_a_folder_that_is_not_there(path: Path):
    with fails("E103"):
        AuditLog.open(path / "audit.log", NORTH)


def test_long_lines(path: Path):
    log = written(path, 0)
    log.append(NodeStarted.now("x" * 500_000))
    log.close()
    written(path, 1)
    assert check_log(path, TRUST).findings == ()


def test_the_key_is_made_once_and_kept_secret(tmp_path: Path):
    path = tmp_path / "audit.key"
    key = AuditKey.open(path)
    assert AuditKey.open(path) == key
    assert len(key.secret) == 32
    assert key.secret.hex() not in repr(key)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert list(tmp_path.iterdir()) == [path]
    path.chmod(0o644)
    with fails("E100"):
        AuditKey.open(path)


def test_what_is_no_key_is_refused(tmp_path: Path):
    path = tmp_path / "audit.key"
    path.touch(0o600)
    path.write_text("secret\n")
    with fails("E100"):
        AuditKey.open(path)
