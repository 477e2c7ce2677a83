"""The `[console]` table of a node's file: where the console answers, and who logs in by another provider."""

from __future__ import annotations

import ipaddress
from pathlib import Path
from typing import Annotated, Final, Self
from urllib.parse import urlsplit

from pydantic import Field, field_validator, model_validator

from console.roles import Role
from jobs.federation import check_address
from jobs.spec.toml import TomlTable

LISTEN: Final = "127.0.0.1:8470"
_PORTS: Final = {"http": 80, "https": 443}

_CONTACT: Final = r"^(mailto:[!-~]{1,200}@[!-~]{1,200}|https://[!-~]{1,400})$"
_HOST: Final = r"^[a-z0-9]([a-z0-9.-]{0,251}[a-z0-9])?(:[1-9][0-9]{0,4})?$"

Text = Annotated[str, Field(min_length=1)]


def is_loopback(host: str) -> bool:
    """Whether a host is this machine, whatever network it is in."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False


def _check_url(url: str, what: str, *, path: bool) -> str:
    parts = urlsplit(url)
    plain = parts.scheme == "http" and is_loopback(parts.hostname or "")
    if not parts.hostname or not (parts.scheme == "https" or plain):
        raise ValueError(f"{what} must begin with https://, or be at the loopback")
    if parts.username or parts.query or parts.fragment or (parts.path and not path):
        raise ValueError(
            f"{what} must have no path, no user and no query" if not path else f"{what} must have no query"
        )
    return url


class OidcSection(TomlTable):
    """The `[console.oidc]` table: people log in at a provider of OpenID Connect.

    Attributes:
        issuer: Its address, as its tokens name it.
        client_id: What the provider calls this console.
        client_secret_file: The file whose first line is the secret of that; none of a public client.
        name: The claim that holds a person's name, which the audit log shows; it must be nobody else's at the provider.
            An `email` counts only where the provider has verified it.
        claim: The claim whose value, or one of whose values, says what a person may do.
        roles: What each value lets a person be; nobody else enters.
    """

    issuer: Text
    client_id: Text
    client_secret_file: Path | None = None
    name: Text = "email"
    claim: Text = "groups"
    roles: Annotated[dict[str, Role], Field(min_length=1)]

    @field_validator("issuer")
    @classmethod
    def _is_safe(cls, issuer: str) -> str:
        return _check_url(issuer, "the issuer", path=True)


class ConsoleSection(TomlTable):
    """The `[console]` table; with it the node runs its console itself.

    Attributes:
        listen: HOST:PORT of the console; at the loopback without TLS, elsewhere with a certificate.
        origin: What people type, as in "https://console.north.example"; by default what `listen` says.
        certificate: PEM file of the console's certificate and its chain, for browsers.
        key: PEM file of its key.
        push: Whether people may have their browsers tell them what awaits them, through the push services of the
            browsers' makers.
        push_contact: With `push`: whom a push service can reach, "mailto:…" or "https://…"; it goes with each
            notification.
        push_services: Hosts of push services beside the known ones, HOST or HOST:PORT.
        oidc: Where people log in who have no account here.
    """

    listen: str = LISTEN
    origin: str | None = None
    certificate: Path | None = None
    key: Path | None = None
    push: bool = False
    push_contact: Annotated[str, Field(pattern=_CONTACT)] | None = None
    push_services: Annotated[tuple[Annotated[str, Field(pattern=_HOST)], ...], Field(max_length=16)] = ()
    oidc: OidcSection | None = None
    _address = field_validator("listen")(check_address)

    @field_validator("origin")
    @classmethod
    def _is_origin(cls, origin: str | None) -> str | None:
        return None if origin is None else _check_url(origin.lower(), "the origin", path=False)

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        if (self.certificate is None) != (self.key is None):
            raise ValueError("certificate and key need each other")
        if self.certificate is None and not is_loopback(self.host):
            raise ValueError(
                f"a console at {self.listen} needs TLS: write certificate and key beside listen, or listen at 127.0.0.1"
            )
        if self.push and self.push_contact is None:
            raise ValueError('push needs a push_contact, as in "mailto:it@north.example", for push services')
        if not self.push and (self.push_contact is not None or self.push_services):
            raise ValueError("push_contact and push_services mean nothing without push = true")
        if self.origin is None and self.host in ("0.0.0.0", "[::]"):  # noqa: S104 - where it is refused
            raise ValueError(f'a console at {self.listen} needs an origin, as in "https://console.north.example"')
        if self.origin is not None and self.certificate is not None and not self.origin.startswith("https://"):
            raise ValueError("the origin of a console with a certificate begins with https://")
        return self

    @property
    def host(self) -> str:
        """Where it listens."""
        return self.listen.rpartition(":")[0]

    @property
    def port(self) -> int:
        """At which port."""
        return int(self.listen.rpartition(":")[2])

    def beside(self, folder: Path) -> ConsoleSection:
        """The same with relative paths taken from `folder`."""
        changes: dict[str, object] = {
            name: folder / path for name in ("certificate", "key") if (path := getattr(self, name)) is not None
        }
        if self.oidc is not None and self.oidc.client_secret_file is not None:
            secret = folder / self.oidc.client_secret_file
            changes["oidc"] = self.oidc.model_copy(update={"client_secret_file": secret})
        return self.model_copy(update=changes)

    def origins(self, port: int) -> tuple[str, ...]:
        """The origins that a browser may have, the first of which is the one to be shown.

        Args:
            port: At which the console listens.
        """
        if self.origin is not None:
            return (_normal(self.origin),)
        scheme = "http" if self.certificate is None else "https"
        names = (self.host, "localhost") if is_loopback(self.host) else (self.host,)
        return tuple(dict.fromkeys(_normal(f"{scheme}://{name}:{port}") for name in names))


def _normal(origin: str) -> str:
    """An origin as browsers write it: without the port that its scheme has anyway."""
    parts = urlsplit(origin)
    host = (parts.netloc.rpartition(":")[0] or parts.netloc) if parts.port == _PORTS[parts.scheme] else parts.netloc
    return f"{parts.scheme}://{host}"
