"""An encoded table in a folder: blocks, the distinct texts of each column, and what describes them."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Final

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from link.files.json_text import read_json
from mining.data.tables import Table
from mining.data.transactions import Transactions, ranked
from mining.partitioned.blocks import damaged
from mining.partitioned.encoding.writing import read_table
from mining.partitioned.rows import PartitionedRows
from mining.partitioned.runner import Runner, View
from mining.partitioned.stored import are_whole, digest_of_file, removed_if_useless, seal
from mining.partitioned.tables.blocks import TableBlock, TableView
from mining.partitioned.tables.items import ItemBlock
from mining.partitioned.tables.rows import PartitionedTable

MANIFEST: Final = "table.json"  # written last: a folder without it was not finished
FORM: Final = 1  # of what is in such a folder; folders of another are encoded anew

Source = Callable[[], TableBlock]
ItemEngine = Callable[[Sequence[Callable[[], ItemBlock]], Sequence[int]], Runner[View, Transactions]]


@dataclass(frozen=True, eq=False, slots=True)
class StoredTable:
    """A table that lies in blocks in a folder.

    Attributes:
        folder: Its own.
        names: Of the files of the blocks, in the order of the rows.
        lengths: Rows of each.
        sizes: Bytes of each.
        id_columns: The columns that together name a row.
        columns: The others.
        dictionaries: By column, the digest of the file with its distinct texts.
        distinct: By column, how many these are.
        digest: Equal where tables are equal, rows in the same order; that of the same table in memory.
        origin: What it was encoded from; see `encoding.encode.origin_of`.
    """

    folder: Path
    names: Sequence[str]
    lengths: Sequence[int]
    sizes: Sequence[int]
    id_columns: tuple[str, ...]
    columns: tuple[str, ...]
    dictionaries: Sequence[str]
    distinct: Sequence[int]
    digest: bytes
    origin: str

    @classmethod
    def open(cls, folder: Path) -> StoredTable | None:
        """The table of a folder; None where there is none that is whole, or that this version can read."""
        try:
            manifest, given = read_json((folder / MANIFEST).read_bytes())
            if manifest["form"] != FORM or given != seal(manifest):
                return None
            found = cls(
                folder,
                [name for name, _, _ in manifest["blocks"]],
                [length for _, length, _ in manifest["blocks"]],
                [size for _, _, size in manifest["blocks"]],
                tuple(manifest["id_columns"]),
                tuple(manifest["columns"]),
                manifest["dictionaries"],
                manifest["distinct"],
                bytes.fromhex(manifest["digest"]),
                manifest["origin"],
            )
            digests = [digest_of_file(dictionary_of(folder, place)) for place in range(len(found.columns))]
        except (OSError, ValueError, KeyError, TypeError):
            return None
        return found if digests == found.dictionaries and found.is_whole() else None

    @property
    def n_items(self) -> int:
        """Number of distinct cells of all columns."""
        return sum(self.distinct)

    def is_whole(self) -> bool:
        """Whether all files are there, those of blocks as long as they were."""
        dictionaries = [dictionary_of(self.folder, place) for place in range(len(self.columns))]
        return are_whole(self.folder, self.names, self.sizes) and all(path.exists() for path in dictionaries)

    def manifest(self) -> bytes:
        """What `open` reads."""
        manifest = {
            "form": FORM,
            "origin": self.origin,
            "digest": self.digest.hex(),
            "id_columns": list(self.id_columns),
            "columns": list(self.columns),
            "dictionaries": list(self.dictionaries),
            "distinct": list(self.distinct),
            "blocks": list(zip(self.names, self.lengths, self.sizes, strict=True)),
        }
        return json.dumps([manifest, seal(manifest)]).encode()

    def value_counts(self, column: str) -> tuple[pa.Array, NDArray[np.int64]]:
        """The distinct texts of a column, and in how many rows each is.

        Raises:
            InputDataError: They are damaged, and were removed.
        """
        place = self.columns.index(column)
        path = dictionary_of(self.folder, place)
        with removed_if_useless(path):
            if digest_of_file(path) != self.dictionaries[place]:
                raise damaged(str(path))
            found = read_table(path).combine_chunks()
        texts, counts = (found.column(name).combine_chunks() for name in ("value", "count"))
        return texts, np.asarray(counts.to_numpy(), np.int64)

    def rows(self, engine: Callable[[Sequence[Source], Sequence[int]], Runner[TableView, Table]]) -> PartitionedTable:
        """The rows, counted by an engine of their own."""
        sources = [partial(TableBlock, self.folder / name) for name in self.names]
        places = tuple(range(len(self.id_columns) + len(self.columns)))
        view = TableView(self.id_columns, self.columns, places)
        return PartitionedTable(engine(sources, self.lengths), view, sources, self.value_counts, self.digest)

    def item_rows(
        self,
        least: int,
        engine: Callable[[Sequence[Callable[[], ItemBlock]], Sequence[int]], Runner[View, Transactions]],
    ) -> PartitionedRows:
        """The rows as sets of those items `column=value` that are in some number of rows or more.

        Args:
            least: That number; few items are expected to be in so many.
            engine: Counts them.

        Raises:
            InputDataError: The texts of a column are damaged, and were removed.
        """
        values, known = list[pa.Array](), list[NDArray[np.int64]]()
        for name in self.columns:
            texts, counts = self.value_counts(name)
            values.append(pa.concat_arrays([texts.filter(pa.array(counts >= least))]))
            known.append(counts[counts >= least])
        named = zip(self.columns, values, strict=True)
        items, rank = ranked([f"{name}={text}" for name, texts in named for text in texts.to_pylist()])
        ends = np.cumsum([0, *map(len, values)]).tolist()
        numbers = tuple(rank[start:stop].astype(np.int32) for start, stop in pairwise(ends))
        counts = np.zeros(len(items), np.int64)
        counts[rank] = np.concatenate([np.zeros(0, np.int64), *known])
        n_ids = len(self.id_columns)
        view = TableView((), self.columns, tuple(range(n_ids, n_ids + len(self.columns))))
        seen = (view, tuple(values), numbers, len(items))
        sources = [partial(ItemBlock, TableBlock(self.folder / name), *seen) for name in self.names]
        return PartitionedRows(engine(sources, self.lengths), items, counts, self.digest)


def dictionary_of(folder: Path, place: int) -> Path:
    """The file with the distinct texts of a column."""
    return folder / f"{place:06}.values"
