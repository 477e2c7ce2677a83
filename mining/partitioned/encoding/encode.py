"""Encodes a source of transactions into blocks in a folder, by processes, with bounded memory."""

from __future__ import annotations

import hashlib
import json
import shutil
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from link.errors import InputDataError
from mining.data.transactions import Transactions, digest_of_rows
from mining.partitioned.blocks import items_part
from mining.partitioned.cores import Cores
from mining.partitioned.encoding.pieces import shares
from mining.partitioned.encoding.source import TransactionSource
from mining.partitioned.encoding.writing import (
    NAMES,
    append,
    private_folder,
    read_table,
    write_blocks,
    write_file,
    write_table,
)
from mining.partitioned.stored import DICTIONARY, MANIFEST, StoredRows, read_block
from mining.partitioned.workers import Workers


class Encoding:
    """One encoding of a source.

    Args:
        source: Where the rows are.
        withheld: Patterns of items that never get into a block.
        folder: For the blocks; made anew.
        cores: For the processes that read.
    """

    def __init__(self, source: TransactionSource, withheld: Sequence[str], folder: Path, cores: Cores) -> None:
        self._source, self._withheld, self.folder = source, tuple(withheld), folder
        self._workers = Workers(cores.number, cores)

    def run(self) -> StoredRows:
        """Encodes; whatever ends it early leaves nothing behind.

        Raises:
            InputDataError: The source cannot be read, is not what its format says, or changed meanwhile.
            ResourceError: The disk refuses a file, workers died, or `close` was called.
        """
        private_folder(self.folder)
        try:
            before = origin_of(self._source, self._withheld)
            calls = [
                (self._source, share, self._withheld, self.folder, place)
                for place, share in enumerate(shares(self._source, self._workers.number))
            ]
            files = [file for share in self._workers.run(write_blocks, calls) for file in share]
            if origin_of(self._source, self._withheld) != before:
                raise InputDataError(
                    f"{self._source.place} changed while it was read; run the job again once nobody writes to it"
                )
            return _finished(self.folder, files, before)
        except BaseException:
            self.close()
            shutil.rmtree(self.folder, ignore_errors=True)
            raise
        finally:
            self.close()

    def close(self) -> None:
        """Ends the encoding at once, from whatever thread."""
        self._workers.close()


def origin_of(source: TransactionSource, withheld: Sequence[str]) -> str:
    """What blocks depend on: the same where a file and its settings are the same.

    Raises:
        InputDataError: The file is missing.
    """
    stamp: list[object] = [source.place, source.format, source.separator, source.query]
    stamp += [source.id_column, source.item_column, list(withheld)]
    if source.format != "sql":
        try:
            status = source.path.stat()
        except (OSError, ValueError):
            raise InputDataError(f"There is no file {source.place}; check the path in the dataset's source.") from None
        stamp += [status.st_size, status.st_mtime_ns, status.st_ino]
    return hashlib.sha256(json.dumps(stamp).encode()).hexdigest()


def _finished(folder: Path, files: Sequence[tuple[str, int]], origin: str) -> StoredRows:
    """Numbers the items of all blocks alike, and writes down what there is."""
    names, lengths = [name for name, _ in files], [length for _, length in files]
    items, counts = _dictionary(folder, names)
    number = {item: place for place, item in enumerate(items)}
    for name in names:
        beside = _names_of(folder, name)
        own = read_table(beside)["item"].to_pylist()
        append(folder / name, items_part(np.fromiter((number[item] for item in own), np.int32, len(own))))
        beside.unlink()
    write_table(folder / DICTIONARY, pa.table({"item": pa.array(items, pa.large_string()), "count": counts}))

    def blocks() -> Iterator[Transactions]:
        return (read_block(folder / name).seen(None, len(items)) for name in names)

    digest = digest_of_rows(items, sum(lengths), blocks)
    sizes = [(folder / name).stat().st_size for name in names]
    stored = StoredRows(folder, names, lengths, items, counts, digest, origin, sizes)
    write_file(folder / MANIFEST, stored.manifest())
    return stored


def _dictionary(folder: Path, names: Sequence[str]) -> tuple[tuple[str, ...], NDArray[np.int64]]:
    """All items in ascending order of UTF-8 bytes, and in how many rows each is."""
    found: dict[str, int] = {}
    for name in names:
        table = read_table(_names_of(folder, name))
        for item, count in zip(table["item"].to_pylist(), table["count"].to_pylist(), strict=True):
            found[item] = found.get(item, 0) + count
    items = tuple(sorted(found))
    return items, np.fromiter((found[item] for item in items), np.int64, len(items))


def _names_of(folder: Path, name: str) -> Path:
    return (folder / name).with_suffix(NAMES)
