"""Closed and maximal itemsets, and the family of all subsets of given itemsets."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from mining.itemsets import Itemsets
from mining.lattice import Sets, levels_by_length, subset_positions, unique_sets
from mining.limits import EnumerationLimit

# Subsets made at a time before repeated ones are dropped.
_CHUNK = 1 << 22


def closed(itemsets: Itemsets) -> Itemsets:
    """The itemsets with no superset of the same count (Pasquier et al. 1999, "Discovering frequent closed itemsets").

    Args:
        itemsets: All frequent itemsets (up to some length), so that each one's subsets are among them.

    Returns:
        The closed ones among them, in canonical order.
    """
    ordered = itemsets.canonical()
    masks = [np.ones(len(sets), bool) for sets, _ in ordered.levels]
    for level in range(len(masks) - 1):
        (shorter, counts), (longer, longer_counts) = ordered.levels[level : level + 2]
        below = subset_positions(longer, shorter)
        same = (below >= 0) & (counts[below] == longer_counts[:, None])
        masks[level][below[same]] = False
    return ordered.filter(masks)


def maximal(itemsets: Itemsets) -> Itemsets:
    """The itemsets with no frequent superset (Bayardo 1998).

    Args:
        itemsets: All frequent itemsets (up to some length), so that each one's subsets are among them.

    Returns:
        The maximal ones among them, in canonical order.
    """
    ordered = itemsets.canonical()
    return ordered.filter(_maximal_masks([sets for sets, _ in ordered.levels]))


def maximal_sets(levels: Sequence[Sets]) -> list[Sets]:
    """The maximal members of a family that holds every subset of its members.

    Args:
        levels: The family, one lexicographically sorted array of shape (m, k) for each length 1, 2, ...

    Returns:
        The maximal members of each length, in the same order.
    """
    return [sets[mask] for sets, mask in zip(levels, _maximal_masks(levels), strict=True)]


def _maximal_masks(levels: Sequence[Sets]) -> list[NDArray[np.bool_]]:
    masks = [np.ones(len(sets), bool) for sets in levels]
    for level in range(len(levels) - 1):
        if len(levels[level + 1]):
            below = subset_positions(levels[level + 1], levels[level])
            masks[level][below[below >= 0]] = False
    return masks


def downward_closure(sets: Sequence[Sets], limit: int) -> list[Sets]:
    """All non-empty subsets of given itemsets.

    Args:
        sets: Arrays of shape (m, k), items ascending in a row; any lengths in any order.
        limit: The most subsets allowed.

    Returns:
        The distinct subsets of each length 1, 2, ..., lexicographically sorted.

    Raises:
        EnumerationLimit: There are more than `limit` of them.
    """
    levels = levels_by_length(sets)
    if levels and 2 ** len(levels) - 1 > limit:
        raise EnumerationLimit(limit)
    total = sum(len(level) for level in levels)
    if total > limit:
        raise EnumerationLimit(limit)
    for width in range(len(levels), 1, -1):
        given = len(levels[width - 2])
        levels[width - 2] = _with_subsets(levels[width - 2], levels[width - 1], limit)
        total += len(levels[width - 2]) - given
        if total > limit:
            raise EnumerationLimit(limit)
    return levels


def _with_subsets(shorter: Sets, longer: Sets, limit: int) -> Sets:
    """A family of k-itemsets together with all k-subsets of longer ones."""
    width = longer.shape[1]
    rows_at_once = max(1, _CHUNK // width)
    for start in range(0, len(longer), rows_at_once):
        block = longer[start : start + rows_at_once]
        subsets = np.concatenate([np.delete(block, d, axis=1) for d in range(width)])
        shorter = unique_sets(np.concatenate([shorter, subsets]))
        if len(shorter) > limit:
            raise EnumerationLimit(limit)
    return shorter
