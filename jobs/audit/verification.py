"""The whole of `comine audit verify`: logs by themselves, against each other, and results against them."""

from __future__ import annotations

import datetime as dt
from collections.abc import Sequence
from pathlib import Path
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field

from jobs.audit.account import UNCHECKED
from jobs.audit.across import compare, gaps, journals
from jobs.audit.entry import clock
from jobs.audit.events import SessionBegan
from jobs.audit.finding import Finding
from jobs.audit.results import check_result
from jobs.audit.verify import CheckedLog, check_log
from link.trust import Trust


class _Part(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class LogSummary(_Part):
    """A log that was read."""

    file: str
    party: str = Field(description="Empty where the log does not even tell whose it is.")
    entries: int = Field(ge=0, description="Entries that hold.")
    first: str | None = Field(description="Time of the first of them, UTC.")
    last: str | None = Field(description="Time of the last of them, UTC.")


class FoundProblem(_Part):
    """Something that is not as it must be."""

    file: str
    line: int | None = Field(description="From 1; null where no line is to blame.")
    entry: int | None = Field(description="The number that the line gives itself.")
    what: str

    def __str__(self) -> str:
        return str(Finding(Path(self.file), self.line, self.entry, self.what))


class VerificationDocument(_Part):
    """What `comine audit verify --json` prints."""

    schema_: Literal["comine.audit-verification/1"] = Field(alias="schema")
    good: bool = Field(description="Whether nothing was found.")
    logs: list[LogSummary]
    results: list[str] = Field(description="Result folders that were checked.")
    unheard: list[str] = Field(description="Parties that took part and whose logs were not given.")
    gaps: list[str] = Field(description="What parties say that they could not record, in words.")
    findings: list[FoundProblem]

    @property
    def unchecked(self) -> tuple[str, ...]:
        """What of the result folders was not looked at, since nobody has signed it."""
        return UNCHECKED if self.results else ()


def verification(logs: Sequence[Path], results: Sequence[Path], trust: Trust) -> VerificationDocument:
    """Checks everything that is given.

    Args:
        logs: Audit logs.
        results: Result folders.
        trust: Whom the reader believes.

    Raises:
        ConfigurationError: A file cannot be read.
    """
    checked = [check_log(path, trust) for path in logs]
    agreed, findings = journals(checked)
    findings = [finding for log in checked for finding in log.findings] + findings + compare(agreed)
    for folder in results:
        findings += check_result(folder, trust, agreed)
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
        unheard=sorted(took_part - agreed.keys()),
        gaps=gaps(agreed),
        findings=[FoundProblem(**finding.as_data()) for finding in findings],
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
