"""Reads TOML files into pydantic models; every fault becomes one sentence that names the file and the key."""

from __future__ import annotations

import re
import tomllib
from decimal import Decimal
from difflib import get_close_matches
from pathlib import Path
from types import NoneType, UnionType
from typing import Annotated, Any, Final, TypeVar, Union, get_args, get_origin

from pydantic import BaseModel, ConfigDict, ValidationError, model_validator
from pydantic_core import PydanticCustomError

from link.errors import ConfigurationError
from link.files.printable import why_not_read

Model = TypeVar("Model", bound=BaseModel)

_WRITTEN: Final = "as_written"  # of errors that name the key themselves
_LEAST_WHOLE: Final = -(1 << 63)
_MOST_EXPONENT: Final = 400  # that of the largest floating-point number is 308
_FILES: Final = {
    "tls": "the file of a node, such as party.toml",
    "federation": "a federation file",
    "job": "a job file",
    "collection": "a file of a collection",
    "anonymize": "a configuration of comine anonymize",
}
"""By a table that no other has: the files that people write."""


class TomlTable(BaseModel):
    """A table whose keys are all known, and whose whole numbers and truth values are written as such."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    @model_validator(mode="before")
    @classmethod
    def _as_written(cls, contents: Any) -> Any:
        """TOML distinguishes numbers, texts and truth values, so `true` is no 1, and `"10"` no number."""
        for name, field in cls.model_fields.items():
            key = field.alias or name
            value = contents.get(key) if isinstance(contents, dict) else None
            kinds = set() if value is None else types_of(field.annotation) - {NoneType}
            if kinds == {int} and isinstance(value, bool | str):
                raise PydanticCustomError(_WRITTEN, "must be a whole number", {"key": key})
            if kinds == {bool} and not isinstance(value, bool):
                raise PydanticCustomError(_WRITTEN, "must be true or false", {"key": key})
        return contents


def read_toml(path: Path) -> dict[str, Any]:
    """The contents of a TOML file; numbers with a point are exact decimals.

    Raises:
        ConfigurationError: The file is missing, unreadable or not TOML.
    """
    try:
        data = path.read_bytes()
    except FileNotFoundError:
        raise ConfigurationError(f"{path} does not exist; {_like(path)}") from None
    except IsADirectoryError:
        raise ConfigurationError(f"{path} is a folder, not a TOML file") from None
    except (OSError, ValueError) as error:
        raise ConfigurationError(f"{path} cannot be read: {why_not_read(error)}") from None
    return parse_toml(data, str(path))


def parse_toml(data: bytes, path: str) -> dict[str, Any]:
    """The contents of a TOML file that has been read.

    Args:
        data: The file.
        path: Where it is from, for sentences.

    Raises:
        ConfigurationError: It is not TOML.
    """
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise ConfigurationError(f"{path} is not UTF-8 text") from None
    try:
        contents = tomllib.loads(text, parse_float=read_decimal)
        _check_whole_numbers(contents)
    except tomllib.TOMLDecodeError as error:
        advice = _cure(text, str(error)) or "correct it there, or name another file"
        raise ConfigurationError(f"{path} is not valid TOML: {error}; {advice}") from None
    except RecursionError:
        raise ConfigurationError(f"{path} is not valid TOML: it is nested too deeply") from None
    except (ValueError, ArithmeticError):
        raise ConfigurationError(f"{path} is not valid TOML: a number is too long") from None
    return contents


def read_decimal(text: str) -> Decimal:
    """A number of a file exactly as it is written.

    Raises:
        ValueError: It has an exponent that no number here needs; as a whole number it would fill the memory.
        ArithmeticError: It is none.
    """
    found = Decimal(text)
    if found.is_finite() and abs(found.adjusted()) > _MOST_EXPONENT:
        raise ValueError("a number is too long")
    return found


def _cure(text: str, error: str) -> str:
    """What to write in a line that is not TOML but as people write elsewhere; empty where that is not seen."""
    found = re.search(r"line (\d+)", error)
    lines = text.splitlines()
    line = lines[int(found[1]) - 1] if found is not None and int(found[1]) <= len(lines) else ""
    if re.search(r"=\s*\d+,\d", line):
        return "a number has a point in place of a comma, as in 0.05"
    if re.search(r"=\s*[\d.]+\s*%", line):
        return "a percentage is written as a fraction: 5 % is 0.05"
    if re.search(r"=\s*[A-Za-z]", line):
        return "a text stands in quotes"
    return ""


def _check_whole_numbers(value: Any) -> None:
    """Refuses what is no TOML, and Python reads nevertheless: whole numbers that 64 bits do not hold.

    Raises:
        ValueError: There is one.
    """
    if isinstance(value, dict | list):
        for each in value.values() if isinstance(value, dict) else value:
            _check_whole_numbers(each)
    elif isinstance(value, int) and not _LEAST_WHOLE <= value <= -_LEAST_WHOLE - 1:
        raise ValueError


def _like(path: Path) -> str:
    """The file beside it that may be meant, as the end of a sentence."""
    beside = [each.name for each in path.parent.iterdir() if each.suffix == path.suffix] if path.parent.is_dir() else []
    found = get_close_matches(path.name, beside, 1)
    return f"is {path.with_name(found[0])} meant?" if found else "check the path"


def validate(model: type[Model], contents: Any, where: str) -> Model:
    """Checks `contents` against a model.

    Raises:
        ConfigurationError: Something is missing, unknown or wrong; the sentence names `where` and the key.
    """
    try:
        return model.model_validate(contents)
    except ValidationError as error:
        raise ConfigurationError(f"{where}: {_other_file(contents, model) or _sentence(error, model)}") from None


def faults_by_key(model: type[BaseModel], contents: Any) -> dict[str, str]:
    """What is wrong with a table, in one sentence for each of its keys; under "" what is of no single key.

    Args:
        model: Of the table.
        contents: What it holds.
    """
    try:
        model.model_validate(contents)
    except ValidationError as error:
        found: dict[str, str] = {}
        for fault in error.errors(include_url=False, include_input=False):
            keys = _keys(fault)
            found.setdefault(keys[0], _what(fault, keys, model))
        return found
    return {}


def _other_file(contents: Any, model: type[BaseModel]) -> str:
    """Which of comine's files this is in the place of the one that a model is of; empty where it may be that one."""
    known = {field.alias or name for name, field in model.model_fields.items()}
    keys = set(contents) if isinstance(contents, dict) else set()
    wanted = [what for key, what in _FILES.items() if key in known]
    given = [what for key, what in _FILES.items() if key in keys]
    if not wanted or not given or any(key in keys for key in _FILES if key in known):
        return ""
    return f"is {given[0]}, and here goes {wanted[0]}"


def _sentence(error: ValidationError, model: type[BaseModel]) -> str:
    faults = error.errors(include_url=False, include_input=False)
    first = faults[0]
    if first["type"] == "missing":
        first = next((fault for fault in faults if fault["type"] == "extra_forbidden"), first)  # perhaps it is misspelt
    *tables, key = _keys(first)
    place = f"[{'.'.join(tables)}] {key}".strip() if tables else key
    if first["type"] == "missing" and _table_at(model, [*tables, key]) is not None:
        place = f"[{'.'.join([*tables, key])}]"
    what = _what(first, [*tables, key], model)
    more = f" (and {len(faults) - 1} more)" if len(faults) > 1 else ""
    return f"{place}: {what}{more}" if place else f"{what}{more}"


def _keys(fault: Any) -> list[str]:
    """Where a fault is, from the outermost key."""
    keys = [str(part) for part in fault["loc"] if part != "[key]"]  # which stands after a key that is wrong itself
    return [*keys, fault["ctx"]["key"]] if fault["type"] == _WRITTEN else keys or [""]


def _what(fault: Any, keys: list[str], model: type[BaseModel]) -> str:
    """What is wrong there."""
    match fault["type"]:
        case "missing":
            return "is missing"
        case "extra_forbidden":
            return "is not a known key" + _meant(keys[-1], _table_at(model, keys[:-1]))
        case "model_type" | "dict_type":
            return "must be a table"
        case "tuple_type" | "list_type":
            return "must be a list, in square brackets"
        case "string_type":
            return "must be a text, in quotes"
        case "bool_type" | "bool_parsing":
            return "must be true or false"
        case "string_pattern_mismatch":
            return "is not a name: use 1 to 63 lower-case letters, digits and the characters . - _, no sign at the ends"
        case "too_short":
            return f"needs at least {_entries(fault['ctx']['min_length'])}"
        case "too_long":
            return f"has at most {_entries(fault['ctx']['max_length'])}"
        case _:
            return str(fault["msg"]).removeprefix("Value error, ").removeprefix("Assertion failed, ")


def _entries(number: int) -> str:
    return f"{number} entr{'y' if number == 1 else 'ies'}"


def _meant(key: str, table: type[BaseModel] | None) -> str:
    """The known key that is most like one that is not."""
    known = [] if table is None else [field.alias or name for name, field in table.model_fields.items()]
    close = get_close_matches(key, known, 1)
    return f"; is {close[0]} meant?" if close else ""


def _table_at(model: type[BaseModel], path: list[str]) -> type[BaseModel] | None:
    """The model of the table that keys lead to from the outermost one; None where they lead to something else."""
    table: type[BaseModel] | None = model
    for key in path:
        fields = {} if table is None else {field.alias or name: field for name, field in table.model_fields.items()}
        tables = types_of(fields[key].annotation) - {NoneType} if key in fields else set()
        only = tables.pop() if len(tables) == 1 else None
        table = only if isinstance(only, type) and issubclass(only, BaseModel) else None
    return table


def types_of(annotation: Any) -> set[Any]:
    """The types of which a value may be, as the annotation of a field names them."""
    if get_origin(annotation) is Annotated:
        return types_of(get_args(annotation)[0])
    if get_origin(annotation) in (Union, UnionType):
        return set().union(*map(types_of, get_args(annotation)))
    return {annotation}
