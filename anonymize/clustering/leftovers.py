"""Records left over when no further class can be begun join the classes there are."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray

from anonymize.clustering.attributes import Floats
from anonymize.clustering.growing import Clustering, GrowingClass

_NUMBERS: Final = 1 << 23  # losses held at a time, of all classes by values: 64 MB

Choice = Callable[[Floats, Floats, NDArray[np.int64]], int]
"""The class to join, by the losses of all classes with the record (c,), their present ones (c,), and their records of
each level with it (c, levels)."""


def least_increase(with_it: Floats, present: Floats, _: NDArray[np.int64]) -> int:
    """The class whose loss rises least."""
    return int((with_it - present).argmin())


def disperse(clustering: Clustering, classes: Sequence[GrowingClass], rows: NDArray[np.int64], choose: Choice) -> None:
    """Lets each record join a class, in the order given; a class that meets k, p and H keeps meeting them.

    Args:
        clustering: The rules.
        classes: At least one; they grow.
        rows: Of the records.
        choose: The class to join.
    """
    if not len(rows):
        return
    present = np.array([clustering.loss_of(grown) for grown in classes])
    counts = np.array([grown.level_counts for grown in classes])
    every = sum(attribute.size for attribute in clustering.attributes)
    wide = len(classes) * every > _NUMBERS
    size = max(_NUMBERS // (len(classes) * len(clustering.attributes)), 1) if wide else len(rows)
    for start in range(0, len(rows), size):
        block = rows[start : start + size]
        found = [np.unique(codes[block], return_inverse=True) for codes in clustering.codes]
        candidates, places = [f[0] for f in found], np.stack([f[1].reshape(-1) for f in found])
        by_class = [clustering.losses_with(grown, candidates) for grown in classes]
        losses = [np.stack(tables) for tables in zip(*by_class, strict=True)]  # by attribute, (classes, candidates)
        for row, place in zip(block.tolist(), places.T.tolist(), strict=True):
            with_it = losses[0][:, place[0]].copy()
            for table, one in zip(losses[1:], place[1:], strict=True):
                with_it += table[:, one]
            level = clustering.levels_of_values[clustering.values[row]]
            counts[:, level] += 1
            chosen = choose(with_it, present, counts)
            counts[:, level] -= 1
            counts[chosen, level] += 1
            present[chosen] = with_it[chosen]
            clustering.join(classes[chosen], row)
            for table, new in zip(losses, clustering.losses_with(classes[chosen], candidates), strict=True):
                table[chosen] = new
