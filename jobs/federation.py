"""The parties of a federation and how they are reached: `federation.toml`, read by coordinator and parties alike."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Final

from pydantic import BeforeValidator, Field, field_validator, model_validator

from jobs.spec.toml import TomlTable, read_toml, validate
from link.errors import ConfigurationError
from link.pki.identity import Identity
from link.relay.address import RelayAddress

FINGERPRINT_DIGITS = 64
MAX_PORT = 65535

_NAME: Final = r"^[a-z0-9]([a-z0-9_.-]{0,61}[a-z0-9])?$"
Name = Annotated[str, Field(pattern=_NAME)]


def is_party_name(text: str) -> bool:
    """Whether a party can be called so."""
    return re.fullmatch(_NAME, text) is not None


def check_address(address: str) -> str:
    """`address` if it is HOST:PORT.

    Raises:
        ValueError: It is not.
    """
    host, colon, port = address.rpartition(":")
    if not (host and colon and port.isdecimal()):
        raise ValueError(f"'{address}' must have the form HOST:PORT")
    if len(port) > 5 or int(port) > MAX_PORT:
        raise ValueError(f"'{address}' has no possible port; ports go up to {MAX_PORT}")
    return address


def _pins(value: Any) -> frozenset[str]:
    """One fingerprint or several, as `comine pki show` or `openssl x509 -fingerprint -sha256` prints them."""
    given = [value] if isinstance(value, str) else value
    if not isinstance(given, list) or not given or not all(isinstance(each, str) for each in given):
        raise ValueError("a pin is the SHA-256 fingerprint of a certificate, or a list of such")
    found = frozenset(each.replace(":", "").lower() for each in given)
    for each in found:
        if len(each) != FINGERPRINT_DIGITS or not set(each) <= set("0123456789abcdef"):
            raise ValueError(f"a pin has {FINGERPRINT_DIGITS} hexadecimal digits, as comine pki show prints them")
    return found


Pins = Annotated[frozenset[str], BeforeValidator(_pins)]


class FederationName(TomlTable):
    """The `[federation]` table.

    Attributes:
        name: For people.
    """

    name: str


class Credentials(TomlTable):
    """Certificate authority, certificate, private key and list of revoked certificates, as paths.

    Attributes:
        ca: The authority's certificate.
        certificate: That of the holder.
        key: Its private key, which nobody else may be able to read.
        crl: The list of revoked certificates; without it `ca.crl` beside the authority's certificate, and while there
            is none, nothing is revoked.
    """

    ca: Path
    certificate: Path
    key: Path
    crl: Path | None = None

    def beside(self, file: Path) -> Credentials:
        """The same with paths taken relative to the folder of `file`."""
        folder = file.parent
        return Credentials(
            ca=folder / self.ca,
            certificate=folder / self.certificate,
            key=folder / self.key,
            crl=None if self.crl is None else folder / self.crl,
        )

    def identity(self, pins: Mapping[str, frozenset[str]] | None = None) -> Identity:
        """Who these files make their holder, and whom it trusts.

        Args:
            pins: As in `Federation.pins`.

        Raises:
            ConfigurationError: A file is missing or not readable, or others can read the key.
            IdentityError: The certificate or the list of revoked ones does not hold.
        """
        return Identity.load(self.ca, self.certificate, self.key, crl=self.crl, pins=pins)


class CoordinatorSection(Credentials):
    """The `[coordinator]` table, which only the coordinator needs.

    Attributes:
        state_dir: The folder in which it keeps its jobs.
    """

    state_dir: Path = Path("jobs")

    def beside(self, file: Path) -> CoordinatorSection:
        """The same with paths taken relative to the folder of `file`."""
        files = super().beside(file).model_dump()
        return CoordinatorSection(**files, state_dir=file.parent / self.state_dir)


class Member(TomlTable):
    """A `[[party]]` table.

    Attributes:
        name: The party's, as in its certificate.
        address: `HOST:PORT` at which coordinator and peers reach its node; without it, through the relay.
        pin: The only certificates that are accepted for it: one SHA-256 fingerprint or several.
    """

    name: Name
    address: str | None = None
    pin: Pins | None = None

    @field_validator("address")
    @classmethod
    def _is_address(cls, address: str | None) -> str | None:
        return None if address is None else check_address(address)


class RelaySection(TomlTable):
    """The `[relay]` table: who connects parties whose nodes nobody can call.

    Attributes:
        address: `HOST:PORT` of the relay, to which nodes and callers dial out.
        name: What it calls itself, where that is not HOST.
        ca: A file with the authorities that may have issued its certificate for TLS; without it, those that this
            machine trusts, and the federation's own.
    """

    address: str
    name: str | None = Field(default=None, min_length=1, max_length=253)
    ca: Path | None = None
    _address = field_validator("address")(check_address)


class Federation(TomlTable):
    """The whole of `federation.toml`.

    Attributes:
        coordinator_pins: By coordinator, the only certificates that are accepted for it, as `pin` of a party.
    """

    federation: FederationName
    coordinator: CoordinatorSection | None = None
    coordinator_pins: dict[Name, Pins] = Field(default_factory=dict)
    relay: RelaySection | None = None
    party: tuple[Member, ...] = Field(min_length=1)

    @model_validator(mode="after")
    def _distinct(self) -> Federation:
        names = [member.name for member in self.party]
        for name in names:
            if names.count(name) > 1:
                raise ValueError(f"the party '{name}' is listed twice")
        if self.relay is None and (unreached := [member.name for member in self.party if member.address is None]):
            raise ValueError(f"the party '{unreached[0]}' needs an address, or the federation a [relay]")
        return self

    @classmethod
    def load(cls, path: Path) -> Federation:
        """Reads a federation file; paths in it become relative to its folder.

        Raises:
            ConfigurationError: The file is missing or wrong.
        """
        federation = validate(cls, read_toml(path), str(path))
        changes: dict[str, object] = {}
        if federation.coordinator is not None:
            changes["coordinator"] = federation.coordinator.beside(path)
        if federation.relay is not None and federation.relay.ca is not None:
            ca = path.absolute().parent / federation.relay.ca
            changes["relay"] = federation.relay.model_copy(update={"ca": ca})
        return federation.model_copy(update=changes)

    @property
    def addresses(self) -> dict[str, str]:
        """Address by party name: HOST:PORT, or the text of a `RelayAddress`."""
        relayed = "" if self.relay is None else RelayAddress(self.relay.address, self.relay.name, self.relay.ca).text
        return {member.name: member.address or relayed for member in self.party}

    @property
    def pins(self) -> dict[str, frozenset[str]]:
        """The only certificates that are believed of a member, where some are pinned: fingerprints by "ROLE/NAME"."""
        parties = {f"party/{member.name}": member.pin for member in self.party if member.pin is not None}
        return parties | {f"coordinator/{name}": pins for name, pins in self.coordinator_pins.items()}

    def select(self, names: tuple[str, ...]) -> dict[str, str]:
        """Addresses of the named parties, in that order.

        Raises:
            ConfigurationError: A name is not in the federation.
        """
        for name in names:
            if name not in self.addresses:
                known = ", ".join(sorted(self.addresses))
                raise ConfigurationError(f"the job names the party '{name}', but the federation has only {known}")
        return {name: self.addresses[name] for name in names}
