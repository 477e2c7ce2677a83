"""Verifies one audit log: form, chain, signatures, numbers, head, and whatever others have signed in it.

A verification needs the authority's certificate and nothing secret. It finds what was changed after it was written;
what a party never wrote, or wrote anew from the beginning, only other parties' logs can show: see
`jobs.audit.checks.across`.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field
from pathlib import Path

from cryptography import x509
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec

from jobs.audit.catalogue import read_event
from jobs.audit.checks.contents import problems
from jobs.audit.checks.finding import Finding, Record
from jobs.audit.checks.lapse import check_author, lapse
from jobs.audit.entry import START, Entry, Head, read, read_head
from jobs.audit.events import CertificateChanged, Event, LineTorn, LogBegan
from jobs.audit.log import head_path
from link.errors import ConfigurationError, IdentityError
from link.pki.trust import Trust, fingerprint


@dataclass(frozen=True, slots=True)
class CheckedLog:
    """A log, as far as it holds.

    Attributes:
        path: The file.
        party: Whose it is; empty where its first line does not hold, and nothing else was looked at.
        records: The lines that hold, in order.
        findings: What is wrong, in the order of the lines.
    """

    path: Path
    party: str
    records: tuple[Record, ...]
    findings: tuple[Finding, ...]


def check_log(path: Path, trust: Trust) -> CheckedLog:
    """Verifies a log and its head.

    Args:
        path: The log; its head lies beside it.
        trust: Whom the reader trusts.

    Raises:
        ConfigurationError: The file cannot be read.
        IdentityError: The list of revoked certificates cannot be believed any more.
    """
    try:
        data = path.read_bytes()
    except OSError as error:
        raise ConfigurationError(f"the audit log {path} cannot be read ({error.strerror}); check the path") from None
    walk = _Walk(path, trust)
    begin = 0
    for number, raw in enumerate(data.split(b"\n"), start=1):
        whole = begin + len(raw) < len(data)
        if whole or raw or number == 1:
            walk.take(number, begin, raw, data, whole=whole)
        begin += len(raw) + 1
        if not walk.records:
            break  # who speaks is not known
    if walk.records:
        walk.close()
    findings = sorted(walk.findings, key=lambda found: (found.file != path, found.line or 0))
    return CheckedLog(path, walk.party if walk.records else "", tuple(walk.records), tuple(findings))


@dataclass(frozen=True, slots=True)
class _Signer:
    """A certificate that a full check has found good once: the others of its signatures are checked faster.

    Attributes:
        certificate: The certificate.
        key: Its public key.
    """

    certificate: x509.Certificate
    key: ec.EllipticCurvePublicKey

    def has_signed(self, entry: Entry) -> bool:
        """Whether the signature holds; if not, a full check says why."""
        try:
            self.key.verify(entry.signature, entry.signed, ec.ECDSA(hashes.SHA256()))
        except InvalidSignature:
            return False
        return True


@dataclass(slots=True)
class _LateRun:
    """Entries one after the other that were signed while their certificate was not good, for one reason.

    Attributes:
        first: The first of them.
        last: The last of them.
        why: The reason, as `jobs.audit.checks.lapse` words it.
    """

    first: Record
    last: Entry
    why: str

    def finding(self) -> Finding:
        """One finding for them all, at the first."""
        begin, end = self.first.entry.seq, self.last.seq
        which = "it was" if begin == end else f"entries {begin} to {end} were"
        return self.first.finding(f"{which} signed {self.why}")


@dataclass(slots=True)
class _Walk:
    """A verification under way, line after line.

    Attributes:
        path: The log.
        trust: Whom the reader trusts.
        party: Whose log it is.
        certificates: By fingerprint, those that lines so far have brought; None once one was missed.
        signers: By fingerprint, those that a full check has found to be the party's.
        records: The lines that hold.
        late: Of lines whose signature and chain hold, those that were signed while the certificate was not good.
        findings: What is wrong.
        last: The last line that has the form of an entry.
        sound: Whether it holds.
        next: The number that the next one must have.
        loose: By place in the file, lines that are no entries: their number, and why.
        strays: How many of them came after `last`.
    """

    path: Path
    trust: Trust
    party: str = ""
    certificates: dict[str, bytes | None] = field(default_factory=dict)
    signers: dict[str, _Signer] = field(default_factory=dict)
    records: list[Record] = field(default_factory=list)
    late: list[_LateRun] = field(default_factory=list)
    findings: list[Finding] = field(default_factory=list)
    last: Entry | None = None
    sound: bool = True
    next: int = 0
    loose: dict[int, tuple[int, str]] = field(default_factory=dict)
    strays: int = 0

    def take(self, number: int, begin: int, raw: bytes, data: bytes, *, whole: bool) -> None:
        """Judges one line.

        Args:
            number: Of the line, from 1.
            begin: Its place in the file.
            raw: The line, without its newline.
            data: The file.
            whole: Whether a newline ends the line.
        """
        try:
            if not whole:
                raise ValueError("no newline ends it")
            entry = read(raw)
        except ValueError as error:
            self.loose[begin] = (number, str(error))
            self.strays += 1
            if number == 1:
                self._found(number, None, f"the log has no first line that could be trusted: {error}")
            return
        try:
            event = read_event(entry.event, entry.fields)
            self._bring(entry, event)
            why = self._check_signature(entry)
            self._check_chain(entry)
            if isinstance(event, LineTorn):
                self._set_aside(event, begin, data)
        except ValueError as error:
            self._found(number, entry.seq, str(error))
            self.sound = False
        else:
            record = Record(self.path, number, entry, event, late=bool(why))
            if why:
                self._extend(record, why)
            wrong = [record.finding(what) for what in problems(entry, event, self.party, self.trust, late=record.late)]
            self.findings += wrong
            if not wrong:
                self.records.append(record)
            self.sound = True
        self.last, self.next, self.strays = entry, self.next + 1 if not self.sound else entry.seq + 1, 0

    def close(self) -> None:
        """Judges what only the whole log shows."""
        for number, why in self.loose.values():
            self._found(number, None, f"the line is no entry of an audit log: {why}")
        self.findings += [run.finding() for run in self.late]
        place = head_path(self.path)
        try:
            head = read_head(place.read_bytes())
            signer = check_author(self.trust, head.certificate, self.party, head.signed, head.signature)
        except OSError:
            what = "there is no head beside the log, so it is unknown whether lines were cut off; copy both together"
            self.findings.append(Finding(place, None, None, what))
        except ValueError as error:
            self.findings.append(Finding(place, 1, None, f"this is no head of an audit log: {error}"))
        except IdentityError as error:
            self.findings.append(Finding(place, 1, None, f"this is not a word of {self.party}: {error.message}"))
        else:
            self._check_head(place, head)
            why = lapse(self.trust, signer, self.party, head.time)
            if why and not any(run.first.entry.seq <= head.seq <= run.last.seq for run in self.late):
                self.findings.append(Finding(place, 1, None, f"the head was signed {why}"))

    def _extend(self, record: Record, why: str) -> None:
        """Takes note of a line that was signed while its certificate was not good."""
        run = self.late[-1] if self.late else None
        if run is not None and run.last is self.last and run.why == why:
            run.last = record.entry
        else:
            self.late.append(_LateRun(record, record.entry, why))

    def _bring(self, entry: Entry, event: Event) -> None:
        """Takes note of the certificate that an entry brings."""
        if self.last is None:
            if not isinstance(event, LogBegan) or entry.seq != 0:
                raise ValueError("the log does not begin with its first entry")
            self.party = event.party
        elif isinstance(event, LogBegan):
            raise ValueError("a log begins once")
        if isinstance(event, LogBegan | CertificateChanged):
            self.certificates[entry.certificate] = event.certificate.encode()

    def _check_chain(self, entry: Entry) -> None:
        last = self.last
        seq, prev = (0, START) if last is None else (last.seq + 1, last.digest)
        if not self.next <= entry.seq <= self.next + self.strays and (self.sound or entry.seq != seq):
            raise ValueError(
                f"entry {entry.seq} stands where entry {self.next} must; entries were removed, doubled or swapped"
            )
        if entry.seq == seq and self.sound and entry.prev != prev:
            raise ValueError("it does not follow the line before it: one of the two was changed")

    def _check_signature(self, entry: Entry) -> str:
        """Makes sure that the party has signed; why its certificate was not good then, empty where it was."""
        if entry.certificate not in self.certificates:
            self.certificates[entry.certificate] = None
            raise ValueError(
                f"it is signed with the certificate {entry.certificate}, which no line before it holds; this and later "
                "lines of that certificate are not trusted"
            )
        certificate = self.certificates[entry.certificate]
        if certificate is None:
            raise ValueError("its certificate is not known")
        signer = self.signers.get(entry.certificate)
        if signer is not None and signer.has_signed(entry):
            return lapse(self.trust, signer.certificate, self.party, entry.time)
        try:
            found = check_author(self.trust, certificate, self.party, entry.signed, entry.signature)
        except IdentityError as error:
            raise ValueError(f"the line was changed, or {self.party} did not write it: {error.message}") from None
        key = found.public_key()
        if isinstance(key, ec.EllipticCurvePublicKey) and fingerprint(found) == entry.certificate:
            self.signers[entry.certificate] = _Signer(found, key)
        return lapse(self.trust, found, self.party, entry.time)

    def _set_aside(self, torn: LineTorn, begin: int, data: bytes) -> None:
        """Takes lines that are no entries for explained, if these are the very bytes that the entry names."""
        end = torn.at + torn.size_bytes
        inside = [place for place in self.loose if torn.at <= place < end]
        if torn.at not in inside or end > begin or hashlib.sha256(data[torn.at : end]).digest() != torn.sha256:
            raise ValueError("the torn line that it names is not there as it was")
        for place in inside:
            del self.loose[place]

    def _check_head(self, place: Path, head: Head) -> None:
        assert self.last is not None
        if head.seq > self.last.seq:
            missing = (
                f"entry {head.seq}" if head.seq == self.last.seq + 1 else f"entries {self.last.seq + 1} to {head.seq}"
            )
            self.findings.append(
                Finding(
                    place, 1, None, f"the log ends with entry {self.last.seq}: {missing} and nothing else is cut off"
                )
            )
            return
        record = next((record for record in self.records if record.entry.seq == head.seq), None)
        if record is not None and record.entry.digest != head.entry:
            self.findings.append(record.finding("it is not the entry that the log's head names"))

    def _found(self, number: int, seq: int | None, what: str) -> None:
        self.findings.append(Finding(self.path, number, seq, what))
