"""Whether the cells of a SQLite file are of the types that its tables declare, which SQLite itself does not see to.

A file whose bytes were changed can be whole as a tree of pages, and hold a text where a number was.
"""

from __future__ import annotations

import sqlite3
from typing import Final

_TYPES: Final = {"INTEGER": "integer", "REAL": "real", "TEXT": "text", "BLOB": "blob"}


def check_cells(connection: sqlite3.Connection) -> None:
    """Looks at all cells; the names of tables and columns are comine's own.

    Raises:
        sqlite3.DatabaseError: One is of another type than its column.
    """
    tables = connection.execute("SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite_%'")
    for (table,) in tables.fetchall():
        wrong = []
        for _, column, declared, not_null, _, key in connection.execute(f"PRAGMA table_info('{table}')").fetchall():
            known = [f"'{_TYPES[declared]}'"] if declared in _TYPES else []
            if known and not (not_null or key):
                known.append("'null'")
            if known:
                wrong.append(f'typeof("{column}") NOT IN ({", ".join(known)})')
        statement = f'SELECT 1 FROM "{table}" WHERE {" OR ".join(wrong) or "0"} LIMIT 1'  # noqa: S608
        if connection.execute(statement).fetchone() is not None:
            raise sqlite3.DatabaseError(f"a cell of {table} is of another type than its column")
