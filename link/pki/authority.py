"""A small certificate authority for one federation.

It issues what `link.pki.identity` describes. Who holds `ca.key` decides who belongs to the federation; it is needed
only while certificates are issued and belongs on no party's node.
"""

from __future__ import annotations

import contextlib
import datetime as dt
import os
import secrets
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from link.errors import ConfigurationError, ResourceError
from link.pki.certificates import authority_key, has_issued, read_certificate, read_key
from link.pki.identity import NEW, Identity, Role
from link.pki.names import names_of
from link.pki.revocation import number_of, read_list, sign_list
from link.pki.trust import Trust

AUTHORITY_DAYS: Final = 3650
CERTIFICATE_DAYS: Final = 825
CRL: Final = "ca.crl"
REPLACED: Final = "replaced"  # folder of the certificates that were issued anew
CLOCK_SKEW: Final = dt.timedelta(hours=1)


@dataclass(frozen=True, slots=True)
class Authority:
    """The authority's certificate and key, in memory.

    Attributes:
        certificate_pem: What every party trusts.
        key_pem: What signs; never shown.
    """

    certificate_pem: bytes
    key_pem: bytes = field(repr=False)

    @classmethod
    def create(cls, valid_days: float = AUTHORITY_DAYS) -> Authority:
        """A new authority with a fresh key."""
        key = ec.generate_private_key(ec.SECP256R1())
        name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, f"comine authority {secrets.token_hex(4)}")])
        certificate = (
            _builder(name, name, key.public_key(), valid_days)
            .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
            .add_extension(_usage(signs_certificates=True), critical=True)
            .sign(key, hashes.SHA256())
        )
        return cls(certificate.public_bytes(serialization.Encoding.PEM), _key_bytes(key))

    @classmethod
    def read(cls, folder: Path) -> Authority:
        """The authority that `write` has put into a folder.

        Raises:
            ConfigurationError: There is none, or it cannot be read.
        """
        try:
            found = cls((folder / "ca.crt").read_bytes(), (folder / "ca.key").read_bytes())
            found.signer()
        except OSError as error:
            raise ConfigurationError(
                f"{error.filename} cannot be read ({error.strerror}); create an authority with comine pki init"
            ) from None
        except ValueError:
            raise ConfigurationError(
                f"ca.crt or ca.key in {folder} is not in PEM form; put back a copy of the one that is damaged"
            ) from None
        return found

    def write(self, folder: Path, *, force: bool = False) -> None:
        """Puts `ca.crt` and `ca.key` (0600) into a folder; the list `ca.crl` of an authority before it goes.

        Raises:
            ConfigurationError: One of them exists and `force` is not set.
            ResourceError: The folder cannot be written.
        """
        _write_pair(folder, "ca", self.certificate_pem, self.key_pem, force)
        (folder / CRL).unlink(missing_ok=True)

    def issue(
        self,
        name: str,
        role: Role = "party",
        hosts: Sequence[str] = (),
        valid_days: float = CERTIFICATE_DAYS,
    ) -> Identity:
        """A certificate with a fresh key.

        Args:
            name: The holder.
            role: "party", "coordinator" or "client".
            hosts: DNS names and IP addresses of a party's node, for tools that check them; comine asks for the name.
            valid_days: Days from now; below zero it is outdated from the start.

        Raises:
            ConfigurationError: The name, role or a host is not possible.
        """
        key = ec.generate_private_key(ec.SECP256R1())
        pem = self.certify(key.public_key(), name, role, hosts, valid_days)
        return Identity(name, role, pem, _key_bytes(key), Trust(self.certificate_pem))

    def certify(
        self,
        key: ec.EllipticCurvePublicKey,
        name: str,
        role: Role,
        hosts: Sequence[str],
        valid_days: float = CERTIFICATE_DAYS,
    ) -> bytes:
        """A certificate of a key that somebody else has, in PEM form; arguments and errors as in `issue`."""
        names = names_of(name, role, hosts)
        authority, signer = self.signer()
        subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
        usages = [ExtendedKeyUsageOID.CLIENT_AUTH]
        if role == "party":
            usages.append(ExtendedKeyUsageOID.SERVER_AUTH)
        certificate = (
            _builder(subject, authority.subject, key, valid_days)
            .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
            .add_extension(_usage(signs_certificates=False), critical=True)
            .add_extension(x509.ExtendedKeyUsage(usages), critical=False)
            .add_extension(x509.SubjectAlternativeName(names), critical=False)
            .add_extension(authority_key(authority), critical=False)
            .sign(signer, hashes.SHA256())
        )
        return certificate.public_bytes(serialization.Encoding.PEM)

    def has_issued(self, certificate: x509.Certificate) -> bool:
        """Whether a certificate is this authority's."""
        return has_issued(read_certificate(self.certificate_pem), certificate)

    def revoke(self, folder: Path, serials: Iterable[int], *, anew: bool = True) -> int:
        """Adds certificates to the list `ca.crl` in a folder and signs it.

        Args:
            folder: Where the list so far is, if there is one.
            serials: The certificates' serial numbers.
            anew: Whether a list that is there is signed again.

        Returns:
            The number of the list as it is now.

        Raises:
            IdentityError: The list so far is not this authority's.
            ResourceError: The folder cannot be written.
        """
        path = folder / CRL
        previous = read_list(path.read_bytes(), self.certificate_pem, str(path)) if path.is_file() else None
        if previous is not None and not anew:
            return number_of(previous)
        try:
            write(path, sign_list(*self.signer(), serials, previous), 0o644)
        except OSError as error:
            raise ResourceError(f"{path} cannot be written ({error.strerror}); check the folder") from None
        return number_of(previous) + 1

    def signer(self) -> tuple[x509.Certificate, ec.EllipticCurvePrivateKey]:
        """The certificate and the key, as they sign.

        Raises:
            ConfigurationError: The key is of another kind.
        """
        key = read_key(self.key_pem)
        if not isinstance(key, ec.EllipticCurvePrivateKey):
            raise ConfigurationError("the authority's key is not one for ECDSA; create one with comine pki init")
        return read_certificate(self.certificate_pem), key


def write_identity(identity: Identity, folder: Path, *, force: bool = False) -> None:
    """Puts `NAME.crt` and `NAME.key` (0600) into a folder; a certificate that was there goes to `replaced/`.

    Raises:
        ConfigurationError: One of them exists and `force` is not set.
        ResourceError: The folder cannot be written.
    """
    before = folder / f"{identity.name}.crt"
    if force and before.is_file():
        _set_aside(before)
    _write_pair(folder, identity.name, identity.certificate_pem, identity.key_pem, force)


def write_certificate(pem: bytes, name: str, folder: Path, *, force: bool = False) -> Path:
    """Puts `NAME.crt` into a folder, without a key, which its holder has; what was there goes to `replaced/`.

    Raises:
        ConfigurationError: It exists and `force` is not set.
        ResourceError: The folder cannot be written.
    """
    path = folder / f"{name}.crt"
    if path.is_file():
        if not force:
            raise ConfigurationError(f"{path} exists, of another key; use --force to replace it")
        _set_aside(path)
    try:
        write(path, pem, 0o644)
    except OSError as error:
        raise ResourceError(f"{folder} cannot be written ({error.strerror}); choose another folder") from None
    return path


def write_request(folder: Path, name: str, request_pem: bytes, key_pem: bytes | None) -> Path:
    """Puts `NAME.csr` into a folder, and a new key as `NAME.key` (0600).

    Where there is a key already, it stays, and the new one is `NAME.key.new` until `installing.install` has its
    certificate.

    Raises:
        ResourceError: The folder cannot be written.
    """
    path = folder / f"{name}.csr"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        if key_pem is not None:
            key = folder / f"{name}.key"
            write(key.with_name(key.name + NEW) if key.exists() else key, key_pem, 0o600)
        write(path, request_pem, 0o644)
    except OSError as error:
        raise ResourceError(f"{folder} cannot be written ({error.strerror}); choose another folder") from None
    return path


def new_key() -> bytes:
    """A fresh private key for ECDSA over P-256, in PEM form."""
    return _key_bytes(ec.generate_private_key(ec.SECP256R1()))


def _builder(
    subject: x509.Name, issuer: x509.Name, key: ec.EllipticCurvePublicKey, valid_days: float
) -> x509.CertificateBuilder:
    now = dt.datetime.now(dt.UTC)
    until = now + dt.timedelta(days=valid_days)
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key)
        .serial_number(x509.random_serial_number())
        .not_valid_before(min(now, until) - CLOCK_SKEW)
        .not_valid_after(until)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key), critical=False)
    )


def _usage(*, signs_certificates: bool) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=not signs_certificates,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        key_cert_sign=signs_certificates,
        crl_sign=signs_certificates,
        encipher_only=False,
        decipher_only=False,
    )


def _key_bytes(key: ec.EllipticCurvePrivateKey) -> bytes:
    return key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )


def _write_pair(folder: Path, stem: str, certificate_pem: bytes, key_pem: bytes, force: bool) -> None:
    certificate, key = folder / f"{stem}.crt", folder / f"{stem}.key"
    for path in (certificate, key):
        if path.exists() and not force:
            raise ConfigurationError(f"{path} exists; use --force to replace it and its key")
    try:
        folder.mkdir(parents=True, exist_ok=True)
        write(key, key_pem, 0o600)
        write(certificate, certificate_pem, 0o644)
    except OSError as error:
        raise ResourceError(f"{folder} cannot be written ({error.strerror}); choose another folder") from None


def _set_aside(path: Path) -> None:
    """Keeps a certificate that is about to be replaced; what is no certificate is not worth it."""
    pem = path.read_bytes()
    try:
        serial = read_certificate(pem).serial_number
    except ValueError:
        return
    try:
        (path.parent / REPLACED).mkdir(exist_ok=True)
        write(path.parent / REPLACED / f"{path.stem}-{serial:040x}.crt", pem, 0o644)
    except OSError as error:
        raise ResourceError(f"{path.parent} cannot be written ({error.strerror}); choose another folder") from None


def write(path: Path, content: bytes, mode: int) -> None:
    """Creates a file with its final mode from the first byte on, all or nothing."""
    draft = path.with_name(f".{path.name}.{secrets.token_hex(4)}")
    descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        draft.replace(path)
    except BaseException:
        with contextlib.suppress(OSError):
            draft.unlink()
        raise
