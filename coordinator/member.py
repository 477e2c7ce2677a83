"""The coordinator as a member of its federation: the file, and the identity that it names."""

from __future__ import annotations

from pathlib import Path

from jobs.federation import Federation
from link.errors import ConfigurationError
from link.pki.identity import Identity


def read_federation(path: Path) -> Federation:
    """Reads a federation file that somebody has named, or has left to be the one of the current folder.

    Raises:
        ConfigurationError: The file is missing or wrong.
    """
    try:
        path.stat()
    except FileNotFoundError:
        raise ConfigurationError(
            f"{path} does not exist; on the command line, give --federation FILE, or set COMINE_FEDERATION"
        ) from None
    except OSError:
        pass  # which reading it reports better
    return Federation.load(path)


def load_federation(path: Path) -> tuple[Federation, Identity]:
    """Reads a federation file and the coordinator's certificate and key.

    Raises:
        ConfigurationError: The file is wrong, has no `[coordinator]`, or names a party's certificate there.
        IdentityError: The certificate is not valid today, revoked, not the pinned one, or not of the authority.
    """
    federation = read_federation(path)
    credentials = federation.coordinator
    if credentials is None:
        raise ConfigurationError(f"{path}: the table [coordinator] with ca, certificate and key is missing")
    identity = credentials.identity(federation.pins)
    if identity.role != "coordinator":
        raise ConfigurationError(
            f"{credentials.certificate} is a {identity.role}'s certificate; ask for one with: comine pki request "
            "NAME --role coordinator"
        )
    return federation, identity
