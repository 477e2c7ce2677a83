"""What runs kernels where the blocks of a party's rows lie."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Generic, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from mining.data.transactions import Transactions
from mining.partitioned.blocks import Block

N = TypeVar("N", bound=np.generic)
R = TypeVar("R")
B = TypeVar("B")
D = TypeVar("D")
B_contra = TypeVar("B_contra", contravariant=True)
D_co = TypeVar("D_co", covariant=True)
V_contra = TypeVar("V_contra", contravariant=True)

Part = Callable[[Transactions, int], R]  # of a block, and the number of its first row
Source = Callable[[], Block]  # reads a block where it lies; picklable


class Itemised(Protocol):
    """A block whose rows are sets of items: `Block`, `mining.partitioned.tables.items.ItemBlock`."""

    def seen(self, target: NDArray[np.int32] | None, n_items: int) -> Transactions:
        """The rows under other item numbers, without names; see `Block.seen`."""


class Seen(Protocol[B_contra, D_co]):
    """What kernels see of a block; picklable."""

    def of(self, block: B_contra) -> D_co:
        """The rows of a block as kernels get them."""


@dataclass(frozen=True, eq=False, slots=True)
class View:
    """Which items of encoded rows are seen, and under what numbers.

    Attributes:
        target: New number of each item of the dictionary of all rows, distinct where not negative; negative drops it.
            None leaves all as they are.
        n_items: Size of the dictionary that the new numbers are of.
    """

    target: NDArray[np.int32] | None
    n_items: int

    def of(self, block: Itemised) -> Transactions:
        """What is seen of a block; items have no names."""
        return block.seen(self.target, self.n_items)


class Runner(Protocol[V_contra, D_co]):
    """Runs kernels over one party's blocks, of which they see what a view says.

    It may be asked from several threads; it answers one after the other.
    """

    @property
    def lengths(self) -> Sequence[int]:
        """Rows of each block, in the order of the rows; there is at least one block, perhaps without rows."""

    def total(self, view: V_contra, kernel: Callable[[D_co, int], NDArray[N]]) -> NDArray[N]:
        """The sum over all blocks of what a kernel gives for each.

        Raises:
            InputDataError: A block is damaged.
            ResourceError: A worker is lost again and again, or was ended by `close`.
        """

    def parts(self, view: V_contra, kernel: Callable[[D_co, int], R]) -> Iterator[R]:
        """What a kernel gives for each block, in order; errors as of `total`."""

    def close(self) -> None:
        """Ends what runs at once, from whatever thread; the runner can be asked nothing more."""


def first_rows(lengths: Sequence[int]) -> list[int]:
    """The number of each block's first row."""
    return [0, *np.cumsum(lengths)[:-1].tolist()]


def sum_of(
    view: Seen[B, D],
    kernel: Callable[[D, int], NDArray[N]],
    sources: Sequence[Callable[[], B]],
    firsts: Sequence[int],
) -> NDArray[N]:
    """The sum over some blocks, at least one, of which one at a time is in memory.

    Args:
        view: What is seen of them.
        kernel: Gives arrays of one shape and type.
        sources: The blocks.
        firsts: The number of the first row of each.
    """
    total: NDArray[N] | None = None
    for source, first in zip(sources, firsts, strict=True):
        found = kernel(view.of(source()), first)
        total = found.copy() if total is None else np.add(total, found, out=total)
    assert total is not None
    return total


@dataclass(frozen=True, eq=False, slots=True)
class Anywhere(Generic[D, N]):
    """A kernel that does not depend on where its rows are among all."""

    kernel: Callable[[D], NDArray[N]]

    def __call__(self, rows: D, _first: int) -> NDArray[N]:
        """What it gives for a block."""
        return self.kernel(rows)
