"""The generalisation lattice: nodes are tuples of levels, ordered componentwise.

Source: Samarati, "Protecting respondents' identities in microdata release", 2001, section 3.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from link.errors import ConfigurationError

Node = tuple[int, ...]

LARGEST = 1 << 24


class Lattice:
    """All nodes between no generalisation and the highest levels.

    Args:
        heights: Highest level of each quasi-identifier.
    """

    def __init__(self, heights: Sequence[int]) -> None:
        self.top: Node = tuple(heights)
        self.shape: tuple[int, ...] = tuple(height + 1 for height in heights)
        self.size: int = math.prod(self.shape)

    def zeros(self, dtype: DTypeLike) -> NDArray[Any]:
        """An array of the lattice's shape.

        Raises:
            ConfigurationError: There are more than 2^24 nodes, too many to search.
        """
        if self.size > LARGEST:
            raise ConfigurationError(
                f"The generalisation lattice has {self.size:,} nodes, and at most {LARGEST:,} can be searched: take "
                "fewer quasi-identifiers or levels, or the algorithm datafly or mondrian."
            )
        return np.zeros(self.shape, dtype)

    @property
    def bottom(self) -> Node:
        """The node without generalisation."""
        return (0,) * len(self.top)

    @cached_property
    def heights(self) -> NDArray[np.int16]:
        """Height of each node, the sum of its levels, in the lattice's shape."""
        heights = self.zeros(np.int16)
        for axis, levels in enumerate(self.shape):
            heights += np.arange(levels, dtype=np.int16).reshape(self._along(axis))
        return heights

    def of_height(self, height: int) -> Iterator[Node]:
        """The nodes of one height, in lexicographic order."""
        for node in np.argwhere(self.heights == height).tolist():
            yield tuple(node)

    def nodes(self) -> Iterator[Node]:
        """All nodes, in lexicographic order."""
        return itertools.product(*map(range, self.shape))

    def below(self, node: Node) -> tuple[slice, ...]:
        """Index of the node and all its specialisations in an array of the lattice's shape."""
        return tuple(slice(level + 1) for level in node)

    def above(self, node: Node) -> tuple[slice, ...]:
        """Index of the node and all its generalisations in an array of the lattice's shape."""
        return tuple(slice(level, None) for level in node)

    def specialisations(self, node: Node) -> Iterator[Node]:
        """The nodes one level lower in one quasi-identifier."""
        for axis, level in enumerate(node):
            if level:
                yield (*node[:axis], level - 1, *node[axis + 1 :])

    def generalisations(self, node: Node) -> Iterator[Node]:
        """The nodes one level higher in one quasi-identifier."""
        for axis, level in enumerate(node):
            if level < self.top[axis]:
                yield (*node[:axis], level + 1, *node[axis + 1 :])

    def total(self, per_level: Sequence[NDArray[np.float64]]) -> NDArray[np.float64]:
        """Sum of one number for each level of each quasi-identifier, for every node; in the lattice's shape."""
        total = self.zeros(np.float64)
        for axis, numbers in enumerate(per_level):
            total += np.asarray(numbers).reshape(self._along(axis))
        return total

    def _along(self, axis: int) -> tuple[int, ...]:
        return tuple(-1 if other == axis else 1 for other in range(len(self.shape)))
