"""Distinct tuples of leaves and their rows, of a table that comes in blocks: the frequency set of the whole table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Final

import numpy as np
from numpy.typing import NDArray

from anonymize.blocks.keys import Counts, Index, Packing, TupleSums, Words, distinct
from anonymize.blocks.table import Block, BlockTable
from anonymize.fulldomain.frequency import FrequencySet
from anonymize.fulldomain.search import CountedProblem, fitted_requirements
from anonymize.hierarchies.hierarchy import Hierarchy
from anonymize.models.requirements import Requirements
from link.errors import ConfigurationError

Codes = NDArray[np.int32]

MOST_TUPLES: Final = 1 << 23


class _TupleCounts(TupleSums):
    """Rows of each tuple of codes, of which there may not be too many."""

    def count(self, columns: Sequence[Codes]) -> None:
        """Counts rows, given by their codes in each column."""
        self.add(*distinct(self.packing.pack(columns)))

    def merge(self) -> tuple[Words, Counts]:
        """As in `TupleSums`.

        Raises:
            ConfigurationError: There are too many.
        """
        words, counts = super().merge()
        if len(counts) > MOST_TUPLES:
            raise ConfigurationError(
                f"The quasi-identifiers and a sensitive column have more than {MOST_TUPLES:,} different combinations, "
                "which is too many for rows in blocks: put coarser leaves into the hierarchies, such as bins, take "
                'fewer columns, or take engine = "memory".'
            )
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
        tuples = _TupleCounts(Packing(sizes))
        pairs = {name: _TupleCounts(Packing([*sizes, table.sensitive_column(name).size])) for name in fitted.columns}
        for block in table.blocks():
            leaves = _leaves(block, aligned)
            tuples.count(leaves)
            for name, counted in pairs.items():
                counted.count([*leaves, block.codes[name]])
        words, weights = tuples.merge()
        columns = np.stack([tuples.packing.column(words, place) for place in range(len(sizes))])
        values = {name: counted.by_tuple(table.sensitive_column(name).size) for name, counted in pairs.items()}
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
