"""The relay's log: what its lines may hold, which is never what parties say to each other."""

from __future__ import annotations

from typing import Final

from link.logs.lines import LogLines
from link.logs.structured import EVERY, Kinds, Log, is_name, is_number, open_limited

EVENTS: Final = frozenset(
    {
        "ready",
        "settings reloaded",
        "settings kept",
        "stopping",
        "stopped",
        "party connected",
        "party left",
        "party displaced",
        "stream began",
        "stream ended",
        "refused",
        "stranger refused",
        "failed",
        "lines lost",
        "lines withheld",
        "library",
    }
)

KINDS: Final[Kinds] = {
    **EVERY,
    "event": lambda value: isinstance(value, str) and value in EVENTS,
    "relay": is_name,
    "federation": is_name,
    "party": is_name,
    "code": is_name,
    "seconds": is_number,
    "bytes_sent": is_number,
    "bytes_received": is_number,
    "streams": is_number,
}


def open_relay_log(relay: str, lines: LogLines) -> Log:
    """The log of a relay's process."""
    return open_limited(KINDS, lines, relay=relay)
