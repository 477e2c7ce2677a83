"""What an audit log records of standing approvals: a person's consent, given in advance, to one job run again."""

from __future__ import annotations

import datetime as dt
import hashlib
import json
from typing import Final

from pydantic import Field

from jobs.audit.events import Base64, Event, Id
from jobs.documents.part import Part

PURPOSE: Final = b"comine.standing-approval/1\0"


class Terms(Part):
    """To what a party has agreed in advance; times are Unix seconds."""

    party: str
    job: Id = Field(description="The job that was shown to who approved.")
    spec_digest: Id = Field(description="SHA-256 of its canonical bytes; the id of a run and its expiry alone differ.")
    coordinator: str
    coordinator_certificate: Id = Field(description="SHA-256 fingerprint.")
    times: int = Field(ge=1, description="How many runs, beside that job.")
    every_s: int = Field(ge=1, description="Seconds between two of them, at least.")
    until: int
    approved: int
    by: str = Field(description="Who approved.")

    def signed(self) -> bytes:
        """What the party signs."""
        text = json.dumps(self.model_dump(mode="json"), sort_keys=True, separators=(",", ":"), ensure_ascii=True)
        return PURPOSE + text.encode()

    @property
    def id(self) -> bytes:
        """By which runs name them."""
        return hashlib.sha256(self.signed()).digest()


class StandingApproved(Event):
    """A person has approved runs of a job in advance."""

    event = "standing-approved"
    terms: Terms
    certificate: str = Field(description="PEM, of the party.")
    signature: Base64 = Field(description="By the party's key, over the terms.")

    def __str__(self) -> str:
        terms, until = self.terms, dt.datetime.fromtimestamp(self.terms.until, dt.UTC)
        return (
            f"{terms.id.hex()[:12]} by {terms.by}: {terms.times} runs of job {terms.job.hex()[:12]} of "
            f"{terms.coordinator}, {terms.every_s} s apart at least, until {until:%Y-%m-%d %H:%M} UTC"
        )


class StandingUsed(Event):
    """A run is approved by what was approved in advance."""

    event = "standing-used"
    standing: Id
    job: Id
    at: int = Field(description="Unix seconds.")

    def __str__(self) -> str:
        return f"{self.standing.hex()[:12]} for job {self.job.hex()[:12]}"


class StandingRevoked(Event):
    """What was approved in advance is approved no more; runs that have not begun do not begin."""

    event = "standing-revoked"
    standing: Id
    by: str

    def __str__(self) -> str:
        return f"{self.standing.hex()[:12]} by {self.by}"
