"""Count queries: how wrong the answers are that an analyst takes from a release.

"How many people of 30 to 45 in these towns?" is answered from generalised rows as if the people of a cell were spread
evenly over it (LeFevre et al. 2006; Xiao and Tao 2006).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from anonymize.cells import Interval, parse
from anonymize.columns import Column, number_of
from anonymize.hierarchies.hierarchy import Hierarchy
from anonymize.risk.coverage import NO_HIERARCHIES, PublishedTuples, coverage
from anonymize.tables import Table
from crypto.primitives.randomness import Randomness
from link.errors import ConfigurationError

Floats = NDArray[np.float64]

_CELLS = 1 << 22  # pairs of a query and a tuple that are held at once


@dataclass(frozen=True, eq=False)
class CountQueries:
    """Queries that count the rows whose values are among chosen ones, in some columns each.

    Attributes:
        columns: All columns that queries look at.
        chosen: By column, shape (queries, values of the domain): what each query asks for; all values where it does not
            look at the column. Of ordered columns the chosen values are neighbours.
    """

    columns: tuple[Column, ...]
    chosen: tuple[NDArray[np.bool_], ...]

    @property
    def count(self) -> int:
        """How many queries there are."""
        return len(self.chosen[0])


@dataclass(frozen=True, eq=False)
class QueryErrors:
    """Answers from a release beside the right ones.

    Attributes:
        actual: Shape (queries,): rows of the original.
        estimated: Shape (queries,): rows as the release suggests.
        relative: Shape (queries,): |estimated − actual|/max(actual, sanity bound).
        mean: Of `relative`.
        median: Of `relative`.
    """

    actual: NDArray[np.int64]
    estimated: Floats
    relative: Floats
    mean: float
    median: float


def random_queries(
    table: Table, rng: Randomness, *, count: int = 1000, dimensions: int = 2, selectivity: float = 0.1
) -> CountQueries:
    """Draws queries over quasi-identifiers.

    Args:
        table: The original.
        rng: Draws columns and values.
        count: How many queries.
        dimensions: Quasi-identifiers of each query, at most all.
        selectivity: Share of the domain that a query covers: in each of its columns about the `dimensions`-th root of
            it, one value at least. Ordered columns give a range, others any values.

    Raises:
        ConfigurationError: There are no quasi-identifiers, or a number is out of range.
    """
    columns = table.quasi_identifiers
    if not 1 <= dimensions <= len(columns) or count < 1 or not 0 < selectivity <= 1:
        raise ConfigurationError(
            f"Queries have 1 to {len(columns)} dimensions, not {dimensions}; there is one at least, not {count}; and "
            f"their selectivity is above 0 and at most 1, not {selectivity}."
        )
    share = selectivity ** (1 / dimensions)
    chosen = [np.ones((count, column.size), np.bool_) for column in columns]
    for query in range(count):
        for place in rng.permutation(len(columns))[:dimensions]:
            column = columns[place]
            width = max(1, round(share * column.size))
            mask = np.zeros(column.size, np.bool_)
            if column.is_ordered:
                start = rng.below(column.size - width + 1)
                mask[start : start + width] = True
            else:
                mask[rng.permutation(column.size)[:width]] = True
            chosen[place][query] = mask
    return CountQueries(columns, tuple(chosen))


def query_errors(
    table: Table,
    published: pa.Table,
    queries: CountQueries,
    *,
    hierarchies: Mapping[str, Hierarchy] = NO_HIERARCHIES,
    sanity: float = 0.001,
) -> QueryErrors:
    """Answers queries from a release, and compares.

    Args:
        table: The original.
        published: The published rows.
        queries: Over quasi-identifiers of the table.
        hierarchies: Those that the release was generalised by.
        sanity: Share of the original's rows below which a right answer counts as this share, so that queries which
            nobody meets do not decide the mean.

    Raises:
        ConfigurationError: A column is not published.
        InputDataError: A published cell cannot be read with these hierarchies.
    """
    actual = _actual(table, queries)
    tuples = PublishedTuples.of(published, [column.name for column in queries.columns])
    shares = [
        cell_shares(cells, column, chosen, hierarchies.get(column.name))
        for cells, column, chosen in zip(tuples.cells, queries.columns, queries.chosen, strict=True)
    ]
    estimated = np.empty(queries.count)
    step = max(1, _CELLS // max(len(tuples.sizes), 1))
    for start in range(0, queries.count, step):
        block = slice(start, start + step)
        inside = np.ones((len(estimated[block]), len(tuples.sizes)))
        for share, codes in zip(shares, tuples.codes.T, strict=True):
            inside *= share[block][:, codes]
        estimated[block] = inside @ tuples.sizes
    relative = np.abs(estimated - actual) / np.maximum(actual, max(sanity * table.n_rows, 1e-300))
    return QueryErrors(actual, estimated, relative, float(relative.mean()), float(np.median(relative)))


def cell_shares(
    cells: Sequence[str], column: Column, chosen: NDArray[np.bool_], hierarchy: Hierarchy | None = None
) -> Floats:
    """Which share of each published cell the queries cover, if people are spread evenly over it.

    Intervals of numbers are spread over the whole numbers between their ends where the column has only such, else over
    the line; all other cells over the values that they may cover.

    Args:
        cells: Distinct published cells.
        column: The original column.
        chosen: Shape (queries, values of the domain).
        hierarchy: Whose labels the cells may bear.

    Returns:
        Shape (queries, cells).

    Raises:
        InputDataError: A cell is neither a value, an interval, a set, a label of the hierarchy nor `*`.
    """
    found = np.zeros((len(chosen), len(cells)))
    ends = _ends(cells, column, hierarchy)
    if ends:
        whole = all(float(number).is_integer() for number in column.numbers)
        first = column.numbers[chosen.argmax(axis=1)][:, None]
        last = column.numbers[column.size - 1 - chosen[:, ::-1].argmax(axis=1)][:, None]
        low, high = np.array(list(ends.values())).T
        overlap = np.minimum(high, last) - np.maximum(low, first) + whole
        width = high - low + whole
        at_all = (low <= last) & (high >= first)
        found[:, list(ends)] = np.where(width > 0, np.maximum(overlap, 0) / np.where(width > 0, width, 1), at_all)
    others = [place for place in range(len(cells)) if place not in ends]
    if others:
        covered = coverage([cells[place] for place in others], column, hierarchy).astype(np.float64)
        found[:, others] = chosen @ covered.T / np.maximum(covered.sum(axis=1), 1)
    return found


def _ends(cells: Sequence[str], column: Column, hierarchy: Hierarchy | None) -> dict[int, tuple[float, float]]:
    """Ends of the cells that are intervals of numbers, or numbers such as centres, by their place."""
    if column.kind != "numeric":
        return {}
    labels = {label for level in hierarchy.labels[1:] for label in level} if hierarchy else set()
    found = {}
    for place, cell in enumerate(cells):
        if cell in labels:
            continue
        parsed = parse(cell)
        try:
            if isinstance(parsed, Interval):
                low, high = float(number_of(parsed.low)), float(number_of(parsed.high))
                whole = parsed.half_open and low.is_integer() and high.is_integer()
                found[place] = (low, high - 1 if whole else high)
            else:
                found[place] = (float(number_of(cell)),) * 2
        except ValueError:  # a set, a label or *
            continue
    return found


def _actual(table: Table, queries: CountQueries) -> NDArray[np.int64]:
    counts = np.empty(queries.count, np.int64)
    codes = [table.columns[column.name].codes for column in queries.columns]
    for query in range(queries.count):
        inside = np.ones(table.n_rows, np.bool_)
        for chosen, code in zip(queries.chosen, codes, strict=True):
            if not chosen[query].all():
                inside &= chosen[query][code]
        counts[query] = np.count_nonzero(inside)
    return counts
