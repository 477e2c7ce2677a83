"""Whose signatures and certificates a member of the federation believes."""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes

from link.errors import IdentityError
from link.pki.revocation import RevocationList


@dataclass(frozen=True, slots=True)
class Trust:
    """What a certificate must fulfil beyond its own words.

    Attributes:
        ca_pem: The authority's certificate.
        revocations: The certificates that the authority has revoked; none, where absent.
        pins: The only certificates that are believed of a member: SHA-256 fingerprints in hexadecimal by "ROLE/NAME".
            A member that is not listed may have any certificate of the authority.
    """

    ca_pem: bytes
    revocations: RevocationList | None = field(default=None, repr=False)
    pins: Mapping[str, frozenset[str]] = field(default_factory=dict, repr=False)

    @classmethod
    def load(
        cls, ca_pem: bytes, ca_path: Path, crl: Path | None = None, pins: Mapping[str, frozenset[str]] | None = None
    ) -> Trust:
        """Trust in the authority of a file.

        Args:
            ca_pem: The authority's certificate.
            ca_path: Where that was read.
            crl: The list of revoked certificates; by default `ca.crl` beside `ca_path`, where that exists.
            pins: As in the attributes.

        Raises:
            ConfigurationError: `crl` is missing or cannot be opened.
            IdentityError: It is not a list of this authority.
        """
        revocations = RevocationList(crl or ca_path.with_name("ca.crl"), ca_pem, required=crl is not None)
        return cls(ca_pem, revocations, pins or {})

    def check(self, certificate: x509.Certificate, role: str, name: str, *, at: dt.datetime | None = None) -> None:
        """Refuses a certificate of this authority that is revoked, or not the one that is pinned.

        Args:
            certificate: The certificate of the member.
            role: Its holder's role.
            name: Its holder's name.
            at: The moment for which it must have been good; now, where absent.

        Raises:
            IdentityError: The certificate is not to be believed, or the list of revoked ones cannot be.
        """
        revoked = self.revocations.revoked_on(certificate.serial_number) if self.revocations is not None else None
        if revoked is not None and (at is None or at >= revoked):
            raise IdentityError(
                f"the certificate of {name} was revoked on {revoked:%Y-%m-%d %H:%M} UTC; {name} needs a new one: "
                f"comine pki request {name} --force there, and comine pki sign at the authority",
                party=name,
            )
        pinned = self.pins.get(f"{role}/{name}")
        if pinned is not None and fingerprint(certificate) not in pinned:
            raise IdentityError(
                f"the certificate of {name} is not the one that the federation file pins (it has the SHA-256 "
                f"fingerprint {fingerprint(certificate)}); where comine pki show at the authority shows the same "
                f"fingerprint, pin that one, else {name} is not who it says",
                party=name,
            )

    @property
    def number(self) -> int:
        """The number of the list of revoked certificates that is applied; 0 without one."""
        return self.revocations.number if self.revocations is not None else 0

    @property
    def warning(self) -> str:
        """What will go wrong before long; empty where nothing is known."""
        return self.revocations.warning if self.revocations is not None else ""


def fingerprint(certificate: x509.Certificate) -> str:
    """SHA-256 of a certificate, hexadecimal."""
    return certificate.fingerprint(hashes.SHA256()).hex()
