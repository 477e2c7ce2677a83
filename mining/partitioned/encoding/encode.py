"""Encodes a source into blocks in a folder, by processes, with bounded memory; here, one of transactions."""

from __future__ import annotations

import hashlib
import json
import shutil
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Generic, TypeVar

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from link.errors import InputDataError
from link.files.stamps import Stamp
from mining.data.copies import is_plain, local_file, state_of
from mining.data.source_options import PLAIN
from mining.data.transactions import Transactions, digest_of_rows
from mining.partitioned.blocks import items_part
from mining.partitioned.cores import Cores
from mining.partitioned.encoding.pieces import shares
from mining.partitioned.encoding.source import TableSource, TransactionSource
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

S = TypeVar("S", bound=TransactionSource | TableSource)
F = TypeVar("F")
T = TypeVar("T")


class SourceEncoding(ABC, Generic[S, F, T]):
    """One encoding of a source.

    Args:
        source: Where the rows are.
        withheld: Patterns of items that never get into a block.
        folder: For the blocks; made anew.
        cores: For the processes that read.
    """

    def __init__(self, source: S, withheld: Sequence[str], folder: Path, cores: Cores) -> None:
        self._source, self._withheld, self.folder = source, tuple(withheld), folder
        self._workers = Workers(cores.number, cores)

    def run(self) -> T:
        """Encodes; whatever ends it early leaves nothing behind.

        Raises:
            InputDataError: The source cannot be read, is not what its format says, or changed meanwhile.
            ResourceError: The disk refuses a file, workers died, or `close` was called.
        """
        private_folder(self.folder)
        try:
            before = origin_of(self._source, self._withheld)
            fresh = _is_fresh(self._source)
            with _readable(self._source) as source:
                calls = [
                    (source, share, self._withheld, self.folder, place)
                    for place, share in enumerate(self._shares(source, self._workers.number))
                ]
                written = self._workers.run(self._writer(), calls)
            if not _is_copied(self._source) and origin_of(self._source, self._withheld) != before:
                raise InputDataError(
                    f"{self._source.place} changed while it was read; run the job again once nobody writes to it"
                )
            self._workers.close()  # what is left needs none, and may need their memory
            return self._finished(written, "" if fresh else before)
        except BaseException:
            self.close()
            shutil.rmtree(self.folder, ignore_errors=True)
            raise
        finally:
            self.close()

    def close(self) -> None:
        """Ends the encoding at once, from whatever thread."""
        self._workers.close()

    @abstractmethod
    def _shares(self, source: S, number: int) -> Sequence[tuple[int, ...] | None]:
        """What up to so many readers read each: row groups of a Parquet file; None where one reads everything."""

    @abstractmethod
    def _writer(self) -> Callable[..., F]:
        """A function of a module that writes the blocks of a share: source, share, withheld, folder, place."""

    @abstractmethod
    def _finished(self, written: Sequence[F], origin: str) -> T:
        """Writes down what there is, from what was written of each share."""


class Encoding(SourceEncoding[TransactionSource, list[tuple[str, int]], StoredRows]):
    """An encoding of transactions."""

    def _shares(self, source: TransactionSource, number: int) -> Sequence[tuple[int, ...] | None]:
        return shares(source, number)

    def _writer(self) -> Callable[..., list[tuple[str, int]]]:
        return write_blocks

    def _finished(self, written: Sequence[list[tuple[str, int]]], origin: str) -> StoredRows:
        return _finished(self.folder, [file for share in written for file in share], origin)


def origin_of(source: TransactionSource | TableSource, withheld: Sequence[str]) -> str:
    """What blocks depend on: the same where a file and its settings are the same.

    Raises:
        InputDataError: The file is missing.
    """
    stamp: list[object] = [*source.settings, list(withheld)]
    if _is_copied(source):
        stamp += state_of(source.place, source.options).marks
    elif source.format != "sql":
        try:
            stamp += Stamp.of(source.path)
        except (OSError, ValueError):
            raise InputDataError(f"there is no file {source.place}; check the path in the dataset's source.") from None
    return hashlib.sha256(json.dumps(stamp).encode()).hexdigest()


def _is_fresh(source: TransactionSource | TableSource) -> bool:
    """Whether a file may change and keep its origin, so that its blocks must not be taken for it again."""
    if source.format == "sql":
        return False
    if _is_copied(source):
        return state_of(source.place, source.options).is_fresh
    try:
        return Stamp.of(source.path).is_fresh()
    except OSError:  # it has gone, which is said once it is read
        return True


def _is_copied(source: TransactionSource | TableSource) -> bool:
    """Whether what is read is a copy, which nobody changes meanwhile."""
    return source.format != "sql" and not is_plain(source.place, source.options)


@contextmanager
def _readable(source: S) -> Iterator[S]:
    """The source, or its copy on this machine."""
    if not _is_copied(source):
        yield source
        return
    with local_file(source.place, source.options, source.wanted) as path:
        yield replace(source, place=str(path), options=PLAIN)


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
