"""Reads transactions and tables from files and databases: text byte for byte, every failure one sentence."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from link.errors import ConfigurationError
from mining.data.copies import Wanted, local_file
from mining.data.formats import table_readers, table_sources, text_sources
from mining.data.formats.text_files import existing, read_text
from mining.data.source_options import PLAIN, SourceOptions
from mining.data.tables import Table
from mining.data.transactions import Transactions

FORMATS = ("basket", "long", "wide", "csv", "parquet", "sql")
TABLE_FORMATS = ("csv", "parquet", "sql")


def load_transactions(
    source: str | Path,
    format: str,  # noqa: A002 - the word of the configuration file
    *,
    separator: str | None = None,
    query: str | None = None,
    id_column: str = "id",
    item_column: str = "item",
    options: SourceOptions = PLAIN,
) -> Transactions:
    """Load transactions.

    Items are text, byte for byte: `007` stays `007`, nothing is trimmed, an empty cell gives no item, and an item
    repeated in a transaction counts once. Text files are UTF-8, with or without byte order mark, lines ending in
    LF, CR LF or all of them in CR, and may be compressed with gzip.

    Args:
        source: A file, a pattern of several, or a URL such as `s3://BUCKET/KEY` or `https://HOST/PATH`; or for format
            "sql" the URL of a database: `sqlite:///PATH`, `duckdb:///PATH` (PATH as written, so an absolute one makes
            four slashes) or `postgres://USER@HOST/DATABASE`.
        format:
            - basket: one transaction a line, items separated by blanks (any run of ASCII white space), where blank
              lines are ignored; or by `separator`, where empty lines are.
            - csv: one transaction a line as a CSV record whose cells are items, quoted where they hold the
              separator, quotes or line ends; empty lines are ignored.
            - long: CSV with a header and a line per transaction and item, in the columns `id_column` and
              `item_column`; an empty item makes a transaction without items where it is the only line of its id.
            - wide: CSV with a header and a line per transaction; every column but `id_column` is an item, its cells
              0 or 1 (or false and true).
            - parquet: a table in the long form where it has both columns; otherwise with exactly one column of
              lists of items; otherwise in the wide form.
            - sql: a query that returns the long form.
        separator: What separates the items of a basket, or the cells of CSV (a comma by default).
        query: The query for format "sql".
        id_column: Name of the column of transaction ids.
        item_column: Name of the column of items.
        options: What else reading it needs.

    Returns:
        The transactions in the order of the source (the long form: of each id's first line), their dictionary in
        ascending order of UTF-8 bytes.

    Raises:
        ConfigurationError: The format is unknown, or an option does not fit it.
        InputDataError: The source cannot be read, or is not what the format says.
    """
    check_options(format, separator, query)
    if format == "sql":
        return table_sources.from_sql(str(source), query or "", id_column, item_column, options)
    wanted = Wanted(format, separator, format in ("long", "wide"), (id_column, item_column))
    with local_file(str(source), options, wanted) as path:
        if format == "parquet":
            return table_sources.from_parquet(existing(path), id_column, item_column)
        if format == "basket":
            return text_sources.from_baskets(read_text(path), separator, path)
        data = read_text(path, quotes=True)
        if format == "csv":
            return text_sources.from_records(data, separator or ",", path)
        if format == "long":
            return text_sources.from_long(data, separator or ",", id_column, item_column, path)
        return text_sources.from_wide(data, separator or ",", id_column, path)


def check_options(
    format: str,  # noqa: A002 - the word of the configuration file
    separator: str | None,
    query: str | None = None,
) -> None:
    """Refuses what `load_transactions` refuses before it looks at a source.

    Raises:
        ConfigurationError: The format is unknown, or an option does not fit it.
    """
    if format not in FORMATS:
        raise ConfigurationError(f'There is no format "{format}"; known formats are {", ".join(FORMATS)}.')
    if format == "sql":
        if query is None:
            raise ConfigurationError('A source of format "sql" needs a query that returns the columns id and item.')
        return
    _check_no_query(query, format)
    if format == "parquet":
        _check_no_separator(separator, format)
    elif format != "basket":
        csv_separator(separator)
    elif separator is not None and (not separator or "\n" in separator or "\r" in separator):
        raise ConfigurationError("The separator of a basket file must be text without line ends.")


def load_table(
    source: str | Path,
    format: str,  # noqa: A002 - the word of the configuration file
    *,
    separator: str | None = None,
    query: str | None = None,
    id_columns: Sequence[str] = ("id",),
    options: SourceOptions = PLAIN,
) -> Table:
    """Load a table.

    Cells are text, byte for byte: `t` stays `t`, `007` stays `007`, nothing is trimmed; an empty cell holds nothing,
    and `?` is a value as any other. Typed cells of Parquet files and databases are written as text: numbers as shortest
    decimals, truth values as `true` and `false`, dates and times as in ISO 8601.

    Args:
        source: As of `load_transactions`.
        format:
            - csv: a header, and a line per row; blank lines are ignored. May be compressed with gzip.
            - parquet: a column for each column.
            - sql: what a query returns.
        separator: What separates the cells of CSV; a comma by default.
        query: The query for format "sql".
        id_columns: The columns that together name a row.
        options: What else reading it needs.

    Raises:
        ConfigurationError: The format is not one of a table, or an option does not fit it.
        InputDataError: The source cannot be read, or is not what the format says. Ids are checked when they are used.
    """
    check_table_options(format, separator, query)
    if format == "sql":
        return table_readers.table_from_sql(str(source), query or "", id_columns, options)
    with local_file(str(source), options, Wanted(format, separator, has_header=True)) as path:
        if format == "parquet":
            return table_readers.table_from_parquet(existing(path), id_columns)
        return table_readers.table_from_csv_file(path, csv_separator(separator), id_columns)


def check_table_options(
    format: str,  # noqa: A002 - the word of the configuration file
    separator: str | None,
    query: str | None = None,
) -> None:
    """Refuses options of `load_table` that do not fit each other.

    Raises:
        ConfigurationError: They do not.
    """
    if format not in TABLE_FORMATS:
        raise ConfigurationError(f'A table is read from csv, parquet or sql, not from the format "{format}".')
    if format == "sql":
        if query is None:
            raise ConfigurationError('A source of format "sql" needs a query that returns the columns of the table.')
        return
    _check_no_query(query, format)
    if format == "parquet":
        _check_no_separator(separator, format)
    else:
        csv_separator(separator)


def _check_no_query(query: str | None, data_format: str) -> None:
    if query is not None:
        raise ConfigurationError(f'A query is only for sources of format "sql", not "{data_format}".')


def _check_no_separator(separator: str | None, data_format: str) -> None:
    if separator is not None:
        raise ConfigurationError(f'A separator means nothing to a source of format "{data_format}"; leave it out.')


def csv_separator(separator: str | None) -> str:
    """What separates the cells of CSV.

    Raises:
        ConfigurationError: It cannot.
    """
    separator = "," if separator is None else separator
    if len(separator) != 1 or not separator.isascii() or separator in '"\r\n\0':
        raise ConfigurationError("The separator of a CSV file must be one ASCII character, no quote and no line end.")
    return separator
