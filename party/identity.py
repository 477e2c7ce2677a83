"""Does the certificate of a node belong to the party of its file?"""

from __future__ import annotations

from link.errors import IdentityError
from link.pki.identity import Identity
from party.config import PartyConfig


def check_identity(identity: Identity, config: PartyConfig) -> None:
    """Checks whom a node's certificate names.

    Args:
        identity: As loaded from the files under `[tls]`.
        config: The node's file.

    Raises:
        IdentityError: The certificate is not a party's, or another party's.
    """
    name, certificate = config.party.name, config.tls.certificate
    if identity.role != "party":
        raise IdentityError(
            f"{certificate} is a {identity.role}'s certificate; ask for one with: comine pki request {name}"
        )
    if identity.name != name:
        raise IdentityError(
            f"{certificate} names '{identity.name}', but [party] name is '{name}'; use the certificate of {name}"
        )
