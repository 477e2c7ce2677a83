"""Reads on in an audit log from an entry that is known, chain and all: what the log records beyond it."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO, NamedTuple

from jobs.audit.catalogue import read_event
from jobs.audit.entry import START, Entry, read
from jobs.audit.events import Event
from link.errors import ConfigurationError, ResourceError


class Mark(NamedTuple):
    """An entry of a log.

    Attributes:
        log: SHA-256 of the log's first entry, in hex.
        seq: The entry's number.
        entry: SHA-256 of it, in hex.
        place: Where in the file it begins.
    """

    log: str
    seq: int
    entry: str
    place: int


class LoggedEvent(NamedTuple):
    """One entry of the log, in words.

    Attributes:
        entry: The line.
        event: The event in it.
    """

    entry: Entry
    event: Event


def entries_after(path: Path, known: Mark | None) -> Iterator[LoggedEvent]:
    """The entries of a log beyond one, or all of them, in order; lines that are none are passed over.

    The log's head, which `AuditLog.open` has held against its last entry, vouches for all that the chain leads to.

    Args:
        path: The log.
        known: The entry.

    Raises:
        ConfigurationError: The log does not have that entry, or was changed after it.
        ResourceError: It cannot be read.
    """
    with _readable(path), path.open("rb") as file:
        yield from _after(path, file, known)


def entry_at(path: Path, known: Mark) -> Entry:
    """The entry that is known.

    Raises:
        ConfigurationError: The log does not have it.
        ResourceError: It cannot be read.
    """
    with _readable(path), path.open("rb") as file:
        return _found(path, file, known)


@contextlib.contextmanager
def _readable(path: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise ResourceError(f"the audit log {path} cannot be read ({error.strerror}); see to the disk") from None


def _found(path: Path, file: BinaryIO, known: Mark) -> Entry:
    file.seek(known.place)
    with contextlib.suppress(ValueError):
        found = read(file.readline().removesuffix(b"\n"))
        if (found.seq, found.digest) == (known.seq, known.entry):
            return found
    raise cut(path, f"knows its entry {known.seq}")


def cut(path: Path, why: str) -> ConfigurationError:
    """The error of a log that lacks what the job database knows of it."""
    return ConfigurationError(
        f"the audit log {path} was cut or written anew: the job database beside it {why}, which is not there any more; "
        "bring the log and its head back from a copy"
    )


def _after(path: Path, file: BinaryIO, known: Mark | None) -> Iterator[LoggedEvent]:
    seq, prev = -1, START
    if known is not None:
        found = _found(path, file, known)
        seq, prev = found.seq, found.digest
    for raw in file:
        try:
            entry = read(raw.removesuffix(b"\n"))
        except ValueError:
            continue  # a line that was torn; were it an entry, the chain would break
        if (entry.seq, entry.prev) != (seq + 1, prev):
            raise ConfigurationError(
                f"the audit log {path} was changed: entry {entry.seq} does not follow the one before it; find out why "
                "with comine audit verify, then bring the log back from a copy"
            )
        seq, prev = entry.seq, entry.digest
        try:
            event = read_event(entry.event, entry.fields)
        except ValueError as error:
            raise ConfigurationError(
                f"entry {entry.seq} of the audit log {path} cannot be read ({error}); bring comine to the version that "
                "wrote it"
            ) from None
        yield LoggedEvent(entry, event)
