"""What all parties know of every node before they look at one: its possible classes, and the least that it loses."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from anonymize.fulldomain.lattice import Lattice, Node
from mining.joint.anonymisation.parameters import JointAnonymisation


def possible_classes(task: JointAnonymisation) -> NDArray[np.float64]:
    """How many classes each node may have, in the lattice's shape."""
    sizes = [np.array([len(labels) for labels in each.labels], np.float64) for each in task.hierarchies]
    return _outer(np.multiply, sizes)


class PublicLattice(Lattice):
    """The lattice of a job, once it is opened what rows lose.

    Args:
        task: The public parameters.
        losses: What all rows lose at least at each level of each quasi-identifier, shape (levels of all,).

    Attributes:
        cells: How many classes each node may have, in the lattice's shape.
        bounds: What each node loses at least.
    """

    def __init__(self, task: JointAnonymisation, losses: NDArray[np.int64]) -> None:
        super().__init__([each.height for each in task.hierarchies])
        self.cells = possible_classes(task)
        self.bounds: NDArray[np.int64] = _outer(np.add, np.split(losses, np.cumsum(self.shape)[:-1]))

    def least_loss_of(self, best: Node) -> NDArray[np.int64]:
        """What a node loses at least if another one is better, for each other one; in the lattice's shape.

        Of equal losses the lexicographically first node counts.
        """
        first = int(np.ravel_multi_index(best, self.shape))
        return self.bounds + (np.arange(self.size) >= first).reshape(self.shape)


def _outer(join: np.ufunc, per_level: Sequence[NDArray[Any]]) -> NDArray[Any]:
    """One number for each level of each quasi-identifier, joined for every node; in the lattice's shape."""
    joined = per_level[0]
    for numbers in per_level[1:]:
        joined = join(joined[..., None], numbers)
    return joined
