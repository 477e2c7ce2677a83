"""How many published rows find an original row of their own among those that they can cover."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

Whole = NDArray[np.int64]
_BLOCK = 1 << 24  # pairs that are looked at together


def alone(edges: tuple[Whole, Whole], published: Whole, original: Whole) -> int:
    """Published rows that are left over when as many as can be are each given an original row of their own.

    Args:
        edges: Which kind of published row can cover which kind of original row, both of shape (edges,).
        published: Shape (r,): rows of each kind.
        original: Shape (o,): rows of each kind.
    """
    left, right = edges
    if not len(right) or np.bincount(right, minlength=len(original)).max() <= 1:
        reach = np.bincount(left, original[right], len(published)).astype(np.int64)
        return int(np.maximum(published - reach, 0).sum())
    from scipy.sparse import csr_array  # takes longer to load than a node, which verifies nothing beside an original
    from scipy.sparse.csgraph import maximum_flow

    r, o = len(published), len(original)
    source, sink = r + o, r + o + 1
    heads = np.concatenate([np.full(r, source), left, r + np.arange(o)]).astype(np.int32)  # as scipy 1.14 has it
    tails = np.concatenate([np.arange(r), r + right, np.full(o, sink)]).astype(np.int32)
    capacity = np.concatenate([published, np.minimum(published[left], original[right]), original]).astype(np.int32)
    graph = csr_array((capacity, (heads, tails)), shape=(sink + 1, sink + 1))
    return int(published.sum() - maximum_flow(graph.tocsr(), source, sink).flow_value)


def covering(
    pairs: Sequence[NDArray[np.bool_]],
    published: NDArray[np.int64],
    original: NDArray[np.int64],
) -> tuple[Whole, Whole]:
    """Which published tuples can cover which original ones: those that can in every column.

    Args:
        pairs: By column, shape (cells, values): whether a cell can cover a value.
        published: Shape (r, columns): the cells of each tuple.
        original: Shape (o, columns): the values of each tuple.

    Returns:
        The pairs, as `alone` takes them.
    """
    lefts, rights = [], []
    size = max(_BLOCK // max(len(original), 1), 1)
    for start in range(0, len(published), size):
        block = published[start : start + size]
        both = np.ones((len(block), len(original)), np.bool_)
        for column, known in enumerate(pairs):
            both &= known[np.ix_(block[:, column], original[:, column])]
        left, right = np.nonzero(both)
        lefts.append(left + start)
        rights.append(right)
    if not lefts:
        return np.zeros(0, np.int64), np.zeros(0, np.int64)
    return np.concatenate(lefts), np.concatenate(rights)
