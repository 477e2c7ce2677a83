"""Records in buckets: added piece by piece, and read again bucket by bucket, from memory or from the disk.

What fits the room that several lists share stays in memory; the rest goes to the disk, encrypted (`scratch_file`), so
that memory is bounded however many records there are. Within a bucket, records come back in the order in which they
were added.
"""

from __future__ import annotations

from typing import Any, Final, NamedTuple, Self

import numpy as np
from numpy.typing import DTypeLike, NDArray

from crypto.primitives.scratch_file import SECRET_BYTES, ScratchFile, ScratchLimits
from link.randomness import RandomStream

Records = NDArray[Any]
"""Shape (n,): structures, or numbers."""


class Room:
    """What the lists of one computation may take of memory together.

    Used by one thread at a time. A context: at its end nothing is left on the disk.

    Args:
        limits: How much, and where the rest is.
        random: For the secrets of what is on the disk.
    """

    def __init__(self, limits: ScratchLimits, random: RandomStream) -> None:
        self._limits, self._random, self._free = limits, random, limits.memory
        self._files: list[ScratchFile] = []

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for file in self._files:
            file.close()

    def takes(self, size: int) -> bool:
        """Whether so many bytes may stay in memory, which they then do until they are given back."""
        fits = size <= self._free
        self._free -= size if fits else 0
        return fits

    def give_back(self, size: int) -> None:
        """What `takes` has allowed is free again."""
        self._free += size

    def scratch(self) -> ScratchFile:
        """A file of its own for a list."""
        file = ScratchFile(self._limits.folder, self._random.bytes(SECRET_BYTES), "lists of ids", "alignment_memory")
        self._files.append(file)
        return file

    @property
    def bytes_on_disk(self) -> int:
        """Of all lists so far."""
        return sum(file.size for file in self._files)


class _Part(NamedTuple):
    """Records that were added together.

    Attributes:
        ends: Where each bucket ends.
        records: All of them by bucket, or where they are in the file.
    """

    ends: NDArray[np.int64]
    records: Records | int


class Buckets:
    """Records of one type, by bucket.

    Args:
        number: Of buckets.
        record: The type of a record.
        room: What lists may take together.
    """

    def __init__(self, number: int, record: DTypeLike, room: Room) -> None:
        self.record: Final[np.dtype[Any]] = np.dtype(record)
        self.counts: Final = np.zeros(number, np.int64)
        self._room, self._parts, self._held = room, list[_Part](), 0
        self._file: ScratchFile | None = None

    def __len__(self) -> int:
        return len(self.counts)

    def like(self, number: int, record: DTypeLike) -> Buckets:
        """Others in the same room, still empty."""
        return Buckets(number, record, self._room)

    def add(self, buckets: NDArray[Any], records: Records) -> None:
        """Adds records.

        Args:
            buckets: Of each, its bucket.
            records: Shape (n,).

        Raises:
            ResourceError: The disk refuses them.
        """
        if not len(records):
            return
        numbers = np.bincount(buckets.astype(np.int64), minlength=len(self))
        if numbers.max() < len(records):
            records = records[np.argsort(buckets, kind="stable")]
        self.counts[:] += numbers
        ends = np.cumsum(numbers)
        if self._room.takes(records.nbytes):
            self._held += records.nbytes
            self._parts.append(_Part(ends, records))
            return
        if self._file is None:
            self._file = self._room.scratch()
        contents = np.ascontiguousarray(records).view(np.uint8)
        self._parts.append(_Part(ends, self._file.append(contents)))

    def put(self, bucket: int, records: Records) -> None:
        """Adds records to one bucket; errors as of `add`."""
        self.add(np.full(len(records), bucket), records)

    def read(self, bucket: int) -> Records:
        """The records of a bucket, in the order in which they were added.

        Raises:
            ResourceError: The disk does not give them back.
        """
        pieces = [np.empty(0, self.record)]
        for ends, records in self._parts:
            first, end = int(ends[bucket - 1]) if bucket else 0, int(ends[bucket])
            if first == end:
                continue
            if isinstance(records, int):
                assert self._file is not None  # since something is there
                size = self.record.itemsize
                pieces.append(self._file.read(records + first * size, (end - first) * size).view(self.record))
            else:
                pieces.append(records[first:end])
        return np.concatenate(pieces)

    def close(self) -> None:
        """Gives up all records."""
        self._parts.clear()
        self._room.give_back(self._held)
        self._held = 0
        if self._file is not None:
            self._file.close()
