"""Distinct tuples of leaves and their rows, of a table that comes in blocks: the frequency set of the whole table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Final

import numpy as np
from numpy.typing import NDArray

from anonymize.blocks.keys import Counts, Index, Packing, Words, distinct
from anonymize.blocks.table import Block, BlockTable
from anonymize.fulldomain.frequency import FrequencySet, SensitiveCounts
from anonymize.fulldomain.search import CountedProblem, fitted_requirements
from anonymize.hierarchies.hierarchy import Hierarchy
from anonymize.models.requirements import Requirements
from link.errors import ConfigurationError

Codes = NDArray[np.int32]

MOST_TUPLES: Final = 1 << 23
_HELD: Final = 1 << 20  # tuples that are added before they are merged, beyond those that are known


class _TupleCounts:
    """Rows of each tuple of codes."""

    def __init__(self, sizes: Sequence[int]) -> None:
        self.packing = Packing(sizes)
        self._held: list[tuple[Words, Counts]] = []
        self._known = 0

    def add(self, columns: Sequence[Codes]) -> None:
        """Counts rows, given by their codes in each column."""
        self._held.append(distinct(self.packing.pack(columns)))
        if sum(len(counts) for _, counts in self._held) > self._known + max(_HELD, self._known // 2):
            self.merge()

    def merge(self) -> tuple[Words, Counts]:
        """The distinct tuples in ascending order, and the rows of each.

        Raises:
            ConfigurationError: There are too many.
        """
        words = np.concatenate([each for each, _ in self._held], axis=1)
        counts = np.concatenate([each for _, each in self._held])
        self._held = []
        words, counts = distinct(words, counts)
        if len(counts) > MOST_TUPLES:
            raise ConfigurationError(
                f"The quasi-identifiers and a sensitive column have more than {MOST_TUPLES:,} different combinations, "
                "which is too many for rows in blocks: put coarser leaves into the hierarchies, such as bins, take "
                'fewer columns, or take engine = "memory".'
            )
        self._held, self._known = [(words, counts)], len(counts)
        return words, counts


@dataclass(frozen=True, eq=False)
class BlockProblem(CountedProblem):
    """Rows in blocks, made ready for full-domain search.

    Attributes:
        rows: The table.
        packing: Of leaves.
        index: Of the tuples.
        aligned: By quasi-identifier, the leaf of each value of its domain.
    """

    rows: BlockTable
    packing: Packing
    index: Index
    aligned: Mapping[str, Codes]

    @classmethod
    def of(
        cls,
        table: BlockTable,
        hierarchies: Mapping[str, Hierarchy],
        requirements: Requirements,
        max_suppression: float | Decimal | str,
    ) -> BlockProblem:
        """Checks the parameters and counts the distinct tuples; arguments and errors are those of `Problem.of`.

        Raises:
            ConfigurationError: There are too many distinct tuples, too.
        """
        fitted, allowed = fitted_requirements(table, hierarchies, requirements, max_suppression)
        aligned = {column.name: hierarchies[column.name].align(column) for column in table.quasi_identifiers}
        sizes = [len(hierarchies[name].leaves) for name in aligned]
        tuples = _TupleCounts(sizes)
        pairs = {name: _TupleCounts([*sizes, table.sensitive_column(name).size]) for name in fitted.columns}
        for block in table.blocks():
            leaves = _leaves(block, aligned)
            tuples.add(leaves)
            for name, counted in pairs.items():
                counted.add([*leaves, block.codes[name]])
        words, weights = tuples.merge()
        columns = np.stack([tuples.packing.column(words, place) for place in range(len(sizes))])
        values = {
            name: _by_tuple(counted, len(sizes), table.sensitive_column(name).size) for name, counted in pairs.items()
        }
        frequency = FrequencySet(columns, weights, values)
        return cls(table, hierarchies, fitted, allowed, frequency, table, tuples.packing, Index(words), aligned)

    def tuples(self, block: Block) -> Counts:
        """The tuple of each row of a block, shape (rows,).

        Raises:
            InputDataError: One was not counted, so that the source has changed.
        """
        return self.index.find(self.packing.pack(_leaves(block, self.aligned)))


def _leaves(block: Block, aligned: Mapping[str, Codes]) -> list[Codes]:
    """Leaf of each cell, by quasi-identifier."""
    return [leaves[block.codes[name]] for name, leaves in aligned.items()]


def _by_tuple(counted: _TupleCounts, columns: int, domain: int) -> SensitiveCounts:
    """Counts of values by tuple: pairs are in the order of their tuples, and no tuple is without one."""
    words, counts = counted.merge()
    new = np.zeros(len(counts), bool)
    for place in range(columns):
        leaves = counted.packing.column(words, place)
        new[1:] |= leaves[1:] != leaves[:-1]
    return SensitiveCounts(np.cumsum(new), counted.packing.column(words, columns).astype(np.int64), counts, domain)
