"""Numbers of a party's rows by how many candidates they hold: kernels of rows."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from mining.data.transactions import Transactions
from mining.joint.distributed.row_sizes import class_counts
from mining.joint.distributed.truncation import candidates_held
from mining.joint.tally import Counts
from mining.lattice import Sets


@dataclass(frozen=True, slots=True)
class ItemClasses:
    """How many rows there are of each class of lengths.

    Attributes:
        ends: The classes, as of `row_sizes.class_counts`.
    """

    ends: tuple[int, ...]

    def __call__(self, rows: Transactions) -> Counts:
        """Shape (classes,)."""
        return class_counts(rows.lengths, self.ends)


@dataclass(frozen=True, eq=False, slots=True)
class ItemsetClasses:
    """How many rows there are of each class by the likely candidates that they hold, and by all.

    Attributes:
        ends: The classes.
        candidates: Shape (m, k); if k = 2, all pairs of the rows' items.
        order: Shape (m,): the public order of preference.
        likely: The first so many in that order are likely.
    """

    ends: tuple[int, ...]
    candidates: Sets
    order: NDArray[np.int64]
    likely: int

    def __call__(self, rows: Transactions) -> Counts:
        """Shape (2, classes)."""
        of_likely = candidates_held(rows, self.candidates, self.order[: self.likely])
        if self.candidates.shape[1] == 2:
            of_all = rows.lengths * (rows.lengths - 1) // 2
        else:
            of_all = of_likely + candidates_held(rows, self.candidates, self.order[self.likely :])
        return np.array([class_counts(sizes, self.ends) for sizes in (of_likely, of_all)])
