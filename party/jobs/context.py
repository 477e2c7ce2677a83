"""What all jobs of a node share."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from pathlib import Path

from crypto.primitives.scratch_file import ScratchLimits
from jobs.audit.key import AuditKey
from link.executor import FairThreads
from link.logs.structured import Log
from link.pki.identity import Identity
from link.transports.grpc_transport import NodeLink
from mining.joint.hybrid.spool_limits import SpoolLimits
from party.data.sources import Sources
from party.jobs.alignments import Alignments
from party.jobs.endings.tables import ReleasedTables
from party.jobs.limits import JobLimits
from party.policy.consent import Consent
from party.services.anonymization.releases import Releases
from party.services.metrics.metrics import Metrics
from party.services.notices.notices import Notices
from party.state.journals import Journals
from party.state.ledger import Ledger
from party.state.node_audit import NodeAudit
from party.state.recovery.seen_entries import SeenEntries
from party.state.store import Store


@dataclass(frozen=True, slots=True)
class JobContext:
    """What all jobs of a node share.

    Attributes:
        identity: This party.
        consent: Its answers to proposals.
        store: Its jobs, on disk.
        journals: What is kept of jobs that can go on, on disk.
        seen: The latest entry of the audit log that the database knows of, on disk.
        ledger: What jobs have cost the records of its datasets, on disk.
        releases: What has been made of their rows, on disk.
        audit: Its audit log.
        audit_key: Keys the MACs in it.
        sources: Its data.
        link: Its streams to peers.
        executor: Where heavy work runs; each job has a share.
        results: Folder for the results that this party receives.
        tables: What coordinators may fetch.
        alignments: The alignments that this party keeps.
        limits: How much its jobs may take.
        notices: What people are told.
        metrics: What Prometheus is shown.
        spool_limits: What sealed reports of others may take in each job in which the node shuffles them.
        list_limits: What lists of ids may take in each job that aligns rows.
        log: The node's log.
        starting: Held while a start is judged and charged, so that no other is judged in between.
        noting: Held while rows are compared with those of earlier jobs and noted, for the same reason.
    """

    identity: Identity
    consent: Consent
    store: Store
    journals: Journals
    seen: SeenEntries
    ledger: Ledger
    releases: Releases
    audit: NodeAudit
    audit_key: AuditKey
    sources: Sources
    link: NodeLink
    executor: FairThreads
    results: Path
    tables: ReleasedTables
    alignments: Alignments
    limits: JobLimits
    notices: Notices
    metrics: Metrics
    spool_limits: SpoolLimits
    list_limits: ScratchLimits
    log: Log
    starting: asyncio.Lock = field(default_factory=asyncio.Lock)
    noting: asyncio.Lock = field(default_factory=asyncio.Lock)
