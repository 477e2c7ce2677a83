"""What an audit log can tell of a node and its jobs: one frozen model per event, with no place for a value of the data.

Of an opening there is the label, the recipients, the number, the size and a keyed MAC; of a release what seals its
signature, and a keyed MAC of the result's digest; of an error its code, not its words, which may be a peer's.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, PlainSerializer

from link.errors import ComineError
from link.receipts import Account
from link.version import WIRE_VERSION
from protos.v1.control_pb2 import Release, ResultHeader, SignedApproval, SignedProposal
from protos.v1.link_pb2 import SignedReceipt

if TYPE_CHECKING:
    from jobs.audit.key import AuditKey
    from jobs.privacy_account import Charge
    from link.disclosure import Opened


def _from_hex(value: object) -> object:
    if isinstance(value, str):
        raw = bytes.fromhex(value)
        if raw.hex() != value:
            raise ValueError("must be lower-case hexadecimal digits")
        return raw
    return value


def from_base64(value: object) -> object:
    """Bytes out of base64 in its one canonical form; what is no text stays what it is."""
    if isinstance(value, str):
        raw = base64.b64decode(value, validate=True)
        if base64.b64encode(raw).decode() != value:
            raise ValueError("must be base64")
        return raw
    return value


Hex = Annotated[bytes, BeforeValidator(_from_hex), PlainSerializer(bytes.hex)]
Id = Annotated[Hex, Field(min_length=32, max_length=32)]
Base64 = Annotated[bytes, BeforeValidator(from_base64), PlainSerializer(lambda raw: base64.b64encode(raw).decode())]


class _Model(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class Event(_Model):
    """Something that happened at a party."""

    event: ClassVar[str]

    def fields(self) -> dict[str, Any]:
        """The event as it is written."""
        return self.model_dump(mode="json")


# -- the log itself --------------------------------------------------------------------------------------------------
class LogBegan(Event):
    """The first line: the form of the lines, whose they are, and the certificate that signs them."""

    event = "log-began"
    format: Literal[1]
    party: str
    certificate: str = Field(description="PEM.")


class CertificateChanged(Event):
    """From this line on another certificate signs; the line itself is signed with it."""

    event = "certificate-changed"
    certificate: str


class LineTorn(Event):
    """The bytes before this line are no entry: a write did not come to its end, and nothing that it told happened."""

    event = "line-torn"
    at: int = Field(ge=0, description="Where in the file they begin.")
    size_bytes: int = Field(ge=1)
    sha256: Id


class HeadLost(Event):
    """The head file was missing or unreadable when the log was opened: whether lines had been cut off is not known."""

    event = "head-lost"


class LogFollows(Event):
    """The log was begun anew, and what an earlier one tells is known to the job database alone."""

    event = "log-follows"
    log: Id = Field(description="SHA-256 of the first entry of that log.")
    seq: int = Field(ge=0, description="The last of its entries that is known.")
    entry: Id = Field(description="SHA-256 of it.")


# -- the node --------------------------------------------------------------------------------------------------------
class NodeStarted(Event):
    """The node answers from now on."""

    event = "node-started"
    software: str
    wire: str

    @classmethod
    def now(cls, software: str) -> NodeStarted:
        """A node of this version of comine starts."""
        return cls(software=software, wire=WIRE_VERSION)


class HistoryRestored(Event):
    """The job database had lost what this log tells before, and was given it back."""

    event = "history-restored"
    jobs: int = Field(ge=0, description="How many jobs were made or mended.")
    starts: int = Field(ge=0, description="How many starts the privacy ledger had lost.")


class NodeStopped(Event):
    """The node has ended in order."""

    event = "node-stopped"


# -- consent ---------------------------------------------------------------------------------------------------------
class PlanAsked(Event):
    """A coordinator asked what a job would cost."""

    event = "plan-asked"
    coordinator: str
    spec_digest: Id


class JobEvent(Event):
    """Something in the life of one job."""

    job: Id


class Proposed(JobEvent):
    """A coordinator proposed a job: its signed proposal, whole."""

    event = "proposed"
    coordinator: str
    proposal: Base64 = Field(description="A serialised SignedProposal.")

    @classmethod
    def of(cls, signed: SignedProposal, job_id: bytes, coordinator: str) -> Proposed:
        """From the proposal as it came."""
        return cls(job=job_id, coordinator=coordinator, proposal=_bytes(signed))


class Approved(JobEvent):
    """This party agreed to a job: its signed approval, whole."""

    event = "approved"
    by: str = Field(description="policy, or the person who approved.")
    approval: Base64 = Field(description="A serialised SignedApproval.")

    @classmethod
    def of(cls, signed: SignedApproval, job_id: bytes, by: str) -> Approved:
        """From the approval as it leaves."""
        return cls(job=job_id, by=by, approval=_bytes(signed))


class Refused(JobEvent):
    """This party refused a job."""

    event = "refused"
    by: str = Field(description="policy, or the person who denied.")
    reason: str = Field(description="As the coordinator is told it.")


class Started(JobEvent):
    """The coordinator started a job and showed the approvals of all parties, which this party has checked."""

    event = "started"
    attempt: int = Field(ge=1)
    approvals: tuple[Base64, ...] = Field(description="Serialised SignedApprovals, in the job's order of parties.")

    @classmethod
    def of(cls, job_id: bytes, attempt: int, approvals: Iterable[SignedApproval]) -> Started:
        """From a StartRequest that has been checked."""
        return cls(job=job_id, attempt=attempt, approvals=tuple(map(_bytes, approvals)))


class Charged(JobEvent):
    """The privacy ledger was charged for a start; told again where the node died before this entry was on disk."""

    event = "charged"
    attempt: int = Field(ge=1)
    dataset: str
    model: str
    local_epsilon: str | None = Field(description="Decimal; null where no report of a record leaves.")
    epsilon: str = Field(description="Decimal.")
    delta: str = Field(description="Decimal.")

    @classmethod
    def of(cls, job_id: bytes, attempt: int, dataset: str, cost: Charge) -> Charged:
        """From what a job under a model that adds noise may cost."""
        return cls(
            job=job_id,
            attempt=attempt,
            dataset=dataset,
            model=cost.model,
            local_epsilon=None if cost.local_epsilon is None else str(cost.local_epsilon),
            epsilon=str(cost.epsilon),
            delta=str(cost.delta),
        )


class RulesHidden(JobEvent):
    """A job gets rows of a dataset in which this party hides rules."""

    event = "rules-hidden"
    dataset: str
    rules: int = Field(ge=1, description="How many.")


# -- the session -----------------------------------------------------------------------------------------------------
class SessionBegan(JobEvent):
    """The parties have greeted each other; no frame of a protocol has left yet."""

    event = "session-began"
    session: Id
    attempt: int
    parties: tuple[str, ...]


class Opening(_Model):
    """One thing that left this party in the clear."""

    label: str
    recipients: tuple[str, ...]
    number: int = Field(ge=0, description="How many values.")
    size_bytes: int = Field(ge=0)
    mac: Id = Field(description="Keyed with the session's key, which the party can make again.")


class SessionLost(JobEvent):
    """The node ended before it had recorded how a session ended: what it opened there, its peers alone know."""

    event = "session-lost"
    session: Id


class ValuesOpened(JobEvent):
    """Everything that this party opened in a session, in order."""

    event = "opened"
    session: Id
    openings: tuple[Opening, ...]

    @classmethod
    def of(cls, job_id: bytes, session: bytes, record: Iterable[Opened]) -> ValuesOpened:
        """From the session's ledger."""
        openings = (
            Opening(label=o.label, recipients=o.recipients, number=o.number, size_bytes=o.size_bytes, mac=o.mac)
            for o in record
        )
        return cls(job=job_id, session=session, openings=tuple(openings))


class PeerAccount(_Model):
    """What two parties state of the frames between them."""

    mine: Base64 = Field(description="This party's SignedReceipt for the peer, serialised.")
    theirs: Base64 | None = Field(description="The peer's for this party; null where it never came.")


class Transcript(JobEvent):
    """The state of a session's transcript at its end."""

    event = "transcript"
    session: Id
    complete: bool = Field(description="Whether all receipts were exchanged and agree.")
    peers: dict[str, PeerAccount]

    @classmethod
    def of(cls, job_id: bytes, session: bytes, accounts: Mapping[str, Account], *, complete: bool) -> Transcript:
        """From the receipts of a session."""
        peers = {
            peer: PeerAccount(mine=_bytes(a.mine), theirs=None if a.theirs is None else _bytes(a.theirs))
            for peer, a in accounts.items()
        }
        return cls(job=job_id, session=session, complete=complete, peers=peers)


class Released(JobEvent):
    """What this party signed about the result and gave away, without what is in it."""

    event = "released"
    session: Id
    to: str = Field(description="coordinator, or this party itself, in whose result folder it lies.")
    seal: Id = Field(description="SHA-256 of the release's signature: only who has the release can compare.")
    result_mac: Id | None = Field(description="Of the result's digest, keyed; null where none was released.")

    @classmethod
    def of(cls, header: ResultHeader, *, to: str, key: AuditKey) -> Released:
        """From a release as it is signed.

        Args:
            header: The signed release.
            to: "coordinator", or this party's own name.
            key: This party's.
        """
        release = Release.FromString(header.release)
        digest = release.result_digest
        return cls(
            job=release.job_id,
            session=release.session,
            to=to,
            seal=hashlib.sha256(header.signature).digest(),
            result_mac=key.result_mac(release.session, digest) if digest else None,
        )


class Ended(JobEvent):
    """A job is over at this party."""

    event = "ended"
    state: Literal["succeeded", "failed", "cancelled", "expired"]
    error_code: str | None = None
    error_party: str | None = Field(default=None, description="Where the error arose.")
    told_by: str | None = Field(default=None, description="The peer that told it; null where this party met it itself.")

    @classmethod
    def by(
        cls,
        job_id: bytes,
        state: Literal["failed", "cancelled", "expired"],
        error: ComineError,
        reporter: str | None = None,
    ) -> Ended:
        """A job that an error has ended, and which peer has told it, if any."""
        return cls(job=job_id, state=state, error_code=error.code, error_party=error.party, told_by=reporter)


def _bytes(message: SignedProposal | SignedApproval | SignedReceipt) -> bytes:
    return message.SerializeToString(deterministic=True)
