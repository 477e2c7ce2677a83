"""What the keys of a table mean, as the docstring of its model says it, once for all who read."""

from __future__ import annotations

import inspect
import re
from typing import Final

from pydantic import BaseModel

_ATTRIBUTE: Final = re.compile(r"^(\w+): (.+)$")


def meanings(model: type[BaseModel]) -> dict[str, str]:
    """What the docstrings of a model and of those that it extends say of its attributes."""
    found: dict[str, str] = {}
    for each in reversed(model.__mro__):
        lines = inspect.cleandoc(each.__dict__.get("__doc__") or "").partition("Attributes:\n")[2]
        name = ""
        for line in lines.splitlines():
            if line and not line.startswith(" "):
                break
            if begun := _ATTRIBUTE.match(line[4:]):
                name, found[begun[1]] = begun[1], begun[2]
            elif name and line.strip():
                found[name] += f" {line.strip()}"
            else:
                name = ""
    return found
