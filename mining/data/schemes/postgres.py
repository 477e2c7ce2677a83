"""PostgreSQL servers: `postgres://USER@HOST/DATABASE`."""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import Final
from urllib.parse import parse_qsl, urlencode, urlsplit

import pyarrow as pa

from link.postgres import WHERE, expected_cells, postgres_query
from mining.data.schemes.scheme import ArrowDatabase
from mining.data.source_options import SourceOptions

_PLACES: Final = frozenset({"host", "hostaddr", "port", "dbname", "service"})  # of what a URL may say behind its ?


class Postgres(ArrowDatabase):
    """Through the driver of the extra `postgres`."""

    prefixes = ("postgresql://", "postgres://")
    form = "postgres://USER@HOST/DATABASE"
    has_password = True

    def fault(self, source: str) -> str:
        """Also a password behind the `?`."""
        has_password = any(key == "password" for key, _ in parse_qsl(source.partition("?")[2]))
        return super().fault("//:hidden@" if has_password else source)

    def place(self, source: str) -> str:
        """The database, however the server is named and whoever logs in."""
        found = urlsplit(source)
        host = found.netloc.rpartition("@")[2].lower()
        where = sorted(pair for pair in parse_qsl(found.query) if pair[0] in _PLACES)
        return f"postgresql://{host if ':' in host else f'{host}:5432'}{found.path}?{urlencode(where)}"

    def where(self, _source: str) -> str:
        """Names no host: a query is one's own, and its server is in the configuration."""
        return WHERE

    def query(self, source: str, query: str, options: SourceOptions) -> AbstractContextManager[pa.RecordBatchReader]:
        """See `ArrowDatabase.query`."""
        return postgres_query(source, query, options.password())

    def cells(self, source: str, query: str, options: SourceOptions) -> int:
        """See `ArrowDatabase.cells`."""
        return expected_cells(source, query, options.password())
