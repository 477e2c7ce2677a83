"""Classes published as their centres."""

from __future__ import annotations

import datetime
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from anonymize.clustering.attributes import Attribute, NominalAttribute, round_to_majority
from anonymize.columns import Column
from anonymize.grouping import group
from anonymize.release import Release, publish
from anonymize.tables import Table

Floats = NDArray[np.float64]
Labels = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Centres:
    """The centres of the classes in one column.

    Attributes:
        cells: Shape (classes,): as published. Means of numbers are floating-point numbers, of dates the nearest day;
            all other centres are values of the domain.
        codes: Shape (classes,): equal for equal cells.
        distances: Shape (n,): of each record from its class's centre as published, in [0, 1].
    """

    cells: pa.Array
    codes: NDArray[np.int64]
    distances: Floats


def centres(column: Column, attribute: Attribute, labels: Labels, classes: int) -> Centres:
    """The centre of each class (MAA-SLIE, eq. 5, 7, 15 and 17).

    Args:
        column: With n rows.
        attribute: Of the column.
        labels: Shape (n,), the class of each row.
        classes: How many there are; none is empty.
    """
    if column.kind in ("numeric", "date"):
        return _means(column, labels, classes)
    ranks = _medoids(attribute, column, labels, classes) if isinstance(attribute, NominalAttribute) else None
    if ranks is None:
        ranks = _centre_ranks(column.codes, labels, classes)
    distances = np.empty(len(labels))
    own = ranks[labels]
    for rank in np.unique(ranks).tolist():
        at = own == rank
        distances[at] = attribute.distances(rank)[column.codes[at]]
    return Centres(pa.array(column.domain).take(pa.array(ranks)), ranks, distances)


def _means(column: Column, labels: Labels, classes: int) -> Centres:
    numbers = column.numbers[column.codes]
    means = np.bincount(labels, numbers, classes) / np.bincount(labels, minlength=classes)
    cells = pa.array(means)
    if column.kind == "date":
        means = np.floor(means + 0.5)
        cells = pa.array([datetime.date.fromordinal(int(day)) for day in means], pa.date32())
    span = column.numbers[-1] - column.numbers[0]
    distances = np.abs(numbers - means[labels]) / (span or 1.0)
    return Centres(cells, np.unique(means, return_inverse=True)[1].reshape(-1), distances)


def _centre_ranks(codes: NDArray[np.int32], labels: Labels, classes: int) -> NDArray[np.int64]:
    sizes = np.bincount(labels, minlength=classes)
    totals = np.bincount(labels, codes, classes).astype(np.int64)
    scaled = codes * sizes[labels]
    down = np.bincount(labels, scaled < totals[labels], classes)
    up = np.bincount(labels, scaled > totals[labels], classes)
    return round_to_majority(totals, sizes, down, up)


def _medoids(attribute: NominalAttribute, column: Column, labels: Labels, classes: int) -> NDArray[np.int64]:
    order = np.lexsort((column.codes, labels))
    members = column.codes[order].tolist()
    bounds = np.searchsorted(labels[order], np.arange(classes + 1)).tolist()
    known: dict[tuple[int, ...], int] = {}
    found = np.empty(classes, np.int64)
    for number, (start, stop) in enumerate(pairwise(bounds)):
        key = tuple(members[start:stop])
        if key not in known:
            known[key] = attribute.medoid(key)
        found[number] = known[key]
    return found


def publish_centres(
    algorithm: str,
    table: Table,
    attributes: Sequence[Attribute],
    labels: Labels,
    statistics: Mapping[str, int | float],
    details: Mapping[str, object],
) -> Release:
    """A release in which the quasi-identifiers of each record are the centres of its class.

    Args:
        algorithm: Its name.
        table: The input.
        attributes: Of its quasi-identifiers.
        labels: Shape (n,), the class of each row, from 0; none is empty.
        statistics: Of the release.
        details: Of the release.

    Returns:
        All rows in the input's order. Classes whose centres agree in all columns are one class of the release. The loss
        of a cell is its distance from the centre.
    """
    classes = int(labels.max()) + 1
    found = [
        centres(column, attribute, labels, classes)
        for column, attribute in zip(table.quasi_identifiers, attributes, strict=True)
    ]
    shown = {c.name: f.cells.take(pa.array(labels)) for c, f in zip(table.quasi_identifiers, found, strict=True)}
    rows = np.arange(table.n_rows)
    distinct, _ = group(np.stack([f.codes for f in found], axis=1))
    return Release(
        algorithm=algorithm,
        table=publish(table, shown, rows),
        rows=rows,
        classes=distinct[labels],
        suppressed=np.empty(0, np.int64),
        cell_loss=np.stack([f.distances for f in found], axis=1),
        statistics=statistics,
        details=details,
    )
