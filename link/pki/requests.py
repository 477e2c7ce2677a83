"""Requests for certificates (PKCS #10, RFC 2986): made beside a key, which never leaves, and read by the authority.

A request names its holder as certificates do, by the URI `comine://ROLE/NAME`, and the hosts of a party's node. It is
signed with the key that it is for, which proves that its maker holds that key. Who its maker is it does not prove:
people compare the key's fingerprint. A certificate takes from it the name, the role, the hosts and the key, and nothing
else.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from link.errors import ConfigurationError, IdentityError
from link.pki.certificates import load_request, read_key
from link.pki.identity import Role, check_name, name_in
from link.pki.names import names_of

MAX_BYTES: Final = 1 << 16
MAX_HOSTS: Final = 32


@dataclass(frozen=True, slots=True)
class Request:
    """What a request asks for.

    Attributes:
        name: The holder to be.
        role: Its role.
        hosts: DNS names and IP addresses of a party's node.
        key: The public key that the certificate is to bind.
    """

    name: str
    role: Role
    hosts: tuple[str, ...]
    key: ec.EllipticCurvePublicKey

    @property
    def fingerprint(self) -> str:
        """SHA-256 of the public key, hexadecimal."""
        return key_fingerprint(self.key)


def key_fingerprint(key: ec.EllipticCurvePublicKey) -> str:
    """SHA-256 of a public key in DER form, hexadecimal."""
    form = serialization.PublicFormat.SubjectPublicKeyInfo
    return hashlib.sha256(key.public_bytes(serialization.Encoding.DER, form)).hexdigest()


def make_request(key_pem: bytes, name: str, role: Role, hosts: Sequence[str]) -> bytes:
    """A request in PEM form, signed with the key.

    Args:
        key_pem: The key, one for ECDSA over P-256.
        name: The holder to be.
        role: "party", "coordinator" or "client".
        hosts: As in `Authority.issue`.

    Raises:
        ConfigurationError: The name, role, a host or the key is not possible.
    """
    names = names_of(name, role, hosts)
    try:
        key = read_key(key_pem)
    except ValueError:
        raise ConfigurationError(f"the key of {name} is not an unencrypted private key in PEM form") from None
    if not isinstance(key, ec.EllipticCurvePrivateKey) or not isinstance(key.curve, ec.SECP256R1):
        raise ConfigurationError(f"the key of {name} is not one for ECDSA over P-256; make a new one with --force")
    request = (
        x509.CertificateSigningRequestBuilder()
        .subject_name(x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)]))
        .add_extension(x509.SubjectAlternativeName(names), critical=False)
        .sign(key, hashes.SHA256())
    )
    return request.public_bytes(serialization.Encoding.PEM)


def read_request(path: Path) -> Request:
    """What a request asks for, which anybody may have made.

    Raises:
        ConfigurationError: It is no request, or asks for a name or hosts that are not possible.
        IdentityError: Its signature is not by its key, its key is of another type, or it asks for more than a
            certificate of a member has.
    """
    try:
        with path.open("rb") as file:
            pem = file.read(MAX_BYTES)
    except OSError as error:
        raise ConfigurationError(f"{path} cannot be read ({error.strerror}); check its path") from None
    where = str(path)
    try:
        found = load_request(pem)
        signed = found.is_signature_valid
    except ValueError:
        raise ConfigurationError(
            f"{where} is not a request for a certificate in PEM form; make one with comine pki request"
        ) from None
    if not signed:
        raise IdentityError(f"{where} is not signed with the key that it is for; have it made and sent again")
    key = found.public_key()
    if not isinstance(key, ec.EllipticCurvePublicKey) or not isinstance(key.curve, ec.SECP256R1):
        raise IdentityError(
            f"{where} is for a key that is not one for ECDSA over P-256; have it made with comine pki request"
        )
    if any(not isinstance(each.value, x509.SubjectAlternativeName) for each in found.extensions):
        raise IdentityError(
            f"{where} asks for more than a name, a role and hosts; have it made with comine pki request"
        )
    role, name, hosts = _asked(found, where)
    check_name(name)
    names_of(name, role, hosts)
    return Request(name, role, hosts, key)


def _asked(found: x509.CertificateSigningRequest, where: str) -> tuple[Role, str, tuple[str, ...]]:
    try:
        names = found.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    except x509.ExtensionNotFound:
        names = x509.SubjectAlternativeName([])
    kinds = (x509.UniformResourceIdentifier, x509.DNSName, x509.IPAddress)
    uris = names.get_values_for_type(x509.UniformResourceIdentifier)
    try:
        role, name = name_in(uris)
    except IdentityError as error:
        raise IdentityError(f"{where}: {error.message}") from None
    hosts = [host for host in names.get_values_for_type(x509.DNSName) if host != name]
    hosts += [str(address) for address in names.get_values_for_type(x509.IPAddress)]
    if len(uris) > 1 or any(type(each) not in kinds for each in names) or len(hosts) > MAX_HOSTS:
        raise IdentityError(
            f"{where} asks for more names than a member has; have it made with comine pki request, with at most "
            f"{MAX_HOSTS} hosts"
        )
    return role, name, tuple(hosts)
