"""The tables of `collection.toml`, and what must be so among them."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from typing import Annotated, Final, Literal

from pydantic import BeforeValidator, Field, field_validator, model_validator

from jobs.collections.budget import BudgetSection, MemoSection, SamplingSection
from jobs.federation import Name
from jobs.spec.values import DataName, Duration, Fraction, Section, exact_decimal
from ldp.domain import LARGEST_DOMAIN
from ldp.registry import ORACLES, brought, is_brought
from link.files.quantities import seconds

MAX_CONTINUAL: Final = 1 << 16  # values whose releases are kept for every step
MAX_GRACES: Final = 7  # windows: so many rounds beside the current one take late reports at most

OPEN_DOMAINS: Final = ("sfp", "prefix-extending")
SLIDING: Final = ("l-grr", "l-osue", "dbitflip", "1bit-mean")  # whose answers a `[memo]` table may let wait
MEMOISED: Final = (*SLIDING, "rappor")
MECHANISMS: Final = ("auto", *ORACLES, "dbitflip", "1bit-mean", "rappor", *OPEN_DOMAINS)
Method = Literal["lbu", "lsp", "lbd", "lba", "lpu", "lpd", "lpa"]


def _parameter(value: object) -> object:
    """A whole number, true, false, or an exact decimal, which JSON writes as a text."""
    if isinstance(value, bool | int | Decimal):
        return value
    if isinstance(value, str):
        return exact_decimal(value)
    raise ValueError("must be a number, true or false")


def _any_or_names(value: object) -> object:
    if value == "any" or (isinstance(value, list | tuple) and value):
        return value
    raise ValueError('must be "any", or a list of names of certificates such as ["phone-1"]')


Parameter = Annotated[bool | int | Decimal, BeforeValidator(_parameter)]
Names = Annotated[tuple[Name, ...], Field(max_length=10_000)]


class CollectionSection(Section):
    """The `[collection]` table: what is collected, and how clients perturb it.

    Attributes:
        name: Of the collection, unique at its node.
        mechanism: One of `MECHANISMS`, or of another package; `auto` lets comine choose a frequency oracle by domain
            and ε.
        epsilon: ε of one report; under continual release, of all reports of a client within w steps; with a `[budget]`
            table, of all its reports together.
        domain: The file of the values that clients may have, one a line; once it is read, `size` and `labelled` stand
            for it.
        size: How many values the domain has; without labels they are numbers from 0 on.
        labelled: Whether the values are texts, which travel apart from the specification.
        text_bytes: With an open domain: the longest text in UTF-8.
        integer_bits: With an open domain: of whole numbers.
        k: With an open domain: how many of the most frequent values are sought.
        parameters: Further ones of the mechanism.
        node: The party at whose node the collection is meant to be, where that is known.
    """

    name: DataName
    mechanism: str = Field(default="auto", json_schema_extra={"enum": list(MECHANISMS)})
    epsilon: Fraction
    domain: str | None = Field(default=None, min_length=1)
    size: int | None = Field(default=None, ge=2, le=LARGEST_DOMAIN)
    labelled: bool = False
    text_bytes: int | None = Field(default=None, ge=1, le=256)
    integer_bits: int | None = Field(default=None, ge=1, le=64)
    k: int | None = Field(default=None, ge=1, le=100_000)
    parameters: dict[str, Parameter] = Field(default_factory=dict, max_length=20)
    node: Name | None = None

    @field_validator("mechanism")
    @classmethod
    def _known(cls, value: str) -> str:
        if value not in MECHANISMS and not is_brought(value):
            names = ", ".join((*MECHANISMS, *brought()))
            raise ValueError(f"there is no mechanism '{value[:40]}' to collect by; take one of {names}")
        return value

    @field_validator("epsilon")
    @classmethod
    def _positive(cls, value: Decimal) -> Decimal:
        if not (value.is_finite() and value > 0):
            raise ValueError(f"{value} must be a number above 0, such as 1.0")
        return value

    @model_validator(mode="after")
    def _has_domain(self) -> CollectionSection:
        mechanism = self.mechanism
        given = [n for n in ("text_bytes", "integer_bits", "k") if getattr(self, n) is not None]
        if mechanism in OPEN_DOMAINS:
            if self.domain is not None or self.size is not None:
                raise ValueError(f'"{mechanism}" searches an open domain; leave out domain and size')
            if (self.text_bytes is None) == (self.integer_bits is None):
                raise ValueError(f'"{mechanism}" needs text_bytes or integer_bits, and not both')
            if self.k is None:
                raise ValueError(f'"{mechanism}" needs k, how many values are sought')
            return self
        if given:
            raise ValueError(f'{given[0]} needs mechanism = "sfp" or "prefix-extending"')
        if self.domain is not None and self.size is not None:
            raise ValueError("give the file of the domain or its size, and not both")
        has = self.domain is not None or self.size is not None
        if mechanism == "1bit-mean" and has:
            raise ValueError(
                '"1bit-mean" takes numbers; leave out domain and size, and give low and high as parameters'
            )
        if mechanism == "rappor" and self.size is not None and not self.labelled:
            raise ValueError('"rappor" takes texts; give the file of likely ones as the domain, or none')
        if mechanism not in ("1bit-mean", "rappor") and not has:
            raise ValueError(f'"{mechanism}" needs a domain, the file of all values, or its size')
        if self.labelled and self.size is None:
            raise ValueError("labelled says that a domain of some size has labels; give the file of the domain instead")
        return self


class WindowSection(Section):
    """The `[window]` table: rounds of one length that follow each other.

    Attributes:
        length: Of a round, or under continual release of a step.
        grace: For how long after its end a round takes reports of clients that were late.
        start: When the first round begins; with the creation of the collection, where absent.
        periods: After how many rounds (searches, with prefix-extending) the collection closes by itself.
        retention: For how long estimates of ended rounds are kept; for ever, where absent.
    """

    length: Duration
    grace: Annotated[str, Field(pattern=r"^(0s|[1-9][0-9]{0,6}[smhd])$")] = "0s"
    start: dt.datetime | None = None
    periods: int | None = Field(default=None, ge=1)
    retention: Duration | None = None

    @field_validator("start")
    @classmethod
    def _zoned(cls, value: dt.datetime | None) -> dt.datetime | None:
        if value is not None and value.tzinfo is None:
            raise ValueError("must be a time with its zone, such as 2026-01-31T00:00:00Z")
        return value

    @field_validator("grace", mode="before")
    @classmethod
    def _duration(cls, value: object) -> object:
        if value != "0s" and not isinstance(value, str):
            raise ValueError('must be a duration such as "0s", "30m" or "1h"')
        return value

    @model_validator(mode="after")
    def _bounded(self) -> WindowSection:
        if self.grace_s > MAX_GRACES * self.length_s:
            raise ValueError(f"grace is at most {MAX_GRACES} times the window's length")
        if self.retention_s is not None and self.retention_s < self.length_s:
            raise ValueError(
                f'retention = "{self.retention}" is shorter than a window, so that estimates would be gone before '
                f'the next ones; take "{self.length}" or more'
            )
        return self

    @property
    def length_s(self) -> int:
        """The length in seconds."""
        return seconds(self.length)

    @property
    def grace_s(self) -> int:
        """The grace in seconds."""
        return seconds(self.grace)

    @property
    def retention_s(self) -> int | None:
        """The retention in seconds."""
        return None if self.retention is None else seconds(self.retention)


class AccessSection(Section):
    """The `[access]` table: who may report, and who may read.

    Attributes:
        submit: Certificates of the role client that report for themselves.
        gateways: Certificates of the role client that report for others, and for how many clients per period.
        read: Coordinators beside the creator.
    """

    submit: Annotated[Literal["any"] | Names, BeforeValidator(_any_or_names)] = "any"
    gateways: dict[Name, Annotated[int, Field(ge=1, le=10**12)]] = Field(default_factory=dict, max_length=1000)
    read: Names = ()


class ContinualSection(Section):
    """The `[continual]` table: releases at every step such that any w steps in a row spend ε together.

    Attributes:
        method: How ε, or the clients, are spread over steps.
        w: How many steps in a row are protected together.
        users: About how many clients there are; where absent, what the reports of earlier steps suggest.
    """

    method: Method
    w: int = Field(ge=1, le=100_000)
    users: int | None = Field(default=None, ge=1, le=10**12)


class CollectionTables(Section):
    """All of them together."""

    collection: CollectionSection
    window: WindowSection | None = None
    access: AccessSection = AccessSection()
    continual: ContinualSection | None = None
    budget: BudgetSection | None = None
    sampling: SamplingSection | None = None
    memo: MemoSection | None = None

    @model_validator(mode="after")
    def _in_rounds(self) -> CollectionTables:
        mechanism = self.collection.mechanism
        search = mechanism == "prefix-extending"
        if search and self.window is None:
            raise ValueError("[window] length: the rounds of prefix-extending need one, each lasts so long")
        if self.continual is not None:
            if self.window is None:
                raise ValueError("[window] length: continual release needs one, the length of a step")
            if mechanism in (*MEMOISED, *OPEN_DOMAINS):
                raise ValueError(
                    f'[continual] cannot go with mechanism = "{mechanism}"; take a frequency oracle that draws every '
                    'report anew, or "auto"'
                )
            if self.collection.parameters:
                raise ValueError(
                    "[collection.parameters] cannot go with [continual], where each step has its own oracle"
                )
            if self.window.periods is not None:
                raise ValueError("[window] periods cannot go with [continual]; close the collection instead")
            if (self.collection.size or 0) > MAX_CONTINUAL:
                raise ValueError(f"[continual] takes domains of at most {MAX_CONTINUAL:,} values")
        if self.window is not None and self.window.grace_s and (search or self.continual is not None):
            raise ValueError("[window] grace must be 0s where the end of a round decides what follows")
        return self

    @model_validator(mode="after")
    def _shares_budget(self) -> CollectionTables:
        mechanism = self.collection.mechanism
        for name in ("budget", "sampling"):
            if getattr(self, name) is not None and (
                self.continual is not None or mechanism in MEMOISED or mechanism == "prefix-extending"
            ):
                with_what = "[continual]" if self.continual is not None else f'mechanism = "{mechanism}"'
                raise ValueError(f"[{name}] cannot go with {with_what}, which divides the budget by itself")
        if self.sampling is not None and mechanism in OPEN_DOMAINS:
            raise ValueError("[sampling] needs a known domain, of which a value can be drawn; give domain or size")
        if self.memo is not None and mechanism not in SLIDING:
            raise ValueError(f'[memo] cannot go with mechanism = "{mechanism}"; take one of {", ".join(SLIDING)}')
        for name in ("budget", "memo"):
            if getattr(self, name) is not None and self.window is None:
                raise ValueError(f"[window] length: [{name}] needs one, the length of a round")
        if self.budget is not None and self.budget.series == "uniform" and self.window and self.window.periods is None:
            raise ValueError('[window] periods: series = "uniform" needs them, the number of windows')
        return self
