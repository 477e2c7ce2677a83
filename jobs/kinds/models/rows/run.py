"""One party's part in learning a model from rows that parties hold for themselves."""

from __future__ import annotations

from typing import Any, Final, assert_never

from jobs.data import Data
from jobs.kinds.data import table_rows_of
from jobs.kinds.kind import Resources
from jobs.kinds.models.outcome import found_model
from jobs.kinds.models.parameters import model_parameters
from jobs.results.outcome import Outcome
from jobs.spec.job import JobSpec
from link.session import Session
from mining.data.tables import Table
from mining.joint.models import decision_tree, kmeans, naive_bayes
from mining.joint.models.totals import Learnt
from mining.models.attributes import Attribute, Categorical, LabelledRows, coded_columns
from mining.models.coded_tables import LabelledTable, PointsTable
from mining.models.decision_tree import TreeParameters
from mining.models.kmeans import KMeansParameters, Points, stacked
from mining.models.naive_bayes import NaiveBayesParameters
from mining.partitioned.tables.rows import PartitionedTable

STRATEGY: Final = "sums"
"""What the numbers are made of, in a word."""


async def run(session: Session, spec: JobSpec, data: Data, _resources: Resources) -> Outcome:
    """As `jobs.kinds.kind.Kind.run`."""
    table, task = table_rows_of(spec, data, session.me), await session.compute(model_parameters, spec)
    found: Learnt[Any]
    match task:
        case NaiveBayesParameters():
            rows = await session.compute(_labelled, table, task.target, task.attributes)
            found = await naive_bayes.learn_horizontal(session, rows, task, spec.learners)
        case TreeParameters():
            rows = await session.compute(_labelled, table, task.target, task.attributes)
            found = await decision_tree.learn_horizontal(session, rows, task)
        case KMeansParameters():
            points = await session.compute(_points, table, task.attributes)
            found = await kmeans.cluster_horizontal(session, points, task)
        case _:
            assert_never(task)
    return found_model(spec, session.me, task, found, STRATEGY)


def _labelled(
    table: Table | PartitionedTable, target: Categorical, attributes: tuple[Attribute, ...]
) -> LabelledRows | LabelledTable:
    """Rows in memory are coded once."""
    if isinstance(table, Table):
        return LabelledRows.of(table, target, attributes)
    return LabelledTable(table, target, attributes)


def _points(table: Table | PartitionedTable, attributes: tuple[Attribute, ...]) -> Points | PointsTable:
    """Rows in memory are coded once."""
    if isinstance(table, Table):
        return stacked(coded_columns(table, attributes))
    return PointsTable(table, attributes)
