"""Structured logs that cannot hold data: JSON lines whose every value is checked against the kind of its key.

A key that is not among the kinds, and a value that is not of its key's kind, does not reach the log; the line says
which keys were withheld. Errors are logged by their code and sentence where comine raised them on purpose (such
sentences hold no data values), and otherwise by their type and the place in the code, never by their message.
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

from link.errors import ComineError, PolicyDenied
from link.logs.limits import LineLimits
from link.logs.lines import LogLines

Kinds = Mapping[str, Callable[[object], bool]]

MAX_SENTENCE: Final = 500


def matches(pattern: str) -> Callable[[object], bool]:
    """Values that are texts of a form."""
    form = re.compile(pattern)
    return lambda value: isinstance(value, str) and form.fullmatch(value) is not None


def is_number(value: object) -> bool:
    """Values that are numbers."""
    return isinstance(value, int | float) and not isinstance(value, bool)


is_name = matches(r"[A-Za-z0-9][A-Za-z0-9 _./-]{0,99}")
is_address = matches(r"[A-Za-z0-9.:\[\]_-]{1,270}")

EVERY: Final[Kinds] = {
    "level": is_name,
    "time": matches(r"[0-9T:.Z-]{20,27}"),
    "library": is_name,
    "about": is_name,
    "software": is_name,
    "address": is_address,
    "caller": is_name,
    "why": is_name,
    "lines": is_number,
}


class OnlyAllowed:
    """A structlog processor: lets through what is allowed, logs errors safely, and names what it withheld.

    Args:
        kinds: What a value may be, by key.
    """

    def __init__(self, kinds: Kinds) -> None:
        self._kinds = kinds

    def __call__(self, _: object, __: str, event: Mapping[str, Any]) -> dict[str, Any]:
        """What of a line is written."""
        kept: dict[str, Any] = {}
        withheld: list[str] = []
        for key, value in event.items():
            if key == "error" and isinstance(value, BaseException):
                kept |= _error_fields(value)
            elif key in self._kinds and self._kinds[key](value):
                kept[key] = value
            else:
                withheld.append(key)
        if withheld:
            kept["withheld"] = sorted(withheld)
        return kept


def _error_fields(error: BaseException) -> dict[str, Any]:
    if isinstance(error, ComineError):
        # What a policy wants instead of what it refuses may quote its patterns of items.
        sentence = error.message.partition("; ")[0] if isinstance(error, PolicyDenied) else error.message
        fields: dict[str, Any] = {"code": error.code, "sentence": sentence[:MAX_SENTENCE]}
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


def open_structured(kinds: Kinds, stream: TextIO = sys.stderr, limits: LineLimits | None = None, **every: str) -> Log:
    """A log: one JSON object a line on `stream`.

    Args:
        kinds: What a value may be, by key.
        stream: Where the lines go.
        limits: What one caller may cause; everything, where absent.
        every: What each line says.
    """
    bound: Log = structlog.wrap_logger(
        structlog.WriteLogger(cast(TextIO, _Lossy(stream))),
        processors=[
            *([] if limits is None else [limits]),
            structlog.processors.add_log_level,
            structlog.processors.TimeStamper(fmt="iso", utc=True, key="time"),
            OnlyAllowed(kinds),
            structlog.processors.JSONRenderer(),
        ],
        wrapper_class=structlog.make_filtering_bound_logger(logging.INFO),
    )
    return bound.bind(**every)


def open_limited(kinds: Kinds, lines: LogLines, **every: str) -> Log:
    """The log of a process, which says how many lines were lost because nobody read, or withheld by limits."""
    limits = LineLimits()
    log = open_structured(kinds, cast(TextIO, lines), limits, **every)

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
