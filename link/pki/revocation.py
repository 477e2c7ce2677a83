"""The list of certificates that the authority has taken back, before their time: an X.509 CRL (RFC 5280, section 5).

The authority signs it (`comine pki revoke`); every member keeps a copy, `ca.crl` beside its `ca.crt`, and reads it anew
when the file changes. A revocation is for ever, so a list past its next update is still applied; `comine doctor` warns
of it. What is not a list of the member's own authority, or is older than the one read before, is an error: a
member that does not know what is revoked trusts nobody.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterable
from pathlib import Path
from typing import Final

from cryptography import x509
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

from link.errors import ConfigurationError, IdentityError
from link.pki.certificates import authority_key, read_certificate, read_revocations

LIST_DAYS: Final = 90  # within which the authority signs its list anew


def sign_list(
    authority: x509.Certificate,
    key: ec.EllipticCurvePrivateKey,
    serials: Iterable[int],
    previous: x509.CertificateRevocationList | None,
) -> bytes:
    """The next list, in PEM form.

    Args:
        authority: The authority's certificate.
        key: Its private key.
        serials: What is revoked now, beside all that `previous` holds.
        previous: The list so far, or None.
    """
    now = dt.datetime.now(dt.UTC).replace(microsecond=0)
    builder = (
        x509.CertificateRevocationListBuilder()
        .issuer_name(authority.subject)
        .last_update(now)
        .next_update(now + dt.timedelta(days=LIST_DAYS))
        .add_extension(x509.CRLNumber(number_of(previous) + 1), critical=False)
        .add_extension(authority_key(authority), critical=False)
    )
    dates = dict.fromkeys(serials, now) | (dates_of(previous) if previous is not None else {})
    for serial, date in dates.items():
        revoked = x509.RevokedCertificateBuilder().serial_number(serial).revocation_date(date).build()
        builder = builder.add_revoked_certificate(revoked)
    return builder.sign(key, hashes.SHA256()).public_bytes(serialization.Encoding.PEM)


def read_list(pem: bytes, ca_pem: bytes, where: str) -> x509.CertificateRevocationList:
    """A list, once it is known to be the authority's word.

    Args:
        pem: The list.
        ca_pem: The authority's certificate.
        where: What the list is called in an error.

    Raises:
        IdentityError: It cannot be read, or is not signed by this authority.
    """
    try:
        found = read_revocations(pem)
        dates_of(found)
    except ValueError:
        raise IdentityError(
            f"{where} is not a list of revoked certificates in PEM form; copy ca.crl from the authority again"
        ) from None
    try:
        authority = read_certificate(ca_pem)
    except ValueError:
        raise IdentityError(
            f"the authority's ca.crt, which {where} is checked by, is not a certificate in PEM form; copy it again"
        ) from None
    if found.issuer != authority.subject or not _is_signed_by(found, authority):
        raise IdentityError(
            f"{where} was not signed by this federation's authority; copy ca.crl from the authority whose ca.crt is "
            "used here"
        )
    return found


def number_of(found: x509.CertificateRevocationList | None) -> int:
    """How many lists the authority had signed with this one; 0 without one."""
    if found is None:
        return 0
    try:
        return found.extensions.get_extension_for_class(x509.CRLNumber).value.crl_number
    except x509.ExtensionNotFound:
        return 0


def dates_of(found: x509.CertificateRevocationList) -> dict[int, dt.datetime]:
    """When each revoked certificate was revoked, by serial number."""
    return {revoked.serial_number: revoked.revocation_date_utc for revoked in found}


class RevocationList:
    """A member's copy of the list, read anew whenever the file changes.

    Args:
        path: The file.
        ca_pem: The authority's certificate.
        required: Whether the file must exist; otherwise nothing is revoked until it does.

    Raises:
        ConfigurationError: The file is missing though it is required, or cannot be opened.
        IdentityError: It is not a list of this authority.
    """

    def __init__(self, path: Path, ca_pem: bytes, *, required: bool) -> None:
        self._path, self._ca_pem, self._required = path, ca_pem, required
        self._seen: tuple[int, int, int] | None = None
        self._dates: dict[int, dt.datetime] = {}
        self._number = 0
        self._next_update: dt.datetime | None = None
        self._refresh()

    def revoked_on(self, serial: int) -> dt.datetime | None:
        """When the certificate of this serial number was revoked; None where it is good.

        Raises:
            ConfigurationError: See the class.
            IdentityError: The file changed into something else, into an older list, or is gone.
        """
        self._refresh()
        return self._dates.get(serial)

    @property
    def number(self) -> int:
        """The list's number, which grows with every list that the authority signs; 0 without a list."""
        self._refresh()
        return self._number

    @property
    def warning(self) -> str:
        """What a person should know: that the authority has a newer list by now."""
        self._refresh()
        if self._next_update is None or dt.datetime.now(dt.UTC) <= self._next_update:
            return ""
        return (
            f"{self._where} should have been renewed by {self._next_update:%Y-%m-%d}; sign it anew with comine pki "
            "revoke and copy it here"
        )

    @property
    def _where(self) -> str:
        """The file's name: once a member is connected to others, its folders are nobody's business."""
        return str(self._path) if self._seen is None else self._path.name

    def _refresh(self) -> None:
        try:
            status = self._path.stat()
            seen = (status.st_ino, status.st_size, status.st_mtime_ns)
            if seen == self._seen:
                return
            pem = self._path.read_bytes()
        except FileNotFoundError:
            if self._seen is not None:
                raise IdentityError(
                    f"{self._where}, the list of revoked certificates, is gone; copy ca.crl from the authority again"
                ) from None
            if self._required:
                raise ConfigurationError(
                    f"{self._where} does not exist; copy ca.crl from the authority, or leave crl away while nothing is "
                    "revoked"
                ) from None
            return
        except OSError as error:
            raise ConfigurationError(f"{self._where} cannot be read ({error.strerror}); check the file") from None
        found = read_list(pem, self._ca_pem, self._where)
        number = number_of(found)
        if number < self._number:
            raise IdentityError(
                f"{self._where} is the authority's list number {number}, older than number {self._number} that was "
                "there before; copy the latest ca.crl from the authority"
            )
        self._dates, self._number, self._next_update = dates_of(found), number, found.next_update_utc
        self._seen = seen


def _is_signed_by(found: x509.CertificateRevocationList, authority: x509.Certificate) -> bool:
    key = authority.public_key()
    try:
        return isinstance(key, ec.EllipticCurvePublicKey) and found.is_signature_valid(key)
    except (TypeError, ValueError, InvalidSignature):
        return False
