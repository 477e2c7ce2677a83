"""Holds a result folder against itself, and against the audit logs of the parties that vouch for it."""

from __future__ import annotations

import datetime as dt
import hashlib
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
from cryptography import x509
from cryptography.hazmat.primitives.serialization import Encoding
from google.protobuf.message import DecodeError
from pydantic import ValidationError

from jobs.audit.across import Journal, called
from jobs.audit.contents import job_id_of
from jobs.audit.events import Approved, Released, from_base64
from jobs.audit.finding import Finding
from jobs.audit.place import RESULT
from jobs.audit.tables import packed_tables
from jobs.consent import read_approval, read_proposal
from jobs.document import Consents, ResultDocument, SignedRelease
from jobs.model_document import MODEL_FILE, model_document, pack_model, read_model
from jobs.release import rows_of, verify
from jobs.result import digest
from jobs.tables import csv_chunks
from jobs.target import ESTIMATES_FILE, JOINT_RELEASE, RELEASE_PARQUET
from link.errors import ComineError, ConfigurationError
from link.trust import Trust
from mining.joint.estimated import unpack_estimates
from protos.v1.control_pb2 import Approval, Proposal, Release, ResultHeader, SignedApproval, SignedProposal


def check_result(folder: Path, trust: Trust, found: Mapping[str, Journal]) -> list[Finding]:
    """Verifies what the parties signed about a result.

    Args:
        folder: The result folder.
        trust: Whom the reader believes.
        found: By party, what its audit log tells; of other parties only the signatures are checked.

    Raises:
        ConfigurationError: There is no result to be read.
    """
    path = folder / RESULT
    try:
        contents = path.read_bytes()
    except OSError as error:
        raise ConfigurationError(f"the result {path} cannot be read ({error.strerror}); check the path") from None
    try:
        result = ResultDocument.model_validate_json(contents)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        where = ".".join(map(str, first["loc"]))
        return [Finding(path, None, None, f"it is not a result of this version of comine: {where}: {first['msg']}")]
    return [Finding(path, None, None, what) for what in _Check(folder, result, trust, found).problems()]


@dataclass(frozen=True, slots=True)
class _Check:
    folder: Path
    result: ResultDocument
    trust: Trust
    found: Mapping[str, Journal]

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
        for receipt in result.receipts:
            yield from self._safely(f"what {receipt.party} signed", self._release(receipt))
        if {receipt.party for receipt in result.receipts} != set(result.parties):
            yield "it does not hold one signed release of each party"

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
                own = [event.approval for _, event in self.found[party].told(given.job_id, Approved)]
                if approval.approval not in [SignedApproval.FromString(raw).approval for raw in own]:
                    yield f"the log of {party} lacks the approval of {party} that is in it"

    def _release(self, receipt: SignedRelease) -> Iterator[str]:
        result, party = self.result, receipt.party
        job_id = bytes.fromhex(result.job_id)
        signature = _raw(receipt.signature)
        header = ResultHeader(release=_raw(receipt.release), signature=signature, certificate=_pem(receipt.certificate))
        at, in_log = self._told(party, job_id, hashlib.sha256(signature).digest())
        release = verify(header, trust=self.trust, party=party, job_id=job_id, at=at)
        if party in self.found and not in_log:
            yield f"the log of {party} has no such release of job {called(job_id)}"
        costs = result.parties.get(party)
        said = (release.session.hex(), rows_of(release), release.strategy, list(release.receipts_from))
        told = (result.n_rows, result.positions)
        if said != (result.session_id, told, result.strategy, receipt.agrees_with):
            yield f"{party} signed another session, number of rows, strategy or agreement than it tells"
        measured = (release.bytes_sent, release.bytes_received, release.rounds, release.seconds)
        if costs is not None and measured != (costs.bytes_sent, costs.bytes_received, costs.rounds, costs.seconds):
            yield f"{party} signed other costs than it tells"
        if release.result_digest:
            if _anonymizes(result):
                yield from self._joint_release(release)
            elif _trains(result):
                yield from self._model(release)
            else:
                yield from self._estimates(release) if result.estimated else self._tables(release)

    def _told(self, party: str, job_id: bytes, seal: bytes) -> tuple[dt.datetime | None, bool]:
        """When a release was signed, and whether its party's log tells of it."""
        if party in self.found:
            for record, event in self.found[party].told(job_id, Released):
                if event.seal == seal:
                    return record.entry.time, True
        for consent in self.result.consents.approvals if self.result.consents is not None else ():
            if consent.party == party:  # the release followed within the job's expiry
                return _time(Approval.FromString(_raw(consent.approval)).decided), False
        return None, False

    def _model(self, release: Release) -> Iterator[str]:
        path = self.folder / MODEL_FILE
        try:
            model = read_model(path.read_bytes())
            written = json.loads(path.read_bytes()) == model_document(model)
        except (OSError, ValueError) as error:
            yield f"{MODEL_FILE} cannot be read ({error}), and {release.party} signed what is in it"
            return
        if not written or digest(pack_model(model)) != release.result_digest:
            yield f"{MODEL_FILE} does not hold the model that {release.party} signed"

    def _joint_release(self, release: Release) -> Iterator[str]:
        from anonymize.verifier import verify as verify_release  # with what other results do without
        from jobs.anonymized import Anonymized

        try:
            packed = (self.folder / JOINT_RELEASE).read_bytes()
            signed = Anonymized.unpack(packed)
            rows = pq.read_table(self.folder / RELEASE_PARQUET)
        except (OSError, ValueError, pa.ArrowException) as error:
            yield f"{JOINT_RELEASE} or {RELEASE_PARQUET} cannot be read ({type(error).__name__})"
            return
        if digest(packed) != release.result_digest:
            yield f"{JOINT_RELEASE} does not hold the release that {release.party} signed"
        if not rows.equals(signed.table):
            yield f"{RELEASE_PARQUET} does not hold the rows that {release.party} signed"
        for finding in verify_release(self.folder).failures:
            yield f"the release does not hold what its certificate claims: {finding.check}"

    def _estimates(self, release: Release) -> Iterator[str]:
        try:
            packed = (self.folder / ESTIMATES_FILE).read_bytes()
            estimated = unpack_estimates(packed)
        except (OSError, ValueError) as error:
            yield f"{ESTIMATES_FILE} cannot be read ({error}), and {release.party} signed what is in it"
            return
        if digest(packed) != release.result_digest:
            yield f"{ESTIMATES_FILE} does not hold the estimates that {release.party} signed"
            return
        measures = (self.result.parameters.get("rules") or {}).get("measures", ())
        tables = {"itemsets": estimated.itemsets.to_arrow()}
        if estimated.rules is not None:
            tables["rules"] = estimated.rules.to_arrow(measures)
        for name, table in tables.items():
            yield from self._same(name, table, release)

    def _same(self, name: str, table: pa.Table, release: Release) -> Iterator[str]:
        """Whether the files of a table hold what follows from the estimates."""
        path = self.folder / name
        try:
            as_text = path.with_suffix(".csv").read_bytes() == b"".join(csv_chunks(table))
            as_columns = pq.read_table(path.with_suffix(".parquet")).equals(table)
        except (OSError, pa.ArrowException) as error:
            yield f"{name}.csv or {name}.parquet cannot be read ({type(error).__name__})"
            return
        for ending, same in (("csv", as_text), ("parquet", as_columns)):
            if not same:
                yield f"{name}.{ending} does not follow from the estimates that {release.party} signed"

    def _tables(self, release: Release) -> Iterator[str]:
        asked = self.result.parameters.get("itemsets")
        counted = not (isinstance(asked, dict) and asked.get("disclose") == "frequent")
        rules = not counted and self.result.parameters.get("rules") is not None
        for ending in ("csv", "parquet"):
            names = f"itemsets.{ending}" + (f" and rules.{ending}" if rules else "")
            try:
                packed = packed_tables(self.folder, ending, release.n_rows, counted=counted, rules=rules)
            except (OSError, KeyError, ValueError, TypeError) as error:
                yield f"{names} cannot be read ({type(error).__name__}), and {release.party} signed what is in it"
                continue
            if digest(packed) != release.result_digest:
                what = "do not hold the itemsets and rules" if rules else "does not hold the itemsets"
                yield f"{names} {what} that {release.party} signed"


def _anonymizes(result: ResultDocument) -> bool:
    """Whether the job has released rows."""
    return result.parameters.get("anonymize") is not None


def _trains(result: ResultDocument) -> bool:
    """Whether the job has learnt a model."""
    return result.parameters.get("itemsets") is None


def _raw(text: str) -> bytes:
    raw = from_base64(text)
    assert isinstance(raw, bytes)
    return raw


def _pem(text: str) -> bytes:
    """A certificate whose text is the only one that it has."""
    certificate = x509.load_pem_x509_certificate(text.encode())
    if certificate.public_bytes(Encoding.PEM) != text.encode():
        raise ValueError("has a certificate that was changed")
    return text.encode()


def _time(seconds: int) -> dt.datetime:
    return dt.datetime.fromtimestamp(seconds, dt.UTC)
