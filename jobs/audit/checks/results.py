"""Holds a result folder against itself, and against the audit logs of the parties that vouch for it."""

from __future__ import annotations

import datetime as dt
import hashlib
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from cryptography.hazmat.primitives.serialization import Encoding
from google.protobuf.message import DecodeError
from pydantic import ValidationError

from jobs.audit.checks.account import account_problems
from jobs.audit.checks.across import Journal, called
from jobs.audit.checks.contents import job_id_of
from jobs.audit.checks.finding import Finding
from jobs.audit.checks.signed_result import SignedResult
from jobs.audit.events import Approved, Proposed, Released, from_base64
from jobs.audit.place import RESULT
from jobs.consent import read_approval, read_proposal
from jobs.documents.result import Consents, ResultDocument, SignedRelease
from jobs.proposed import job_from_canonical
from jobs.results.destination import MANIFEST
from jobs.results.manifest import Signer
from jobs.results.release import rows_of, verify
from jobs.spec.job import JobSpec
from link.errors import ComineError, ConfigurationError
from link.files.json_text import read_json
from link.pki.certificates import read_certificate
from link.pki.trust import Trust
from protos.v1.control_pb2 import Approval, Proposal, Release, ResultHeader, SignedApproval, SignedProposal

_OTHERS: Final = ("compare.json", "hiding.json", "collection.json", "frontier.json", "certificate.json")
_OTHER_RESULTS: Final = ("comine.frequency/1", "comine.frequency-estimates/1")


def is_of_a_job(folder: Path) -> bool:
    """Whether parties sign what such a folder holds: that of estimates of a collection, say, is its writer's alone."""
    if not (folder / RESULT).exists():
        return not any((folder / name).exists() for name in _OTHERS)
    try:
        contents = read_json((folder / RESULT).read_bytes())
    except (OSError, ValueError, RecursionError):
        return True
    return not (isinstance(contents, dict) and contents.get("schema") in _OTHER_RESULTS)


def check_result(
    folder: Path, trust: Trust, found: Mapping[str, Journal], sealer: Signer | None = None
) -> list[Finding]:
    """Verifies what the parties signed about a result.

    Args:
        folder: The result folder.
        trust: Whom the reader trusts.
        found: By party, what its audit log records; of other parties only the signatures are checked.
        sealer: Who has signed the folder's manifest, where somebody has.
    """
    path = folder / RESULT
    try:
        contents = path.read_bytes()
    except OSError as error:
        return [Finding(path, None, None, f"it cannot be read ({error.strerror})")]
    try:
        result = ResultDocument.model_validate_json(contents)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        where = ".".join(map(str, first["loc"]))
        return [Finding(path, None, None, f"it is not a result of this version of comine: {where}: {first['msg']}")]
    return [Finding(path, None, None, what) for what in _Check(folder, result, trust, found, sealer).problems()]


@dataclass(slots=True)
class _Check:
    folder: Path
    result: ResultDocument
    trust: Trust
    found: Mapping[str, Journal]
    sealer: Signer | None = None
    spec: bytes | None = None  # of a proposal that its coordinator is known to have signed
    coordinator: str = ""  # who that is
    releases: list[Release] = field(default_factory=list)  # that their parties are known to have signed

    def problems(self) -> Iterator[str]:
        result = self.result
        if result.simulated:
            yield "it is the result of a simulation, which no party vouches for"
            return
        canonical = json.dumps(result.parameters, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
        if hashlib.sha256(canonical.encode()).hexdigest() != result.spec_digest:
            yield "its parameters are not those of its spec_digest"
        if result.consents is not None:
            yield from self._safely("the consents", self._consents(result.consents))
        elif (party := self._only_party()) is not None:
            yield from self._own_copy(party)
        else:
            yield "it holds no consents, so nothing in it shows what the parties were asked and that they agreed"
        for receipt in result.receipts:
            yield from self._safely(f"what {receipt.party} signed", self._release(receipt))
        yield from self._sealed()
        if {receipt.party for receipt in result.receipts} != set(result.parties):
            yield "it does not hold one signed release of each party"
        spec = self._specification(canonical.encode())
        if spec is None:
            yield (
                "its job cannot be read by this version of comine, so only signatures were checked; verify it with the "
                f"version that wrote it, which it says is {result.software.comine}"
            )
            return
        if self._only_party() is None and set(result.parties) != set(spec.job.parties):
            yield "its parties are not those of the proposal"
        signed = SignedResult(self.folder, spec)
        for release in self.releases:
            yield from self._safely(f"what {release.party} signed", signed.problems(release))
        yield from self._safely("what follows from it", account_problems(result, signed))

    def _sealed(self) -> Iterator[str]:
        """Whether the folder was written by whom the parties answered, or by the party whose copy it is."""
        must = ("coordinator", self.coordinator) if (party := self._only_party()) is None else ("party", party)
        if self.sealer is not None and must[1] and (self.sealer.role, self.sealer.name) != must:
            yield (
                f"{MANIFEST} beside it is signed by {self.sealer.name}, a {self.sealer.role}, and not by the {must[0]} "
                f"{must[1]}"
            )

    def _only_party(self) -> str | None:
        """The party whose node wrote this as its own copy, if it is one: that names nobody else."""
        own = set(self.result.parties) | {receipt.party for receipt in self.result.receipts}
        return next(iter(own)) if len(own) == 1 and self.result.consents is None else None

    def _own_copy(self, party: str) -> Iterator[str]:
        """A node's own copy of a result holds no consents: they are in its log."""
        job_id = bytes.fromhex(self.result.job_id)
        if party not in self.found:
            yield f"it is the copy of {party} alone and holds no consents; give the log of {party} too, which has them"
            return
        journal = self.found[party]
        seals = {event.seal for _, event in journal.events(job_id, Released) if event.to == party}
        if not any(hashlib.sha256(_raw(receipt.signature)).digest() in seals for receipt in self.result.receipts):
            yield f"it holds no consents, and the log of {party} records no such result for {party} itself"
        if hashlib.sha256(self._recorded() or b"").hexdigest() != self.result.spec_digest:
            yield f"the log of {party} records another specification of job {called(job_id)}, or none"

    def _recorded(self) -> bytes | None:
        """The specification in a proposal that a party's log holds of this job."""
        job_id = bytes.fromhex(self.result.job_id)
        for journal in self.found.values():
            for _, event in journal.events(job_id, Proposed):
                proposal = Proposal.FromString(SignedProposal.FromString(event.proposal).proposal)
                return proposal.spec
        return None

    def _specification(self, parameters: bytes) -> JobSpec | None:
        """What was proposed; where nobody shows that, the parameters of the result."""
        for proposed in (self.spec, self._recorded()):
            if proposed is not None:
                parameters = proposed
                break
        try:
            return job_from_canonical(parameters)
        except ConfigurationError:
            return None

    def _safely(self, what: str, problems: Iterator[str]) -> Iterator[str]:
        try:
            yield from problems
        except ComineError as error:
            yield f"{what}: {error.message}"
        except DecodeError:
            yield f"{what} cannot be read"
        except ValueError as error:
            yield f"{what} {error}"

    def _consents(self, consents: Consents) -> Iterator[str]:
        signed = SignedProposal(
            proposal=_raw(consents.proposal),
            signature=_raw(consents.signature),
            certificate=_pem(consents.certificate),
        )
        approvals = {
            consent.party: SignedApproval(
                approval=_raw(consent.approval),
                signature=_raw(consent.signature),
                certificate=_pem(consent.certificate),
            )
            for consent in consents.approvals
        }
        decided = {party: Approval.FromString(signed.approval) for party, signed in approvals.items()}
        asked = min((_time(approval.decided) for approval in decided.values()), default=None)
        coordinator = next((approval.coordinator for approval in decided.values()), "")
        proposal: Proposal = read_proposal(signed, self.trust, coordinator, at=asked)
        self.spec, self.coordinator = proposal.spec, coordinator
        if job_id_of(proposal).hex() != self.result.job_id:
            yield "the proposal in it is of another job"
        if hashlib.sha256(proposal.spec).hexdigest() != self.result.spec_digest:
            yield "the proposal in it has another specification"
        if set(approvals) != set(self.result.parties):
            yield "it does not hold one approval of each party"
        for party, approval in approvals.items():
            given = read_approval(approval, self.trust, party, at=_time(decided[party].decided))
            if given.job_id.hex() != self.result.job_id or given.coordinator != coordinator:
                yield f"the approval of {party} in it is of another job or coordinator"
            if party in self.found:
                own = [event.approval for _, event in self.found[party].events(given.job_id, Approved)]
                if approval.approval not in [SignedApproval.FromString(raw).approval for raw in own]:
                    yield f"the log of {party} lacks the approval of {party} that is in it"

    def _release(self, receipt: SignedRelease) -> Iterator[str]:
        result, party = self.result, receipt.party
        job_id = bytes.fromhex(result.job_id)
        signature = _raw(receipt.signature)
        header = ResultHeader(release=_raw(receipt.release), signature=signature, certificate=_pem(receipt.certificate))
        at, in_log = self._signed_at(party, job_id, hashlib.sha256(signature).digest())
        release = verify(header, trust=self.trust, party=party, job_id=job_id, at=at)
        if party in self.found and not in_log:
            yield f"the log of {party} has no such release of job {called(job_id)}"
        costs = result.parties.get(party)
        said = (release.session.hex(), rows_of(release), release.strategy, list(release.receipts_from))
        rows = (result.n_rows, result.positions)
        if said != (result.session_id, rows, result.strategy, receipt.agrees_with):
            yield f"{party} signed another session, number of rows, strategy or agreement than it states"
        measured = (release.bytes_sent, release.bytes_received, release.rounds, release.seconds)
        if costs is not None and measured != (costs.bytes_sent, costs.bytes_received, costs.rounds, costs.seconds):
            yield f"{party} signed other costs than it states"
        self.releases.append(release)

    def _signed_at(self, party: str, job_id: bytes, seal: bytes) -> tuple[dt.datetime | None, bool]:
        """When a release was signed, and whether its party's log records it."""
        if party in self.found:
            for record, event in self.found[party].events(job_id, Released):
                if event.seal == seal:
                    return record.entry.time, True
        for consent in self.result.consents.approvals if self.result.consents is not None else ():
            if consent.party == party:  # the release followed within the job's expiry
                return _time(Approval.FromString(_raw(consent.approval)).decided), False
        return None, False


def _raw(text: str) -> bytes:
    raw = from_base64(text)
    assert isinstance(raw, bytes)
    return raw


def _pem(text: str) -> bytes:
    """A certificate whose text is the only one that it has."""
    certificate = read_certificate(text.encode())
    if certificate.public_bytes(Encoding.PEM) != text.encode():
        raise ValueError("has a certificate that was changed")
    return text.encode()


def _time(seconds: int) -> dt.datetime:
    try:
        return dt.datetime.fromtimestamp(seconds, dt.UTC)
    except (ValueError, OverflowError, OSError):
        raise ValueError("states a time that no calendar has") from None
