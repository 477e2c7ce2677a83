"""What must hold of one thing alone: an error, or the files of one node."""

from __future__ import annotations

import shutil
import sqlite3
import tempfile
from contextlib import closing
from pathlib import Path
from typing import Final

from link.errors import ComineError, InternalError

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


def knows_less(state: Path, right: Path) -> bool:
    """Whether the job database or the audit log in a state folder lacks something that those in another have."""
    entries = [(folder / "audit.log").read_bytes().count(b'{"job":') for folder in (state, right)]
    return _jobs(state) != _jobs(right) or entries[0] < entries[1]


def _jobs(folder: Path) -> set[tuple[bytes, int, str]]:
    with tempfile.TemporaryDirectory(dir=folder.parent) as copy:  # to open a database writes beside it
        for path in folder.glob("node.db*"):
            shutil.copy(path, copy)
        with closing(sqlite3.connect(Path(copy) / "node.db")) as connection:
            return set(connection.execute("SELECT job_id, attempt, state FROM jobs"))
