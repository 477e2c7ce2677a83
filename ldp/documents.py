"""Mechanisms as JSON documents, from which clients of a service know what to report with."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from fractions import Fraction
from typing import Any, Final

from ldp.domain import Domain
from ldp.heavy_hitters.bit_strings import Integers, Strings, Texts
from ldp.mechanism import Mechanism
from ldp.registry import mechanism_class
from link.errors import ConfigurationError, InputDataError
from link.files.json_text import read_json

_FRACTION: Final = re.compile(r"[0-9]{1,100}(/[0-9]{1,100})?")

_FIRST: Final = 1
"""The mapping of values to reports that goes unsaid, as in `Mechanism.fingerprint`."""


def document(mechanism: Mechanism[Any]) -> bytes:
    """A mechanism with all its parameters as canonical JSON, but for the labels of its domain."""
    return json.dumps(_content(mechanism), sort_keys=True, separators=(",", ":"), allow_nan=False).encode()


def mechanism_of(data: bytes, domain: Domain | None = None) -> Mechanism[Any]:
    """The mechanism of a document.

    Args:
        data: What `document` wrote.
        domain: The labelled domain, where the mechanism's has labels.

    Raises:
        InputDataError: The document is malformed, or of a mechanism that this version does not know.
    """
    try:
        return _made(read_json(data), domain)
    except (ValueError, TypeError, KeyError, AttributeError, ArithmeticError, RecursionError):
        raise InputDataError("this is no document of a mechanism that this version of comine knows") from None
    except ConfigurationError as error:
        raise InputDataError(f"the document's mechanism is wrong: {error.message}") from None


def _content(mechanism: Mechanism[Any]) -> dict[str, object]:
    parameters = {name: _written(value) for name, value in mechanism.get_params().items()}
    found: dict[str, object] = {"mechanism": mechanism.name, "parameters": parameters}
    return found | ({"mapping": mechanism.mapping} if mechanism.mapping > _FIRST else {})


def _made(content: Mapping[str, Any], domain: Domain | None) -> Mechanism[Any]:
    kind: Callable[..., Mechanism[Any]] = mechanism_class(content["mechanism"])
    parameters = {name: _read(value, domain) for name, value in content["parameters"].items()}
    found = kind(**parameters)
    if found.mapping != content.get("mapping", _FIRST):
        raise InputDataError(
            f"reports of the mechanism '{found.name}' with these parameters mean something else in this version of "
            "comine than in the one that wrote its document; use one version at all places"
        )
    return found


def _written(value: object) -> object:
    match value:
        case Domain():
            return {"domain": value.size, "labelled": value.labels is not None}
        case Texts():
            return {"texts": value.size}
        case Integers():
            return {"integers": value.width}
        case Fraction():
            return {"fraction": str(value)}
        case tuple():
            return {"tuple": [_written(each) for each in value]}
        case Mechanism():
            return {"behind": _content(value)}
        case bool() | int() | float() | str() | None:
            return value
    raise ConfigurationError(f"a parameter of type {type(value).__name__} cannot be sent to clients")


def _read(value: object, domain: Domain | None) -> object:
    if not isinstance(value, Mapping):
        return value
    if "domain" in value:
        return _domain(value["domain"], value["labelled"], domain)
    ((kind, content),) = value.items()
    readers: dict[str, Callable[[Any], Strings | Fraction | Mechanism[Any] | tuple[object, ...]]] = {
        "texts": Texts,
        "integers": Integers,
        "fraction": _fraction,
        "tuple": lambda parts: tuple(_read(part, domain) for part in parts),
        "behind": lambda content: _made(content, domain),
    }
    return readers[kind](content)


def _fraction(text: str) -> Fraction:
    """A fraction without an exponent: the number of a short text such as 1e999999999 would fill the memory."""
    if _FRACTION.fullmatch(text) is None:
        raise ValueError
    return Fraction(text)


def _domain(size: int, labelled: bool, domain: Domain | None) -> Domain:
    if not labelled:
        return Domain(size)
    if domain is None or domain.size != size or domain.labels is None:
        raise InputDataError(f"the mechanism needs the labels of its {size:,} values")
    return domain
