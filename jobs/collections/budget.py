"""How the reports of one client to a collection share its ε: tables of `collection.toml` that few collections have."""

from __future__ import annotations

import re
from decimal import Decimal
from fractions import Fraction as ExactFraction
from typing import Annotated, Final, Literal

from pydantic import BeforeValidator, Field, WithJsonSchema, field_validator, model_validator

from jobs.spec.values import Fraction, Section, exact_decimal

Series = Literal["uniform", "geometric", "taylor", "p-series", "telescoping", "by-error"]
MAX_ERRORS: Final = 10_000

_FRACTION: Final = re.compile(r"[0-9]{1,10}/[0-9]{1,10}")
_OWN: Final = {"geometric": "ratio", "p-series": "exponent", "by-error": "errors"}


class BudgetSection(Section):
    """The `[budget]` table: `[collection] epsilon` is for all windows together, and a series divides it among them.

    Attributes:
        series: Which; see `ldp.streams.allocation`.
        ratio: Of a geometric series; 0.5, where absent.
        exponent: Of a p-series; 2, where absent.
        errors: Of a series by error: a_i for each window, where the variance of its estimates is a_i/ε_i².
    """

    series: Series
    ratio: Fraction | None = None
    exponent: Fraction | None = None
    errors: Annotated[tuple[Fraction, ...], Field(min_length=1, max_length=MAX_ERRORS)] | None = None

    @model_validator(mode="after")
    def _fits(self) -> BudgetSection:
        for series, name in _OWN.items():
            if getattr(self, name) is not None and self.series != series:
                raise ValueError(f'{name} needs series = "{series}"')
        if self.series == "by-error" and self.errors is None:
            raise ValueError('series = "by-error" needs errors, one for each window')
        return self


def _probability(value: object) -> object:
    """A fraction as text, whether it was written as one or as a decimal."""
    try:
        if isinstance(value, str) and _FRACTION.fullmatch(value):
            return str(ExactFraction(value))
        number = exact_decimal(value)
        return str(ExactFraction(number)) if isinstance(number, Decimal) else value
    except (ValueError, OverflowError, ZeroDivisionError):
        raise ValueError('must be a probability such as "1/8" or 0.125') from None


class SamplingSection(Section):
    """The `[sampling]` table: a client's report is of its value with a secret probability, else of a uniform one.

    Attributes:
        probability: A fraction of a power of two, as text such as "1/8".
    """

    probability: Annotated[
        str, BeforeValidator(_probability), WithJsonSchema({"anyOf": [{"type": "number"}, {"type": "string"}]})
    ]

    @field_validator("probability")
    @classmethod
    def _between(cls, value: str) -> str:
        if not 0 < ExactFraction(value) < 1:
            raise ValueError(f"{value} must lie between 0 and 1; without sampling leave out the table")
        return value

    @property
    def exact(self) -> ExactFraction:
        """The probability."""
        return ExactFraction(self.probability)


class MemoSection(Section):
    """The `[memo]` table: answers are kept for ever, and those to new values wait where a span has no budget left.

    Attributes:
        w: The length of the span, in windows.
        epsilon: What a client's answers to new values within any w windows in a row may spend; each costs ε∞.
    """

    w: int = Field(ge=1, le=100_000)
    epsilon: Fraction
