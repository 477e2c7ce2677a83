"""What stands in files of jobs and collections: exact numbers, durations, names, and the tables that hold them."""

from __future__ import annotations

import re
from collections.abc import Sequence
from decimal import Decimal, InvalidOperation
from typing import Annotated

from pydantic import BeforeValidator, ConfigDict, Field
from pydantic_core import PydanticKnownError

from jobs.spec.toml import TomlTable
from link.files.printable import enumeration

MAX_DIGITS = 40  # of a decimal, on either side of the point: exact arithmetic with 1E-999999999 would never end


def _support(value: object) -> object:
    """Distinguishes fractions (decimals, and strings in JSON) from counts (integers)."""
    if isinstance(value, bool):
        raise ValueError("must be a fraction such as 0.01 or a count such as 5")
    if isinstance(value, str) and value.endswith("%"):
        raise ValueError(f"'{value}' must be a fraction such as 0.05, or a whole number of transactions")
    value = value if isinstance(value, int) else exact_decimal(value)
    if isinstance(value, Decimal):
        if not (value.is_finite() and 0 < value <= 1):
            wanted = "a fraction above 0 and at most 1, or a whole number of transactions"
            raise ValueError(f"{value} must be {wanted}{as_share(value)}")
    elif not isinstance(value, int):
        raise ValueError("must be a fraction such as 0.01 or a count such as 5")
    elif value < 1:
        raise ValueError(f"{value} must be a fraction above 0 and at most 1, or a count of at least 1")
    return value


def as_share(value: Decimal) -> str:
    """What may be meant by a number above 1 in the place of a fraction, as the end of a sentence."""
    return f"; {value} % is {(value / 100).normalize():f}" if value.is_finite() and 1 < value <= 100 else ""


def one_of(known: Sequence[str], value: str) -> str:
    """One of several words, which are not known before files are read.

    Raises:
        PydanticKnownError: It is another one; worded as for a `Literal` of them.
    """
    if value not in known:
        raise PydanticKnownError("literal_error", {"expected": enumeration([*map(repr, known)], "or")})
    return value


def plain_number(number: Decimal) -> int | float:
    """A decimal as the int or float that is written so."""
    return int(number) if number == int(number) else float(number)


def exact_decimal(value: object) -> object:
    """A number of few digits as an exact decimal; what is none is returned as it is.

    Raises:
        ValueError: It is a text that is no number, or has too many digits.
    """
    if isinstance(value, bool) or not isinstance(value, str | float | int | Decimal):
        return value
    try:
        number = Decimal(str(value))
    except InvalidOperation:
        raise ValueError(f"'{value}' is not a number") from None
    if number.is_finite():
        _, digits, exponent = number.as_tuple()
        if len(digits) > MAX_DIGITS or abs(int(exponent)) > MAX_DIGITS:
            raise ValueError(f"must be a number of at most {MAX_DIGITS} digits")
    return number


def _duration(value: object) -> object:
    if not isinstance(value, str) or re.fullmatch(r"[1-9][0-9]{0,6}[smhd]", value) is None:
        raise ValueError('must be a duration such as "90s", "30m", "2h" or "7d"')
    return value


def _data_name(name: object) -> object:
    if isinstance(name, str) and re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,62}", name) is None:
        raise ValueError(
            f"'{name}' cannot be a name: use 1 to 63 letters, digits and the characters . - _, a letter or digit first"
        )
    return name


DataName = Annotated[str, BeforeValidator(_data_name)]
Duration = Annotated[str, BeforeValidator(_duration)]
Support = Annotated[int | Decimal, BeforeValidator(_support)]
Fraction = Annotated[Decimal, BeforeValidator(exact_decimal)]
ColumnName = Annotated[str, Field(min_length=1, max_length=200)]
Cuts = Annotated[tuple[Fraction, ...], Field(min_length=1, max_length=1000)]


class Section(TomlTable):
    """A table of a job file."""

    model_config = ConfigDict(populate_by_name=True)
