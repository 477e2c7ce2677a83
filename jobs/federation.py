"""The parties of a federation and how they are reached: `federation.toml`, read by coordinator and parties alike."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field, field_validator, model_validator

from jobs.toml import read_toml, validate
from link.errors import ConfigurationError

Name = Annotated[str, Field(pattern=r"^[a-z0-9]([a-z0-9_.-]{0,61}[a-z0-9])?$")]


def check_address(address: str) -> str:
    """`address` if it is HOST:PORT.

    Raises:
        ValueError: It is not.
    """
    host, colon, port = address.rpartition(":")
    if not (host and colon and port.isdecimal() and 0 <= int(port) <= 65535):
        raise ValueError(f"'{address}' must have the form HOST:PORT")
    return address


class _Section(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class FederationName(_Section):
    """The `[federation]` table."""

    name: str


class Credentials(_Section):
    """Certificate authority, certificate and private key, as paths."""

    ca: Path
    certificate: Path
    key: Path

    def beside(self, file: Path) -> Credentials:
        """The same with paths taken relative to the folder of `file`."""
        folder = file.parent
        return Credentials(ca=folder / self.ca, certificate=folder / self.certificate, key=folder / self.key)


class Member(_Section):
    """A `[[party]]` table: a party's name, as in its certificate, and its address."""

    name: Name
    address: str
    _address = field_validator("address")(check_address)


class Federation(_Section):
    """The whole of `federation.toml`."""

    federation: FederationName
    coordinator: Credentials | None = None
    party: tuple[Member, ...] = Field(min_length=1)

    @model_validator(mode="after")
    def _distinct(self) -> Federation:
        names = [member.name for member in self.party]
        for name in names:
            if names.count(name) > 1:
                raise ValueError(f"the party '{name}' is listed twice")
        return self

    @classmethod
    def load(cls, path: Path) -> Federation:
        """Reads a federation file; paths in it become relative to its folder.

        Raises:
            ConfigurationError: The file is missing or wrong.
        """
        federation = validate(cls, read_toml(path), str(path))
        if federation.coordinator is None:
            return federation
        return federation.model_copy(update={"coordinator": federation.coordinator.beside(path)})

    @property
    def addresses(self) -> dict[str, str]:
        """Address by party name."""
        return {member.name: member.address for member in self.party}

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
