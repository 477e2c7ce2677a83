"""Transactions from Parquet files and from databases."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from numpy.typing import NDArray

from link.errors import InputDataError
from mining.databases import FETCH, Database, duckdb_query, sqlite_query
from mining.transactions import Transactions


def from_parquet(path: Path, id_column: str, item_column: str) -> Transactions:
    """A Parquet file: long where it has both columns, else its one column of lists, else wide."""
    try:
        schema = pq.read_schema(path)
        lists = [field.name for field in schema if _is_list(field.type)]
        names = schema.names
        if {id_column, item_column} <= set(names) and item_column not in lists:
            return _from_long(pq.read_table(path, columns=[id_column, item_column]), id_column, item_column, str(path))
        if len(lists) == 1:
            return _from_lists(pq.read_table(path, columns=lists).column(0), lists[0], str(path))
        return _from_wide(pq.read_table(path, columns=[name for name in names if name != id_column]), str(path))
    except (pa.ArrowException, OSError) as error:
        raise InputDataError(f"{path} cannot be read as a Parquet file; check its format.") from error


def from_sql(url: str, query: str, id_column: str, item_column: str) -> Transactions:
    """The long form from a query against SQLite, DuckDB or PostgreSQL, opened for reading only."""
    database = Database.at(url)
    if database.kind == "sqlite":
        return _from_sqlite(database, query, id_column, item_column)
    with duckdb_query(database, query) as relation:
        table: pa.Table = relation.to_arrow_table()
    for name in (id_column, item_column):
        _place(table.column_names, name, database.where)
    return _from_long(table, id_column, item_column, database.where)


def _from_sqlite(database: Database, query: str, id_column: str, item_column: str) -> Transactions:
    numbers: dict[object, int] = {}
    codes: dict[str, int] = {}
    rows: list[int] = []
    indices: list[int] = []
    where = database.where
    with sqlite_query(database, query) as cursor:
        names = [entry[0] for entry in cursor.description or ()]
        id_place, item_place = _place(names, id_column, where), _place(names, item_column, where)
        while records := cursor.fetchmany(FETCH):
            for record in records:
                key, item = record[id_place], record[item_place]
                if key is None or key == "":
                    raise InputDataError(f'{where} returns a row without a value in column "{id_column}".')
                row = numbers.setdefault(key, len(numbers))
                if item is None or item == "":
                    continue
                if not isinstance(item, str | int):
                    raise InputDataError(neither_text_nor_number(where, item_column))
                rows.append(row)
                indices.append(codes.setdefault(str(item), len(codes)))
    occurrences = np.array(rows, np.int64), np.array(indices, np.int64)
    return Transactions.from_occurrences(list(codes), *occurrences, len(numbers))


def _place(names: list[str], wanted: str, where: str) -> int:
    if names.count(wanted) != 1:
        raise InputDataError(
            f'{where} must return one column named "{wanted}", but returns {names.count(wanted)}; '
            f'write "… AS {wanted}" in the select list.'
        )
    return names.index(wanted)


def neither_text_nor_number(where: str, column: str) -> str:
    """The sentence about a column that cannot be read as text exactly."""
    return f'{where}: column "{column}" holds values that are neither text nor whole numbers; cast it to text.'


def _is_list(kind: pa.DataType) -> bool:
    return bool(pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind))


def _texts(column: pa.ChunkedArray, name: str, where: str) -> pa.ChunkedArray:
    kind = column.type.value_type if pa.types.is_dictionary(column.type) else column.type
    textual = pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind)
    if not (textual or pa.types.is_integer(kind) or pa.types.is_null(kind)):
        raise InputDataError(neither_text_nor_number(where, name))
    return column.cast(kind).cast(pa.large_string())


def _from_long(table: pa.Table, id_column: str, item_column: str, where: str) -> Transactions:
    ids = table.column(id_column)
    if pa.types.is_dictionary(ids.type):
        ids = ids.cast(ids.type.value_type)
    unnamed = ids.null_count
    if pa.types.is_string(ids.type) or pa.types.is_large_string(ids.type):
        unnamed += pc.sum(pc.equal(ids, "")).as_py() or 0
    if unnamed:
        raise InputDataError(f'{where}: column "{id_column}" has {unnamed} empty ids; every row needs one.')
    if not len(ids):
        return Transactions.empty()
    encoded = ids.dictionary_encode().combine_chunks()
    rows = encoded.indices.to_numpy().astype(np.int64)
    return _encode(rows, _texts(table.column(item_column), item_column, where), len(encoded.dictionary))


def _from_lists(column: pa.ChunkedArray, name: str, where: str) -> Transactions:
    lengths = pc.fill_null(pc.list_value_length(column), 0).to_numpy().astype(np.int64)
    rows = np.repeat(np.arange(len(lengths)), lengths)
    return _encode(rows, _texts(pc.list_flatten(column), name, where), len(lengths))


def _encode(rows: NDArray[np.int64], texts: pa.ChunkedArray, n_rows: int) -> Transactions:
    held = pc.fill_null(pc.not_equal(texts, ""), False)
    texts = texts.filter(held)
    rows = rows[held.to_numpy()]
    if not len(texts):
        return Transactions.from_occurrences([], rows, np.empty(0, np.int64), n_rows)
    encoded = texts.dictionary_encode().combine_chunks()
    return Transactions.from_occurrences(encoded.dictionary.to_pylist(), rows, encoded.indices.to_numpy(), n_rows)


def _from_wide(table: pa.Table, where: str) -> Transactions:
    empty = np.empty(0, np.int64)
    rows: list[NDArray[np.int64]] = [empty]
    codes: list[NDArray[np.int64]] = [empty]
    for code, name in enumerate(table.column_names):
        held = np.flatnonzero(_truth(table.column(name), name, where))
        rows.append(held)
        codes.append(np.full(len(held), code))
    return Transactions.from_occurrences(
        table.column_names, np.concatenate(rows), np.concatenate(codes), table.num_rows
    )


def _truth(column: pa.ChunkedArray, name: str, where: str) -> NDArray[np.bool_]:
    if not column.null_count:
        if pa.types.is_boolean(column.type):
            return np.asarray(column.to_numpy(), bool)
        if pa.types.is_integer(column.type):
            values = column.to_numpy()
            if np.all((values == 0) | (values == 1)):
                return np.asarray(values == 1)
    raise InputDataError(
        f'{where}: column "{name}" is neither boolean nor whole numbers 0 and 1 without gaps; without the columns of '
        "the long format and without exactly one column of lists, every column must be an item."
    )
