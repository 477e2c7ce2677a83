"""Kernels that may not travel to a cluster, since they hold a secret."""

from __future__ import annotations

from functools import partial
from typing import Any

from link.errors import ConfigurationError


def check_public(kernel: object) -> None:
    """Makes sure that a kernel holds no key: keys are bytes, and nothing public that kernels need is.

    Raises:
        ConfigurationError: It holds bytes.
    """
    seen: dict[int, Any] = {}
    waiting: list[Any] = [kernel]
    while waiting:
        value = waiting.pop()
        if isinstance(value, bytes | bytearray | memoryview):
            raise ConfigurationError(
                'a job of this kind perturbs rows under a secret key where they lie, and engine = "spark" never gets '
                'secrets; write engine = "processes" or "memory" in [[dataset]]'
            )
        if id(value) in seen or isinstance(value, type):
            continue
        seen[id(value)] = value
        waiting += _within(value)


def _within(value: Any) -> list[Any]:
    """What a value consists of."""
    if isinstance(value, list | tuple | set | frozenset):
        return list(value)
    if isinstance(value, dict):
        return [*value, *value.values()]
    if isinstance(value, partial):
        return [value.func, *value.args, *value.keywords.values()]
    slots = [name for kind in type(value).__mro__ for name in getattr(kind, "__slots__", ())]
    held = [getattr(value, name) for name in slots if isinstance(name, str) and hasattr(value, name)]
    own = getattr(value, "__dict__", {})
    return [*held, *own.values(), *([value.__self__] if hasattr(value, "__self__") else [])]
