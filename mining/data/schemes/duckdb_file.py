"""DuckDB files: `duckdb:///PATH`."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pyarrow as pa

from link.errors import InputDataError
from mining.data.schemes.scheme import ArrowDatabase, DatabaseFile
from mining.data.source_options import SourceOptions


class DuckDb(DatabaseFile, ArrowDatabase):
    """Without extensions, which DuckDB would fetch from the network."""

    prefixes = ("duckdb:///",)
    form = "duckdb:///PATH"

    @contextmanager
    def query(self, source: str, query: str, _options: SourceOptions) -> Iterator[pa.RecordBatchReader]:
        """See `ArrowDatabase.query`."""
        import duckdb  # large, and needed by a node with such a source only

        path, where = self.existing(source), self.where(source)
        offline: dict[str, str | bool | int | float | list[str]] = {
            "autoinstall_known_extensions": "false",
            "autoload_known_extensions": "false",
        }
        try:
            connection = duckdb.connect(str(path), read_only=True, config=offline)
        except (duckdb.Error, UnicodeError) as error:
            raise InputDataError(f"{path} cannot be opened as a DuckDB database for reading.") from error
        try:
            relation = connection.sql(query)
            if relation is None:
                raise InputDataError(f"{where} returns no rows; it must be a select.")
            with pa.RecordBatchReader.from_stream(relation) as batches:
                yield batches
        except (duckdb.ParserException, duckdb.BinderException, duckdb.CatalogException) as error:
            reason = str(error).splitlines()[0]
            raise InputDataError(f"{where} failed: {reason}") from error
        except duckdb.Error as error:
            raise InputDataError(f"{where} failed while it ran; try it in the database's own client.") from error
        finally:
            connection.close()
