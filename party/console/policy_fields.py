"""The fields of a form of rules: how a rule is shown for people to change, and read again."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from decimal import Decimal
from typing import Any, Final, Literal, NamedTuple, get_args, get_origin

import tomlkit
from pydantic import BaseModel

from jobs.spec.meanings import meanings
from jobs.spec.toml import read_decimal, types_of
from link.errors import UsageError

Kind = Literal["choice", "number", "text", "list", "toml"]

NOBODY: Final = "[]"  # of a list that is written, and empty
IN_THE_FILE: Final = frozenset({"kinds", "engines"})
"""Rules that name code that the node runs: who has the machine writes them, not who has a browser."""

_NUMBER: Final = re.compile(r"[+-]?[0-9]+(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?")
_MOST_DIGITS: Final = 40


class Field(NamedTuple):
    """A rule that may be changed.

    Attributes:
        key: Its name in the file.
        kind: How it is filled in.
        options: Of a choice, and what may stand in a list, where that is known.
        meaning: What it means.
    """

    key: str
    kind: Kind
    options: tuple[str, ...]
    meaning: str


def fields_of(model: type[BaseModel]) -> tuple[Field, ...]:
    """The fields of a table, in the order of the reference."""
    told = meanings(model)
    return tuple(
        Field(key, *_kind(field.annotation), told.get(key, ""))
        for key, field in model.model_fields.items()
        if key not in IN_THE_FILE
    )


def _kind(annotation: Any) -> tuple[Kind, tuple[str, ...]]:
    types = types_of(annotation) - {type(None)}
    if types & {int, Decimal}:
        return "number", ()
    if all(get_origin(each) is Literal for each in types):
        return "choice", tuple(option for each in types for option in get_args(each))
    (only,) = types
    if get_origin(only) is not tuple:
        return ("text", ()) if only is str else ("toml", ())
    inner = types_of(get_args(only)[0])
    if any(isinstance(each, type) and issubclass(each, BaseModel) for each in inner):
        return "toml", ()
    return "list", tuple(option for each in inner for option in get_args(each))


def filled_in(field: Field, value: Any) -> str:
    """What a field holds for a value of the file; empty where nothing is written."""
    if value is None:
        return ""
    if field.kind == "list":
        return "\n".join(value) or NOBODY
    if field.kind == "toml":
        contents = value if isinstance(value, Mapping) else {field.key: value}
        return tomlkit.dumps(contents).strip()
    return str(value)


def read(field: Field, text: str) -> Any:
    """The value that somebody has filled in; None of an empty field.

    Raises:
        UsageError: It is none.
    """
    if not text:
        return None
    match field.kind:
        case "number":
            return _number(text)
        case "list":
            lines = [line.strip() for line in text.splitlines()]
            return [] if text == NOBODY else [line for line in lines if line]
        case "toml":
            return _toml(field, text)
        case _:
            return text


def normal(text: str) -> str:
    """What a browser sends, with line ends as in files."""
    return text.replace("\r\n", "\n").strip()


def _number(text: str) -> int | Decimal:
    if len(text) > _MOST_DIGITS or _NUMBER.fullmatch(text) is None:
        raise UsageError("is no number; write it as in 20 or 0.05")
    try:
        return int(text) if re.fullmatch(r"[+-]?[0-9]+", text) else read_decimal(text)
    except (ValueError, ArithmeticError):
        raise UsageError("is too long for a number; write it as in 20 or 0.05") from None


def _toml(field: Field, text: str) -> Any:
    try:
        contents = tomllib.loads(text, parse_float=read_decimal)
    except (ValueError, RecursionError, ArithmeticError) as error:
        raise UsageError(f"is not valid TOML: {error}") from None
    tables = contents.get(field.key)
    if not isinstance(tables, list) or not all(isinstance(each, dict) for each in tables):
        return contents
    if len(contents) > 1:
        raise UsageError(f"holds something beside {field.key}")
    return tables
