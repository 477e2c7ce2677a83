"""What must hold of one thing alone: an error, or the files of one node."""

from __future__ import annotations

import json
import shutil
import sqlite3
import tempfile
from contextlib import closing, suppress
from pathlib import Path
from typing import Any, Final

from link.errors import ComineError, InternalError

_OPEN: Final = ("AWAITING_APPROVAL", "APPROVED", "RUNNING")
_PAGES: Final = Path(__file__).parents[2] / "docs" / "errors"


def require(holds: object, otherwise: str) -> None:
    """Raises `AssertionError` where something does not hold."""
    if not holds:
        raise AssertionError(otherwise)


def clear(error: ComineError) -> None:
    """One sentence, with a code that has a page, which is not that of a fault of comine."""
    require((_PAGES / f"{error.code}.md").exists(), f"{error.code} has no page")
    require(error.message and "\n" not in error.message, f"not one sentence: {error.message!r}")
    require(not isinstance(error, InternalError), f"a fault of comine: {error.message}")


def names(error: ComineError, file: str) -> None:
    """A clear error of a node that does not start over a file that is not as it has left it, which it names."""
    clear(error)
    database_or_log = Path(file).name.removesuffix("-wal").removesuffix(".head")
    require(database_or_log in error.message, f"{file} is wrong, and the node does not say so: {error.message}")


def knows_less(state: Path, right: Path, what: str) -> bool:
    """Whether the job database or the audit log in a state folder lacks something that the other one of them shows.

    A crash may leave some of it in one of them alone, where nobody can tell it from an older copy of the other: a start
    that the log does not have yet, of which nothing has left, or the log's last word on a session.

    Args:
        state: The folder.
        right: One with both as they must be.
        what: Which of them is older.
    """
    logged = _entries(right)
    if what == "node.db":
        begun = {(job, fields["attempt"]) for event, job, fields in logged if event == "started"}
        known, before = _jobs(right), _jobs(state)
        return any(
            before.get(job) != (attempt, state_)
            for job, (attempt, state_) in known.items()
            if state_ != "RUNNING" or (job, attempt) in begun
        )
    ended = {job for job, (attempt, state_) in _jobs(right).items() if attempt and state_ not in _OPEN}
    shown = [
        (event, job, fields)
        for place, (event, job, fields) in enumerate(logged)
        if event == "proposed"
        or (event == "ended" and job in ended)
        or (event in ("session-began", "transcript") and place + 1 < len(logged))
    ]
    there = _entries(state)
    return any(each not in there for each in shown)


def _entries(folder: Path) -> list[tuple[str, str, dict[str, Any]]]:
    """Events of jobs in the audit log of a folder: what, of which job, and all that is said of it."""
    found = []
    for line in (folder / "audit.log").read_bytes().splitlines():
        with suppress(ValueError):  # of a line that was torn
            entry = json.loads(line)
            if "job" in entry["fields"]:
                found.append((entry["event"], entry["fields"]["job"], entry["fields"]))
    return found


def _jobs(folder: Path) -> dict[str, tuple[int, str]]:
    """By job, its attempt and its state in the database of a folder; one that is being released runs, for the log."""
    with tempfile.TemporaryDirectory(dir=folder.parent) as copy:  # to open a database writes beside it
        for path in folder.glob("node.db*"):
            shutil.copy(path, copy)
        with closing(sqlite3.connect(Path(copy) / "node.db")) as connection:
            found = connection.execute("SELECT job_id, attempt, state FROM jobs")
            return {job.hex(): (attempt, state.replace("RELEASING", "RUNNING")) for job, attempt, state in found}
