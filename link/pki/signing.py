"""What an authority does with a request: it looks whether it fits what was issued before, and signs it."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path

from cryptography.hazmat.primitives.asymmetric import ec

from link.errors import ConfigurationError, IdentityError
from link.pki.authority import Authority, write_certificate
from link.pki.certificates import read_certificate
from link.pki.issued import Issued, check_hosts, show
from link.pki.requests import Request, key_fingerprint


@dataclass(frozen=True, slots=True)
class Judged:
    """A request that fits, and what it would replace.

    Attributes:
        request: What is asked for.
        before: The holder's certificate so far; None of a new member.
        same_key: Whether that certificate has the key of the request: its holder asks for a renewal.
    """

    request: Request
    before: Issued | None
    same_key: bool


def judge(folder: Path, request: Request, parties: Collection[str] | None) -> Judged:
    """Whether a request fits the federation.

    Args:
        folder: The authority's.
        request: What is asked for.
        parties: The names of all parties, where a federation file tells them.

    Raises:
        ConfigurationError: The name is no party's of the federation, is one and asks for another role, or has another
            role already; or hosts are other parties' names.
        IdentityError: The key's certificate was revoked, or another member has the key.
    """
    name, role = request.name, request.role
    if parties is not None and (name in parties) != (role == "party"):
        listed = f"lists {name} as a party" if name in parties else f"has no party '{name}'"
        raise ConfigurationError(
            f"{name} asks to be a {role}, but the federation file {listed}; correct one of the two"
        )
    known = [issued for issued in show(folder) if issued.role != "authority" and issued.current]
    before = next((issued for issued in known if issued.name == name), None)
    owner = _owner(folder, known, request)
    if owner is not None and owner.name != name:
        raise IdentityError(f"{name} asks with the key of {owner.name}; every member makes a key of its own")
    if before is not None and before.revoked is None and before.role != role:
        raise ConfigurationError(
            f"{name} asks to be a {role}, but is a {before.role} already; choose another name, or revoke that first"
        )
    if owner is not None and owner.revoked is not None:
        raise IdentityError(
            f"the certificate of {name} with this key was revoked; have a new key made with comine pki request {name} "
            "--force"
        )
    if role == "party":
        check_hosts(folder, name, request.hosts)
    return Judged(request, before, owner is not None)


def sign(folder: Path, judged: Judged, *, force: bool = False) -> Path:
    """Writes `NAME.crt`; a renewal, or the new key of a member whose certificate is revoked, needs no `force`.

    Raises:
        ConfigurationError: The member has a certificate of another key, and `force` is not set.
        ResourceError: The folder cannot be written.
    """
    request, before = judged.request, judged.before
    pem = Authority.read(folder).certify(request.key, request.name, request.role, request.hosts)
    freely = judged.same_key or (before is not None and before.revoked is not None)
    return write_certificate(pem, request.name, folder, force=force or freely)


def _owner(folder: Path, known: list[Issued], request: Request) -> Issued | None:
    """Whose current certificate has the key of a request."""
    for issued in known:
        key = read_certificate((folder / f"{issued.name}.crt").read_bytes()).public_key()
        if isinstance(key, ec.EllipticCurvePublicKey) and key_fingerprint(key) == request.fingerprint:
            return issued
    return None
