"""`relay.toml`: where a relay listens, whom it serves, and how much of it each may use."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from pydantic import Field, field_validator, model_validator

from jobs.federation import Pins, check_address
from jobs.metrics_section import MetricsSection
from jobs.spec.toml import TomlTable, read_toml, validate
from link.errors import ConfigurationError
from link.pki.trust import Trust
from link.relay.handshake import authority_digest

LEAST_RATE: Final = 1 << 20  # bytes a second


class RelaySection(TomlTable):
    """The `[relay]` table.

    Attributes:
        listen: HOST:PORT at which nodes and callers dial.
        name: What it calls itself, as its host is written in the federation files; who dials signs it.
        certificate: Its certificate for TLS, with those between it and the authority.
        key: The key of that.
        drain: Seconds for which connections may go on when it is stopped.
    """

    listen: str
    name: str = Field(min_length=1, max_length=253)
    certificate: Path | None = None
    key: Path | None = None
    drain: int = Field(default=2, ge=0, le=600)
    _address = field_validator("listen")(check_address)

    @model_validator(mode="after")
    def _encrypted(self) -> RelaySection:
        if (self.certificate is None) != (self.key is None):
            raise ValueError("certificate and key need each other")
        if self.certificate is None and self.listen.rpartition(":")[0] not in ("127.0.0.1", "[::1]", "localhost"):
            raise ValueError(
                "without certificate and key it may listen at 127.0.0.1 alone, behind a server that adds TLS"
            )
        return self


class LimitsSection(TomlTable):
    """The `[limits]` table, for each member of a federation by its role and name.

    Attributes:
        streams: Connections that it has open at once, of those it dialled.
        dials: That it may make in a minute.
        bytes_per_second: That it may send; it waits where it would send more. 0: as much as it can.
        bytes_per_day: That it may send between midnights of UTC; 0: as much as it wants.
        idle: Seconds after which a connection ends over which nothing comes.
        strangers: Connections of one address that have not proved yet who they are.
    """

    streams: int = Field(default=256, ge=1)
    dials: int = Field(default=1200, ge=1)
    bytes_per_second: int = 0
    bytes_per_day: int = Field(default=0, ge=0)
    idle: int = Field(default=300, ge=1)
    strangers: int = Field(default=32, ge=1)

    @field_validator("bytes_per_second")
    @classmethod
    def _fast_enough(cls, value: int) -> int:
        if value and value < LEAST_RATE:
            raise ValueError(f"must be 0 or {LEAST_RATE} at least; with less, connections would seem dead")
        return value


class FederationSection(TomlTable):
    """A `[[federation]]` table.

    Attributes:
        name: For the log.
        ca: The certificate of its authority.
        crl: The list of revoked certificates; without it `ca.crl` beside `ca`, where there is one.
        pins: The only certificates that are believed of members: by "party/NAME", "coordinator/NAME" or "client/NAME",
            one SHA-256 fingerprint or several.
    """

    name: str = Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9 _.-]{0,62}$")
    ca: Path
    crl: Path | None = None
    pins: dict[str, Pins] = Field(default_factory=dict)

    def trust(self) -> Trust:
        """Whom the federation's authority makes its members.

        Raises:
            ConfigurationError: A file cannot be read.
            IdentityError: The list of revoked certificates is not one of the authority.
        """
        try:
            ca_pem = self.ca.read_bytes()
            authority_digest(ca_pem)
        except OSError as error:
            raise ConfigurationError(f"{self.ca} cannot be read ({error.strerror}); check its path") from None
        except ValueError:
            raise ConfigurationError(
                f"{self.ca} is not a certificate in PEM form; copy the authority's ca.crt"
            ) from None
        return Trust.load(ca_pem, self.ca, self.crl, self.pins)


class RelayConfig(TomlTable):
    """The whole of `relay.toml`."""

    relay: RelaySection
    limits: LimitsSection = LimitsSection()
    metrics: MetricsSection | None = None
    federation: tuple[FederationSection, ...] = Field(min_length=1)

    @classmethod
    def load(cls, path: Path) -> RelayConfig:
        """Reads a file; paths in it become relative to its folder.

        Raises:
            ConfigurationError: The file is missing or wrong.
        """
        config = validate(cls, read_toml(path), str(path))
        folder, own = path.absolute().parent, config.relay
        files = {key: folder / file for key in ("certificate", "key") if (file := getattr(own, key)) is not None}
        federations = tuple(
            each.model_copy(update={"ca": folder / each.ca, "crl": None if each.crl is None else folder / each.crl})
            for each in config.federation
        )
        return config.model_copy(update={"relay": own.model_copy(update=files), "federation": federations})

    def trusts(self) -> dict[bytes, tuple[str, Trust]]:
        """Name of each federation, and whom its authority makes its members, by what names it to the relay.

        Raises:
            ConfigurationError: A file cannot be read, or two federations have one authority.
            IdentityError: A list of revoked certificates is not one of its authority.
        """
        found: dict[bytes, tuple[str, Trust]] = {}
        for each in self.federation:
            trust = each.trust()
            digest = authority_digest(trust.ca_pem)
            if digest in found:
                raise ConfigurationError(
                    f"the federations {found[digest][0]} and {each.name} have one authority; list it once"
                )
            found[digest] = each.name, trust
        return found
