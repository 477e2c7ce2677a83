"""How jobs stand, as JSON: what `comine job submit|watch|status|cancel` and `comine job list` print."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from jobs.documents.part import Part

_HEX_DIGEST = r"^[0-9a-f]{64}$"
_TIME = "In UTC, ISO 8601."
State = Literal[
    "draft",
    "proposed",
    "awaiting-approval",
    "approved",
    "running",
    "releasing",
    "succeeded",
    "failed",
    "denied",
    "cancelled",
    "expired",
]


class JobError(Part):
    """Why a job ended early."""

    code: str = Field(description="As `comine explain` knows it.")
    exit_code: int = Field(description="That of `comine job watch` and `comine job result` for this job.")
    message: str
    party: str | None = Field(description="Where it arose; null at the coordinator.")


class JobAct(Part):
    """What a person has done with a job at the coordinator's console."""

    at: str = Field(description=_TIME)
    what: Literal["submitted", "resumed", "cancelled"]
    by: str = Field(description="As the person logs in there.")


class PartyStatus(Part):
    """How far one party is."""

    state: str = Field(description="As the party says now; where nobody asked it, as the coordinator last knew.")
    asked: bool = Field(description="Whether the party has answered just now.")
    approved_by: str | None = Field(description='"policy", or the person who approved.')
    approved: str | None = Field(description=f"When. {_TIME}")
    step: str = Field(description="What the party is doing.")
    done: int = Field(ge=0, description="Parts of the step that are done.")
    total: int = Field(ge=0, description="Parts of the step; 0 where it has none.")
    bytes_sent: int = Field(ge=0)
    bytes_received: int = Field(ge=0)
    waits_for: str = Field(description="What has to happen there next; empty where nothing has.")
    problem: str = Field(description="Why it has not answered; empty where all is well.")


class JobDocument(Part):
    """How one job stands."""

    schema_: Literal["comine.job/1"] = Field(alias="schema")
    job_id: str = Field(pattern=_HEX_DIGEST)
    name: str
    task: str
    spec_digest: str = Field(pattern=_HEX_DIGEST, description="SHA-256 of the canonical job specification.")
    state: State
    created: str = Field(description=_TIME)
    expires: str = Field(description=f"After which no party begins the job. {_TIME}")
    until: str | None = Field(description=f"By which the job leaves its state; null once it is over. {_TIME}")
    driven: bool = Field(description="Whether a process drives the job now.")
    waits_for: list[str] = Field(description="Parties whose next word the job waits for.")
    attempt: int = Field(ge=1, description="The number of the present attempt, or of the last one.")
    lost: str = Field(
        description="Why the attempt ended after which the job went on by itself; empty where it has not done so."
    )
    error: JobError | None
    out: str | None = Field(description="Folder into which the driver writes the result.")
    out_problem: str = Field(description="Why it could not write it; empty where all is well.")
    acts: list[JobAct] = Field(description="Empty of a job that commands alone have to do with.")
    parties: dict[str, PartyStatus]


class JobLine(Part):
    """One job of a list."""

    job_id: str = Field(pattern=_HEX_DIGEST)
    name: str
    task: str
    state: State
    created: str = Field(description=_TIME)
    driven: bool
    waits_for: list[str]
    turns: dict[str, str] = Field(
        description="By party whose turn the job waits for, what the party says now, with the job's place in its queue."
    )
    error: JobError | None
    parties: list[str]


class JobList(Part):
    """All jobs of a coordinator, newest first."""

    schema_: Literal["comine.jobs/1"] = Field(alias="schema")
    jobs: list[JobLine]
    unreadable: list[str] = Field(description="Folders of jobs that cannot be read.")
