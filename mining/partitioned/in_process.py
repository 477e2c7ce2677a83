"""Blocks one after the other in this process: for tests, and where one process is enough."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Generic, TypeVar

import numpy as np
from numpy.typing import NDArray

from mining.partitioned.runner import Seen, first_rows, sum_of

N = TypeVar("N", bound=np.generic)
R = TypeVar("R")
B = TypeVar("B")
D = TypeVar("D")


class InProcess(Generic[B]):
    """Counts blocks one after the other.

    Args:
        sources: The blocks, at least one.
        lengths: Rows of each.
    """

    def __init__(self, sources: Sequence[Callable[[], B]], lengths: Sequence[int]) -> None:
        self._sources, self.lengths = sources, lengths

    def total(self, view: Seen[B, D], kernel: Callable[[D, int], NDArray[N]]) -> NDArray[N]:
        """The sum over all blocks; see `Runner`."""
        return sum_of(view, kernel, self._sources, first_rows(self.lengths))

    def parts(self, view: Seen[B, D], kernel: Callable[[D, int], R]) -> Iterator[R]:
        """By block; see `Runner`."""
        for source, first in zip(self._sources, first_rows(self.lengths), strict=True):
            yield kernel(view.of(source()), first)

    def close(self) -> None:
        """Nothing runs that could be ended."""
