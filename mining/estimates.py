"""Itemsets whose counts are estimates, with what they may be off by: what perturbed or noisy mining finds."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from mining.itemsets import Itemsets
from mining.lattice import Sets

Floats = NDArray[np.float64]
EstimatedLevel = tuple[Sets, Floats, Floats]

NORMAL_95: Final = 1.959963984540054  # of a standard normal variable, 95 % lie within


@dataclass(frozen=True, eq=False)
class EstimatedItemsets:
    """Itemsets over a dictionary, with estimated counts.

    Attributes:
        items: The dictionary.
        levels: Per length the itemsets, shape (m, k), positions in `items` ascending in a row; the m estimated counts,
            raw, so that one may be negative; and their m standard deviations. Lengths ascend.
        n_rows: Number of records to which the counts refer.
    """

    items: tuple[str, ...]
    levels: Sequence[EstimatedLevel]
    n_rows: int

    def __len__(self) -> int:
        return sum(len(sets) for sets, _, _ in self.levels)

    def canonical(self) -> EstimatedItemsets:
        """The same in the order of `Itemsets.canonical`, with a dictionary of those items only that occur."""
        used = np.zeros(len(self.items), bool)
        for sets, _, _ in self.levels:
            used[sets.ravel()] = True
        named = sorted(np.flatnonzero(used).tolist(), key=lambda at: self.items[at])
        rank = np.zeros(len(self.items), np.int32)
        rank[named] = np.arange(len(named), dtype=np.int32)
        levels = []
        for sets, counts, deviations in sorted(self.levels, key=lambda level: level[0].shape[1]):
            if len(sets):
                ranked = np.sort(rank[sets], axis=1)
                order = np.lexsort(ranked.T[::-1])
                levels.append((ranked[order], counts[order], deviations[order]))
        return EstimatedItemsets(tuple(self.items[at] for at in named), levels, self.n_rows)

    def rounded(self) -> Itemsets:
        """The same with whole counts between 0 and the number of records, as rules and metrics take them."""
        levels = [(sets, np.clip(np.rint(counts), 0, self.n_rows).astype(np.int64)) for sets, counts, _ in self.levels]
        return Itemsets(self.items, levels, self.n_rows)

    def to_arrow(self) -> pa.Table:
        """As `Itemsets.to_arrow`, with `deviation`, `low` and `high` of the support.

        Within [low, high] is, with 95 %, what noise may have moved it from. Counts are whole and supports between 0 and
        1; deviations are those of the raw estimates.
        """
        none = np.empty(0)
        rows = max(self.n_rows, 1)
        raw = np.concatenate([none, *(counts for _, counts, _ in self.levels)]) / rows
        deviation = np.concatenate([none, *(deviations for _, _, deviations in self.levels)]) / rows
        table = self.rounded().to_arrow()
        at = table.schema.get_field_index("support")
        table = table.set_column(at, "support", pa.array(np.clip(raw, 0, 1)))
        for name, column in (
            ("deviation", deviation),
            ("low", np.clip(raw - NORMAL_95 * deviation, 0, 1)),
            ("high", np.clip(raw + NORMAL_95 * deviation, 0, 1)),
        ):
            table = table.append_column(name, pa.array(column))
        return table
