"""Blocks counted by processes of this machine, one block at a time in each, so that memory is bounded."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise
from typing import Generic, TypeVar

import numpy as np
from numpy.typing import NDArray

from mining.partitioned.cores import Cores
from mining.partitioned.runner import Seen, first_rows, sum_of
from mining.partitioned.workers import Workers

N = TypeVar("N", bound=np.generic)
R = TypeVar("R")
B = TypeVar("B")
D = TypeVar("D")


class Processes(Generic[B]):
    """Counts blocks in processes: each sums over a run of blocks, so that a kernel travels once to each.

    Args:
        sources: The blocks, at least one.
        lengths: Rows of each.
        cores: Those that are shared with others; by default all, and shared with no one.
        ended: Called once, when it is closed.
    """

    def __init__(
        self,
        sources: Sequence[Callable[[], B]],
        lengths: Sequence[int],
        cores: Cores | None = None,
        ended: Callable[[], None] = lambda: None,
    ) -> None:
        self._sources, self.lengths = sources, lengths
        self._ended: Callable[[], None] | None = ended
        cores = cores or Cores()
        self._workers = Workers(min(cores.number, len(sources)), cores)

    def total(self, view: Seen[B, D], kernel: Callable[[D], NDArray[N]]) -> NDArray[N]:
        """The sum over all blocks; see `Runner`."""
        runs = runs_of(self.lengths, self._workers.number)
        first, *others = self._workers.run(sum_of, [(view, kernel, self._sources[run]) for run in runs])
        for other in others:
            np.add(first, other, out=first)
        return first

    def parts(self, view: Seen[B, D], kernel: Callable[[D, int], R]) -> Iterator[R]:
        """By block; see `Runner`."""
        numbers, step = first_rows(self.lengths), self._workers.number
        for start in range(0, len(self._sources), step):
            run = zip(self._sources[start : start + step], numbers[start : start + step], strict=True)
            yield from self._workers.run(_part, [(view, kernel, *each) for each in run])

    def close(self) -> None:
        """Ends the processes; see `Runner`."""
        self._workers.close()
        ended, self._ended = self._ended, None
        if ended is not None:
            ended()


def _part(view: Seen[B, D], kernel: Callable[[D, int], R], source: Callable[[], B], first: int) -> R:
    return kernel(view.of(source()), first)


def runs_of(lengths: Sequence[int], number: int) -> list[slice]:
    """Cuts blocks into runs of about as many rows."""
    work = np.asarray(lengths, np.int64) + 1
    ends = np.cumsum(work)
    shares = [ends[-1] * share / number for share in range(1, number)]
    cuts = [0, *np.searchsorted(ends - work / 2, shares).tolist(), len(lengths)]
    return [slice(start, stop) for start, stop in pairwise(cuts) if start < stop]
