"""The distinct texts of a column over all blocks, merged from those of the blocks with bounded memory.

The texts of blocks ascend, so that all below a bound are at the beginning of each. Bounds are chosen from samples; what
lies between two of them is brought together at a time, and written.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from link.files.private_file import make_private
from mining.data.tables import Column
from mining.partitioned.encoding.writing import unwritten, write_file

AT_ONCE: Final = 1 << 24  # bytes of texts that are brought together at a time
SAMPLED: Final = 1 << 16  # bytes of texts for each that is a sample

_SCHEMA: Final = pa.schema([("value", pa.large_string()), ("count", pa.int64())])

Blocks = Sequence[Callable[[], Column]]
"""Each gives a column of a block, every value of which is in some row."""


@dataclass(frozen=True, eq=False, slots=True)
class Numbering:
    """Where the texts of blocks are among the distinct texts of all.

    Attributes:
        n_values: Distinct texts of all blocks.
        places: Of the texts of all blocks, one block after the other; on the disk.
        ends: By block, where its texts end in `places`.
    """

    n_values: int
    places: NDArray[np.int32]
    ends: Sequence[int]

    def codes(self, block: int, column: Column) -> NDArray[np.int32]:
        """The codes of a block's column as they are among the texts of all."""
        start = self.ends[block - 1] if block else 0
        return np.append(self.places[start : self.ends[block]], np.int32(-1))[column.codes]


def write_dictionary(path: Path, blocks: Blocks, scratch: Path) -> Numbering:
    """Writes the distinct texts of a column with their counts; `pieces_of` reads them.

    Args:
        path: The file.
        blocks: The column.
        scratch: A file for the numbering, which is there as long as that is used.

    Raises:
        InputDataError: A block is damaged.
        ResourceError: The disk refuses the file.
    """
    lengths, bounds = _bounds(blocks)
    ends = np.cumsum(lengths)
    places = _on_disk(scratch, max(int(ends[-1]), 1))
    edges = [_edges(column(), bounds) for column in blocks] if bounds else [[0, length] for length in lengths]
    n_values = 0

    def write(file: BinaryIO) -> None:
        nonlocal n_values
        with pa.ipc.new_file(file, _SCHEMA) as writer:
            for part in range(len(bounds) + 1):
                texts, counts, numbers = _together(blocks, [edge[part : part + 2] for edge in edges])
                for end, length, edge, own in zip(ends.tolist(), lengths, edges, numbers, strict=True):
                    places[end - length + edge[part] : end - length + edge[part + 1]] = own + np.int32(n_values)
                n_values += len(texts)
                writer.write_batch(pa.record_batch([texts, pa.array(counts)], schema=_SCHEMA))

    write_file(path, write)
    return Numbering(n_values, places, ends.tolist())


def pieces_of(path: Path) -> Iterator[pa.Array]:
    """The texts of a file of `write_dictionary`, in pieces, as they are on the disk."""
    with pa.memory_map(str(path)) as file, pa.ipc.open_file(file) as reader:
        for number in range(reader.num_record_batches):
            yield reader.get_batch(number).column(0)


def _on_disk(path: Path, length: int) -> NDArray[np.int32]:
    """An array in a file, for which there is room."""
    try:
        make_private(path)
        with path.open("r+b") as file:  # in full, since a disk without room ends whoever writes to a gap
            for start in range(0, 4 * length, AT_ONCE):
                file.write(bytes(min(AT_ONCE, 4 * length - start)))
        return np.memmap(path, np.int32, "r+", shape=(length,))
    except OSError as error:
        raise unwritten(path, error) from None


def _bounds(blocks: Blocks) -> tuple[list[int], list[str]]:
    """How many texts each block has, and ascending texts between which there are about as many bytes of these."""
    lengths, samples, whole = list[int](), list[str](), 0
    for column in blocks:
        values = column().values
        size = values.get_total_buffer_size()
        step = max(1, len(values) * SAMPLED // max(size, 1))
        samples += values[step // 2 :: step].to_pylist()
        lengths.append(len(values))
        whole += size
    number = -(-whole // AT_ONCE)
    samples.sort()
    chosen = {samples[len(samples) * part // number] for part in range(1, number)} if samples else set[str]()
    return lengths, sorted(chosen)


def _edges(column: Column, bounds: Sequence[str]) -> list[int]:
    """Where the texts of a block begin that are not below each bound, with beginning and end."""
    texts = column.values
    return [
        0,
        *(bisect_left(range(len(texts)), bound, key=lambda place: texts[place].as_py()) for bound in bounds),
        len(texts),
    ]


def _together(
    blocks: Blocks, edges: Sequence[Sequence[int]]
) -> tuple[pa.Array, NDArray[np.int64], list[NDArray[np.int32]]]:
    """Some texts of each block, brought together.

    Args:
        blocks: The column.
        edges: By block, where these begin and end.

    Returns:
        The distinct ones ascending, in how many rows each is, and by block the places of its own.
    """
    found, counts = list[pa.Array](), list[NDArray[np.int64]]()
    for column, (start, stop) in zip(blocks, edges, strict=True):
        own = column()
        found.append(pa.concat_arrays([own.values[start:stop]]))
        counts.append(own.counts()[start:stop])
    encoded = pa.concat_arrays(found).dictionary_encode()
    order = pc.array_sort_indices(encoded.dictionary).to_numpy()
    rank = np.empty(len(order), np.int32)
    rank[order] = np.arange(len(order), dtype=np.int32)
    places = rank[encoded.indices.to_numpy()]
    total = np.bincount(places, np.concatenate(counts), len(order)).astype(np.int64)
    ends = np.cumsum([stop - start for start, stop in edges])
    return encoded.dictionary.take(pa.array(order)), total, np.split(places, ends[:-1])
