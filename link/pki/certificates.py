"""Reads certificates, requests, keys and lists of revoked ones that somebody else made: what is wrong is a ValueError.

`cryptography` has exceptions of several families for them, and reports some faults only when a field is looked at. Here
a certificate or list that comes back can be looked at.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from cryptography import x509
from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric.types import PrivateKeyTypes
from cryptography.utils import CryptographyDeprecationWarning

_WRONG: Final = (
    TypeError,
    OverflowError,
    CryptographyDeprecationWarning,  # where warnings are errors
    UnsupportedAlgorithm,
    x509.InvalidVersion,
    x509.DuplicateExtension,
    x509.UnsupportedGeneralNameType,
)


@contextmanager
def _one_kind_of_fault() -> Iterator[None]:
    try:
        yield
    except _WRONG as error:
        raise ValueError(str(error)) from None


def read_certificate(data: bytes, *, der: bool = False) -> x509.Certificate:
    """A certificate, of which every field can be read.

    Args:
        data: The certificate.
        der: Whether it is in DER rather than in PEM form.

    Raises:
        ValueError: It is none, or not one that can be read.
    """
    with _one_kind_of_fault():
        found = (x509.load_der_x509_certificate if der else x509.load_pem_x509_certificate)(data)
        _ = (found.version, found.serial_number, found.subject, found.issuer, found.extensions, found.public_key())
        _ = (found.not_valid_before_utc, found.not_valid_after_utc, found.signature_hash_algorithm)
    if found.serial_number <= 0:  # which `cryptography` will not read either
        raise ValueError("its serial number is not positive")
    return found


def read_key(pem: bytes) -> PrivateKeyTypes:
    """A private key that no password protects.

    Raises:
        ValueError: It is none.
    """
    with _one_kind_of_fault():
        return serialization.load_pem_private_key(pem, password=None)


def load_request(pem: bytes) -> x509.CertificateSigningRequest:
    """A request for a certificate, of which every field can be read.

    Raises:
        ValueError: It is none, or not one that can be read.
    """
    with _one_kind_of_fault():
        found = x509.load_pem_x509_csr(pem)
        _ = (found.subject, found.extensions, found.public_key(), found.signature_hash_algorithm)
        _ = found.is_signature_valid
    return found


def read_revocations(pem: bytes) -> x509.CertificateRevocationList:
    """A list of revoked certificates, of which every field can be read.

    Raises:
        ValueError: It is none, or not one that can be read.
    """
    with _one_kind_of_fault():
        found = x509.load_pem_x509_crl(pem)
        _ = (found.issuer, found.extensions, found.last_update_utc, found.next_update_utc)
        _ = found.signature_hash_algorithm
        for revoked in found:
            _ = (revoked.serial_number, revoked.revocation_date_utc)
    return found


def may_issue(certificate: x509.Certificate) -> bool:
    """Whether a certificate is that of an authority."""
    try:
        return certificate.extensions.get_extension_for_class(x509.BasicConstraints).value.ca
    except x509.ExtensionNotFound:
        return False


def has_issued(authority: x509.Certificate, certificate: x509.Certificate) -> bool:
    """Whether an authority has signed a certificate."""
    try:
        with _one_kind_of_fault():
            certificate.verify_directly_issued_by(authority)
    except (ValueError, InvalidSignature):
        return False
    return True


def authority_key(authority: x509.Certificate) -> x509.AuthorityKeyIdentifier:
    """The identifier of an authority's key: that in its certificate, or else that of RFC 5280, section 4.2.1.2.

    Raises:
        ValueError: The certificate's key has no identifier.
    """
    try:
        identifier = authority.extensions.get_extension_for_class(x509.SubjectKeyIdentifier).value
    except x509.ExtensionNotFound:
        with _one_kind_of_fault():
            return x509.AuthorityKeyIdentifier.from_issuer_public_key(authority.public_key())  # type: ignore[arg-type]
    return x509.AuthorityKeyIdentifier.from_issuer_subject_key_identifier(identifier)
