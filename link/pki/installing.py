"""Puts a certificate that came from the authority beside its key; a key made for it replaces the one so far."""

from __future__ import annotations

from pathlib import Path

from link.errors import ConfigurationError, IdentityError, ResourceError
from link.pki.authority import write
from link.pki.identity import NEW, Identity


def install(folder: Path, certificate: Path, name: str) -> Path:
    """Installs a certificate in the folder of its holder; until then the pair so far stays as it is.

    Interrupted between its two steps, it is done by doing it again.

    Args:
        folder: With `ca.crt`, the key, and perhaps a new one.
        certificate: What the authority has sent.
        name: Its holder.

    Returns:
        Where the certificate is.

    Raises:
        ConfigurationError: A file is missing.
        IdentityError: The certificate is not good, not of this authority, or of none of the two keys.
        ResourceError: The folder cannot be written.
    """
    place, key = folder / f"{name}.crt", folder / f"{name}.key"
    new = key.with_name(key.name + NEW)
    used = new if new.exists() and _fits(folder, certificate, new) else key
    found = Identity.load(folder / "ca.crt", certificate, used)
    if found.name != name:
        raise ConfigurationError(f"{certificate} names '{found.name}', not {name}; install it with that name")
    try:
        if used == new:
            new.replace(key)
        write(place, found.certificate_pem, 0o644)
    except OSError as error:
        raise ResourceError(f"{folder} cannot be written ({error.strerror}); see to its owner and disk") from None
    return place


def _fits(folder: Path, certificate: Path, key: Path) -> bool:
    try:
        Identity.load(folder / "ca.crt", certificate, key)
    except IdentityError:
        return False
    return True
