"""What an audit log records of a node and its jobs: one frozen model per event, with no place for a value of the data.

Of an opening there is the label, the recipients, the number, the size and a keyed MAC; of a release what seals its
signature, and a keyed MAC of the result's digest; of an error its code, not its words, which may be a peer's.
"""

from __future__ import annotations

import base64
import hashlib
from abc import abstractmethod
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal

from pydantic import BeforeValidator, Field, PlainSerializer

from jobs.documents.part import Part
from link.errors import ComineError
from link.transcripts.receipts import Account
from link.version import WIRE_VERSION
from protos.v1.control_pb2 import Release, ResultHeader, SignedApproval, SignedProposal
from protos.v1.link_pb2 import Receipt, SignedReceipt

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


class Event(Part):
    """Something that happened at a party."""

    event: ClassVar[str]

    def fields(self) -> dict[str, Any]:
        """The event as it is written."""
        return self.model_dump(mode="json")

    @abstractmethod
    def __str__(self) -> str:
        """The event in words, without the job that it belongs to."""


# -- the log itself --------------------------------------------------------------------------------------------------
class LogBegan(Event):
    """The first line: the form of the lines, whose they are, and the certificate that signs them."""

    event = "log-began"
    format: Literal[1]
    party: str
    certificate: str = Field(description="PEM.")

    def __str__(self) -> str:
        return f"log of {self.party}, format {self.format}"


class CertificateChanged(Event):
    """From this line on another certificate signs; the line itself is signed with it."""

    event = "certificate-changed"
    certificate: str

    def __str__(self) -> str:
        return "another certificate signs from here on"


class LineTorn(Event):
    """The bytes before this line are no entry: a write was interrupted, and nothing that it recorded happened."""

    event = "line-torn"
    at: int = Field(ge=0, description="Where in the file they begin.")
    size_bytes: int = Field(ge=1)
    sha256: Id

    def __str__(self) -> str:
        return f"{self.size_bytes} bytes of an interrupted write were set aside"


class HeadLost(Event):
    """The head file was missing or unreadable when the log was opened: whether lines had been cut off is not known."""

    event = "head-lost"

    def __str__(self) -> str:
        return "the head file was lost: whether lines had been cut off is not known"


class LogFollows(Event):
    """The log was begun anew, and what an earlier one records is known to the job database alone."""

    event = "log-follows"
    log: Id = Field(description="SHA-256 of the first entry of that log.")
    seq: int = Field(ge=0, description="The last of its entries that is known.")
    entry: Id = Field(description="SHA-256 of it.")

    def __str__(self) -> str:
        return f"an earlier log, {self.log.hex()[:12]}, known up to its entry {self.seq}"


# -- the node --------------------------------------------------------------------------------------------------------
class NodeStarted(Event):
    """The node answers from now on."""

    event = "node-started"
    software: str
    wire: str

    def __str__(self) -> str:
        return f"comine {self.software}, wire {self.wire}"

    @classmethod
    def now(cls, software: str) -> NodeStarted:
        """A node of this version of comine starts."""
        return cls(software=software, wire=WIRE_VERSION)


class HistoryRestored(Event):
    """The job database had lost what this log records, and was restored from it."""

    event = "history-restored"
    jobs: int = Field(ge=0, description="How many jobs were made or mended.")
    starts: int = Field(ge=0, description="How many starts the privacy ledger had lost.")

    def __str__(self) -> str:
        return f"{self.jobs} jobs and {self.starts} charges were lost from the job database, and came from here"


class SettingsReloaded(Event):
    """The node goes on under other settings, read from its files while it runs."""

    event = "settings-reloaded"
    file: Id = Field(description="SHA-256 of party.toml.")
    federation: Id = Field(description="SHA-256 of the federation file.")
    certificate: Id = Field(description="SHA-256 fingerprint of the party's certificate.")
    changed: tuple[str, ...] = Field(description="What is other than before, by its place in the files.")

    def __str__(self) -> str:
        return f"{', '.join(self.changed)}; party.toml has the SHA-256 {self.file.hex()}"


class NodeStopped(Event):
    """The node has ended in order."""

    event = "node-stopped"

    def __str__(self) -> str:
        return "in order"


# -- consent ---------------------------------------------------------------------------------------------------------
class PlanAsked(Event):
    """A coordinator asked what a job would cost."""

    event = "plan-asked"
    coordinator: str
    spec_digest: Id

    def __str__(self) -> str:
        return f"by {self.coordinator}, specification {self.spec_digest.hex()[:12]}"


class JobEvent(Event):
    """Something in the life of one job."""

    job: Id


class Proposed(JobEvent):
    """A coordinator proposed a job: its signed proposal, whole."""

    event = "proposed"
    coordinator: str
    proposal: Base64 = Field(description="A serialised SignedProposal.")

    def __str__(self) -> str:
        return f"by {self.coordinator}"

    @classmethod
    def of(cls, signed: SignedProposal, job_id: bytes, coordinator: str) -> Proposed:
        """From the proposal as it came."""
        return cls(job=job_id, coordinator=coordinator, proposal=_bytes(signed))


class Approved(JobEvent):
    """This party agreed to a job: its signed approval, whole."""

    event = "approved"
    by: str = Field(description="policy, or the person who approved.")
    approval: Base64 = Field(description="A serialised SignedApproval.")

    def __str__(self) -> str:
        return f"by {self.by}"

    @classmethod
    def of(cls, signed: SignedApproval, job_id: bytes, by: str) -> Approved:
        """From the approval as it leaves."""
        return cls(job=job_id, by=by, approval=_bytes(signed))


class ApprovalGiven(JobEvent):
    """One of several people that a job needs has approved it; the last one's approval is followed by `approved`."""

    event = "approval-given"
    by: str = Field(description="Who.")
    needed: int = Field(ge=1, description="How many different people have to.")
    runs: str = Field(description="Number, seconds apart and end of runs approved in advance; empty without any.")

    def __str__(self) -> str:
        return f"by {self.by}, of {self.needed} who have to"


class Refused(JobEvent):
    """This party refused a job."""

    event = "refused"
    by: str = Field(description="policy, or the person who denied.")
    reason: str = Field(description="As the coordinator sees it.")

    def __str__(self) -> str:
        return f"by {self.by}: {self.reason}"


class OwnerCancelled(JobEvent):
    """A person of this party ended a job that was approved or ran; no attempt of it begins here any more."""

    event = "owner-cancelled"
    by: str = Field(description="Who.")
    reason: str = Field(description="As the others see it.")

    def __str__(self) -> str:
        return f"by {self.by}: {self.reason}"


class Started(JobEvent):
    """The coordinator started a job and showed the approvals of all parties, which this party has checked."""

    event = "started"
    attempt: int = Field(ge=1)
    approvals: tuple[Base64, ...] = Field(description="Serialised SignedApprovals, in the job's order of parties.")

    def __str__(self) -> str:
        return f"attempt {self.attempt}, {len(self.approvals)} approvals"

    @classmethod
    def of(cls, job_id: bytes, attempt: int, approvals: Iterable[SignedApproval]) -> Started:
        """From a StartRequest that has been checked."""
        return cls(job=job_id, attempt=attempt, approvals=tuple(map(_bytes, approvals)))


class Charged(JobEvent):
    """The privacy ledger was charged for a start; recorded again where the node died before this entry was on disk."""

    event = "charged"
    attempt: int = Field(ge=1)
    dataset: str
    model: str
    local_epsilon: str | None = Field(description="Decimal; null where no report of a record leaves.")
    epsilon: str = Field(description="Decimal.")
    delta: str = Field(description="Decimal.")

    def __str__(self) -> str:
        local = "" if self.local_epsilon is None else f", {self.local_epsilon} in each report"
        cost = f"ε = {self.epsilon}, δ = {self.delta}{local}"
        return f"'{self.dataset}' for attempt {self.attempt}: {cost} ({self.model})"

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


class ResultHeld(JobEvent):
    """A job has found something, which this party holds until its people release it."""

    event = "result-held"
    attempt: int = Field(ge=1)

    def __str__(self) -> str:
        return f"of attempt {self.attempt}"


class HoldReleased(JobEvent):
    """A person of this party released what a job has found."""

    event = "hold-released"
    by: str = Field(description="Who.")

    def __str__(self) -> str:
        return f"by {self.by}"


class HoldWithheld(JobEvent):
    """What a job has found is not released; the job ends, and no attempt of it begins here any more."""

    event = "hold-withheld"
    by: str = Field(description="Who; deadline, where nobody has decided by then.")
    reason: str = Field(description="For this party alone.")

    def __str__(self) -> str:
        return f"by {self.by}" + (f": {self.reason}" if self.reason else "")


class RulesHidden(JobEvent):
    """A job gets rows of a dataset in which this party hides rules."""

    event = "rules-hidden"
    dataset: str
    rules: int = Field(ge=1, description="How many.")

    def __str__(self) -> str:
        return f"{self.rules} in '{self.dataset}'"


# -- the session -----------------------------------------------------------------------------------------------------
class SessionBegan(JobEvent):
    """The parties have greeted each other; no frame of a protocol has left yet."""

    event = "session-began"
    session: Id
    attempt: int
    parties: tuple[str, ...]

    def __str__(self) -> str:
        return f"{self.session.hex()[:12]} with {', '.join(self.parties)}"


class Opening(Part):
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

    def __str__(self) -> str:
        return f"{self.session.hex()[:12]}: what was opened in it was not recorded any more"


class ValuesOpened(JobEvent):
    """Everything that this party opened in a session, in order."""

    event = "opened"
    session: Id
    openings: tuple[Opening, ...]

    def __str__(self) -> str:
        return "; ".join(
            f"{o.number} of '{o.label}' ({o.size_bytes} bytes) to {', '.join(o.recipients)}" for o in self.openings
        )

    @classmethod
    def of(cls, job_id: bytes, session: bytes, record: Iterable[Opened]) -> ValuesOpened:
        """From the session's ledger."""
        openings = (
            Opening(label=o.label, recipients=o.recipients, number=o.number, size_bytes=o.size_bytes, mac=o.mac)
            for o in record
        )
        return cls(job=job_id, session=session, openings=tuple(openings))


class PeerAccount(Part):
    """What two parties state of the frames between them."""

    mine: Base64 = Field(description="This party's SignedReceipt for the peer, serialised.")
    theirs: Base64 | None = Field(description="The peer's for this party; null where it never came.")

    def frames(self) -> str:
        """How many frames this party has signed for, in words."""
        receipt = Receipt.FromString(SignedReceipt.FromString(self.mine).receipt)
        return f"{sum(h.frames for h in receipt.sent)} frames sent, {sum(h.frames for h in receipt.received)} received"


class Transcript(JobEvent):
    """The state of a session's transcript at its end."""

    event = "transcript"
    session: Id
    complete: bool = Field(description="Whether all receipts were exchanged and agree.")
    peers: dict[str, PeerAccount]

    def __str__(self) -> str:
        words = "; ".join(f"{peer}: {account.frames()}" for peer, account in self.peers.items())
        return words if self.complete else f"incomplete; {words}"

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

    def __str__(self) -> str:
        return f"to {self.to}" + ("" if self.result_mac is None else ", with the result's digest")

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
    told_by: str | None = Field(
        default=None, description="The peer that reported it; null where this party met it itself."
    )

    def __str__(self) -> str:
        where = "" if self.error_party is None else f" at {self.error_party}"
        where += "" if self.told_by is None else f", reported by {self.told_by}"
        return self.state if self.error_code is None else f"{self.state}: {self.error_code}{where}"

    @classmethod
    def by(
        cls,
        job_id: bytes,
        state: Literal["failed", "cancelled", "expired"],
        error: ComineError,
        reporter: str | None = None,
    ) -> Ended:
        """A job that an error has ended, and which peer has reported it, if any."""
        return cls(job=job_id, state=state, error_code=error.code, error_party=error.party, told_by=reporter)


def _bytes(message: SignedProposal | SignedApproval | SignedReceipt) -> bytes:
    return message.SerializeToString(deterministic=True)
