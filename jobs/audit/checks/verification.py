"""The whole of `comine audit verify`: logs by themselves, against each other, results against them, and evidence."""

from __future__ import annotations

import datetime as dt
from collections.abc import Sequence
from pathlib import Path
from typing import Literal

from pydantic import Field

from jobs.audit.checks.account import UNSIGNED
from jobs.audit.checks.across import compare, gaps, journals
from jobs.audit.checks.finding import Finding, printable
from jobs.audit.checks.results import check_result, is_of_a_job
from jobs.audit.checks.verify import CheckedLog, check_log
from jobs.audit.entry import clock
from jobs.audit.events import SessionBegan
from jobs.audit.evidence import read_evidence
from jobs.documents.part import Part
from jobs.results.manifest import Sealed, check
from link.pki.trust import Trust


class LogSummary(Part):
    """A log that was read."""

    file: str
    party: str = Field(description="Empty where the log does not even say whose it is.")
    entries: int = Field(ge=0, description="Entries that hold.")
    first: str | None = Field(description="Time of the first of them, UTC.")
    last: str | None = Field(description="Time of the last of them, UTC.")


class FoundProblem(Part):
    """Something that is not as it must be."""

    file: str
    line: int | None = Field(description="From 1; null where no line is to blame.")
    entry: int | None = Field(description="The number that the line gives itself.")
    what: str

    def __str__(self) -> str:
        return str(Finding(Path(self.file), self.line, self.entry, self.what))


class SealedFolder(Part):
    """A result folder, and by whose word its files are what they are."""

    folder: str
    files: int = Field(ge=0, description="Listed in manifest.json.")
    role: str | None = Field(description="Of who has signed manifest.json; null where no signature holds.")
    name: str | None
    time: str | None = Field(description="When that was, by the signer's word.")
    alone: list[str] = Field(
        description="What rests on that signature alone: its maker could have written it otherwise."
    )

    def __str__(self) -> str:
        if self.name is None:
            return printable(f"{self.folder}: nobody vouches for these: {', '.join(self.alone)}")
        return printable(
            f"{self.folder}: {self.files} files, listed by the {self.role} {self.name} on {self.time}; by the word of "
            f"{self.name} alone: {', '.join(self.alone)}"
        )


class JudgedEvidence(Part):
    """Evidence that was read."""

    file: str
    accused: str
    convicts: bool = Field(description="Whether the accused's own signatures show that it broke the rule.")
    what: str = Field(description="What it did, or why the evidence does not hold.")
    job: str
    session: str

    def __str__(self) -> str:
        return printable(
            f"{self.file}: convicts {self.accused}, which {self.what}, in session {self.session} of job {self.job}"
        )


class VerificationDocument(Part):
    """What `comine audit verify --json` prints."""

    schema_: Literal["comine.audit-verification/1"] = Field(alias="schema")
    good: bool = Field(description="Whether nothing was found.")
    logs: list[LogSummary]
    results: list[str] = Field(description="Result folders that were checked.")
    sealed: list[SealedFolder] = Field(description="The same folders, and who vouches for what in them.")
    evidence: list[JudgedEvidence] = Field(description="Evidence against parties that was checked.")
    unheard: list[str] = Field(description="Parties that took part and whose logs were not given.")
    gaps: list[str] = Field(description="What parties say that they could not record, in words.")
    findings: list[FoundProblem]


def verification(
    logs: Sequence[Path], results: Sequence[Path], trust: Trust, evidence: Sequence[Path] = ()
) -> VerificationDocument:
    """Checks everything that is given.

    Args:
        logs: Audit logs.
        results: Result folders.
        trust: Whom the reader trusts.
        evidence: Files of evidence. One that holds is no finding: it is as good as it says.

    Raises:
        ConfigurationError: A file cannot be read.
    """
    checked = [check_log(path, trust) for path in logs]
    agreed, findings = journals(checked)
    findings = [finding for log in checked for finding in log.findings] + findings + compare(agreed)
    sealed = []
    for folder in results:
        seal, of_a_job = check(folder, trust), is_of_a_job(folder)
        findings += [Finding(path, None, None, what) for path, what in seal.problems]
        if of_a_job:
            findings += check_result(folder, trust, agreed, seal.signer)
        sealed.append(_sealed(folder, seal, of_a_job))
    judged = [_judged(path, trust) for path in evidence]
    findings += [
        Finding(Path(each.file), None, None, f"the evidence against {each.accused} does not hold: {each.what}")
        for each in judged
        if not each.convicts
    ]
    took_part = {
        party
        for log in checked
        for record in log.records
        if isinstance(record.event, SessionBegan)
        for party in record.event.parties
    }
    return VerificationDocument(
        schema="comine.audit-verification/1",
        good=not findings,
        logs=[_summary(log) for log in checked],
        results=[str(folder) for folder in results],
        sealed=sealed,
        evidence=judged,
        unheard=sorted(took_part - agreed.keys()),
        gaps=gaps(agreed),
        findings=[FoundProblem(**finding.as_data()) for finding in findings],
    )


def _judged(path: Path, trust: Trust) -> JudgedEvidence:
    document = read_evidence(path)
    try:
        what, convicts = document.judged(trust), True
    except ValueError as error:
        what, convicts = str(error), False
    return JudgedEvidence(
        file=str(path),
        accused=document.accused,
        convicts=convicts,
        what=what,
        job=document.job.hex(),
        session=document.session.hex(),
    )


def _sealed(folder: Path, seal: Sealed, of_a_job: bool) -> SealedFolder:
    signer = seal.signer
    return SealedFolder(
        folder=str(folder),
        files=seal.files,
        role=None if signer is None else signer.role,
        name=None if signer is None else signer.name,
        time=None if signer is None else seal.time,
        alone=list(UNSIGNED) if of_a_job else ["all files: no party signs what is in such a folder"],
    )


def _summary(log: CheckedLog) -> LogSummary:
    times: list[dt.datetime] = [record.entry.time for record in log.records if not record.late]
    return LogSummary(
        file=str(log.path),
        party=log.party,
        entries=len(times),
        first=clock(times[0]) if times else None,
        last=clock(times[-1]) if times else None,
    )
