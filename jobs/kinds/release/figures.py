"""What a certificate says of a joint release, recomputed from its rows and from what is public."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from anonymize.cells import SUPPRESSED
from anonymize.certificate import Scale
from anonymize.roles import Roles
from anonymize.tables import Table
from anonymize.utility.loss import average_class_size, average_equivalence_class_size, discernibility
from anonymize.verification.losses import generalisation_loss
from jobs.kinds.release.release import Anonymized
from mining.joint.anonymisation.conditions.models import offered
from mining.joint.anonymisation.parameters import JointAnonymisation, QuasiIdentifier


def class_sizes(release: Anonymized, task: JointAnonymisation) -> NDArray[np.int64]:
    """Rows of each class, shape (classes,)."""
    if not release.table.num_rows:
        return np.zeros(0, np.int64)
    names = [each.name for each in task.quasi_identifiers]
    counted = release.table.group_by(names, use_threads=False).aggregate([([], "count_all")])
    return np.asarray(counted["count_all"].to_numpy(), np.int64)


def sensitive_counts(release: Anonymized, task: JointAnonymisation) -> dict[str, dict[str, int] | None]:
    """By sensitive column, all rows with each value, where that is public.

    It is where no row is left out, and of columns that a model compares with. Otherwise nobody knows it.
    """
    found: dict[str, dict[str, int] | None] = {}
    for each in task.carried:
        if each.role != "sensitive":
            continue
        found[each.name] = dict(release.totals[each.name]) if each.name in release.totals else None
        if release.table.num_rows == release.n_rows:
            counted = release.table.column(each.name).value_counts().to_pylist()
            found[each.name] = {entry["values"]: entry["counts"] for entry in counted}
    return found


def sensitive_domain(release: Anonymized, task: JointAnonymisation) -> Table | None:
    """One row for each sensitive value that a model compares with; None where none compares with all rows."""
    columns = {each.name: each for each in task.carried if each.name in release.totals}
    if not columns or not offered(task.requirements):
        return None
    longest = max(len(release.totals[name]) for name in columns)
    cells = {}
    for name in columns:
        values = list(release.totals[name])
        cells[name] = pa.array(values + values[:1] * (longest - len(values)), pa.string())
    kinds = {name: each.kind for name, each in columns.items()}
    orders = {name: each.values or () for name, each in columns.items() if each.kind == "ordinal"}
    return Table.of(pa.table(cells), Roles(sensitive=tuple(columns)), kinds, orders, missing="value")


def scales(release: Anonymized, task: JointAnonymisation) -> dict[str, Scale] | None:
    """How the loss of published cells is recomputed; None where they do not determine it."""
    found = {}
    for each in task.quasi_identifiers:
        if each.name in release.spans:
            order = list(each.hierarchy.leaves) if each.kind == "ordinal" else None
            found[each.name] = Scale(span=release.spans[each.name], order=order)
            continue
        leaves = _leaves_of_labels(release, each)
        if leaves is None:
            return None
        found[each.name] = Scale(total=len(each.hierarchy.leaves) if leaves else None, labels=leaves)
    return found


def _leaves_of_labels(release: Anonymized, quasi: QuasiIdentifier) -> dict[str, int] | None:
    """Leaves of each label that is shown, if several; None where a label means different ones."""
    hierarchy, shown = quasi.hierarchy, set(release.table.column(quasi.name).unique().to_pylist())
    levels = [release.node[quasi.name]] if release.node else range(hierarchy.height + 1)
    found: dict[str, int] = {}
    for level in levels:
        for label, count in zip(hierarchy.labels[level], hierarchy.leaf_counts(level).tolist(), strict=True):
            if label in shown and found.setdefault(label, count) != count:
                return None
    if found.get(SUPPRESSED) == 1:
        return None  # a star that reveals the only value there is
    return {label: count for label, count in found.items() if count > 1}


def metrics(
    release: Anonymized,
    task: JointAnonymisation,
    sizes: NDArray[np.int64],
    measured: Mapping[str, Scale] | None,
    k: int | None,
) -> dict[str, int | float]:
    """The figures of loss that a release has."""
    left_out, d = release.n_rows - release.table.num_rows, len(task.quasi_identifiers)
    found: dict[str, int | float] = {"dm": discernibility(sizes, left_out)}
    gcp = None if measured is None else generalisation_loss(release.table, measured, release.n_rows)
    if gcp is not None:
        found["gcp"] = gcp
    if release.node:
        heights = {each.name: max(each.hierarchy.height, 1) for each in task.quasi_identifiers}
        shown = sum(release.node[name] / heights[name] for name in heights) * release.table.num_rows
        found["prec"] = 1 - (shown + left_out * d) / (release.n_rows * d)
    if len(sizes):
        found |= {"aecs": average_equivalence_class_size(sizes), "c_avg": average_class_size(sizes, k or 1)}
        found |= {"smallest_class": int(sizes.min()), "largest_class": int(sizes.max())}
    return found
