"""Blocks counted by processes of this machine, one block at a time in each, so that memory is bounded."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterator, Sequence
from enum import Enum
from itertools import pairwise
from typing import Any, Final, Generic, TypeVar, cast

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
        self._asked = 0  # for parts, so often
        self._ended: Callable[[], None] | None = ended
        cores = cores or Cores()
        self._workers = Workers(min(cores.number, len(sources)), cores)

    def total(self, view: Seen[B, D], kernel: Callable[[D, int], NDArray[N]]) -> NDArray[N]:
        """The sum over all blocks; see `Runner`."""
        firsts, runs = first_rows(self.lengths), runs_of(self.lengths, self._workers.number)
        calls = [(view, kernel, self._sources[run], firsts[run]) for run in runs]
        first, *others = self._workers.run(sum_of, calls)
        for other in others:
            np.add(first, other, out=first)
        return first

    def parts(self, view: Seen[B, D], kernel: Callable[[D, int], R]) -> Iterator[R]:
        """By block; see `Runner`."""
        numbers, step = first_rows(self.lengths), self._workers.number
        self._asked = asked = self._asked + 1
        sent = pickle.dumps((view, kernel))  # once to each process, which may keep what the kernel has prepared
        for start in range(0, len(self._sources), step):
            run = [*zip(self._sources[start : start + step], numbers[start : start + step], strict=True)]
            found = self._workers.run(_part, [(asked, None if start else sent, *each) for each in run])
            lacking = [place for place, each in enumerate(found) if each is _Lacking.KERNEL]
            again = self._workers.run(_part, [(asked, sent, *run[place]) for place in lacking])
            for place, each in zip(lacking, again, strict=True):
                found[place] = each
            yield from cast("list[R]", found)

    def close(self) -> None:
        """Ends the processes; see `Runner`."""
        self._workers.close()
        ended, self._ended = self._ended, None
        if ended is not None:
            ended()


class _Lacking(Enum):
    """What a process lacks: it was started, or had other work, since the kernel was sent to it."""

    KERNEL = "kernel"


_KEPT: Final[
    dict[int, tuple[Seen[Any, Any], Callable[[Any, int], Any]]]
] = {}  # in a process: the last kernel that gave parts


def _part(asked: int, sent: bytes | None, source: Callable[[], Any], first: int) -> Any:
    if sent is not None:
        _KEPT.clear()
        _KEPT[asked] = pickle.loads(sent)  # noqa: S301 - of the process that started this one
    if asked not in _KEPT:
        return _Lacking.KERNEL
    view, kernel = _KEPT[asked]
    return kernel(view.of(source()), first)


def runs_of(lengths: Sequence[int], number: int) -> list[slice]:
    """Cuts blocks into runs of about as many rows."""
    work = np.asarray(lengths, np.int64) + 1
    ends = np.cumsum(work)
    shares = [ends[-1] * share / number for share in range(1, number)]
    cuts = [0, *np.searchsorted(ends - work / 2, shares).tolist(), len(lengths)]
    return [slice(start, stop) for start, stop in pairwise(cuts) if start < stop]
