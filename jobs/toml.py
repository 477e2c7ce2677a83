"""Reads TOML files into pydantic models; every fault becomes one sentence that names the file and the key."""

from __future__ import annotations

import tomllib
from decimal import Decimal
from pathlib import Path
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError

from link.errors import ConfigurationError

Model = TypeVar("Model", bound=BaseModel)


def read_toml(path: Path) -> dict[str, Any]:
    """The contents of a TOML file; numbers with a point are exact decimals.

    Raises:
        ConfigurationError: The file is missing, unreadable or not TOML.
    """
    try:
        text = path.read_bytes().decode("utf-8")
    except FileNotFoundError:
        raise ConfigurationError(f"{path} does not exist") from None
    except IsADirectoryError:
        raise ConfigurationError(f"{path} is a folder, not a TOML file") from None
    except OSError as error:
        raise ConfigurationError(f"{path} cannot be read: {error.strerror}") from None
    except UnicodeDecodeError:
        raise ConfigurationError(f"{path} is not UTF-8 text") from None
    try:
        return tomllib.loads(text, parse_float=Decimal)
    except tomllib.TOMLDecodeError as error:
        raise ConfigurationError(f"{path} is not valid TOML: {error}") from None


def validate(model: type[Model], contents: Any, where: str) -> Model:
    """Checks `contents` against a model.

    Raises:
        ConfigurationError: Something is missing, unknown or wrong; the sentence names `where` and the key.
    """
    try:
        return model.model_validate(contents)
    except ValidationError as error:
        raise ConfigurationError(f"{where}: {_sentence(error)}") from None


def _sentence(error: ValidationError) -> str:
    faults = error.errors(include_url=False, include_input=False)
    first = faults[0]
    *tables, key = [str(part) for part in first["loc"]] or [""]
    place = f"[{'.'.join(tables)}] {key}".strip() if tables else key
    match first["type"]:
        case "missing":
            what = "is missing"
        case "extra_forbidden":
            what = "is not a known key"
        case "model_type" | "dict_type":
            what = "must be a table"
        case "tuple_type" | "list_type":
            what = "must be a list, in square brackets"
        case "string_type":
            what = "must be a text, in quotes"
        case "bool_type" | "bool_parsing":
            what = "must be true or false"
        case "string_pattern_mismatch":
            what = "is not a name: use 1 to 63 lower-case letters, digits and the characters . - _, no sign at the ends"
        case "too_short":
            what = f"needs at least {first['ctx']['min_length']} entries"
        case "too_long":
            what = f"has at most {first['ctx']['max_length']} entries"
        case _:
            what = first["msg"].removeprefix("Value error, ").removeprefix("Assertion failed, ")
    more = f" (and {len(faults) - 1} more)" if len(faults) > 1 else ""
    return f"{place}: {what}{more}" if place else f"{what}{more}"
