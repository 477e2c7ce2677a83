"""`result.json`: the machine-readable account of a job, as models from which its published schema is made."""

from __future__ import annotations

import base64
import math
import sys
from typing import Any, Literal

from pydantic import Field

from crypto.params import STANDARD_128
from jobs.documents.part import Part
from jobs.kinds.registry import kind_of
from jobs.results.record import ResultRecord
from link.version import WIRE_VERSION, software_version

_HEX_DIGEST = r"^[0-9a-f]{64}$"


class PartyCosts(Part):
    """What the job cost one party."""

    bytes_sent: int = Field(ge=0, description="Bytes of protocol frames that this party sent to its peers.")
    bytes_received: int = Field(ge=0, description="Bytes of protocol frames that this party got from its peers.")
    rounds: int = Field(ge=0, description="Longest chain of messages that waited for each other.")
    seconds: float = Field(ge=0, description="From the greeting of the peers to the result.")


class SignedRelease(Part):
    """What one party signed about the job."""

    party: str
    agrees_with: list[str] = Field(description="Peers whose transcript of the session equals this party's.")
    release: str = Field(description="A serialised comine.v1.Release, in base64.")
    signature: str = Field(description="ECDSA with SHA-256 over the purpose and the release, in base64.")
    certificate: str = Field(description="The signer's certificate in PEM form.")


class SignedConsent(Part):
    """What one party signed before the job began."""

    party: str
    approval: str = Field(description="A serialised comine.v1.Approval, in base64.")
    signature: str = Field(description="ECDSA with SHA-256 over the purpose and the approval, in base64.")
    certificate: str = Field(description="The signer's certificate in PEM form.")


class Consents(Part):
    """What the coordinator asked of all parties alike, and what each of them answered."""

    proposal: str = Field(description="A serialised comine.v1.Proposal, in base64.")
    signature: str = Field(description="ECDSA with SHA-256 over the purpose and the proposal, in base64.")
    certificate: str = Field(description="The coordinator's certificate in PEM form.")
    approvals: list[SignedConsent]


class Compared(Part):
    """One kind of cost before and after the run."""

    predicted: float = Field(ge=0)
    actual: float = Field(ge=0)
    ratio: float | None = Field(ge=0, description="Predicted by actual; null where the actual value is 0.")


class ComparedCosts(Part):
    """What one party was to pay beside what it has paid."""

    bytes_sent: Compared
    bytes_received: Compared
    rounds: Compared
    seconds: Compared


class Privacy(Part):
    """What the job has cost each record."""

    model: str = Field(description="local, shuffle, distributed or blended.")
    local_epsilon: float | None = Field(
        ge=0, description="Of the record's report, towards anyone who sees it alone; null where there are no reports."
    )
    epsilon: float = Field(ge=0, description="Towards anyone who sees the result.")
    delta: float = Field(ge=0, description="The probability with which that epsilon may be exceeded.")
    n: int | None = Field(
        ge=1, description="Reports of others than colluders that hide the record's; null where only noise hides it."
    )
    bound: str = Field(description="The theorem by which this holds.")


class Software(Part):
    """What the coordinator ran."""

    comine: str
    python: str
    wire: str = Field(description="Latest version of the protocol between parties that this comine speaks.")
    suite: str = Field(description="Cryptographic parameter set.")


class ResultDocument(Part):
    """The whole of `result.json`."""

    schema_: Literal["comine.result/1"] = Field(alias="schema")
    job: str = Field(description="Name of the job.")
    job_id: str = Field(pattern=_HEX_DIGEST)
    session_id: str = Field(pattern=_HEX_DIGEST)
    spec_digest: str = Field(pattern=_HEX_DIGEST, description="SHA-256 of the canonical job specification.")
    task: str
    simulated: bool = Field(description="Whether all parties ran in one process.")
    seed: int | None = Field(description="Seed of a repeatable simulation; such a run keeps no secrets.")
    n_rows: int | None = Field(
        ge=0,
        description="Transactions, or rows, of all parties together; of a vertical job the rows that all have. Null "
        "where nobody learns how many these are: task align with mode union. With [privacy] model distributed it "
        "has noise, too, and is about right.",
    )
    positions: int | None = Field(
        default=None,
        ge=0,
        description="Public positions that the rows of all parties were given, empty ones among them; null where "
        "n_rows is known.",
    )
    strategy: str = Field(
        description="The strategy that the parties took, level-wise or one-shot; the search where "
        "perturbed records were searched; blended where trusted parties counted too; of task align its mode; of a "
        "model what its numbers are made of: sums, products or distances."
    )
    engine_reason: str | None = Field(
        default=None, description="Of a vertical job that mines: why it took its engine; null for other jobs."
    )
    n_itemsets: int | None = Field(
        ge=0, description="Null where the coordinator is not a recipient or the task finds no itemsets."
    )
    n_rules: int | None = Field(ge=0, description="Null where the task has no rules or they went elsewhere.")
    counted: bool | None = Field(
        default=None,
        description="Whether counts, supports and measures are in the tables; null where the coordinator is not a "
        "recipient.",
    )
    estimated: bool | None = Field(
        default=None,
        description="Whether counts are estimates, so that the tables have deviation, low and high: 95 % intervals, of "
        "supports, and in the table of rules of confidences. Null where the coordinator is not a recipient.",
    )
    privacy: Privacy | None = Field(
        default=None, description="Null where the job adds no noise or is not disclosed here."
    )
    parties: dict[str, PartyCosts]
    disclosure: list[dict[str, Any]] = Field(
        description="Who learns what; each entry is a line, `detail` its exact form where that is longer."
    )
    parameters: dict[str, Any] = Field(description="The job specification in canonical form.")
    receipts: list[SignedRelease]
    consents: Consents | None = Field(default=None, description="Null where nobody was asked, as in a simulation.")
    plan: dict[str, ComparedCosts] | None = Field(
        default=None, description="By party; null where nobody planned the job."
    )
    software: Software
    model: dict[str, Any] | None = Field(default=None, description="Only on standard output with --json: model.json.")
    itemsets: list[dict[str, Any]] | None = Field(default=None, description="Only on standard output with --json.")
    rules: list[dict[str, Any]] | None = Field(default=None, description="Only on standard output with --json.")


def document(result: ResultRecord) -> dict[str, Any]:
    """The contents of `result.json`, without the tables."""
    of_finding: dict[str, Any] = {
        "n_itemsets": None,
        "n_rules": None,
        "counted": None,
        "estimated": None,
        "privacy": None,
    }
    if result.finding is not None:
        of_finding |= result.finding.account(result.spec)
    contents = ResultDocument(
        schema="comine.result/1",
        job=result.spec.job.name,
        job_id=result.job_id.hex(),
        session_id=result.session_id.hex(),
        spec_digest=result.spec.digest.hex(),
        task=result.spec.job.task,
        simulated=result.simulated,
        seed=result.seed,
        n_rows=result.n_rows,
        positions=result.positions,
        strategy=result.strategy,
        engine_reason=kind_of(result.spec).engine_reason(result.spec),
        **of_finding,
        parties={name: PartyCosts(**costs._asdict()) for name, costs in result.parties.items()},
        disclosure=result.disclosure,
        parameters=result.spec.model_dump(mode="json", by_alias=True),
        receipts=[
            SignedRelease(
                party=name,
                agrees_with=list(receipt.agrees_with),
                release=_base64(receipt.release),
                signature=_base64(receipt.signature),
                certificate=receipt.certificate.decode(),
            )
            for name, receipt in result.receipts.items()
        ],
        consents=_consents(result),
        plan=None
        if result.plan is None
        else {
            party: ComparedCosts.model_validate(compared)
            for party, compared in result.plan.compare(result.parties).items()
        },
        software=Software(
            comine=software_version(),
            python=".".join(map(str, sys.version_info[:3])),
            wire=WIRE_VERSION,
            suite=STANDARD_128.suite,
        ),
    )
    return contents.model_dump(mode="json", by_alias=True, exclude={"itemsets", "rules", "model"})


def _consents(result: ResultRecord) -> Consents | None:
    signed = result.proposal
    if signed is None:
        return None
    return Consents(
        proposal=_base64(signed.proposal),
        signature=_base64(signed.signature),
        certificate=signed.certificate.decode(),
        approvals=[
            SignedConsent(
                party=party,
                approval=_base64(approval.approval),
                signature=_base64(approval.signature),
                certificate=approval.certificate.decode(),
            )
            for party, approval in result.approvals.items()
        ],
    )


def _base64(data: bytes) -> str:
    return base64.b64encode(data).decode()


def json_rows(table: Any) -> list[dict[str, Any]]:
    """The rows of a table as JSON values: what JSON cannot say, an infinite measure, becomes null."""
    return [{key: _finite(value) for key, value in row.items()} for row in table.to_pylist()]


def _finite(value: Any) -> Any:
    return None if isinstance(value, float) and not math.isfinite(value) else value
