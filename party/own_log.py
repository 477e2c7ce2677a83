"""A party's audit log, opened beside its node for what its people do."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from jobs.audit.log import AuditLog
from jobs.federation import Federation
from link.pki.identity import Identity
from party.config import AUDIT_LOG, PartyConfig
from party.identity import check_identity


@contextmanager
def own_log(config: PartyConfig) -> Iterator[tuple[AuditLog, Identity]]:
    """The log, and the party's key that signs in it.

    Raises:
        ComineError: They cannot be used.
    """
    identity = config.tls.identity(Federation.load(config.party.federation).pins)
    check_identity(identity, config)
    audit = AuditLog.open(config.party.state_dir / AUDIT_LOG, identity)
    try:
        yield audit, identity
    finally:
        audit.close()
