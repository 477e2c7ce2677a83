"""The coordinator as a member of its federation: the file, and the identity that it names."""

from __future__ import annotations

from pathlib import Path

from jobs.federation import Credentials, Federation
from link.errors import ConfigurationError
from link.identity import Identity


def load_federation(path: Path) -> tuple[Federation, Credentials, Identity]:
    """Reads a federation file and the coordinator's certificate and key.

    Raises:
        ConfigurationError: The file is wrong, has no `[coordinator]`, or names a party's certificate there.
        IdentityError: The certificate is not valid today, revoked, not the pinned one, or not of the authority.
    """
    federation = Federation.load(path)
    credentials = federation.coordinator
    if credentials is None:
        raise ConfigurationError(f"{path}: the table [coordinator] with ca, certificate and key is missing")
    identity = credentials.identity(federation.pins)
    if identity.role != "coordinator":
        raise ConfigurationError(
            f"{credentials.certificate} is a {identity.role}'s certificate; have one issued with: comine pki issue "
            "NAME --role coordinator"
        )
    return federation, credentials, identity
