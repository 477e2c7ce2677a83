"""The log of a coordinator's console: who enters, and who does what with which job."""

from __future__ import annotations

import sys
from typing import Final, TextIO

import console.log
from link.logs.structured import EVERY, Kinds, Log, is_name, matches, open_structured

EVENTS: Final = frozenset({*console.log.EVENTS, "library", "job submitted", "job resumed", "job cancelled"})
KINDS: Final[Kinds] = {
    **EVERY,
    **console.log.KINDS,
    "event": lambda value: isinstance(value, str) and value in EVENTS,
    "coordinator": is_name,
    "job": matches(r"[0-9a-f]{64}"),
    "code": matches(r"E[0-9]{3}"),
}


def open_log(coordinator: str, stream: TextIO = sys.stderr) -> Log:
    """One JSON object a line on `stream`."""
    return open_structured(KINDS, stream, None, coordinator=coordinator)
