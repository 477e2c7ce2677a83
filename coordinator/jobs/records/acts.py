"""What people have done with a job at the coordinator's console, as lines of a file that only grows."""

from __future__ import annotations

import contextlib
import json
import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Final, Literal, NamedTuple

from pydantic import BaseModel, ConfigDict, Field

from link.files.json_text import read_json

FILE: Final = "acts.jsonl"
LATEST: Final = 253_402_300_799.0  # Unix seconds that a calendar has

What = Literal["submitted", "resumed", "cancelled"]


class Act(NamedTuple):
    """One of them.

    Attributes:
        at: Unix seconds.
        what: What was done.
        by: Who it was, as they log in there.
    """

    at: float
    what: What
    by: str


class _Line(BaseModel):
    """How it is written."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)

    at: Annotated[float, Field(ge=0, le=LATEST)]
    what: What
    by: str


def add_act(folder: Path, what: What, by: str) -> None:
    """Writes down that somebody does something now.

    Raises:
        OSError: The folder of the job cannot be written.
    """
    line = f"{json.dumps({'at': time.time(), 'what': what, 'by': by})}\n".encode()
    file = os.open(folder / FILE, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
    try:
        os.write(file, line)
        os.fsync(file)
    finally:
        os.close(file)


def acts_in(folder: Path) -> Iterator[Act]:
    """What was written down; what a crash has torn is left out, since no job depends on it.

    Raises:
        OSError: It cannot be read.
    """
    path = folder / FILE
    for line in path.read_bytes().splitlines() if path.exists() else ():
        with contextlib.suppress(ValueError):
            found = _Line.model_validate(read_json(line))
            yield Act(found.at, found.what, found.by)
