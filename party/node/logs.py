"""A node's log: what its lines may hold, and how it is opened."""

from __future__ import annotations

import sys
from typing import Final, TextIO

import console.log
from link.logs.limits import LineLimits
from link.logs.lines import LogLines
from link.logs.structured import EVERY, Kinds, Log, is_name, is_number, matches, open_limited, open_structured

EVENTS: Final = frozenset(
    {
        "ready",
        "stopping",
        "stopped",
        "source missing",
        "settings reloaded",
        "settings kept",
        "notice failed",
        "notices lost",
        "push failed",
        "requests unreadable",
        "proposal accepted",
        "proposal refused",
        "proposal awaits approval",
        "call refused",
        "call failed",
        "job started",
        "job succeeded",
        "job failed",
        "job cancelled",
        "job approved",
        "job denied",
        "job expired",
        "jobs unreadable",
        "journals not forgotten",
        "held result not shown",
        "auditor not kept",
        "query not decided",
        "result held",
        "result released",
        "history restored",
        "old seeds removed",
        "old seeds not removed",
        "stale blocks removed",
        "upkeep failed",
        "connections closed",
        "lines lost",
        "lines withheld",
        "relay connected",
        "relay lost",
        "disk unwell",
        "disk well",
        "end not written",
        "end written",
        "audit not written",
        "result not written",
        "result written",
        "alignment written",
        "round not ended",
        "collection left out",
        "collection lost",
        "route lost",
        "route created",
        "route retired",
        "batch closed",
        "batch not closed",
        "batch forwarded",
        "batch not forwarded",
        "library",
        *console.log.EVENTS,
    }
)

KINDS: Final[Kinds] = {
    **EVERY,
    **console.log.KINDS,
    "event": lambda value: isinstance(value, str) and value in EVENTS,
    "party": is_name,
    "peer": is_name,
    "coordinator": is_name,
    "dataset": is_name,
    "route": is_name,
    "collection": is_name,
    "task": is_name,
    "call": is_name,
    "job": matches(r"[0-9a-f]{0,64}"),
    "session": matches(r"[0-9a-f]{0,64}"),
    "code": matches(r"E[0-9]{3}"),
    "peers": is_number,
    "attempt": is_number,
    "batch": is_number,
    "too_few": is_number,
    "jobs": is_number,
    "changed": is_number,
    "connections": is_number,
    "starts": is_number,
    "folders": is_number,
    "bytes_sent": is_number,
    "bytes_received": is_number,
    "rounds": is_number,
    "seconds": is_number,
    "opened": is_number,
}


def open_log(party: str, stream: TextIO = sys.stderr, limits: LineLimits | None = None) -> Log:
    """A node's log: one JSON object a line on `stream`.

    Args:
        party: Whose node it is.
        stream: Where the lines go.
        limits: What one caller may cause; everything, where absent.
    """
    return open_structured(KINDS, stream, limits, party=party)


def open_node_log(party: str, lines: LogLines) -> Log:
    """The log of a node's process."""
    return open_limited(KINDS, lines, party=party)
