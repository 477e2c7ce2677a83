"""Structured logs that cannot hold data: JSON lines whose every value is checked against the kind of its key.

A key that is not in `KINDS`, and a value that is not of its key's kind, does not reach the log; the line says which
keys were withheld. Errors are logged by their code and sentence where comine raised them on purpose (such sentences
hold no data values), and otherwise by their type and the place in the code, never by their message.
"""

from __future__ import annotations

import contextlib
import io
import logging
import re
import sys
import traceback
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final, TextIO, cast

import structlog

from link.errors import ComineError
from party.node.log_limits import LineLimits
from party.node.log_lines import LogLines

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9 _./-]{0,99}")
_ADDRESS = re.compile(r"[A-Za-z0-9.:\[\]_-]{1,270}")
_HEX = re.compile(r"[0-9a-f]{0,64}")
MAX_SENTENCE: Final = 500

_CODE = re.compile(r"E[0-9]{3}")


def _matches(pattern: re.Pattern[str]) -> Callable[[object], bool]:
    return lambda value: isinstance(value, str) and pattern.fullmatch(value) is not None


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


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
        "jobs unwritable",
        "history restored",
        "old seeds removed",
        "old seeds not removed",
        "stale blocks removed",
        "upkeep failed",
        "connections closed",
        "lines lost",
        "lines withheld",
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
    }
)

KINDS: Final[Mapping[str, Callable[[object], bool]]] = {
    "event": lambda value: isinstance(value, str) and value in EVENTS,
    "level": _matches(_NAME),
    "time": _matches(re.compile(r"[0-9T:.Z-]{20,27}")),
    "party": _matches(_NAME),
    "peer": _matches(_NAME),
    "caller": _matches(_NAME),
    "coordinator": _matches(_NAME),
    "dataset": _matches(_NAME),
    "route": _matches(_NAME),
    "collection": _matches(_NAME),
    "task": _matches(_NAME),
    "call": _matches(_NAME),
    "library": _matches(_NAME),
    "about": _matches(_NAME),
    "software": _matches(_NAME),
    "address": _matches(_ADDRESS),
    "job": _matches(_HEX),
    "session": _matches(_HEX),
    "code": _matches(_CODE),
    "why": _matches(_NAME),
    "peers": _is_number,
    "attempt": _is_number,
    "batch": _is_number,
    "too_few": _is_number,
    "jobs": _is_number,
    "changed": _is_number,
    "lines": _is_number,
    "connections": _is_number,
    "starts": _is_number,
    "folders": _is_number,
    "bytes_sent": _is_number,
    "bytes_received": _is_number,
    "rounds": _is_number,
    "seconds": _is_number,
    "opened": _is_number,
}


def only_allowed(_: object, __: str, event: Mapping[str, Any]) -> dict[str, Any]:
    """A structlog processor: lets through what `KINDS` allows, logs errors safely, and names what it withheld."""
    kept: dict[str, Any] = {}
    withheld: list[str] = []
    for key, value in event.items():
        if key == "error" and isinstance(value, BaseException):
            kept |= _error_fields(value)
        elif key in KINDS and KINDS[key](value):
            kept[key] = value
        else:
            withheld.append(key)
    if withheld:
        kept["withheld"] = sorted(withheld)
    return kept


def _error_fields(error: BaseException) -> dict[str, Any]:
    if isinstance(error, ComineError):
        fields: dict[str, Any] = {"code": error.code, "sentence": error.message[:MAX_SENTENCE]}
        if error.party is not None:
            fields["error_party"] = error.party
        if error.reporter is not None:
            fields["told_by"] = error.reporter
        return fields
    frames = traceback.extract_tb(error.__traceback__)[-12:]
    places = [f"{Path(frame.filename).name}:{frame.lineno} {frame.name}" for frame in frames]
    return {"code": "E700", "type": type(error).__qualname__, "places": places}


Log = structlog.typing.FilteringBoundLogger


class _Lossy(io.TextIOBase):
    """Passes text on; where nobody reads it any more, or the disk is full, it is lost and the jobs go on."""

    def __init__(self, stream: TextIO) -> None:
        super().__init__()
        self._stream = stream

    def write(self, text: str) -> int:
        """Writes what can be written."""
        with contextlib.suppress(OSError):
            self._stream.write(text)
        return len(text)

    def flush(self) -> None:
        """Flushes what can be flushed."""
        with contextlib.suppress(OSError):
            self._stream.flush()


def open_log(party: str, stream: TextIO = sys.stderr, limits: LineLimits | None = None) -> Log:
    """A node's log: one JSON object a line on `stream`.

    Args:
        party: Whose node it is.
        stream: Where the lines go.
        limits: What one caller may cause; everything, where absent.
    """
    bound: Log = structlog.wrap_logger(
        structlog.WriteLogger(cast(TextIO, _Lossy(stream))),
        processors=[
            *([] if limits is None else [limits]),
            structlog.processors.add_log_level,
            structlog.processors.TimeStamper(fmt="iso", utc=True, key="time"),
            only_allowed,
            structlog.processors.JSONRenderer(),
        ],
        wrapper_class=structlog.make_filtering_bound_logger(logging.INFO),
        party=party,
    )
    return bound


def open_node_log(party: str, lines: LogLines) -> Log:
    """The log of a node's process, which says how many lines were lost because nobody read, or withheld by limits."""
    limits = LineLimits()
    log = open_log(party, cast(TextIO, lines), limits)

    def withheld(key: str, value: str, number: int) -> None:
        log.warning("lines withheld", lines=number, **{"about" if key == "event" else key: value})

    limits.report = withheld
    lines.tick = limits.summarise
    lines.lost = lambda number: log.warning("lines lost", lines=number)
    return log


class LibraryLines(logging.Handler):
    """Takes what libraries log through `logging` (asyncio, grpc): their name and the error's type, not their words."""

    def __init__(self, log: Log) -> None:
        super().__init__(logging.WARNING)
        self._log = log

    def emit(self, record: logging.LogRecord) -> None:
        """Writes one line."""
        error = record.exc_info[1] if record.exc_info else None
        fields: dict[str, Any] = {} if error is None else {"error": error}
        self._log.warning("library", library=record.name, **fields)
