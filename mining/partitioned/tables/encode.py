"""Encodes a source of a table into blocks in a folder, by processes, with bounded memory."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import NamedTuple

import pyarrow as pa

from mining.data.tables import Column, Table, TableDigest
from mining.partitioned.encoding.encode import SourceEncoding
from mining.partitioned.encoding.source import TableSource
from mining.partitioned.encoding.writing import ROWS, write_file
from mining.partitioned.stored import digest_of_file
from mining.partitioned.tables.blocks import TableBlock, TableView, block_bytes
from mining.partitioned.tables.dictionaries import pieces_of, write_dictionary
from mining.partitioned.tables.pieces import Share, table_pieces, table_shares
from mining.partitioned.tables.stored import MANIFEST, StoredTable, dictionary_of


class Written(NamedTuple):
    """What was written of a share of a source.

    Attributes:
        columns: Names of its columns but those of ids.
        files: That of each block, with its number of rows.
    """

    columns: tuple[str, ...]
    files: list[tuple[str, int]]


class TableEncoding(SourceEncoding[TableSource, Written, StoredTable]):
    """An encoding of a table."""

    def _shares(self, source: TableSource, number: int) -> Sequence[Share]:
        return table_shares(source, number)

    def _writer(self) -> Callable[..., Written]:
        return write_table_blocks

    def _finished(self, written: Sequence[Written], origin: str) -> StoredTable:
        """Brings the texts of all blocks together, column by column."""
        folder, ids, columns = self.folder, self._source.id_columns, written[0].columns
        names, lengths = zip(*(file for share in written for file in share.files), strict=True)
        blocks = [TableBlock(folder / name) for name in names]
        distinct = list[int]()
        whole = TableDigest(sum(lengths), len(ids), len(columns))
        for place, name in enumerate(ids):
            whole.add_texts(name, sum(lengths), partial(_cells, blocks, TableView((name,), (), (place,))))
        for place, name in enumerate(columns):
            view = TableView((), (name,), (len(ids) + place,))
            column = [partial(_column, block, view) for block in blocks]
            path, scratch = dictionary_of(folder, place), folder / "numbers"
            numbering = write_dictionary(path, column, scratch)
            whole.add_texts(name, numbering.n_values, partial(pieces_of, path))
            for number, read in enumerate(column):
                whole.add_codes(numbering.codes(number, read()))
            scratch.unlink()
            pa.default_memory_pool().release_unused()
            distinct.append(numbering.n_values)
        dictionaries = [digest_of_file(dictionary_of(folder, place)) for place in range(len(columns))]
        sizes = [(folder / name).stat().st_size for name in names]
        digest = whole.digest()
        stored = StoredTable(folder, names, lengths, sizes, ids, columns, dictionaries, distinct, digest, origin)
        write_file(folder / MANIFEST, stored.manifest())
        return stored


def write_table_blocks(source: TableSource, share: Share, withheld: Sequence[str], folder: Path, place: int) -> Written:
    """Encodes a share of a source, in the process that reads it.

    Args:
        source: Where the rows are.
        share: Which of them are read here; see `pieces.table_shares`.
        withheld: Patterns of items `column=value` whose cells are left empty, as in `fnmatch.fnmatchcase`.
        folder: Where the blocks are put.
        place: Of the share among all.

    Raises:
        ConfigurationError: The separator, or the URL, is none.
        InputDataError: The source cannot be read, or is not what its format says.
        ResourceError: The disk refuses a file.
    """
    files, names = list[tuple[str, int]](), tuple[str, ...]()
    for number, piece in enumerate(table_pieces(source, share)):
        columns = tuple(column.without(withheld).occurring() for column in piece.columns)
        name, names = f"{place:06}-{number:06}{ROWS}", piece.column_names
        write_file(folder / name, block_bytes(Table(piece.id_columns, piece.ids, columns, piece.n_rows)))
        files.append((name, piece.n_rows))
        pa.default_memory_pool().release_unused()  # which otherwise keeps what the largest pieces took
    return Written(names, files)


def _cells(blocks: Sequence[TableBlock], view: TableView) -> Iterator[pa.Array]:
    """The cells of a column of ids, block by block."""
    return (view.of(block).ids[0] for block in blocks)


def _column(block: TableBlock, view: TableView) -> Column:
    (column,) = view.of(block).columns
    return column
