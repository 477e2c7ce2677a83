"""An audit log as people read it: `comine audit show`. Nothing is checked here; see `jobs.audit.checks.verify`."""

from __future__ import annotations

import re
from collections.abc import Collection
from pathlib import Path
from typing import Any, Literal

from google.protobuf.message import DecodeError
from pydantic import Field

from jobs.audit.catalogue import read_event
from jobs.audit.checks.finding import printable
from jobs.audit.entry import clock, read
from jobs.documents.part import Part
from link.errors import ConfigurationError, UsageError

MIN_PREFIX = 4


class ShownEntry(Part):
    """One line of a log, as it stands there."""

    line: int = Field(ge=1)
    seq: int | None = Field(description="Null where the line is no entry.")
    time: str | None = Field(description="UTC.")
    event: str | None
    summary: str = Field(description="The entry in words.")
    fields: dict[str, Any] | None = Field(description="As documented for the event.")


class LogDocument(Part):
    """What `comine audit show --json` prints."""

    schema_: Literal["comine.audit/1"] = Field(alias="schema")
    file: str
    entries: list[ShownEntry]


def shown(path: Path, *, job: str | None = None, last: int | None = None) -> LogDocument:
    """The lines of a log.

    Args:
        path: The log.
        job: Only entries of the job whose id begins so.
        last: Only so many, the last ones.

    Raises:
        ConfigurationError: The file cannot be read.
        UsageError: `job` is not the beginning of an id.
    """
    return LogLines(path, job).part(0, last)


class LogLines:
    """The lines of a log, which are read where they are asked for: a log may be long.

    Args:
        path: The log.
        job: Only entries of the job whose id begins so.
        events: Only entries of these events; of any, where there are none.

    Raises:
        ConfigurationError: The file cannot be read.
        UsageError: `job` is not the beginning of an id.
    """

    def __init__(self, path: Path, job: str | None = None, events: Collection[str] = ()) -> None:
        if job is not None and re.fullmatch(rf"[0-9a-f]{{{MIN_PREFIX},64}}", job) is None:
            raise UsageError(f"--job takes a job's id, or its first {MIN_PREFIX} or more hexadecimal digits")
        try:
            lines = path.read_bytes().split(b"\n")
        except OSError as error:
            raise ConfigurationError(
                f"the audit log {path} cannot be read ({error.strerror}); check the path"
            ) from None
        self._path = path
        self._lines = [(number, raw) for number, raw in enumerate(lines, start=1) if raw]
        if job is not None:
            named = [line for line in self._lines if job.encode() in line[1]]
            self._lines = [line for line in named if _is_of(_entry(*line), job)]
        if events:
            words = [f'"event":"{event}"'.encode() for event in events]  # within a text the marks would be escaped
            self._lines = [line for line in self._lines if any(word in line[1] for word in words)]

    def __len__(self) -> int:
        return len(self._lines)

    def part(self, skip: int, most: int | None) -> LogDocument:
        """Some lines in their order.

        Args:
            skip: So many of the last ones are left out.
            most: So many of those before; None for all.
        """
        end = max(0, len(self._lines) - skip)
        lines = self._lines[0 if most is None else max(0, end - most) : end]
        entries = [_entry(number, raw) for number, raw in lines]
        return LogDocument(schema="comine.audit/1", file=str(self._path), entries=entries)


def _entry(number: int, raw: bytes) -> ShownEntry:
    try:
        entry = read(raw)
    except ValueError as error:
        return ShownEntry(line=number, seq=None, time=None, event=None, summary=f"no entry: {error}", fields=None)
    try:
        words = printable(str(read_event(entry.event, entry.fields)))
    except (ValueError, DecodeError) as error:
        words = str(error)
    return ShownEntry(
        line=number, seq=entry.seq, time=clock(entry.time), event=entry.event, summary=words, fields=dict(entry.fields)
    )


def _is_of(entry: ShownEntry, job: str) -> bool:
    return entry.fields is not None and str(entry.fields.get("job", "")).startswith(job)


def job_of(entry: ShownEntry) -> str:
    """The job that an entry belongs to, in hexadecimal; empty where it belongs to none."""
    return str((entry.fields or {}).get("job", ""))
