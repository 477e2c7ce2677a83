"""Three parties that run a job in one process and keep their audit logs as nodes do."""

from __future__ import annotations

import asyncio
import datetime as dt
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from crypto.primitives.randomness import Randomness
from jobs.audit.checks.verify import CheckedLog, check_log
from jobs.audit.events import Approved, Ended, NodeStarted, NodeStopped, Proposed, Released, Started
from jobs.audit.evidence import EvidenceFolder
from jobs.audit.key import AuditKey
from jobs.audit.log import AuditLog
from jobs.audit.recorder import SessionRecorder
from jobs.consent import approve, propose
from jobs.kinds.packed_itemsets import digest
from jobs.loading import job_of
from jobs.results.folder import write_result_folder
from jobs.results.record import Receipt
from jobs.results.release import release_of, sign
from jobs.results.result import Result
from jobs.run import PartyRun, run_party
from jobs.spec.job import JobSpec
from link.core import Transport
from link.errors import ComineError
from link.executor import ThreadExecutor
from link.pki.authority import Authority
from link.pki.identity import Identity
from link.pki.trust import Trust
from link.transports.memory import Hub
from mining.data.transactions import Transactions
from protos.v1.control_pb2 import SignedApproval, SignedProposal

PARTIES = ("north", "south", "east")
DECIDED = 1_800_000_000

WHOLE_JOB = (
    "log-began",
    "node-started",
    "proposed",
    "approved",
    "started",
    "session-began",
    "opened",
    "transcript",
    "released",
    "ended",
)
"""The events of a node's first job."""

Wrap = Callable[[str, Transport], Transport]


def rows(seed: int, number: int = 40) -> list[list[str]]:
    random = np.random.default_rng(seed)
    return [[f"item{i}" for i in range(6) if random.random() < 0.8 / (1 + i / 3)] or ["item0"] for _ in range(number)]


DATA = {party: rows(seed) for seed, party in enumerate(PARTIES)}


def weekly(
    deadline: str = "30s",
    rules: Mapping[str, Any] | None = None,
    tables: Mapping[str, Any] | None = None,
    **itemsets: Any,
) -> JobSpec:
    contents = {
        "job": {
            "name": "weekly",
            "task": "itemsets" if rules is None else "rules",
            "parties": list(PARTIES),
            "dataset": "baskets",
            "recipients": ["coordinator"],
            "deadline": deadline,
        },
        "itemsets": {"min_support": "0.2", **itemsets},
        **({} if rules is None else {"rules": rules}),
        **(tables or {}),
    }
    return job_of(contents, "the test", Path())


@dataclass
class World:
    """Parties with a folder each, and the jobs that they have run."""

    folder: Path
    authority: Authority = field(default_factory=Authority.create)
    identities: dict[str, Identity] = field(default_factory=dict)
    logs: dict[str, AuditLog] = field(default_factory=dict)
    keys: dict[str, AuditKey] = field(default_factory=dict)
    now: dt.datetime = field(default_factory=lambda: dt.datetime.now(dt.UTC))

    def __post_init__(self) -> None:
        self.coordinator = self.authority.issue("analyst", "coordinator")
        for party in PARTIES:
            (self.folder / party).mkdir()
            self.identities[party] = self.authority.issue(party)
            self.logs[party] = AuditLog.open(self.log(party), self.identities[party], now=lambda: self.now)
            self.keys[party] = AuditKey.open(self.folder / party / "audit.key")
            self.logs[party].append(NodeStarted.now("1.0"))

    @property
    def trust(self) -> Trust:
        return Trust(self.authority.certificate_pem)

    def log(self, party: str) -> Path:
        return self.folder / party / "audit.log"

    def checked(self) -> list[CheckedLog]:
        return [check_log(self.log(party), self.trust) for party in PARTIES]

    def consent(self, spec: JobSpec, nonce: bytes) -> tuple[bytes, SignedProposal, dict[str, SignedApproval]]:
        """Proposes a job to all parties, who agree; the job's id and what was signed."""
        expiry = DECIDED + 600
        job = spec.job_id(nonce, expiry)
        proposal = propose(spec, self.coordinator, nonce=nonce, expiry=expiry)
        given = {
            party: approve(job, "analyst", self.identities[party], decided=int(self.now.timestamp()), by="policy")
            for party in PARTIES
        }
        for party, log in self.logs.items():
            log.append(Proposed.of(proposal, job, "analyst"), Approved.of(given[party], job, "policy"))
            log.append(Started.of(job, 1, given.values()))
        return job, proposal, given

    def run(
        self,
        spec: JobSpec | None = None,
        *,
        nonce: bytes = bytes(16),
        wrap: Wrap = lambda party, transport: transport,
        data: Mapping[str, list[list[str]]] = DATA,
    ) -> tuple[bytes, dict[str, PartyRun | BaseException]]:
        """Runs a job of all parties to its end; its id, and what each party has or raised."""
        spec = spec or weekly()
        job, self.proposal, self.approvals = self.consent(spec, nonce)
        ends = asyncio.run(self._run(spec, job, wrap, data))
        self.headers = {}
        for party, end in ends.items():
            log = self.logs[party]
            if isinstance(end, PartyRun):
                found = end.outcome.finding
                signed = b"" if found is None else digest(found.pack())
                release = release_of(end, job_id=job, party=party, result_digest=signed)
                self.headers[party] = header = sign(release, self.identities[party])
                log.append(
                    Released.of(header, to="coordinator", key=self.keys[party]), Ended(job=job, state="succeeded")
                )
            else:
                assert isinstance(end, ComineError), end
                log.append(Ended.by(job, "failed", end))
        return job, ends

    def write_result(self, folder: Path, spec: JobSpec, job: bytes, ends: Mapping[str, Any]) -> Path:
        """The result folder that a coordinator would write."""
        learner = ends[spec.learners[0]]
        write_result_folder(
            folder,
            Result(
                spec,
                job,
                learner.session_id,
                learner.outcome.n_rows,
                learner.outcome.strategy,
                {party: end.costs for party, end in ends.items()},
                {
                    party: Receipt(header.release, header.signature, header.certificate, ends[party].receipts_from)
                    for party, header in self.headers.items()
                },
                learner.outcome.finding,
                proposal=self.proposal,
                approvals=self.approvals,
                signer=self.coordinator,
            ),
        )
        return folder

    def stop(self) -> None:
        for log in self.logs.values():
            log.append(NodeStopped())
            log.close()

    async def _run(
        self, spec: JobSpec, job: bytes, wrap: Wrap, data: Mapping[str, list[list[str]]]
    ) -> dict[str, PartyRun | BaseException]:
        hub, executor = Hub(), ThreadExecutor(2)
        try:
            ends = await asyncio.gather(
                *(
                    run_party(
                        spec,
                        Transactions.from_rows(data[party]),
                        wrap(party, hub.endpoint(party)),
                        job_id=job,
                        attempt=1,
                        identity=self.identities[party],
                        random=Randomness.from_os(),
                        executor=executor,
                        progress=lambda step, done, total: None,
                        recorder=SessionRecorder(
                            self.logs[party],
                            self.keys[party],
                            job,
                            1,
                            spec.job.parties,
                            EvidenceFolder(self.folder / party / "evidence", self.identities[party].trust),
                        ),
                    )
                    for party in PARTIES
                ),
                return_exceptions=True,
            )
        finally:
            executor.close()
        return dict(zip(PARTIES, ends, strict=True))


def with_result(folder: Path, spec: JobSpec) -> World:
    """Parties that have run a job and stopped, and the coordinator's result."""
    world = World(folder)
    job, ends = world.run(spec)
    world.stop()
    world.write_result(folder / "result", spec, job, ends)
    return world
