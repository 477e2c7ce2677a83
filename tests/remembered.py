"""Work of base transfers that is done once for equal inputs.

Every session between two parties begins with base transfers, a tenth of a second of group operations. Tests repeat
their sessions from seeds, so most of these are the very ones of an earlier test. The functions below are pure: what
they give depends on the bytes of their arguments alone.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Any

import numpy as np
import pytest

from crypto.protocols import base_ot, extension_seeds

KEPT = 4096  # results by function: of 8 kB and less each
FUNCTIONS = (
    (base_ot, "base_multiply"),
    (base_ot, "from_uniform_bytes"),
    (base_ot, "subtract"),
    (base_ot, "_hash"),
    (base_ot, "_receivers_keys"),
    (base_ot, "_senders_keys"),
    (extension_seeds, "_children"),
)


def remember_base_transfers(patch: pytest.MonkeyPatch) -> None:
    """Lets the process remember their results from now on."""
    for module, name in FUNCTIONS:
        patch.setattr(module, name, remembered(getattr(module, name)))


def remembered(function: Callable[..., Any]) -> Callable[..., Any]:
    """The pure function of arrays and bytes; it returns arrays of the caller's own. Errors are not remembered."""

    @lru_cache(KEPT)
    def result(*arguments: Any) -> Any:
        return function(*map(_opened, arguments))

    def wrapped(*arguments: Any) -> Any:
        found = result(*map(_frozen, arguments))
        return tuple(each.copy() for each in found) if isinstance(found, tuple) else found.copy()

    return wrapped


def _frozen(argument: Any) -> Any:
    if isinstance(argument, np.ndarray):
        return argument.dtype, argument.shape, argument.tobytes()
    return argument


def _opened(argument: Any) -> Any:
    if isinstance(argument, tuple):
        dtype, shape, octets = argument
        return np.frombuffer(octets, dtype).reshape(shape)
    return argument
