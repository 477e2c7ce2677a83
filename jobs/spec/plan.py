"""The `[plan]` table of a job file: what the job takes for granted before anything is known of the data."""

from __future__ import annotations

import re
from decimal import Decimal
from typing import Annotated

from pydantic import BeforeValidator, Field, field_validator

from jobs.spec.values import Section, exact_decimal

_BANDWIDTH = re.compile(r"([0-9]{1,6}(?:\.[0-9]{1,6})?) (kbit|Mbit|Gbit)/s")
_BITS = {"kbit": 1e3, "Mbit": 1e6, "Gbit": 1e9}


class PlanSection(Section):
    """The `[plan]` table: on which the choice of `engine = "auto"` rests, and the seconds of a plan.

    Attributes:
        bandwidth: What the network between the parties carries, such as "100 Mbit/s".
        rows: Vertical: rows that all parties have, about.
        items: Vertical: of one party, frequent among these rows, about.
        density: Vertical: the share of the rows in which a frequent item occurs, about.
    """

    bandwidth: str | None = None
    rows: int | None = Field(default=None, ge=1, le=1_000_000_000)
    items: int | None = Field(default=None, ge=1, le=1_000_000)
    density: Annotated[Decimal, BeforeValidator(exact_decimal)] | None = None

    @field_validator("bandwidth")
    @classmethod
    def _rate(cls, value: str | None) -> str | None:
        if value is not None:
            match = _BANDWIDTH.fullmatch(value)
            if match is None or not Decimal(match[1]):
                raise ValueError(f'\'{value}\' must be a rate such as "512 kbit/s", "100 Mbit/s" or "1 Gbit/s"')
        return value

    @field_validator("density")
    @classmethod
    def _share(cls, value: Decimal | None) -> Decimal | None:
        if value is not None and not (value.is_finite() and 0 < value <= 1):
            raise ValueError(f"{value} must be above 0 and at most 1")
        return value

    @property
    def bytes_per_s(self) -> float | None:
        """The bandwidth; None where the job takes none for granted."""
        match = _BANDWIDTH.fullmatch(self.bandwidth or "")
        return None if match is None else float(match[1]) * _BITS[match[2]] / 8
