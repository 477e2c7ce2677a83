"""The figures that go with a release, in its certificate and its report."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

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
        stars = {name: _stars(release.table.column(name)) for name in release.node}
        found["prec"] = lifted(release.node, hierarchies, table.n_rows, release.table.num_rows, stars)
    if release.classes is not None:
        found |= of_sizes(counted_sizes(release), len(release.suppressed), k)
    return found


def of_sizes(sizes: NDArray[np.int64], suppressed: int, k: int | None) -> dict[str, float]:
    """The metrics of a release's classes.

    Args:
        sizes: Rows of each class.
        suppressed: Suppressed rows.
        k: Of k-anonymity, for C_avg.
    """
    found: dict[str, float] = {"dm": discernibility(sizes, suppressed)}
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


def lifted(
    node: Mapping[str, int],
    hierarchies: Mapping[str, Hierarchy],
    rows: int,
    published: int,
    stars: Mapping[str, int],
) -> float:
    """Prec of a release whose columns have one level each, but for cells that are suppressed.

    Args:
        node: Level of each quasi-identifier.
        hierarchies: Of the quasi-identifiers.
        rows: Of the input.
        published: Rows of the release.
        stars: By quasi-identifier, published rows whose cell is suppressed.
    """
    lost = float(rows - published) * len(node)
    for name, level in node.items():
        height = hierarchies[name].height
        lost += stars[name] + (published - stars[name]) * (level / height if height else 0.0)
    return 1.0 - lost / (rows * len(node))


def _stars(column: pa.ChunkedArray) -> int:
    return int(pc.sum(pc.equal(column, SUPPRESSED)).as_py() or 0) if pa.types.is_string(column.type) else 0
