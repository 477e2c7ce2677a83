"""What an authority has issued and revoked: the certificates in its folder, and its list `ca.crl`.

`NAME.crt` is a member's current certificate. One that was issued anew leaves its predecessor in `replaced/`, good until
it expires or is revoked, so that it can still be found and revoked.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from cryptography import x509
from cryptography.x509.oid import NameOID

from link.errors import ConfigurationError, IdentityError
from link.pki.authority import CRL, REPLACED, Authority
from link.pki.certificates import read_certificate
from link.pki.identity import name_in
from link.pki.revocation import dates_of, read_list
from link.pki.trust import fingerprint

_FEW_DIGITS: Final = 8  # of a serial number, that are enough to identify one


@dataclass(frozen=True, slots=True)
class Issued:
    """What is in a certificate, for people.

    Attributes:
        name: The holder.
        role: "party", "coordinator", "client" or "authority".
        hosts: DNS names and addresses besides the name.
        serial: Its serial number, hexadecimal.
        fingerprint: SHA-256 of the certificate, hexadecimal.
        valid_until: Its last moment, in UTC.
        current: Whether no newer one was issued to its holder.
        revoked: When it was revoked, in UTC; None while it is good.
    """

    name: str
    role: str
    hosts: tuple[str, ...]
    serial: str
    fingerprint: str
    valid_until: dt.datetime
    current: bool = True
    revoked: dt.datetime | None = None

    def as_data(self) -> dict[str, Any]:
        """It as JSON values."""
        return {
            "name": self.name,
            "role": self.role,
            "hosts": list(self.hosts),
            "serial": self.serial,
            "fingerprint": self.fingerprint,
            "valid_until": self.valid_until.isoformat(),
            "current": self.current,
            "revoked": self.revoked.isoformat() if self.revoked else None,
        }


@dataclass(frozen=True, slots=True)
class Revocation:
    """What `revoke` has done.

    Attributes:
        revoked: The certificates that were good until now.
        before: Those that had been revoked before.
        number: Of the list as it is now.
    """

    revoked: tuple[Issued, ...]
    before: tuple[Issued, ...]
    number: int


def show(folder: Path) -> list[Issued]:
    """All certificates in a folder: the authority's first, then by name, the current one before those it replaced.

    Raises:
        ConfigurationError: The folder holds no authority, or a file is not a certificate.
        IdentityError: The list of revoked certificates is not the authority's.
    """
    if not (folder / "ca.crt").is_file():
        raise ConfigurationError(f"{folder} holds no ca.crt; create an authority with comine pki init")
    revoked = _revoked(folder)
    found = [_describe(path, revoked, current=True) for path in folder.glob("*.crt")]
    found += [_describe(path, revoked, current=False) for path in (folder / REPLACED).glob("*.crt")]
    return sorted(found, key=lambda issued: (issued.role != "authority", issued.name, not issued.current))


def check_hosts(folder: Path, name: str, hosts: Iterable[str]) -> None:
    """Refuses a certificate that would let its holder answer in the place of another party of the same authority.

    Callers ask TLS for the party's name, and would take a host of that name in another certificate for it.

    Args:
        folder: Where the authority's certificates are.
        name: The holder to be.
        hosts: The hosts to be.

    Raises:
        ConfigurationError: A host is another party's name, the name is a host of another party, or see `show`.
    """
    wanted = {host.lower() for host in hosts}
    for other in show(folder):
        if other.role != "party" or other.name == name or not other.current:
            continue
        if other.name in wanted:
            raise ConfigurationError(
                f"'{other.name}' cannot be a host of {name}: it is the name of another party, in whose place {name} "
                f"could then answer; leave --host {other.name} away, or give the address"
            )
        if name in map(str.lower, other.hosts):
            raise ConfigurationError(
                f"'{name}' cannot be a name: it is a host of {other.name}, which could then answer in its place; "
                f"choose another name, or issue {other.name} anew without that host"
            )


def describe(path: Path) -> Issued:
    """What is in a certificate; whether it is revoked is not looked at.

    Raises:
        ConfigurationError: The file is not a certificate.
    """
    return _describe(path, {}, current=True)


def is_revoked(folder: Path, name: str) -> bool:
    """Whether a member's current certificate is revoked, so that a new one may take its place unasked.

    Raises:
        ConfigurationError: The file is not a certificate.
        IdentityError: The list of revoked certificates is not the authority's.
    """
    path = folder / f"{name}.crt"
    return path.is_file() and _describe(path, _revoked(folder), current=True).revoked is not None


def revoke(folder: Path, name: str, *, serial: str = "", certificate: Path | None = None) -> Revocation:
    """Revokes certificates of a member: all that the folder knows, the one of a serial number, or that in a file.

    Doing it again changes nothing.

    Args:
        folder: The authority's.
        name: The member.
        serial: The serial number's first hexadecimal digits, at least eight.
        certificate: The certificate, where the folder does not hold it.

    Raises:
        ConfigurationError: There is no such certificate, or more than one.
        IdentityError: The list so far, or the certificate in the file, is not of this authority.
        ResourceError: The folder cannot be written.
    """
    if certificate is not None:
        candidates = [_of_authority(certificate, folder)]
    else:
        candidates = [issued for issued in show(folder) if issued.role != "authority"]
    found = [issued for issued in candidates if issued.name == name]
    if not found:
        where = folder if certificate is None else certificate
        raise ConfigurationError(f"{where} holds no certificate of '{name}'; comine pki show lists all names")
    if serial:
        found = [_by_serial(found, name, serial)]
    fresh = tuple(issued for issued in found if issued.revoked is None)
    before = tuple(issued for issued in found if issued.revoked is not None)
    number = Authority.read(folder).revoke(folder, (int(issued.serial, 16) for issued in fresh), anew=bool(fresh))
    return Revocation(fresh, before, number)


def _by_serial(found: list[Issued], name: str, serial: str) -> Issued:
    wanted = serial.replace(":", "").lower()
    if len(wanted) < _FEW_DIGITS:
        raise ConfigurationError(f"'{serial}' is too short for a serial number; give at least {_FEW_DIGITS} digits")
    match [issued for issued in found if issued.serial.startswith(wanted)]:
        case [one]:
            return one
        case []:
            raise ConfigurationError(f"no certificate of {name} has the serial number {serial}; see comine pki show")
        case several:
            raise ConfigurationError(f"{len(several)} certificates of {name} begin with {serial}; give more digits")


def _of_authority(path: Path, folder: Path) -> Issued:
    issued = _describe(path, _revoked(folder), current=False)
    certificate = read_certificate(path.read_bytes())
    if not Authority.read(folder).has_issued(certificate):
        raise IdentityError(f"{path} was not issued by the authority in {folder}, which cannot revoke it")
    return issued


def _revoked(folder: Path) -> dict[int, dt.datetime]:
    path = folder / CRL
    if not path.is_file():
        return {}
    return dates_of(read_list(path.read_bytes(), (folder / "ca.crt").read_bytes(), str(path)))


def _describe(path: Path, revoked: dict[int, dt.datetime], *, current: bool) -> Issued:
    try:
        certificate = read_certificate(path.read_bytes())
    except (OSError, ValueError):
        raise ConfigurationError(f"{path} is not a certificate in PEM form; move it elsewhere") from None
    hosts: list[str] = []
    try:
        names = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    except x509.ExtensionNotFound:
        common = certificate.subject.get_attributes_for_oid(NameOID.COMMON_NAME)
        role, name = "authority", str(common[0].value) if common else path.stem
    else:
        try:
            role, name = name_in(names.get_values_for_type(x509.UniformResourceIdentifier))
        except IdentityError as error:
            raise ConfigurationError(f"{path}: {error.message}") from None
        hosts = [host for host in names.get_values_for_type(x509.DNSName) if host != name]
        hosts += [str(address) for address in names.get_values_for_type(x509.IPAddress)]
    return Issued(
        name=name,
        role=role,
        hosts=tuple(hosts),
        serial=f"{certificate.serial_number:040x}",
        fingerprint=fingerprint(certificate),
        valid_until=certificate.not_valid_after_utc,
        current=current,
        revoked=revoked.get(certificate.serial_number),
    )
