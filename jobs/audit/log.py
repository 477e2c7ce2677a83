"""The writer of a party's audit log: an append-only file that node and command line share, and its head.

Each entry is chained to the line before, signed and on disk when `append` returns. The head, a small file beside the
log, is signed too and says how far the log goes, so that a cut-off end is found.
"""

from __future__ import annotations

import asyncio
import contextlib
import datetime as dt
import hashlib
import os
import threading
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Final, Self

from jobs.audit.catalogue import read_event
from jobs.audit.checks.lapse import check_author
from jobs.audit.entry import FORMAT, START, Entry, Head, line, read, read_head, unsigned, unsigned_head
from jobs.audit.events import CertificateChanged, Event, HeadLost, LineTorn, LogBegan
from jobs.audit.tail import Mark
from link.errors import ConfigurationError, IdentityError, ResourceError
from link.files import locks
from link.pki.certificates import read_certificate
from link.pki.identity import Identity
from link.pki.trust import Trust, fingerprint

HEAD_SUFFIX: Final = ".head"
_BLOCK: Final = 1 << 16


def head_path(log: Path) -> Path:
    """Where the head of a log is."""
    return log.with_name(log.name + HEAD_SUFFIX)


def _now() -> dt.datetime:
    return dt.datetime.now(dt.UTC)


class AuditLog:
    """An open audit log. Use `open`; safe for threads and for several processes at once.

    Attributes:
        path: The file.
        handle: Its descriptor.
    """

    def __init__(self, path: Path, identity: Identity, handle: int, now: Callable[[], dt.datetime]) -> None:
        self.path, self._identity, self.handle, self.now = path, identity, handle, now
        self._fingerprint = fingerprint(read_certificate(identity.certificate_pem))
        self._busy = threading.Lock()
        self._last: Entry | None = None
        self._first = ""  # digest of the first entry
        self._end = 0  # of the last entry; what follows it in the file is not one

    @classmethod
    def open(cls, path: Path, identity: Identity, *, now: Callable[[], dt.datetime] = _now) -> Self:
        """Opens a party's log; begins it where there is none.

        Args:
            path: The file; its folder must exist.
            identity: The party, which signs.
            now: The time.

        Raises:
            ConfigurationError: The log is another party's, or was changed or cut since this party wrote it.
            ResourceError: The file cannot be opened or written.
        """
        with _readable(path):
            handle = os.open(path, os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o600)
        log = cls(path, identity, handle, now)
        try:
            with log._locked():
                log._take_up()
        except BaseException:
            log.close()
            raise
        return log

    def append(self, *events: Event) -> None:
        """Writes entries; they are on disk when this returns, which takes as long as the disk does.

        Raises:
            ConfigurationError: The log was changed or cut since it was opened.
            ResourceError: It cannot be written; nothing may happen then.
        """
        with self._locked():
            self._read_on()
            self._write(events)

    def renew(self, identity: Identity) -> None:
        """Entries from now on are signed under another certificate of this party."""
        with self._busy:
            self._identity, self._fingerprint = identity, fingerprint(read_certificate(identity.certificate_pem))

    async def record(self, *events: Event) -> None:
        """`append`, off the event loop."""
        await asyncio.to_thread(self.append, *events)

    def mark(self) -> Mark:
        """The last entry.

        Raises:
            ConfigurationError: The log was changed or cut since it was opened.
        """
        with self._locked():
            self._read_on()
            assert self._last is not None
            size = len(line(self._last.signed, self._last.signature)) + 1
            return Mark(self._first, self._last.seq, self._last.digest, self._end - size)

    def close(self) -> None:
        """Closes the file; every entry is on disk already."""
        os.close(self.handle)

    # -- under the lock ----------------------------------------------------------------------------------------------
    @contextlib.contextmanager
    def _locked(self) -> Iterator[None]:
        with self._busy, _readable(self.path):
            locks.lock(self.handle, wait=True)
            try:
                yield
            finally:
                locks.unlock(self.handle)

    def _take_up(self) -> None:
        """Finds the end of the log, and holds it against the head."""
        if os.fstat(self.handle).st_size == 0:
            if (head := self._head()) is not None:
                raise self._changed(f"it is empty, and its head names entry {head.seq}")
            pem = self._identity.certificate_pem.decode()
            self._write([LogBegan(format=FORMAT, party=self._identity.name, certificate=pem)])
            assert self._last is not None
            self._first = self._last.digest
            _sync_folder(self.path.parent)
            return
        self._check_first()
        self._last, self._end = self._find_last()
        head = self._head()
        if head is None:
            self._check_last(self._last)
            self._write([HeadLost()])
        elif head.seq > self._last.seq:
            raise self._changed(f"it ends with entry {self._last.seq}, and its head names entry {head.seq}")
        elif head.seq < self._last.seq:
            self._check_last(self._last)  # a crash came between the entry and the head
        elif head.entry != self._last.digest:
            raise self._changed(f"entry {head.seq} is not the one that its head names")

    def _head(self) -> Head | None:
        """The head; None where it is missing or not whole, as after a power cut."""
        try:
            head = read_head(head_path(self.path).read_bytes())
        except (FileNotFoundError, ValueError):
            return None
        self._check_own("its head", head.certificate, head.signed, head.signature)
        return head

    def _check_first(self) -> None:
        first = self._pread(0, _BLOCK).partition(b"\n")[0]
        try:
            entry = read(first)
            began = read_event(entry.event, entry.fields)
        except ValueError as error:
            raise self._changed(f"its first line is not the beginning of a log: {error}") from None
        self._first = entry.digest
        if not isinstance(began, LogBegan) or began.party != self._identity.name:
            raise ConfigurationError(
                f"{self.path} is not an audit log of {self._identity.name}; give each party a state_dir of its own"
            )

    def _check_last(self, last: Entry) -> None:
        """Makes sure, where no head vouches for it, that the last line is this party's."""
        data = self._pread(0, self._end)
        for raw in data.split(b"\n"):
            with contextlib.suppress(ValueError):
                entry = read(raw)
                event = read_event(entry.event, entry.fields)
                if isinstance(event, LogBegan | CertificateChanged) and entry.certificate == last.certificate:
                    pem = event.certificate.encode()
                    break
        else:
            raise self._changed(f"entry {last.seq} is signed with a certificate that the log does not hold")
        self._check_own(f"entry {last.seq}", pem, last.signed, last.signature)

    def _check_own(self, what: str, certificate: bytes, signed: bytes, signature: bytes) -> None:
        """Makes sure that the authority has ever given this party the certificate, and that its key has signed.

        A node that runs past its certificate goes on writing, and must start again with a new one. So it is not asked
        here whether the certificate was good then, or is pinned by now: readers of the log judge that.
        """
        try:
            check_author(Trust(self._identity.trust.ca_pem), certificate, self._identity.name, signed, signature)
        except IdentityError as error:
            raise self._changed(f"{what} is not this party's word: {error.message}") from None

    def _find_last(self) -> tuple[Entry, int]:
        """The last line that is an entry, and where it ends."""
        end = os.fstat(self.handle).st_size
        begin, tail = end, b""
        while begin > 0:
            size = min(begin, max(_BLOCK, len(tail)))  # twice as much each time: a line may be long
            begin -= size
            tail = self._pread(begin, size) + tail
            stop = tail.rfind(b"\n")
            while stop >= 0:
                before = tail.rfind(b"\n", 0, stop)
                if before < 0 and begin > 0:
                    break
                with contextlib.suppress(ValueError):
                    return read(tail[before + 1 : stop]), begin + stop + 1
                stop = before
        raise self._changed("it holds no entry")

    def _read_on(self) -> None:
        """Takes note of what another process has appended."""
        if not self.path.exists() or not os.path.samestat(os.stat(self.path), os.fstat(self.handle)):
            raise self._changed("it was moved away or replaced while it was in use")
        size = os.fstat(self.handle).st_size
        if size < self._end:
            raise self._changed("it was cut while it was in use")
        if size > self._end:
            assert self._last is not None
            last, end = self._find_last()
            if last.seq < self._last.seq:
                raise self._changed("it was changed while it was in use")
            self._last, self._end = last, end

    def _write(self, events: Iterable[Event]) -> None:
        last, size = self._last, os.fstat(self.handle).st_size
        about_the_log: list[Event] = []
        written = b""
        if last is not None and last.certificate != self._fingerprint:
            about_the_log.append(CertificateChanged(certificate=self._identity.certificate_pem.decode()))
        if size > self._end:
            torn = self._pread(self._end, size - self._end)
            written = b"" if torn.endswith(b"\n") else b"\n"
            digest = hashlib.sha256(torn + written).digest()
            about_the_log.append(LineTorn(at=self._end, size_bytes=len(torn + written), sha256=digest))
        for event in (*about_the_log, *events):
            data, last = self._entry(event, last)
            written += data
        if last is None or last is self._last:
            return
        try:
            write_all(self.handle, written)
            os.fsync(self.handle)
            self.write_head(last)
        except OSError:
            with contextlib.suppress(OSError):  # then a torn line stays
                os.ftruncate(self.handle, size)
            raise
        self._last, self._end = last, size + len(written)

    def _entry(self, event: Event, last: Entry | None) -> tuple[bytes, Entry]:
        """The line of an event after the last one, and what it says."""
        seq, prev = (0, START) if last is None else (last.seq + 1, last.digest)
        signed = unsigned(seq, self.now(), event.event, event.fields(), prev, self._fingerprint)
        data = line(signed, self._identity.sign(signed))
        return data + b"\n", read(data)

    def write_head(self, last: Entry) -> None:
        """Signs anew what the last entry is, beside the log."""
        signed = unsigned_head(last.seq, last.time, last.digest, self._identity.certificate_pem)
        path = head_path(self.path)
        draft = path.with_name(f".{path.name}.new")
        handle = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
        try:
            write_all(handle, line(signed, self._identity.sign(signed)) + b"\n")
        finally:
            os.close(handle)
        draft.replace(path)

    def _pread(self, begin: int, size: int) -> bytes:
        parts = []
        while size > 0 and (part := os.pread(self.handle, size, begin)):
            parts.append(part)
            begin, size = begin + len(part), size - len(part)
        return b"".join(parts)

    def _changed(self, what: str) -> ConfigurationError:
        return ConfigurationError(
            f"the audit log {self.path} was tampered with or damaged: {what}; find out why with comine audit verify, "
            "then restore it from a backup, or move it and its head away to begin a new one"
        )


@contextlib.contextmanager
def _readable(path: Path) -> Iterator[None]:
    """Says of which file an error of the system is."""
    try:
        yield
    except OSError as error:
        raise ResourceError(
            f"the audit log {path} cannot be written ({error.strerror}), and nothing may happen unrecorded; "
            "check the disk and the rights of its folder"
        ) from None


def write_all(handle: int, data: bytes) -> None:
    """Writes all of the data, in as many calls as it takes."""
    view = memoryview(data)
    while view:
        view = view[os.write(handle, view) :]


def _sync_folder(folder: Path) -> None:
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
