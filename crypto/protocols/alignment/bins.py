"""Bins in which two parties' points meet: one for each point of one party's, three for each of the other's.

A table of B bins in three thirds has one place for a point in each third, by a hash. The one party puts each of its
points into one of its three bins, at most one into a bin (`matched`); the other looks at all three. So a point of both
is looked at by the other in the very bin in which the one has put it.

Points can be put so unless some k + 1 of them have only k bins together (Hall). With B = 1.3·n + 256 bins for n points
some have with a chance below 2^-40, for every n: `docs/protocols/alignment.md` derives it.

Source: Pagh and Rodler, "Cuckoo Hashing", Journal of Algorithms 51(2), 2004; Pinkas, Schneider, Tkachenko and Yanai,
"Efficient Circuit-based PSI with Linear Communication", EUROCRYPT 2019 (three hashes, no stash).
"""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray

from crypto.primitives.groups.point_hash import Points, words_of
from crypto.primitives.okvs import Layout, taken_off
from link.errors import InternalError

THIRDS: Final = 3
_RATE: Final = (13, 10)  # bins for each point; peeling leaves next to nothing from 1.222 on
_SPARE: Final = 256  # bins, for which few points make up

Bins = NDArray[np.int32]


def table_of(length: int) -> Layout:
    """The table for so many points; of a store's layout it takes the sparse rows as bins."""
    return Layout(length, -(-(length * _RATE[0] + _SPARE * _RATE[1]) // (THIRDS * _RATE[1])))


def bins_of(table: Layout, points: Points, key: bytes) -> Bins:
    """Each point's bin in each third, shape (3, n).

    Args:
        table: From `table_of`.
        points: Shape (n, 2).
        key: 16 bytes, public, independent of the points.
    """
    return table.places(points, key).sparse.astype(np.int32)


def points_in(points: Points, third: int, key: bytes) -> Points:
    """Other points, one for each point and third: a point of both parties' is the same at both in one bin alone."""
    return words_of(points, key, 2, f"points in third {third}")


def matched(table: Layout, bins: Bins) -> Bins:
    """A bin of its own for each point, shape (n,).

    It takes about 45 bytes of memory for each point, these bins among them.

    Args:
        table: From `table_of`.
        bins: Of all points, from `bins_of`.

    Raises:
        InternalError: There is none, by chance.
    """
    rounds, left = taken_off(table.sparse, bins)  # each point is taken off with a row that no other is
    found = np.empty(bins.shape[1], np.int32)
    for some, rows in rounds:
        found[some] = rows
    core = dict(zip(left.tolist(), bins[:, left].T.tolist(), strict=True))
    owners, taken = dict[int, int](), dict[int, int]()
    for point in core:
        _put(point, core, owners, taken)
    for point, row in taken.items():
        found[point] = row
    return found


def _put(point: int, bins: dict[int, list[int]], owners: dict[int, int], taken: dict[int, int]) -> None:
    """Finds a bin for one more point, for which others may have to move on: along a shortest such path."""
    came_from, queue = dict[int, int](), [point]
    for mover in queue:
        for wanted in bins[mover]:
            if wanted in came_from:
                continue
            came_from[wanted] = mover
            if wanted in owners:
                queue.append(owners[wanted])
                continue
            free: int | None = wanted
            while free is not None:
                owner = came_from[free]
                owners[free] = owner
                left = taken.get(owner)
                taken[owner], free = free, left
            return
    raise InternalError("by chance, there are too few bins for some identifiers; start the job again")
