"""A release of rows in blocks: each distinct tuple recoded once, the rows made whenever they are asked for."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from anonymize.blocks.tuples import BlockProblem
from anonymize.fulldomain.examination import Examiner
from anonymize.fulldomain.releasing import Recoding, Suppressed, check_suppressed
from anonymize.grouping import Histograms, group
from anonymize.release import check_good, recoded_leaves, unchanged_values
from anonymize.utility.exact_mean import exact_sum


@dataclass(frozen=True, eq=False)
class Cells:
    """What tuples show of one quasi-identifier.

    Attributes:
        values: Each once.
        codes: Number of each tuple's value, shape (u,); of tuples that are not published it means nothing.
        loss: Normalised certainty penalty of each tuple's cell, shape (u,), 1 where it is not published.
    """

    values: pa.Array
    codes: NDArray[np.int32]
    loss: NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class BlockRelease:
    """Rows as they may be published, and what is needed to judge them.

    Attributes:
        problem: The input.
        found: What becomes of its tuples.
        suppression: What becomes of suppressed rows; "drop" where there are none.
        cells: By quasi-identifier.
        classes: Equivalence class of each tuple, numbered from 0; −1 where it is in none, shape (u,).
    """

    problem: BlockProblem
    found: Recoding
    suppression: Literal["drop", "blank", "keep"]
    cells: Mapping[str, Cells]
    classes: NDArray[np.int64]

    @classmethod
    def of(cls, problem: BlockProblem, found: Recoding, suppressed: Suppressed) -> BlockRelease:
        """Recodes tuples; arguments and errors are those of `fulldomain.releasing.release`."""
        check_suppressed(problem, found, suppressed)
        out = found.suppressed
        published = ~out if suppressed == "drop" else np.ones(len(out), bool)
        cells, codes = {}, []
        for position, column in enumerate(problem.table.quasi_identifiers):
            hierarchy = problem.hierarchies[column.name]
            leaves = problem.frequency.leaves[position]
            recoded = recoded_leaves(hierarchy, leaves[published], found.levels[published, position])
            codes.append(recoded.codes)
            values, shown = recoded.texts, recoded.codes
            if recoded.as_they_were and hierarchy.bins_of(column) is None:
                of_leaf = np.zeros(len(hierarchy.leaves), np.int32)
                of_leaf[problem.aligned[column.name]] = np.arange(column.size)
                values, shown = unchanged_values(problem.table, column), of_leaf[leaves[published]]
            of_tuple, loss = np.zeros(len(out), np.int32), np.ones(len(out))
            of_tuple[published], loss[published] = shown, recoded.loss
            cells[column.name] = Cells(values, of_tuple, loss)
        counted = published & ~out if suppressed == "blank" else published
        classes = np.full(len(out), -1, np.int64)
        classes[counted] = group(np.stack(codes, axis=1)[counted[published]])[0]
        made = cls(problem, found, suppressed if out.any() else "drop", cells, classes)
        made._check_shown_classes()
        return made

    def _check_shown_classes(self) -> None:
        """As `release.check_shown_classes`."""
        requirements, counted = self.problem.requirements, self.classes >= 0
        if requirements.monotone or not counted.any():
            return
        among = self.problem.frequency.among(counted)
        labels = self.classes[counted]
        sizes = np.bincount(labels, among.weights).astype(np.int64)
        check_good(requirements, Examiner(requirements.models, 0).good_classes(among, labels, sizes))

    @property
    def suppressed(self) -> int:
        """Suppressed rows of the input."""
        return int(self.problem.frequency.weights[self.found.suppressed].sum())

    @property
    def published(self) -> int:
        """Published rows."""
        return self.problem.table.n_rows - (self.suppressed if self.suppression == "drop" else 0)

    @property
    def n_classes(self) -> int:
        """Number of equivalence classes."""
        return int(self.classes.max(initial=-1)) + 1

    @property
    def counted_sizes(self) -> NDArray[np.int64]:
        """Rows of each class that is not one of suppressed rows, shape (classes,)."""
        chosen = (self.classes >= 0) & ~self.found.suppressed
        sizes = np.bincount(self.classes[chosen], self.problem.frequency.weights[chosen]).astype(np.int64)
        return sizes[sizes > 0]

    @property
    def mean_loss(self) -> float:
        """Mean of the normalised certainty penalty of all quasi-identifier cells of the input."""
        weights = self.problem.frequency.weights
        total = sum(exact_sum(each.loss, weights) for each in self.cells.values())
        return float(total / (self.problem.table.n_rows * len(self.cells)))

    def rows_of(self, name: str) -> NDArray[np.int64]:
        """Published rows of each value of a quasi-identifier, shape (values,)."""
        cells = self.cells[name]
        published = ~self.found.suppressed if self.suppression == "drop" else slice(None)
        weights = self.problem.frequency.weights[published]
        return np.bincount(cells.codes[published], weights, len(cells.values)).astype(np.int64)

    @property
    def suppressed_values(self) -> Histograms:
        """The suppressed rows as one class, with the values of the columns that models look at."""
        out = self.found.suppressed
        labels = np.where(out, 0, -1)
        counts = {name: each.of_classes(labels, 1) for name, each in self.problem.frequency.sensitive.items()}
        return Histograms(np.array([self.suppressed]), counts)

    @property
    def column_names(self) -> list[str]:
        """Of the published rows: without identifiers, in the input's order."""
        table = self.problem.table
        return [name for name in table.data.column_names if name not in table.roles.identifiers]

    def rows(self) -> Iterator[pa.Table]:
        """The published rows in blocks, in the input's order; quasi-identifiers are dictionaries."""
        table = self.problem.rows
        out = self.found.suppressed
        for block in table.blocks(table.roles.insensitive):
            tuples = self.problem.tuples(block)
            data, hidden = block.data, out[tuples]
            if self.suppression == "drop" and hidden.any():
                data, tuples = data.filter(pa.array(~hidden)), tuples[~hidden]
            columns = {}
            for name in self.column_names:
                column = data.column(name)
                if name in self.cells:
                    cells = self.cells[name]
                    column = pa.DictionaryArray.from_arrays(pa.array(cells.codes[tuples]), cells.values)
                elif self.suppression == "blank" and name in table.roles.sensitive and hidden.any():
                    column = pc.if_else(pa.array(hidden), pa.scalar(None, column.type), column)
                columns[name] = column
            yield pa.table(columns)

    def named(self, algorithm: str) -> BlockRelease:
        """The same release with another name of its algorithm."""
        return replace(self, found=replace(self.found, algorithm=algorithm))
