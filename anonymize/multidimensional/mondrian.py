"""Mondrian: multidimensional k-anonymity by recursive partitioning.

Source: LeFevre, DeWitt and Ramakrishnan, "Mondrian multidimensional k-anonymity", ICDE 2006; Aggarwal, Data Mining,
section 20.3.1.3.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Final, Literal, get_args

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from anonymize.cells import format_interval, format_set
from anonymize.clustering.attributes import attribute_of
from anonymize.clustering.centres import publish_centres
from anonymize.grouping import Histograms, group
from anonymize.hierarchies.hierarchy import Hierarchy
from anonymize.models.requirements import Requirements
from anonymize.multidimensional.axes import Axis, axes_of
from anonymize.multidimensional.cuts import Judge
from anonymize.multidimensional.partition import Mode, Partition, partition
from anonymize.release import Release, check_shown_classes, publish
from anonymize.tables import Table
from link.errors import ConfigurationError

Form = Literal["ranges", "centres"]

_NO_HIERARCHIES: Final[Mapping[str, Hierarchy]] = MappingProxyType({})


def mondrian(
    table: Table,
    requirements: Requirements,
    *,
    mode: Mode = "strict",
    hierarchies: Mapping[str, Hierarchy] = _NO_HIERARCHIES,
    release: Form = "ranges",
) -> Release:
    """Partitions the records into regions that each meet the requirements; nothing is suppressed.

    With k-anonymity alone and d ordered quasi-identifiers, strict classes have at most 2d(k − 1) + m records, m being
    the largest number of records with equal quasi-identifiers. Relaxed regions have fewer than 2k, unless all their
    records are equal.

    Args:
        table: The input.
        requirements: Models that every class must meet.
        mode: "strict" keeps equal values of a cut column together. "relaxed" halves regions, so that equal values may
            go to both sides. "hierarchical" divides a tree into the children of the lowest common ancestor, where all
            that occur are large enough.
        hierarchies: Of columns of kind tree or code. In all modes they put such values in order and name classes;
            without one, values are ordered as text.
        release: "ranges" publishes [least, greatest] value, the label of the lowest common ancestor, or the set of
            values where there is no hierarchy; all tight. "centres" publishes means, middle ranks and medoids.

    Returns:
        The release. Regions that show the same are one class.

    Raises:
        ConfigurationError: The table as a whole fails the requirements, or a parameter is wrong.
        InputDataError: A hierarchy lacks values.
    """
    for name, value, allowed in (("mode", mode, get_args(Mode)), ("release", release, get_args(Form))):
        if value not in allowed:
            raise ConfigurationError(f'{name} is "{value}"; it must be one of {", ".join(allowed)}.')
    if not table.quasi_identifiers:
        raise ConfigurationError("The table has no quasi-identifiers; there is nothing to generalise.")
    fitted = requirements.fitted(table)
    _refuse_infeasible(fitted, table)
    axes = axes_of(table, hierarchies)
    found = partition(axes, Judge(fitted, [table.columns[name] for name in fitted.columns]), mode)
    statistics = {"regions": len(found.low), "cuts_tried": found.tried, "levels": found.levels}
    if release == "centres":
        attributes = [attribute_of(column, hierarchies.get(column.name)) for column in table.quasi_identifiers]
        made = publish_centres("mondrian", table, attributes, found.labels, statistics, {"mode": mode})
    else:
        made = _publish_ranges(table, axes, found, statistics, mode)
    assert made.rows is not None
    assert made.classes is not None
    check_shown_classes(table, fitted, made.rows, made.classes)
    return made


def _refuse_infeasible(requirements: Requirements, table: Table) -> None:
    """Without suppression, the table as one class is the last resort.

    Raises:
        ConfigurationError: It fails.
    """
    reason = requirements.infeasible(table, 0)
    if reason is not None:
        raise ConfigurationError(reason)
    columns = [table.columns[name] for name in requirements.columns]
    if not requirements.satisfied(Histograms.of(np.zeros(table.n_rows, np.int64), 1, columns))[0]:
        raise ConfigurationError("The table as one class fails the requirements: weaken the models.")


def _publish_ranges(
    table: Table, axes: Sequence[Axis], found: Partition, statistics: Mapping[str, int | float], mode: Mode
) -> Release:
    """A release of each region's ranges."""
    columns, codes = {}, np.empty((len(found.low), len(axes)), np.int64)
    loss = np.empty((table.n_rows, len(axes)))
    for position, axis in enumerate(axes):
        low, high = found.low[:, position], found.high[:, position]
        penalties = axis.penalties(low, high)
        if axis.column.kind in ("numeric", "ordinal", "date"):
            texts, codes[:, position] = _intervals(axis.column.domain, low, high)
        elif axis.tree is not None:
            texts, codes[:, position] = _labels(axis, low, high)
        else:
            texts, codes[:, position], sizes = _sets(axis, found)
            penalties = (sizes - 1) / max(axis.column.size - 1, 1)
        shown = codes[:, position].astype(np.int32)[found.labels]
        columns[axis.column.name] = pa.array(texts, pa.string()).take(pa.array(shown))
        loss[:, position] = penalties[found.labels]
    rows = np.arange(table.n_rows)
    classes = group(codes)[0]
    return Release(
        "mondrian",
        publish(table, columns, rows),
        rows,
        classes[found.labels],
        np.zeros(0, np.int64),
        None,
        loss,
        statistics,
        {"mode": mode},
    )


def _numbered(texts: Sequence[str], which: NDArray[np.int64]) -> tuple[list[str], NDArray[np.int64]]:
    """Distinct texts, and which of them each region shows."""
    vocabulary: dict[str, int] = {}
    numbers = np.array([vocabulary.setdefault(text, len(vocabulary)) for text in texts], np.int64)
    return list(vocabulary), numbers[which]


def _intervals(
    domain: Sequence[object], low: NDArray[np.int32], high: NDArray[np.int32]
) -> tuple[list[str], NDArray[np.int64]]:
    pairs, which = np.unique(low * np.int64(len(domain)) + high, return_inverse=True)
    ends = zip((pairs // len(domain)).tolist(), (pairs % len(domain)).tolist(), strict=True)
    return _numbered([format_interval(domain[a], domain[b]) for a, b in ends], which.reshape(-1))


def _labels(axis: Axis, low: NDArray[np.int32], high: NDArray[np.int32]) -> tuple[list[str], NDArray[np.int64]]:
    assert axis.tree is not None
    levels, leaves = axis.common_levels(low, high), axis.leaves[low]
    pairs, which = np.unique(levels * np.int64(len(axis.leaves)) + leaves, return_inverse=True)
    shown = zip((pairs // len(axis.leaves)).tolist(), (pairs % len(axis.leaves)).tolist(), strict=True)
    return _numbered([axis.tree.label(level, leaf) for level, leaf in shown], which.reshape(-1))


def _sets(axis: Axis, found: Partition) -> tuple[list[str], NDArray[np.int64], NDArray[np.int64]]:
    """The set of values in each region, and how many they are."""
    size = axis.column.size
    cells = np.unique(found.labels * size + axis.codes)
    counts = np.bincount(cells // size, minlength=len(found.low))
    codes, ends = cells % size, np.cumsum(counts)
    known: dict[bytes, int] = {}
    sets = [codes[end - count : end] for count, end in zip(counts.tolist(), ends.tolist(), strict=True)]
    which = np.array([known.setdefault(members.tobytes(), len(known)) for members in sets], np.int64)
    texts = [format_set(axis.column.domain[code] for code in np.frombuffer(key, np.int64)) for key in known]
    return *_numbered(texts, which), counts
