"""The figures that go with a release, in its certificate and its report."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from anonymize.cells import SUPPRESSED
from anonymize.hierarchies.hierarchy import Hierarchy
from anonymize.release import Release
from anonymize.tables import Table
from anonymize.utility.loss import (
    average_class_size,
    average_equivalence_class_size,
    discernibility,
    gcp,
)


def summary(
    release: Release, table: Table, hierarchies: Mapping[str, Hierarchy], k: int | None = None
) -> dict[str, float]:
    """Loss of a release, in the metrics that it has.

    Suppressed rows are no class, also where they are published.

    Args:
        release: What an algorithm returned.
        table: Its input.
        hierarchies: Those that it was generalised by.
        k: Of k-anonymity, for C_avg.

    Returns:
        Of `gcp`, `prec`, `dm`, `c_avg`, `aecs`, `smallest_class`, `largest_class` those that are defined.
    """
    found: dict[str, float] = {}
    if release.cell_loss is not None and release.cell_loss.size:
        found["gcp"] = gcp(release.cell_loss)
    if release.node is not None:
        found["prec"] = _precision(release, table, hierarchies)
    if release.classes is not None:
        sizes = counted_sizes(release)
        found["dm"] = discernibility(sizes, len(release.suppressed))
        if sizes.size:
            found |= {"aecs": average_equivalence_class_size(sizes)}
            found |= {"smallest_class": int(sizes.min()), "largest_class": int(sizes.max())}
            if k is not None:
                found["c_avg"] = average_class_size(sizes, k)
    return found


def counted_sizes(release: Release) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    """Shape (classes,): rows of each class that is not one of suppressed rows."""
    if release.classes is None:
        return np.zeros(0, np.int64)
    shown = release.classes >= 0
    if release.rows is not None and len(release.suppressed):
        shown &= ~np.isin(release.rows, release.suppressed)
    sizes = np.bincount(release.classes[shown], minlength=1)
    return sizes[sizes > 0]


def _precision(release: Release, table: Table, hierarchies: Mapping[str, Hierarchy]) -> float:
    """Prec of a release whose columns have one level each, but for cells that are suppressed."""
    assert release.node is not None
    lost = float(table.n_rows - release.table.num_rows) * len(release.node)
    for name, level in release.node.items():
        column, height = release.table.column(name), hierarchies[name].height
        stars = int(pc.sum(pc.equal(column, SUPPRESSED)).as_py() or 0) if pa.types.is_string(column.type) else 0
        lost += stars + (release.table.num_rows - stars) * (level / height if height else 0.0)
    return 1.0 - lost / (table.n_rows * len(release.node))
