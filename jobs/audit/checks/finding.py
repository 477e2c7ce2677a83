"""What a verification of audit logs finds, and where."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from jobs.audit.entry import Entry
from jobs.audit.events import Event


@dataclass(frozen=True, slots=True)
class Finding:
    """Something that is not as it must be.

    Attributes:
        file: Where.
        line: In which line of it, from 1; None where none is to blame.
        entry: The number that the line gives itself, where it can be read.
        what: What differs: a clause for people.
    """

    file: Path
    line: int | None
    entry: int | None
    what: str

    def __str__(self) -> str:
        where = f"{self.file}" if self.line is None else f"{self.file}, line {self.line}"
        entry = "" if self.entry is None else f" (entry {self.entry})"
        return printable(f"{where}{entry}: {self.what}")

    def as_data(self) -> dict[str, Any]:
        """The finding as JSON."""
        return {"file": str(self.file), "line": self.line, "entry": self.entry, "what": self.what}


@dataclass(frozen=True, slots=True)
class Record:
    """A line of a log that holds: its signature, its form and what is signed inside it.

    Attributes:
        file: The log.
        line: The line's number, from 1.
        entry: The line.
        event: What happened.
        late: Whether it was signed while its certificate was not good, so that it proves nothing to others.
    """

    file: Path
    line: int
    entry: Entry
    event: Event
    late: bool = False

    def finding(self, what: str) -> Finding:
        """A finding at this line."""
        return Finding(self.file, self.line, self.entry.seq, what)


def printable(words: str) -> str:
    """A line of words, some of them perhaps a stranger's, that moves no terminal's cursor."""
    return "".join(c if c.isprintable() else "\N{REPLACEMENT CHARACTER}" for c in words)
