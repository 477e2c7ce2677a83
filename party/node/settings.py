"""What a node's files say, and what of it a running node can take up anew."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Final, NamedTuple

from jobs.federation import Federation
from link.errors import ConfigurationError, IdentityError
from link.pki.certificates import read_certificate
from link.pki.identity import Identity
from link.pki.trust import fingerprint
from link.relay.address import RelayAddress
from party.config import DatasetSection, PartyConfig
from party.data.shared_sources import check_past, check_sources
from party.identity import check_identity

_AT_START: Final = ("name", "listen", "state_dir", "report_memory", "alignment_memory", "journal_bytes")  # of [party]
_WHILE_IT_RUNS: Final = ("max_running", "memory", "keep_jobs", "memory_share", "federation")
_ANEW: Final = "cannot change while the node runs; put it back, or stop the node and start it again"


class Settings(NamedTuple):
    """What a node goes by.

    Attributes:
        config: Its file.
        federation: Its federation file.
        identity: Who it is, and whom it believes.
    """

    config: PartyConfig
    federation: Federation
    identity: Identity


def read_settings(path: Path) -> tuple[Settings, dict[str, bytes]]:
    """What the files say now, and the digests by which the audit log names them.

    Args:
        path: The node's file.

    Raises:
        ComineError: One is missing or wrong, or was written meanwhile.
    """
    before = _digest(path)
    config = PartyConfig.load(path)
    members = _digest(config.party.federation)
    federation = Federation.load(config.party.federation)
    config.check_federation(federation)
    check_sources(config.dataset)
    identity = config.tls.identity(federation.pins)
    check_identity(identity, config)
    for file, digest in ((path, before), (config.party.federation, members)):
        if _digest(file) != digest:
            raise ConfigurationError(f"{file} was written while it was read; reload it once it is whole")
    certificate = bytes.fromhex(fingerprint(read_certificate(identity.certificate_pem)))
    return Settings(config, federation, identity), {"file": before, "federation": members, "certificate": certificate}


def check_reloadable(before: Settings, after: Settings, path: Path, past: Iterable[DatasetSection] = ()) -> None:
    """Refuses what only a node that starts can take up.

    Args:
        before: What the node goes by.
        after: What its files say now.
        path: Its file.
        past: Datasets that it had under still earlier settings.

    Raises:
        ConfigurationError: Something else has changed; the sentence names it.
        IdentityError: The authority is another, or its list of revoked certificates an older one.
    """
    for what in _of_the_start(before, after):
        raise ConfigurationError(f"{path}: {what} {_ANEW}")
    check_past(after.config.dataset, (*before.config.dataset, *past))
    if after.identity.trust.ca_pem != before.identity.trust.ca_pem:
        raise IdentityError(f"{path}: the authority's certificate {_ANEW}")
    known, found = before.identity.trust.number, after.identity.trust.number
    if found < known:
        raise IdentityError(
            f"{path}: the list of revoked certificates has the number {found}, and the node knows number {known}; "
            "copy the latest ca.crl from the authority"
        )


def changes(before: Settings, after: Settings) -> tuple[str, ...]:
    """What differs, by its place in the files."""
    old, new = before.config, after.config
    found = [f"[party] {key}" for key in _WHILE_IT_RUNS if getattr(old.party, key) != getattr(new.party, key)]
    if old.tls != new.tls or before.identity.certificate_pem != after.identity.certificate_pem:
        found.append("[tls]")
    found += [
        f"[{table}]"
        for table in ("policy", "notify", "frequency", "shuffler")
        if getattr(old, table) != getattr(new, table)
    ]
    for name in sorted(old.datasets.keys() | new.datasets.keys()):
        if old.datasets.get(name) != new.datasets.get(name):
            what = "added" if name not in old.datasets else "removed" if name not in new.datasets else "changed"
            found.append(f"dataset {name} {what}")
    if before.federation != after.federation:
        found.append("federation")
    return tuple(found)


def _of_the_start(before: Settings, after: Settings) -> Iterator[str]:
    old, new = before.config, after.config
    for key in _AT_START:
        if getattr(old.party, key) != getattr(new.party, key):
            yield f"[party] {key}"
    for table in ("frequency", "shuffler"):  # whose keys may change
        if (getattr(old, table) is None) != (getattr(new, table) is None):
            yield f"whether there is a table [{table}]"
    for table in ("metrics", "console"):
        if getattr(old, table) != getattr(new, table):
            yield f"[{table}]"
    own = [RelayAddress.parse(each.federation.addresses[each.config.party.name]) for each in (before, after)]
    if own[0] != own[1]:
        yield "the relay that connects this node"
    if old.shuffler is not None and (
        before.identity.certificate_pem != after.identity.certificate_pem
        or before.federation.addresses != after.federation.addresses
    ):
        yield "the certificate and the federation of a node with [shuffler]"


def _digest(file: Path) -> bytes:
    try:
        return hashlib.sha256(file.read_bytes()).digest()
    except OSError as error:
        raise ConfigurationError(f"{file} cannot be read ({error.strerror}); check its path") from None
