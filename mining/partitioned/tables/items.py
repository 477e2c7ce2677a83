"""The cells of a table's blocks as items `column=value` of rows."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from mining.data.transactions import Transactions, offsets_of
from mining.partitioned.tables.blocks import TableBlock, TableView


@dataclass(frozen=True, eq=False, slots=True)
class ItemBlock:
    """A block whose rows are seen as sets of some items, as `mining.partitioned.blocks.Block` is.

    Attributes:
        block: The block.
        view: Its columns.
        values: By column the texts that are items, Arrow's large strings.
        numbers: By column the numbers of these items.
        n_items: How many items there are.
    """

    block: TableBlock
    view: TableView
    values: tuple[pa.Array, ...]
    numbers: tuple[NDArray[np.int32], ...]
    n_items: int

    def seen(self, target: NDArray[np.int32] | None, n_items: int) -> Transactions:
        """The rows under other item numbers, without names; see `mining.partitioned.blocks.Block.seen`.

        Raises:
            InputDataError: The block is missing or damaged.
        """
        table = self.block.table(self.view)
        cells = np.full((table.n_rows, len(self.values)), -1, np.int32)
        for place, (column, values, numbers) in enumerate(zip(table.columns, self.values, self.numbers, strict=True)):
            known = pc.index_in(column.values, value_set=values).fill_null(-1).to_numpy()
            own = np.append(numbers, np.int32(-1))[known]
            cells[:, place] = np.append(own, np.int32(-1))[column.codes]
        cells.sort(axis=1)
        held = cells >= 0
        rows = Transactions(("",) * self.n_items, offsets_of(held.sum(axis=1)), cells[held])
        return rows if target is None else rows.renumbered(target, ("",) * n_items)
