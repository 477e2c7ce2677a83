"""A model as a job has learnt it, and what it says of rows: the same at all who learn it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from html import escape
from itertools import islice
from typing import Any, Final

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from anonymize.reading import ArrowTable
from jobs.kinds.models.parameters import ModelParameters
from jobs.report.text import visible
from mining.data.formats.table_readers import table_from_arrow
from mining.data.tables import Table
from mining.models.attributes import coded_columns
from mining.models.decision_tree import DecisionTree
from mining.models.kmeans import Clusters, KMeansParameters, assign, stacked
from mining.models.naive_bayes import NaiveBayes

_SHOWN: Final = 20  # lines in a notebook
_CALLED: Final = {NaiveBayes: "Naive Bayes model", DecisionTree: "Decision tree", Clusters: "Clusters"}


@dataclass(frozen=True, eq=False, slots=True)
class Model:
    """What a job has learnt from the rows of all parties.

    Attributes:
        task: Its public parameters.
        n_rows: Rows that it was learnt from.
        learnt: The model itself, with its numbers.

    Example:
        >>> model = comine.simulate(learning, tables).model()
        >>> model.predict(tables["north"])[:3].tolist()
        ['no', 'no', 'yes']
    """

    task: ModelParameters
    n_rows: int
    learnt: NaiveBayes | DecisionTree | Clusters

    def predict(self, rows: Table | ArrowTable) -> NDArray[Any]:
        """What the model says of rows.

        Args:
            rows: Columns of text by the names of the model's attributes, the class not among them or not looked at; of
                pandas, polars, pyarrow or another library that hands over Arrow's, or of comine.

        Returns:
            Shape (rows,): the class of each as text; of k-means the number of its cluster, from 0.

        Raises:
            InputDataError: A column is missing, or a cell is not what [columns] of the job allows.
        """
        cells = coded_columns(_table(rows), self.task.attributes)
        if isinstance(self.learnt, Clusters):
            assert isinstance(self.task, KMeansParameters)
            return assign(stacked(cells), self.learnt.centroids, self.task.fraction_bits)
        found: NDArray[Any] = np.array(self.classes)[self.learnt.predict(cells)]
        return found

    @property
    def classes(self) -> tuple[str, ...]:
        """The classes that rows may have; none of k-means."""
        return () if isinstance(self.task, KMeansParameters) else self.task.target.values

    def lines(self) -> Iterator[str]:
        """The model as text: shares of classes, a tree's branches, or centroids."""
        match self.learnt:
            case DecisionTree() as tree:
                yield from tree.lines()
            case NaiveBayes() as bayes:
                for name, count in zip(self.classes, bayes.class_counts.tolist(), strict=True):
                    yield f"{bayes.task.target.name} = {name}: {count} of {self.n_rows} rows"
            case Clusters() as clusters:
                assert isinstance(self.task, KMeansParameters)
                centroids = clusters.numbers(self.task).tolist()
                for number, (size, centroid) in enumerate(zip(clusters.counts.tolist(), centroids, strict=True)):
                    named = zip(self.task.attributes, centroid, strict=True)
                    where = ", ".join(f"{each.name} {value:.4g}" for each, value in named)
                    yield f"cluster {number}: {size} rows around {where}"

    def _repr_html_(self) -> str:
        lines = list(islice(self.lines(), _SHOWN + 1))
        shown = "\n".join(escape(visible(line)) for line in lines[:_SHOWN])
        more = "\n…" if len(lines) > _SHOWN else ""
        called = f"{_CALLED[type(self.learnt)]} of {len(self.task.attributes)} columns, from {self.n_rows:,} rows"
        return f"<div><b>{called}</b></div><pre>{shown}{more}</pre><div><code>.predict(table)</code> applies it.</div>"

    def __repr__(self) -> str:
        return f"Model({type(self.learnt).__name__}, {len(self.task.attributes)} attributes, {self.n_rows:,} rows)"


def _table(rows: Table | ArrowTable) -> Table:
    if isinstance(rows, Table):
        return rows
    return table_from_arrow(pa.table(rows), (), "the table")
