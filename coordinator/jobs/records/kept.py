"""A job that the coordinator keeps, with whom it takes to go on with it."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from coordinator.jobs.records.store import JobFolder, Store
from coordinator.member import load_federation
from link.pki.identity import Identity


def kept(federation: Path, asked: str) -> tuple[JobFolder, Identity, Mapping[str, str]]:
    """The job, the coordinator, and the addresses of the job's parties, in their order.

    Args:
        federation: The federation file.
        asked: The job's id, a unique beginning of it, or its name.

    Raises:
        UsageError: There is no such job, or there are several.
        ConfigurationError: The file is wrong, or lacks a party of the job.
        IdentityError: The coordinator's certificate does not hold.
    """
    known, identity = load_federation(federation)
    folder = Store.of(known).find(asked)
    return folder, identity, known.select(folder.record().spec.job.parties)
