"""What every algorithm returns, and how recoded cells become a published table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from anonymize.cells import SUPPRESSED
from anonymize.columns import Column
from anonymize.grouping import group
from anonymize.hierarchies.hierarchy import Hierarchy
from anonymize.models.requirements import Requirements
from anonymize.tables import Table
from link.errors import ConfigurationError

MASKED = -1  # in place of a level: the cell is suppressed


@dataclass(frozen=True)
class Release:
    """A table as it may be published, and what is needed to judge it.

    Attributes:
        algorithm: Name of the algorithm that made it.
        table: The published rows, without identifiers, columns in the input's order. Generalised cells are text (see
            `anonymize.cells`); quasi-identifiers that stay as they were, centres and synthetic records keep their type.
        rows: Input row of each published row, shape (published rows,); None for synthetic records.
        classes: Equivalence class of each published row, numbered from 0: rows of equal published quasi-identifiers.
            −1 marks a row whose cells were blanked. None where there are no classes.
        suppressed: Input rows that are left out or blanked, ascending.
        node: Level of each quasi-identifier, where the whole column has one level.
        cell_loss: Normalised certainty penalty of each input row's quasi-identifier cells, shape (n, d), each in
            [0, 1], 1 where suppressed; None where cells are not generalised.
        statistics: Counts of the work done: nodes checked, pruned, splits tried.
        details: What verification and reports need besides: moments, densities, nodes of local recoding.

    Example:
        Of a table with the ages and illnesses of six people:

        >>> release = mondrian(table, Requirements((KAnonymity(2),)))
        >>> release.algorithm, release.table.num_rows
        ('mondrian', 6)
    """

    algorithm: str
    table: pa.Table
    rows: NDArray[np.int64] | None
    classes: NDArray[np.int64] | None
    suppressed: NDArray[np.int64]
    node: Mapping[str, int] | None = None
    cell_loss: NDArray[np.float64] | None = None
    statistics: Mapping[str, int | float] = field(default_factory=dict)
    details: Mapping[str, object] = field(default_factory=dict)

    @property
    def n_classes(self) -> int:
        """Number of equivalence classes; 0 where there are none."""
        return 0 if self.classes is None or not self.classes.size else int(self.classes.max()) + 1

    @property
    def class_sizes(self) -> NDArray[np.int64]:
        """Rows of each class, shape (classes,)."""
        if self.classes is None:
            return np.zeros(0, np.int64)
        return np.bincount(self.classes[self.classes >= 0], minlength=self.n_classes)


def allowed_suppression(share: float | Decimal | str, n_rows: int) -> int:
    """MaxSup in rows: ⌊share · n⌋, where the share is the decimal number it is written as.

    Raises:
        ConfigurationError: The share lies outside 0 … 1.
    """
    exact = Decimal(str(share))
    if not 0 <= exact <= 1:
        raise ConfigurationError(
            f"max_suppression is {share}, but a share of rows lies between 0 and 1: give 0.02 for two per cent."
        )
    return int(exact * n_rows)


def publish(
    table: Table,
    columns: Mapping[str, pa.Array | pa.ChunkedArray],
    rows: NDArray[np.int64],
    blanked: NDArray[np.bool_] | None = None,
) -> pa.Table:
    """The published table: chosen rows, some columns replaced, identifiers removed.

    Args:
        table: The input.
        columns: New cells of some columns, one for each *published* row.
        rows: Input rows that are published, in the order of publication.
        blanked: Published rows whose sensitive cells become empty, shape (rows,).

    Returns:
        Columns in the input's order.
    """
    published = {}
    whole = len(rows) == table.n_rows and bool((rows == np.arange(table.n_rows)).all())
    for name in table.data.column_names:
        if name in table.roles.identifiers:
            continue
        if name in columns:
            published[name] = columns[name]
            continue
        column = table.data.column(name)
        if not whole:
            column = column.take(pa.array(rows))
        if blanked is not None and name in table.roles.sensitive:
            column = pc.if_else(pa.array(blanked), pa.scalar(None, column.type), column)
        published[name] = column
    return pa.table(published)


def sorted_rows(release: Release) -> Release:
    """The same release with its rows in the order of their published cells, column by column.

    Rows that stay in the input's order reveal it: of a table that is sorted by age, a row's place reveals the age that
    its cell hides. Sorted rows reveal no more than the rows as a multiset. The details say so, as `row_order`.
    """
    shown = unsigned_zeros(release.table)
    order = pc.sort_indices(plain(shown), [(name, "ascending") for name in shown.column_names])
    at = order.to_numpy()
    return replace(
        release,
        table=shown.take(order),
        rows=None if release.rows is None else release.rows[at],
        classes=None if release.classes is None else release.classes[at],
        details={**release.details, "row_order": "sorted"},
    )


def unsigned_zeros(table: pa.Table) -> pa.Table:
    """The rows with 0 for −0: the two are one place in every order, so that theirs would be the input's."""
    columns = {
        name: pc.add(column, pa.scalar(0, column.type)) if pa.types.is_floating(column.type) else column
        for name, column in zip(table.column_names, table.columns, strict=True)
    }
    return pa.table(columns)


def plain(table: pa.Table) -> pa.Table:
    """The rows alone: dictionaries hold values of rows that are left out, and metadata may hold anything."""
    columns = {
        name: column.cast(column.type.value_type) if pa.types.is_dictionary(column.type) else column
        for name, column in zip(table.column_names, table.columns, strict=True)
    }
    return pa.table(columns)


def recode(
    table: Table, hierarchies: Mapping[str, Hierarchy], node: Sequence[int], keep: NDArray[np.bool_]
) -> pa.Table:
    """Full-domain recoding: each quasi-identifier at one level, rows that are not kept left out.

    Args:
        table: The input.
        hierarchies: One for each quasi-identifier.
        node: Level of each quasi-identifier, in the order of `table.quasi_identifiers`.
        keep: Which rows are published, shape (n,).

    Returns:
        The published table; a column at level 0 keeps its type.
    """
    rows = np.flatnonzero(keep)
    levels = np.broadcast_to(np.asarray(node, np.int8), (len(rows), len(node)))
    return publish(table, recoded_cells(table, hierarchies, levels, rows).columns, rows)


@dataclass(frozen=True)
class RecodedCells:
    """Quasi-identifiers of published rows after recoding.

    Attributes:
        columns: Cells by name of the quasi-identifier.
        codes: Number of each published text, per column, shape (rows, d): rows with equal codes show equal text.
        loss: Normalised certainty penalty of each cell, shape (rows, d).
    """

    columns: Mapping[str, pa.Array]
    codes: NDArray[np.int32]
    loss: NDArray[np.float64]

    def classes(self, chosen: NDArray[np.bool_]) -> NDArray[np.int64]:
        """Class of each chosen row, numbered from 0: rows of equal text; −1 for the others."""
        classes = np.full(len(self.codes), -1, np.int64)
        classes[chosen] = group(self.codes[chosen])[0]
        return classes


def recoded_cells(
    table: Table, hierarchies: Mapping[str, Hierarchy], levels: NDArray[np.int8], rows: NDArray[np.int64]
) -> RecodedCells:
    """Recodes each cell at a level of its own.

    Args:
        table: The input.
        hierarchies: One for each quasi-identifier.
        levels: Level of each cell, `MASKED` for a suppressed one, shape (rows, d).
        rows: The input rows to recode, shape (rows,).

    Returns:
        The cells: text, but the column's own type where all cells of a column stay at level 0 and show values.
    """
    d = len(table.quasi_identifiers)
    columns: dict[str, pa.Array] = {}
    codes, loss = np.empty((len(rows), d), np.int32), np.empty((len(rows), d))
    for position, column in enumerate(table.quasi_identifiers):
        hierarchy = hierarchies[column.name]
        recoded = recoded_leaves(hierarchy, hierarchy.align(column)[column.codes[rows]], levels[:, position])
        codes[:, position], loss[:, position] = recoded.codes, recoded.loss
        if recoded.as_they_were and hierarchy.bins_of(column) is None:
            columns[column.name] = unchanged_values(table, column).take(pa.array(column.codes[rows]))
        else:
            columns[column.name] = recoded.texts.take(pa.array(recoded.codes))
    return RecodedCells(columns, codes, loss)


@dataclass(frozen=True)
class RecodedLeaves:
    """Cells of one quasi-identifier after recoding.

    Attributes:
        texts: What the cells may show, each text once.
        codes: Number of each cell's text, shape (cells,).
        loss: Normalised certainty penalty of each cell, shape (cells,).
        as_they_were: Whether all of them stay at level 0.
    """

    texts: pa.Array
    codes: NDArray[np.int32]
    loss: NDArray[np.float64]
    as_they_were: bool


def recoded_leaves(hierarchy: Hierarchy, leaves: NDArray[np.int32], levels: NDArray[np.int8]) -> RecodedLeaves:
    """Recodes cells of one quasi-identifier.

    Args:
        hierarchy: Of the column.
        leaves: Leaf of each cell, shape (cells,).
        levels: Level of each cell, `MASKED` for a suppressed one, shape (cells,).
    """
    vocabulary: dict[str, int] = {}
    text = np.full(len(leaves), _number(vocabulary, SUPPRESSED), np.int32)
    penalty = np.ones(len(leaves))
    used = np.unique(levels).tolist()
    for one in (value for value in used if value != MASKED):
        at = np.flatnonzero(levels == one) if len(used) > 1 else slice(None)
        label = hierarchy.maps[one][leaves[at]]
        numbers = np.array([_number(vocabulary, shown) for shown in hierarchy.labels[one]], np.int32)
        text[at] = numbers[label]
        penalty[at] = hierarchy.loss(one)[label]
    return RecodedLeaves(pa.array(list(vocabulary), pa.string()), text, penalty, used == [0])


def check_shown_classes(
    table: Table, requirements: Requirements, rows: NDArray[np.int64], classes: NDArray[np.int64]
) -> None:
    """Checks classes that were formed apart but show the same cells, and so are one class to all who see the table.

    A union of good classes is good for every monotone model; only other models are asked.

    Args:
        table: The input.
        requirements: Fitted to it.
        rows: Input row of each published row, shape (p,).
        classes: Class of each published row, −1 for none, shape (p,).

    Raises:
        ConfigurationError: A class fails.
    """
    if requirements.monotone or not (classes >= 0).any():
        return
    counted = classes >= 0
    columns = [replace(c, codes=c.codes[rows[counted]]) for c in map(table.column, requirements.columns)]
    check_good(requirements, requirements.check(classes[counted], int(classes.max()) + 1, columns))


def check_good(requirements: Requirements, good: NDArray[np.bool_]) -> None:
    """Refuses classes that show the same cells and fail together.

    Raises:
        ConfigurationError: A class is not good.
    """
    if not good.all():
        names = ", ".join(model.name for model in requirements.models if not model.monotone)
        raise ConfigurationError(
            f"Classes that show the same quasi-identifiers fail {names} together: take another algorithm, or weaken it."
        )


def unchanged_values(table: Table, column: Column) -> pa.Array:
    """The values of a quasi-identifier's cells as they are, in the order of its domain, equal values written equally.

    Text may write one value in several ways ("7" and "7.0", "yes" and "true"). Published so, records of one class could
    be distinguished.
    """
    given = table.data.schema.field(column.name).type
    typed = {
        "numeric": pa.types.is_integer(given) or pa.types.is_floating(given),
        "boolean": pa.types.is_boolean(given),
        "date": pa.types.is_date(given),
    }
    return pa.array(column.domain, given) if typed.get(column.kind, False) else pa.array(column.texts, pa.string())


def _number(vocabulary: dict[str, int], text: str) -> int:
    return vocabulary.setdefault(text, len(vocabulary))
