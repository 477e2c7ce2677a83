"""The search of a node over columns of several parties, as far as it differs from that over rows."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from anonymize.fulldomain.lattice import Node
from mining.joint.anonymisation.examination import Examiner
from mining.joint.anonymisation.search import Search
from mining.joint.anonymisation.vertical.local_pruning import Marks, spread
from mining.joint.anonymisation.vertical.table_choice import TableChoice

_FEW: Final = 2  # quasi-identifiers


class ColumnSearch(Search):
    """A search over columns of several parties.

    Args:
        examiner: The parties' means.
        choice: Of the tables that it takes; what cannot be released is noted there as well.
        places: By party the places of its quasi-identifiers.
        local: By party what its own columns condemn.
    """

    def __init__(
        self,
        examiner: Examiner,
        choice: TableChoice,
        places: Mapping[str, tuple[int, ...]],
        local: Mapping[str, Marks],
    ) -> None:
        super().__init__(examiner)
        self.hopeless |= spread(self.task, places, local)
        choice.dead |= self.hopeless
        values = max((examiner.tests.sizes[model.column] for model in examiner.tests.models), default=1)
        self.too_large = self.cells * values > choice.most_cells

    def _showing(self, number: int) -> list[Node]:
        """Of nodes that show few quasi-identifiers only those of two: more would take more tables than they spare."""
        return [] if number > _FEW else super()._showing(number)
