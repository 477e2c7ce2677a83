"""Who a party is: its certificate, the name and role inside it, and what it signs.

A certificate names its holder in one subject alternative name, the URI `comine://ROLE/NAME`. A party's certificate also
carries NAME as a DNS name, so that a caller can ask TLS for exactly that name whatever the address is, and it is
good for servers and clients. The certificate of a coordinator, or of a client of the frequency service, is good for
TLS clients only and has no DNS name, so that it can never answer in a party's place. Keys are ECDSA over P-256.
"""

from __future__ import annotations

import datetime as dt
import ipaddress
import re
import stat
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Final, Literal

from cryptography import x509
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding

from link.clocks import TOLERANCE_S
from link.errors import ComineError, ConfigurationError, IdentityError
from link.pki.certificates import has_issued, read_certificate, read_key
from link.pki.trust import Trust

Role = Literal["party", "coordinator", "client"]

ROLES: Final[tuple[Role, ...]] = ("party", "coordinator", "client")
SCHEME: Final = "comine://"
MAX_NAME: Final = 63
NEW: Final = ".new"  # after the name of a key that waits for its certificate
NAME: Final = re.compile(r"[a-z0-9]([a-z0-9._-]*[a-z0-9])?")


def check_name(name: str) -> None:
    """Refuses what cannot be the name of a party, coordinator or client.

    Raises:
        ConfigurationError: The name is too long, has other characters, or means something else already.
    """
    if len(name) > MAX_NAME or NAME.fullmatch(name) is None:
        raise ConfigurationError(
            f"'{name[:MAX_NAME]}' cannot be a name: use 1 to {MAX_NAME} of the characters a-z 0-9 - _ . and begin and "
            "end with a letter or digit"
        )
    if name == "ca":
        raise ConfigurationError("'ca' cannot be a name: it is the authority's own; choose another")
    if name == "all":
        raise ConfigurationError("'all' cannot be a name: among a job's recipients it means everybody; choose another")
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return
    raise ConfigurationError(f"'{name}' cannot be a name because it is an IP address; give addresses as hosts")


def name_in(uris: Iterable[str]) -> tuple[Role, str]:
    """The role and name in the subject alternative names of a certificate.

    Raises:
        IdentityError: There is not exactly one `comine://ROLE/NAME` among them, or it is not well formed.
    """
    named = [uri for uri in uris if uri.startswith(SCHEME)]
    if len(named) != 1:
        raise IdentityError(f"a certificate must name its holder once, as {SCHEME}ROLE/NAME; issue it with comine pki")
    role, _, name = named[0].removeprefix(SCHEME).partition("/")
    if role not in ROLES or len(name) > MAX_NAME or NAME.fullmatch(name) is None:
        raise IdentityError(f"a certificate must name its holder as {SCHEME}ROLE/NAME; issue it with comine pki")
    return role, name


def peer_of(auth_context: Mapping[str, Iterable[bytes]]) -> tuple[Role, str]:
    """The role and name of the other end of a gRPC call, out of the certificate that TLS has verified.

    The names that gRPC gives beside it are not taken: they end at their first zero byte, and hosts and addresses of
    mail are among them.

    Args:
        auth_context: `context.auth_context()` of the call.

    Raises:
        IdentityError: The call has no certificate that can be read, or it names nobody.
    """
    pem = b"".join(auth_context.get("x509_pem_cert", ()))
    return name_in(_uris(_certificate(pem, "the caller's certificate")) if pem else ())


def check_peer(trust: Trust, auth_context: Mapping[str, Iterable[bytes]]) -> tuple[Role, str]:
    """The role and name of the other end of a gRPC call, once its certificate is known to be believed still.

    Args:
        trust: Whom this end believes.
        auth_context: `context.auth_context()` of the call.

    Raises:
        IdentityError: See `peer_of`; or the certificate has expired since, is revoked, or not the one that is pinned.
    """
    role, name = peer_of(auth_context)
    Member.of(trust, b"".join(auth_context.get("x509_pem_cert", ())), role, name).check()
    return role, name


@dataclass(frozen=True, slots=True)
class Member:
    """A member at the other end of something that lasts, whose certificate is looked at again and again.

    Attributes:
        trust: Whom this end believes.
        certificate: The member's, which was good once.
        role: Its role.
        name: Its name.
    """

    trust: Trust
    certificate: x509.Certificate
    role: Role
    name: str

    @classmethod
    def of(cls, trust: Trust, certificate_pem: bytes, role: Role, name: str) -> Member:
        """A member by its certificate in PEM form.

        Raises:
            IdentityError: It cannot be read.
        """
        return cls(trust, _certificate(certificate_pem, f"the certificate of {name}", name), role, name)

    @property
    def certificate_pem(self) -> bytes:
        """The certificate in PEM form."""
        return self.certificate.public_bytes(Encoding.PEM)

    def check(self, *, timed: bool = True) -> None:
        """Refuses a member whose certificate is no longer good.

        Args:
            timed: Whether its time is looked at; not where `check_span` has seen to it for as long as this lasts.

        Raises:
            IdentityError: It has expired, is revoked, or is not the one that is pinned.
        """
        if timed:
            _check_time(self.certificate, f"the certificate of {self.name}", self.name)
        self.trust.check(self.certificate, self.role, self.name)


@dataclass(frozen=True, slots=True)
class Identity:
    """A certificate, its key and the authority that all parties trust.

    Attributes:
        name: The holder's name.
        role: "party", "coordinator", or "client" of the frequency service.
        certificate_pem: The certificate.
        key_pem: Its private key; never shown.
        trust: Whom the holder believes.
    """

    name: str
    role: Role
    certificate_pem: bytes
    key_pem: bytes = field(repr=False)
    trust: Trust

    @classmethod
    def load(
        cls,
        ca_path: Path,
        certificate_path: Path,
        key_path: Path,
        *,
        crl: Path | None = None,
        pins: Mapping[str, frozenset[str]] | None = None,
    ) -> Identity:
        """Reads and checks an identity's files.

        Args:
            ca_path: The authority's certificate.
            certificate_path: The holder's certificate.
            key_path: Its private key.
            crl: The list of revoked certificates; by default `ca.crl` beside `ca_path`, where that exists.
            pins: The only certificates that are believed of a member, as in `Trust`.

        Raises:
            ConfigurationError: A file is missing or not readable, or others can read the key.
            IdentityError: The certificate is not valid today, revoked, not the pinned one, of another authority, names
                nobody, or has another key; or the list of revoked certificates is wrong.
        """
        ca_pem, certificate_pem = _read(ca_path), _read(certificate_path)
        key_pem = _read_key(key_path)
        certificate = _certificate(certificate_pem, str(certificate_path))
        _check_time(certificate, str(certificate_path))
        if not _issued_by(certificate, ca_pem, str(ca_path)):
            raise IdentityError(
                f"{certificate_path} was not issued by the authority in {ca_path}; "
                "use the ca.crt of this federation or have a certificate issued by its authority"
            )
        if _private_key(key_pem, str(key_path)).public_key() != certificate.public_key():
            if key_path.with_name(key_path.name + NEW).exists():
                raise IdentityError(
                    f"the key in {key_path} does not belong to {certificate_path}; install the certificate with comine "
                    "pki install"
                )
            raise IdentityError(f"the key in {key_path} does not belong to {certificate_path}; use the pair as issued")
        try:
            role, name = name_in(_uris(certificate))
        except IdentityError as error:
            raise IdentityError(f"{certificate_path}: {error.message}") from None
        trust = Trust.load(ca_pem, ca_path, crl, pins)
        trust.check(certificate, role, name)
        return cls(name, role, certificate_pem, key_pem, trust)

    def sign(self, data: bytes) -> bytes:
        """An ECDSA signature with SHA-256 over `data`, which must begin with what it is for."""
        return _private_key(self.key_pem, "this party's key").sign(data, ec.ECDSA(hashes.SHA256()))


def verify(
    trust: Trust,
    certificate_pem: bytes,
    name: str,
    data: bytes,
    signature: bytes,
    *,
    role: Role = "party",
    at: dt.datetime | None = None,
    timed: bool = True,
) -> None:
    """Checks that the member called `name` has signed `data`.

    Args:
        trust: Whom the reader believes.
        certificate_pem: The certificate that came with the signature.
        name: Whose signature it must be.
        data: What was signed.
        signature: As made by `Identity.sign`.
        role: What the signer must be.
        at: The moment for which the certificate must have been good, for records; now, where absent.
        timed: Whether it must have been valid at that moment; if not, the caller sees to it with `check_span`.

    Raises:
        IdentityError: The certificate is foreign, outdated, revoked, not the pinned one or names someone else, or the
            signature is wrong.
    """
    where = f"the certificate that {name} signed with"
    certificate = _certificate(certificate_pem, where, name)
    if timed:
        _check_time(certificate, where, name, at)
    if not _issued_by(certificate, trust.ca_pem, "the authority's certificate"):
        raise IdentityError(f"{where} was not issued by this federation's authority", party=name)
    try:
        named = name_in(_uris(certificate))
    except IdentityError as error:
        raise IdentityError(f"{where} does not name {name}: {error.message}", party=name) from None
    if named != (role, name):
        raise IdentityError(f"{where} names somebody else", party=name)
    trust.check(certificate, role, name, at=at)
    key = certificate.public_key()
    if not isinstance(key, ec.EllipticCurvePublicKey):
        raise IdentityError(f"{where} has no key for ECDSA; issue it with comine pki", party=name)
    try:
        key.verify(signature, data, ec.ECDSA(hashes.SHA256()))
    except InvalidSignature:
        raise IdentityError(f"the signature of {name} is wrong; its node must be checked", party=name) from None


def check_span(certificate_pem: bytes, name: str, lasts_s: float) -> None:
    """Makes sure, before work begins, that a member's certificate is valid now and will be when the work is done.

    Args:
        certificate_pem: The certificate.
        name: Its holder, who must also be named inside.
        lasts_s: Seconds for which the work may take. Clocks that still count as equal are allowed for.

    Raises:
        IdentityError: It is not valid yet, has expired, or will have before the end.
    """
    _check_span(certificate_pem, f"the certificate of {name}", name, lasts_s)


def is_misjudged(identity: Identity, error: ComineError) -> bool:
    """Whether another end takes a member's certificate for expired that is not, by the clock here."""
    where = f"the certificate of {identity.name}"
    certificate = _certificate(identity.certificate_pem, where, identity.name)
    said = isinstance(error, IdentityError) and error.message == _outdated(certificate, where)
    return said and dt.datetime.now(dt.UTC) <= certificate.not_valid_after_utc


def check_own_span(identity: Identity, lasts_s: float) -> None:
    """As `check_span` of a member's own certificate and of the authority's, without which no certificate is any good.

    Raises:
        IdentityError: One of the two is not valid yet, has expired, or will have before the end.
    """
    check_span(identity.certificate_pem, identity.name, lasts_s)
    _check_span(identity.trust.ca_pem, f"the authority's certificate at {identity.name}", identity.name, lasts_s)


def _check_span(certificate_pem: bytes, where: str, name: str, lasts_s: float) -> None:
    certificate = _certificate(certificate_pem, where, name)
    _check_time(certificate, where, name)
    needed = dt.datetime.now(dt.UTC) + dt.timedelta(seconds=lasts_s + TOLERANCE_S)
    if certificate.not_valid_after_utc < needed:
        raise IdentityError(
            f"{where} is valid until {certificate.not_valid_after_utc:%Y-%m-%d %H:%M} UTC, and the job may need it "
            f"until {needed:%Y-%m-%d %H:%M} UTC; have a new one issued, or give the job less time",
            party=name,
        )


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        advice = "check its path, or get a certificate with comine pki request"
        raise ConfigurationError(f"{path} cannot be read ({error.strerror}); {advice}") from None


def _read_key(path: Path) -> bytes:
    content = _read(path)
    if path.stat().st_mode & (stat.S_IRWXG | stat.S_IRWXO):
        raise ConfigurationError(f"{path} holds a private key that other users may open; run: chmod 600 {path}")
    return content


def _certificate(pem: bytes, where: str, party: str | None = None) -> x509.Certificate:
    try:
        return _parsed(pem)
    except ValueError:
        raise IdentityError(
            f"{where} is not a certificate in PEM form; issue it with comine pki", party=party
        ) from None


@lru_cache(maxsize=256)  # a node meets the same few certificates in every job
def _parsed(pem: bytes) -> x509.Certificate:
    return read_certificate(pem)


@lru_cache(maxsize=8)  # a node signs with one key, and reading it takes longer than signing
def _private_key(pem: bytes, where: str) -> ec.EllipticCurvePrivateKey:
    try:
        key = read_key(pem)
    except ValueError:
        raise IdentityError(
            f"{where} is not an unencrypted private key in PEM form; issue it with comine pki"
        ) from None
    if not isinstance(key, ec.EllipticCurvePrivateKey):
        raise IdentityError(f"{where} is not a key for ECDSA; issue it with comine pki")
    return key


def _issued_by(certificate: x509.Certificate, ca_pem: bytes, where: str) -> bool:
    return _is_issue(certificate, _certificate(ca_pem, where))


@lru_cache(maxsize=256)
def _is_issue(certificate: x509.Certificate, authority: x509.Certificate) -> bool:
    return has_issued(authority, certificate)


def _check_time(
    certificate: x509.Certificate, where: str, party: str | None = None, at: dt.datetime | None = None
) -> None:
    now = at or dt.datetime.now(dt.UTC)
    if now > certificate.not_valid_after_utc:
        raise IdentityError(_outdated(certificate, where), party=party)
    if now < certificate.not_valid_before_utc:
        raise IdentityError(
            f"{where} is not valid before {certificate.not_valid_before_utc:%Y-%m-%d %H:%M} UTC; "
            "check this machine's clock",
            party=party if at else None,  # by its clock now, this machine is at fault; at another moment, the member
        )


def _outdated(certificate: x509.Certificate, where: str) -> str:
    return f"{where} expired on {certificate.not_valid_after_utc:%Y-%m-%d %H:%M} UTC; have a new certificate issued"


@lru_cache(maxsize=256)
def _uris(certificate: x509.Certificate) -> tuple[str, ...]:
    try:
        names = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    except x509.ExtensionNotFound:
        return ()
    return tuple(names.get_values_for_type(x509.UniformResourceIdentifier))
