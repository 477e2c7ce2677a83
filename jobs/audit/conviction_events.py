"""What an audit log records of evidence against a peer."""

from __future__ import annotations

from pydantic import Field

from jobs.audit.events import Id, JobEvent


class EvidenceKept(JobEvent):
    """A peer's signed words convict it of breaking a rule of a protocol; the file is kept for whoever is to judge."""

    event = "evidence-kept"
    session: Id
    accused: str
    rule: str
    sha256: Id = Field(description="Of the file.")

    def __str__(self) -> str:
        return f"against {self.accused}, rule '{self.rule}'"
