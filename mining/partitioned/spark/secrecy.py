"""What kernels may take to a cluster: nothing secret but keys by which it chooses and perturbs the rows that it has."""

from __future__ import annotations

from functools import partial
from typing import Any

from ldp.mechanism import Mechanism
from link.errors import ConfigurationError
from mining.partitioned.noise_key import NoiseKey


def takes_noise(kernel: object) -> bool:
    """Whether a kernel has a key by which rows are chosen or perturbed.

    Other keys are told by being bytes: nothing public that kernels need is, but for what a mechanism says of itself.

    Raises:
        ConfigurationError: It holds other bytes.
    """
    seen: dict[int, Any] = {}
    waiting: list[Any] = [kernel]
    found = False
    while waiting:
        value = waiting.pop()
        if isinstance(value, bytes | bytearray | memoryview):
            raise ConfigurationError(
                'a job of this kind needs a secret key where the rows lie, and engine = "spark" gets none but those of '
                'noise; write engine = "processes" or "memory" in [[dataset]]'
            )
        if isinstance(value, NoiseKey):
            found = True
            continue
        if id(value) in seen or isinstance(value, type | Mechanism):
            continue
        seen[id(value)] = value
        waiting += _within(value)
    return found


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
