"""Parameters of constructors, held to what their annotations say: whole numbers are whole, other numbers finite.

A fraction where a whole number is meant would be cut somewhere on the way, and other parties would cut elsewhere. So
one place looks at all of them: `Checked` at the constructors of all subclasses, `checked` at that of a class that is
none. Numbers of numpy become Python's, so that equal parameters have equal fingerprints.
"""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Mapping
from functools import wraps
from numbers import Real
from typing import Any, Final, TypeVar

import numpy as np

from link.errors import ConfigurationError

_WHOLE: Final = frozenset({"int", "int | None"})
_NUMBERS: Final = frozenset({"float", "float | None", "float | Fraction"})
_FLAGS: Final = frozenset({"bool"})
_CHECKED_ELSEWHERE: Final = frozenset({"epsilon", "w"})
"""Budgets and windows, of which `check_epsilon` and `check_window` have more to say."""

_OPTIONAL: Final = " | None"
_SHOWN: Final = 40

T = TypeVar("T")


class Checked:
    """A class whose subclasses' constructors, and those of their subclasses, refuse numbers that are none."""

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        if "__init__" in cls.__dict__:
            checked(cls)


def checked(kind: type[T]) -> type[T]:
    """The class, whose constructor refuses numbers that are none of those that its annotations name.

    Annotations are texts: modules have `from __future__ import annotations`.
    """
    constructor = kind.__init__
    signature = inspect.signature(constructor)
    expected = {name: str(each.annotation) for name, each in signature.parameters.items()}
    if not (_WHOLE | _NUMBERS | _FLAGS) & set(expected.values()):
        return kind

    @wraps(constructor)
    def init(self: T, *positional: Any, **named: Any) -> None:
        bound = signature.bind(self, *positional, **named)
        bound.arguments.update(_taken(expected, bound.arguments))
        constructor(*bound.args, **bound.kwargs)

    setattr(kind, "__init__", init)  # noqa: B010 (mypy does not let a method be assigned)
    return kind


def whole_number(name: str, value: Any) -> int:
    """A parameter that has to be a whole number.

    Raises:
        ConfigurationError: It is none; a float that has no fraction, and true, are none either.
    """
    if isinstance(value, bool) or not isinstance(value, int | np.integer):
        raise ConfigurationError(f"{name} is a whole number, not {_shown(value)}")
    return int(value)


def _finite(name: str, value: Any) -> Any:
    number = value.item() if isinstance(value, np.generic) else value
    if isinstance(number, bool) or not isinstance(number, Real) or not math.isfinite(number):
        what = f"the range's end '{name}'" if name in ("low", "high") else name
        raise ConfigurationError(f"{what} is a finite number, not {_shown(value)}")
    return number


def _flag(name: str, value: Any) -> bool:
    if not isinstance(value, bool | np.bool_):
        raise ConfigurationError(f"{name} is true or false, not {_shown(value)}")
    return bool(value)


_CHECKS: Final[tuple[tuple[frozenset[str], Callable[[str, Any], Any]], ...]] = (
    (_WHOLE, whole_number),
    (_NUMBERS, _finite),
    (_FLAGS, _flag),
)


def _taken(expected: Mapping[str, str], given: Mapping[str, Any]) -> dict[str, Any]:
    found = {}
    for name, value in given.items():
        annotation = expected.get(name, "")
        if name in _CHECKED_ELSEWHERE or (value is None and annotation.endswith(_OPTIONAL)):
            continue
        for kinds, check in _CHECKS:
            if annotation in kinds:
                found[name] = check(name, value)
    return found


def _shown(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}…"
