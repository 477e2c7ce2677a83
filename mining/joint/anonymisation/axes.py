"""Quasi-identifiers as public axes along which regions are cut; compare `anonymize.multidimensional.axes`."""

from __future__ import annotations

import datetime
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from anonymize.cells import format_interval
from anonymize.columns import Kind, Value, number_of
from anonymize.hierarchies.bins import Bins
from anonymize.hierarchies.hierarchy import Hierarchy
from link.errors import ConfigurationError
from mining.joint.anonymisation.parameters import QuasiIdentifier

TREES: Final[frozenset[Kind]] = frozenset({"tree", "code", "boolean"})
"""Kinds of which no intervals are written."""

Places = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class PublicAxis:
    """All values that may occur, in a row: numbers, their bins and days ascending, a tree's leaves from left to right.

    Attributes:
        name: Of the column.
        hierarchy: Its leaves are the values.
        is_tree: Whether regions are shown by the label of the lowest common ancestor; by an interval else.
        leaves: Leaf of each place, shape (m,).
        places: Place of each leaf, shape (m,).
        coordinates: Position of each place, ascending, shape (m,): of a bin its middle.
        bins: The leaves of a column that is shown by bins; None where leaves are values.
    """

    name: str
    hierarchy: Hierarchy
    is_tree: bool
    leaves: Places
    places: Places
    coordinates: NDArray[np.float64]
    bins: Bins | None = None

    @classmethod
    def of(cls, quasi: QuasiIdentifier) -> PublicAxis:
        """The axis of a quasi-identifier; the values of an ordinal one stand in the order of their leaves.

        Raises:
            ConfigurationError: A leaf is no value of the column's kind.
        """
        hierarchy = quasi.hierarchy
        bins = hierarchy.bins if quasi.kind == "numeric" else None
        if quasi.kind in TREES:
            order = np.lexsort(hierarchy.maps)  # the last key, the top, decides first
            coordinates = np.arange(len(order), dtype=np.float64)
        else:
            if bins is not None:
                numbers = bins.middles
            else:
                numbers = np.array([_number(leaf, place, quasi) for place, leaf in enumerate(hierarchy.leaves)])
            order = np.argsort(numbers, kind="stable")
            coordinates = numbers[order]
        places = np.empty(len(order), np.int64)
        places[order] = np.arange(len(order))
        return cls(quasi.name, hierarchy, quasi.kind in TREES, order, places, coordinates, bins)

    def texts(self, low: Places, high: Places) -> list[str]:
        """What regions from one place to another show.

        Args:
            low: First place of each region, shape (r,).
            high: Last place, shape (r,).
        """
        first, last = self.leaves[low], self.leaves[high]
        if self.is_tree:
            levels = self.hierarchy.common_levels(first, last)
            return [self.hierarchy.label(a, b) for a, b in zip(levels.tolist(), first.tolist(), strict=True)]
        pairs = zip(first.tolist(), last.tolist(), strict=True)
        if self.bins is not None:
            return [self.bins.text(a, b) for a, b in pairs]
        named = self.hierarchy.leaves
        return [format_interval(_shown(named[a]), _shown(named[b])) for a, b in pairs]

    def width(self, low: int, high: int) -> float:
        """From one place to another; 1 where they are the same, so that widths are 0."""
        return float(self.coordinates[high] - self.coordinates[low]) or 1.0

    def span(self, low: int, high: int) -> float:
        """What `texts` show from one place to another, from end to end; 1 where that is nothing."""
        if self.bins is None:
            return self.width(low, high)
        return float(self.bins.high[self.leaves[high]] - self.bins.low[self.leaves[low]]) or 1.0


def axes_of(quasi_identifiers: Sequence[QuasiIdentifier]) -> tuple[PublicAxis, ...]:
    """The axes of quasi-identifiers; errors as in `PublicAxis.of`."""
    return tuple(PublicAxis.of(each) for each in quasi_identifiers)


def _number(leaf: str, place: int, quasi: QuasiIdentifier) -> float:
    """Where a leaf stands."""
    try:
        if quasi.kind == "numeric":
            return float(number_of(leaf))
        if quasi.kind == "date":
            return float(datetime.date.fromisoformat(leaf).toordinal())
    except ValueError:
        raise ConfigurationError(
            f'the hierarchy of "{quasi.name}" has the leaf "{leaf}", which is no {quasi.kind} value; regions are cut '
            "between values, so all leaves must be values"
        ) from None
    return float(place)


def _shown(leaf: str) -> Value:
    """A number as a number, so that it is written as in a release of one table."""
    try:
        return number_of(leaf)
    except ValueError:
        return leaf
