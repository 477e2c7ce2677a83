"""Blocks counted on a Spark cluster, where they lie."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Generic, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from link.errors import ResourceError
from mining.partitioned.rows import PartitionedRows
from mining.partitioned.runner import Seen, View, first_rows
from mining.partitioned.spark.cluster import Cluster
from mining.partitioned.spark.secrecy import takes_noise
from mining.partitioned.spark.values import from_bytes
from mining.partitioned.spark.worker import FIELDS, NOISE, Parts, Reader, Task, Totals, read_rows, read_sealed

N = TypeVar("N", bound=np.generic)
R = TypeVar("R")
V = TypeVar("V", bound=Seen[Any, Any])
V_contra = TypeVar("V_contra", contravariant=True)


@dataclass(frozen=True, eq=False, slots=True)
class ClusterRows:
    """Rows that a cluster keeps in blocks.

    Attributes:
        needed: Packages that kernels need at the workers.
        cluster: Theirs.
        frame: The blocks.
        places: Of the blocks, ascending, as the rows are.
        seals: What identifies each.
        lengths: Rows of each.
        items: The dictionary.
        counts: In how many rows each item is.
        digest: Equal where the rows are equal, in the same order and cut alike.
        origin: What they were encoded from; empty where that is not known.
    """

    needed: ClassVar[tuple[str, ...]] = ()

    cluster: Cluster
    frame: Any
    places: Sequence[int]
    seals: Sequence[bytes]
    lengths: Sequence[int]
    items: tuple[str, ...]
    counts: NDArray[np.int64]
    digest: bytes
    origin: str

    @property
    def read(self) -> Reader:
        """What reads the blocks of a frame of `seen`."""
        return read_rows

    def rows(self, tag: str) -> PartitionedRows:
        """The rows, whose work on the cluster has a tag of its own."""
        return PartitionedRows(OnSpark(self, tag), self.items, self.counts, self.digest)

    def forget(self) -> None:
        """Makes the cluster drop them."""
        self.cluster.forget(self.frame)

    def seen(self, _view: View) -> tuple[Any, Sequence[bytes]]:
        """The frame of what a view sees, and the seals of its blocks."""
        return self.frame, self.seals


class Kept(Protocol[V_contra]):
    """Blocks that a cluster keeps: `ClusterRows`, `mining.partitioned.spark.tables.ClusterTable`.

    Attributes:
        needed: Packages that kernels need at the workers.
    """

    needed: ClassVar[tuple[str, ...]]

    @property
    def read(self) -> Reader:
        """What reads the blocks of a frame of `seen`."""

    @property
    def cluster(self) -> Cluster:
        """Which one."""

    @property
    def places(self) -> Sequence[int]:
        """Of the blocks, ascending, as the rows are."""

    @property
    def lengths(self) -> Sequence[int]:
        """Rows of each."""

    def seen(self, view: V_contra) -> tuple[Any, Sequence[bytes]]:
        """The frame of what a view sees, and the seals of its blocks."""


class OnSpark(Generic[V]):
    """Counts blocks at the workers of a cluster; each task sums over its blocks, and the node over tasks.

    A worker that is lost costs what Spark makes of it: its blocks are read again from the source, and counted again.
    What comes back tells which blocks were counted, and the node makes sure that these were all, each once and as it
    was encoded.

    Args:
        kept: The rows.
        tag: Of the work on the cluster.
    """

    def __init__(self, kept: Kept[V], tag: str) -> None:
        self._kept, self._tag, self.lengths = kept, tag, kept.lengths
        self._closed = False
        self._lock = threading.Lock()  # one call at a time

    def total(self, view: V, kernel: Callable[[Any, int], NDArray[N]]) -> NDArray[N]:
        """The sum over all blocks; see `Runner`."""
        self._check(kernel)
        total: NDArray[N] | None = None
        blocks = list[tuple[int, bytes]]()
        frame, expected = self._kept.seen(view)
        work = Task(Totals(self._kept.read, view, kernel, self._firsts()))
        cluster = self._kept.cluster
        for _, _, value, counted in self._rows(cluster.task(frame.coalesce(max(1, cluster.cores)), work)):
            found = self._value(value)
            total = found.copy() if total is None else np.add(total, found, out=total)
            blocks += read_sealed(counted)
        if total is None or sorted(blocks) != self._placed(expected):
            raise self._changed()
        return total

    def parts(self, view: V, kernel: Callable[[Any, int], R]) -> Iterator[R]:
        """By block; see `Runner`."""
        self._check(kernel)
        frame, seals = self._kept.seen(view)
        expected = iter(self._placed(seals))
        work = Task(Parts(self._kept.read, view, kernel, self._firsts()))
        for place, _, value, seal in self._rows(self._kept.cluster.task(frame, work)):
            if (place, seal) != next(expected, None):
                raise self._changed()
            yield self._value(value)
        if next(expected, None) is not None:
            raise self._changed()

    def blocks(self, view: V, start: int, stop: int) -> list[Any]:
        """What a view sees of some blocks, in this process; errors as of `Runner.total`.

        Args:
            view: What is seen.
            start: Number of the first block, from 0.
            stop: One past that of the last.
        """
        frame, seals = self._kept.seen(view)
        places = self._kept.places[start:stop]
        rows = self._rows(frame.where(f"place BETWEEN {places[0]} AND {places[-1]}"))
        found = list(self._kept.read(dict(zip(FIELDS, row, strict=True)) for row in rows))
        if [(each.place, each.seal) for each in found] != self._placed(seals)[start:stop]:
            raise self._changed()
        return [each.block for each in found]

    def close(self) -> None:
        """Ends the work on the cluster; the blocks stay for others."""
        if not self._closed:
            self._closed = True
            if self._tag:
                interrupt = self._kept.cluster.interrupt
                threading.Thread(
                    target=interrupt, args=(self._tag,), daemon=True
                ).start()  # nobody waits for the network

    def _check(self, kernel: object) -> None:
        """Refuses kernels that hold secrets other than keys of noise, or that the workers cannot run."""
        needed = self._kept.needed
        self._kept.cluster.check_has(*needed, *([NOISE] if takes_noise(kernel) else []))

    def _rows(self, frame: Any) -> Iterator[tuple[int, int, bytes, bytes]]:
        with self._lock:
            try:
                if self._closed:
                    raise _ended()
                yield from self._kept.cluster.rows(frame, self._tag)
            except ResourceError:
                if self._closed:
                    raise _ended() from None
                raise

    def _value(self, data: bytes) -> Any:
        try:
            return from_bytes(data)
        except ValueError:
            raise self._changed() from None

    def _firsts(self) -> dict[int, int]:
        """By the place of a block, the number of its first row."""
        return dict(zip(self._kept.places, first_rows(self.lengths), strict=True))

    def _placed(self, seals: Sequence[bytes]) -> list[tuple[int, bytes]]:
        return list(zip(self._kept.places, seals, strict=True))

    def _changed(self) -> ResourceError:
        return ResourceError(
            f"{self._kept.cluster.name} has counted other rows than those that were encoded, perhaps since it had to "
            "read some again and the source has changed; run the job again once nobody writes to it"
        )


def _ended() -> ResourceError:
    return ResourceError("the work on the cluster was ended, since its job has ended")
