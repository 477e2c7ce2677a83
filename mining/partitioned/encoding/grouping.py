"""Pairs of a row's id and an item, in any order, grouped by id: DuckDB sorts them, on disk where they do not fit."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from link.errors import ResourceError

SORT_BYTES: Final = 512 << 20  # of memory, before pairs go to the disk

Pairs = Iterable[tuple[pa.Array, pa.Array]]


def grouped(pairs: Pairs, scratch: Path) -> Iterator[tuple[NDArray[np.int64], pa.Array]]:
    """Rows in the order of their ids.

    Args:
        pairs: Ids, of one type and none of them null, and items as text; null and the empty text only make a row exist.
        scratch: A folder for what does not fit into memory.

    Returns:
        Pieces of whole rows: items of each of them, perhaps none, and the items of all of them.

    Raises:
        ResourceError: The disk is full.
        ComineError: What reading the pairs raises.
    """
    ids, items = pa.array([], pa.string()), pa.array([], pa.large_string())
    for batch in _sorted(pairs, scratch):
        ids = pa.concat_arrays([ids, batch.column(0)]) if len(ids) else batch.column(0)
        items = pa.concat_arrays([items, batch.column(1).cast(pa.large_string())])
        begins = _begins(ids)
        if len(begins) > 1:  # the last row may go on
            yield _rows(begins, items[: begins[-1]])
            ids, items = ids[begins[-1] :], items[begins[-1] :]
    if len(ids):
        yield _rows(np.append(_begins(ids), len(ids)), items)


def _begins(ids: pa.Array) -> NDArray[np.int64]:
    """Where rows begin."""
    differ = pc.not_equal(ids[1:], ids[:-1]).to_numpy(zero_copy_only=False)
    return np.concatenate([[0], np.flatnonzero(differ) + 1])


def _rows(bounds: NDArray[np.int64], items: pa.Array) -> tuple[NDArray[np.int64], pa.Array]:
    held = pc.fill_null(pc.not_equal(items, ""), False)
    before = np.append(0, np.cumsum(held.to_numpy(zero_copy_only=False)))
    return np.diff(before[bounds]), items.filter(held)


def _sorted(pairs: Pairs, scratch: Path) -> Iterator[pa.RecordBatch]:
    import duckdb  # large, and needed for such a source only

    failures: list[Exception] = []
    source = iter(pairs)
    first = next(source, None)
    if first is None:
        return

    def batches() -> Iterator[pa.RecordBatch]:
        try:
            yield _batch(*first)
            for ids, items in source:
                yield _batch(ids, items)
        except Exception as error:  # which DuckDB would wrap
            failures.append(error)
            raise

    reader = pa.RecordBatchReader.from_batches(_batch(*first).schema, batches())
    settings: dict[str, str | bool | int | float | list[str]] = {
        "memory_limit": f"{SORT_BYTES}B",
        "temp_directory": str(scratch),
        "threads": 1,
        "autoinstall_known_extensions": "false",
        "autoload_known_extensions": "false",
    }
    try:
        with duckdb.connect(":memory:", config=settings) as connection:
            connection.register("pairs", reader)
            with pa.RecordBatchReader.from_stream(connection.sql("SELECT id, item FROM pairs ORDER BY id")) as found:
                yield from found
    except duckdb.Error as error:
        if failures:
            raise failures[0] from None
        if isinstance(error, duckdb.IOException | duckdb.OutOfMemoryException):
            raise ResourceError(
                f"the rows cannot be grouped by their ids in {scratch}: the disk is full, or cannot be written"
            ) from None
        raise


def _batch(ids: pa.Array, items: pa.Array) -> pa.RecordBatch:
    return pa.RecordBatch.from_arrays([ids, items.cast(pa.large_string())], ["id", "item"])
