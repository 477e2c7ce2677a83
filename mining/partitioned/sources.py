"""Sources of either kind, transactions or a table: what encodes them, and what is found encoded."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TypeVar

from mining.partitioned.cores import Cores
from mining.partitioned.encoding.encode import Encoding
from mining.partitioned.encoding.source import TableSource, TransactionSource
from mining.partitioned.processes import Processes
from mining.partitioned.rows import PartitionedRows
from mining.partitioned.stored import StoredRows
from mining.partitioned.tables.encode import TableEncoding
from mining.partitioned.tables.rows import PartitionedTable
from mining.partitioned.tables.stored import StoredTable

B = TypeVar("B")

AnySource = TransactionSource | TableSource
AnyEncoding = Encoding | TableEncoding
Stored = StoredRows | StoredTable


def encoding_of(source: AnySource, withheld: Sequence[str], folder: Path, cores: Cores) -> AnyEncoding:
    """What encodes a source; arguments as for `encoding.encode.SourceEncoding`."""
    if isinstance(source, TableSource):
        return TableEncoding(source, withheld, folder, cores)
    return Encoding(source, withheld, folder, cores)


def stored_in(source: AnySource, folder: Path) -> Stored | None:
    """What is encoded in a folder, of the kind of a source; None where nothing whole is."""
    return StoredTable.open(folder) if isinstance(source, TableSource) else StoredRows.open(folder)


def by_processes(
    stored: Stored, cores: Cores | None = None, ended: Callable[[], None] = lambda: None
) -> PartitionedRows | PartitionedTable:
    """What is encoded, counted by processes; arguments as for `processes.Processes`."""

    def engine(sources: Sequence[Callable[[], B]], lengths: Sequence[int]) -> Processes[B]:
        return Processes(sources, lengths, cores, ended)

    return stored.rows(engine)
