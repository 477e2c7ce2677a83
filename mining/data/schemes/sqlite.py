"""SQLite files: `sqlite:///PATH`."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from link.errors import InputDataError
from mining.data.schemes.scheme import DatabaseFile

FETCH: Final = 1 << 16  # rows at a time


class Sqlite(DatabaseFile):
    """Its cells have types of their own, so that a query gives records, and not columns of one type."""

    prefixes = ("sqlite:///",)
    form = "sqlite:///PATH"

    @contextmanager
    def records(self, source: str, query: str) -> Iterator[sqlite3.Cursor]:
        """Runs a query; what goes wrong while its rows are fetched is translated, too.

        Raises:
            InputDataError: The file or the query is wrong; nothing of the rows is in the sentence.
        """
        path = self.existing(source)
        cursor: sqlite3.Cursor | None = None
        try:
            connection = sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True)
            try:
                cursor = connection.execute(query)
                yield cursor
            finally:
                connection.close()
        except (sqlite3.Error, sqlite3.Warning, UnicodeDecodeError) as error:
            # What SQLite says of rows may repeat a value, as it does for text that is not UTF-8.
            is_known = cursor is None and not isinstance(error, UnicodeDecodeError)
            reason = f": {error}" if is_known else " while it ran; try it in the database's own client"
            raise InputDataError(f"{self.where(source)} failed{reason}.") from error
