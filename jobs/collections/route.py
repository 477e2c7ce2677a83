"""The file of a route through shufflers: a frozen model of `route.toml`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from pydantic import Field, model_validator

from jobs.federation import Name
from jobs.spec.toml import read_toml, validate
from jobs.spec.values import DataName, Duration, Section
from ldp.shuffling.route import MAX_REPORT_BYTES, MAX_SHUFFLERS, Route
from link.files.quantities import seconds

_MAX_COUNT = 1 << 24  # reports of a batch


class RouteSection(Section):
    """The `[route]` table.

    Attributes:
        name: By which the route is called at its shufflers.
        shufflers: Parties, in the order in which reports pass them.
        collection: Whose reports go this way: their size follows from its mechanism.
        node: The party at whose node the collection is, where that is to be said.
        size: Bytes of a report, where no collection is named.
        minimum: Reports that a batch has at least.
        maximum: Reports that a batch has at most.
        every: How often a batch may leave; absent: when the creator asks for it.
        senders: Certificates of role client that may put one report into a batch; absent: all.
        gateways: Those that may put in more, and how many.
    """

    name: Name
    shufflers: Annotated[tuple[Name, ...], Field(min_length=1, max_length=MAX_SHUFFLERS)]
    collection: DataName | None = None
    node: Name | None = None
    size: int | None = Field(default=None, ge=1, le=MAX_REPORT_BYTES)
    minimum: int = Field(default=1000, ge=2, le=_MAX_COUNT)
    maximum: int = Field(default=1 << 20, ge=2, le=_MAX_COUNT)
    every: Duration | None = None
    senders: Annotated[tuple[Name, ...], Field(max_length=10_000)] | None = None
    gateways: dict[Name, Annotated[int, Field(ge=1, le=1 << 31)]] = Field(default_factory=dict, max_length=10_000)

    @model_validator(mode="after")
    def _has_size(self) -> RouteSection:
        if (self.collection is None) == (self.size is None):
            raise ValueError("name the collection whose reports go this way, or give their size in bytes")
        return self


class RouteSpec(Section):
    """A route's file."""

    route: RouteSection

    @classmethod
    def load(cls, path: Path) -> RouteSpec:
        """Reads a route's file.

        Raises:
            ConfigurationError: Something is missing, unknown or wrong.
        """
        return validate(cls, read_toml(path), str(path))

    def made(self, size: int, collector: str, key: bytes, identifier: bytes) -> Route:
        """The route.

        Args:
            size: Bytes of a report.
            collector: The member that opens the innermost layer.
            key: Its public key for this route.
            identifier: 16 random bytes.

        Raises:
            ConfigurationError: The values do not fit each other.
        """
        section = self.route
        return Route(
            name=section.name,
            id=identifier,
            shufflers=section.shufflers,
            collector=collector,
            collector_key=key,
            size=size,
            minimum=section.minimum,
            maximum=section.maximum,
            every=0.0 if section.every is None else float(seconds(section.every)),
            senders=None if section.senders is None else tuple(f"client/{name}" for name in section.senders),
            gateways=tuple((f"client/{name}", number) for name, number in section.gateways.items()),
        )
