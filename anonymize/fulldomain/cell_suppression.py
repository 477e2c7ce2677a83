"""Local suppression after full-domain recoding: violating rows lose single cells instead of leaving the table.

Source: Samarati and Sweeney, "Protecting privacy when disclosing information", 1998 (cell suppression). The order,
fewest cells first, is that of local suppression in statistical disclosure control (Hundepool et al. 2012, ch. 3).
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from anonymize.fulldomain.examination import Examiner
from anonymize.fulldomain.frequency import FrequencySet, Recoder
from anonymize.fulldomain.lattice import Node
from anonymize.hierarchies.hierarchy import Hierarchy


def suppressed_cells(
    frequency: FrequencySet, hierarchies: Sequence[Hierarchy], examiner: Examiner, node: Node
) -> NDArray[np.bool_]:
    """Which cells of violating tuples to suppress so that they form classes that meet the requirements.

    Tuples that lose the same columns and agree in the others form a class. Sets of columns are tried by size; of one
    size, those that save most records first. A class that fails is left for larger sets. All subsets of the columns
    below their top are tried, so the work doubles with each column.

    Args:
        frequency: The violating tuples.
        hierarchies: One for each quasi-identifier.
        examiner: The requirements.
        node: Level of each quasi-identifier.

    Returns:
        Shape (u, d); a row that is all True could not be saved, or only without any cell.
    """
    u, d = len(frequency.weights), len(hierarchies)
    recoder = Recoder(hierarchies)
    cells = np.ones((u, d), bool)
    open_ = np.ones(u, bool)
    informative = [axis for axis, hierarchy in enumerate(hierarchies) if len(hierarchy.labels[node[axis]]) > 1]

    def saved(lost: tuple[int, ...]) -> NDArray[np.int64]:
        """The open tuples that form good classes without some columns."""
        members = np.flatnonzero(open_)
        rest = frequency.among(open_)
        kept = [axis for axis in range(d) if axis not in lost]
        labels, sizes = recoder.classes(rest, [node[axis] for axis in kept], kept)
        return members[examiner.good_classes(rest, labels, sizes)[labels]]

    for size in range(1, len(informative)):
        sets = list(itertools.combinations(informative, size))
        worth = {lost: int(frequency.weights[saved(lost)].sum()) for lost in sets}
        for lost in sorted((lost for lost in sets if worth[lost]), key=lambda lost: (-worth[lost], lost)):
            tuples = saved(lost)
            cells[tuples] = False
            cells[np.ix_(tuples, np.array(lost))] = True
            open_[tuples] = False
        if not open_.any():
            break
    return cells
