"""Blocks on disk: the rows of each, and beside them the names of its items until all names are known."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import BinaryIO, Final

import numpy as np
import pyarrow as pa

from link.errors import ResourceError
from link.files.private_file import replace_private
from mining.partitioned.blocks import code_type, rows_part
from mining.partitioned.encoding.pieces import pieces
from mining.partitioned.encoding.source import TransactionSource

ROWS: Final = ".block"
NAMES: Final = ".names"


def write_blocks(
    source: TransactionSource, share: tuple[int, ...] | None, withheld: Sequence[str], folder: Path, place: int
) -> list[tuple[str, int]]:
    """Encodes a share of a source, in the process that reads it.

    Args:
        source: Where the rows are.
        share: Which of them are read here; see `pieces.shares`.
        withheld: Patterns of items that are left out, as in `fnmatch.fnmatchcase`.
        folder: Where the blocks are put.
        place: Of the share among all.

    Returns:
        The file of each block, and its number of rows.

    Raises:
        InputDataError: The source cannot be read, or is not what its format says.
        ResourceError: The disk refuses a file.
    """
    scratch = folder / f"{place:06}.sort"
    private_folder(scratch)
    written: list[tuple[str, int]] = []
    for number, piece in enumerate(pieces(source, share, scratch)):
        rows, name = piece.without(withheld), f"{place:06}-{number:06}"
        codes = rows.indices.astype(code_type(rows.n_items))
        write_file(folder / (name + ROWS), rows_part(rows.offsets.astype(np.uint32), codes))
        names = pa.array(rows.items, pa.large_string())
        write_table(folder / (name + NAMES), pa.table({"item": names, "count": rows.item_counts()}))
        written.append((name + ROWS, rows.n_rows))
    shutil.rmtree(scratch)
    return written


def private_folder(folder: Path) -> None:
    """Makes a folder that only its owner can enter, and closes one that is there to others.

    Raises:
        ResourceError: The disk refuses it.
    """
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        if folder.stat().st_mode & 0o077:
            folder.chmod(0o700)
    except OSError as error:
        raise unwritten(folder, error) from None


def write_table(path: Path, table: pa.Table) -> None:
    """Writes a table that only its owner can read; `read_table` reads it.

    Raises:
        ResourceError: The disk refuses it.
    """
    sink = pa.BufferOutputStream()
    with pa.ipc.new_file(sink, table.schema) as writer:
        writer.write_table(table)
    write_file(path, memoryview(sink.getvalue()))


def read_table(path: Path) -> pa.Table:
    """What `write_table` has written."""
    with pa.ipc.open_file(pa.py_buffer(path.read_bytes())) as reader:
        return reader.read_all()


def write_file(path: Path, contents: bytes | memoryview | Callable[[BinaryIO], object]) -> None:
    """Writes a file that only its owner can read; it is on the disk when this returns.

    Args:
        path: The file.
        contents: What it holds, or what writes that.

    Raises:
        ResourceError: The disk refuses it.
    """
    try:
        replace_private(path, contents)
    except OSError as error:
        raise unwritten(path, error) from None


def append(path: Path, contents: bytes) -> None:
    """Adds to a file; it is on the disk when this returns.

    Raises:
        ResourceError: The disk refuses it.
    """
    try:
        with path.open("ab") as file:
            file.write(contents)
            file.flush()
            os.fsync(file.fileno())
    except OSError as error:
        raise unwritten(path, error) from None


def unwritten(path: Path, error: OSError) -> ResourceError:
    """The disk refuses a file."""
    return ResourceError(
        f"{path} cannot be written ({error.strerror}); blocks take about two bytes for each item of each row, so make "
        "room for them"
    )
