"""Jobs that learn a model: from their specification to the protocol that learns it, and what that discloses."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any, assert_never

from crypto.primitives.scratch_file import ScratchLimits
from jobs.data import Data
from jobs.kinds.alignment.parameters import row_alignment
from jobs.kinds.data import table_rows_of
from jobs.kinds.models.model import Model
from jobs.kinds.models.parameters import columns_of, model_parameters
from jobs.spec.job import JobSpec
from link.disclosure import Declared, Learned
from link.errors import InputDataError
from link.session import Session
from mining.data.table_rows import TableRows
from mining.data.tables import Table
from mining.joint import align
from mining.joint.collusion import NOBODY_ELSE
from mining.joint.collusion import collusion as collusion_of_sums
from mining.joint.collusion import worst as worst_of_sums
from mining.joint.models import decision_tree, kmeans, naive_bayes
from mining.joint.models.aligned import AlignedAttributes, held_attributes, one_holder_each
from mining.joint.models.totals import Learnt
from mining.models.attributes import Attribute, Categorical, LabelledRows, coded_columns
from mining.models.coded_tables import LabelledTable, PointsTable
from mining.models.decision_tree import TreeParameters
from mining.models.kmeans import KMeansParameters, Points, stacked
from mining.models.naive_bayes import NaiveBayesParameters
from mining.partitioned.tables.rows import PartitionedTable


def how(spec: JobSpec) -> str:
    """What the numbers are made of, in a word: what is reported as the strategy."""
    if not spec.is_vertical:
        return "sums"
    return "distances" if spec.k_means is not None else "products"


async def learn_model(session: Session, spec: JobSpec, data: Data, limits: ScratchLimits) -> tuple[int, Model | None]:
    """Runs one party's part in learning a model.

    Args:
        session: A lane of the job's session.
        spec: The job.
        data: This party's rows, or its columns.
        limits: What lists of ids may take at this party, where rows are aligned.

    Returns:
        The number of rows that it was learnt from, and the model at a party that learns it.

    Raises:
        ComineError: As the protocols say.
    """
    if spec.is_vertical:
        n_rows, model = await _from_columns(session, spec, table_rows_of(spec, data, session.me), limits)
    else:
        n_rows, model = await _from_rows(session, spec, table_rows_of(spec, data, session.me))
    return n_rows, model if session.me in spec.learners else None


async def _from_rows(session: Session, spec: JobSpec, table: Table | PartitionedTable) -> tuple[int, Model | None]:
    task = await session.compute(model_parameters, spec)
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
    return found.n_rows, None if found.model is None else Model(task, found.n_rows, found.model)


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


async def _from_columns(
    session: Session, spec: JobSpec, table: TableRows, limits: ScratchLimits
) -> tuple[int, Model | None]:
    task, common = await session.compute(model_parameters, spec), row_alignment(spec)
    held = await session.compute(held_attributes, table, columns_of(task))
    placed = (await align.align(session, table, common, limits)).rows
    assert placed is not None  # which only a cardinality does not reveal
    everywhere = common.mode == "intersection"
    aligned = await session.compute(AlignedAttributes.of, table, held, placed, everywhere=everywhere)
    session = session.lane("model")
    found: Learnt[Any]
    match task:
        case NaiveBayesParameters():
            found = await naive_bayes.learn_vertical(session, aligned, task, spec.learners)
        case TreeParameters():
            found = await decision_tree.learn_vertical(session, aligned, task)
        case KMeansParameters():
            found = await kmeans.cluster_vertical(session, aligned, task, spec.learners, spec.compute)
        case _:
            assert_never(task)
    return found.n_rows, None if found.model is None else Model(task, found.n_rows, found.model)


def check_tables(spec: JobSpec, columns: Mapping[str, Collection[str]]) -> None:
    """Refuses tables that a model cannot be learnt from, where the columns of all parties are known.

    Args:
        spec: The job.
        columns: By party, the names of its columns.

    Raises:
        ConfigurationError: Of parties that hold columns, none has one of the model's, or two have.
        InputDataError: A party that holds rows lacks a column of the model.
    """
    names = [attribute.name for attribute in columns_of(model_parameters(spec))]
    if spec.is_vertical:
        one_holder_each(names, columns)
        return
    for party, held in columns.items():
        for name in names:
            if name not in held:
                raise InputDataError(
                    f"the data of {party} have no column '{name}', which the job's model takes; check the spelling",
                    party=party,
                )


def openings(spec: JobSpec) -> tuple[Declared, ...]:
    """Every label under which something may be opened, with its recipients and the most values."""
    task, parties, vertical = model_parameters(spec), spec.job.parties, spec.is_vertical
    rows = align.openings(row_alignment(spec), parties) if vertical else ()
    everywhere = spec.alignment.mode == "intersection"
    match task:
        case NaiveBayesParameters():
            opened = naive_bayes.openings(task, parties, spec.learners, vertical=vertical, everywhere=everywhere)
        case TreeParameters():
            opened = decision_tree.openings(task, parties, vertical=vertical, everywhere=everywhere)
        case KMeansParameters():
            opened = kmeans.openings(task, parties, spec.learners, vertical=vertical)
        case _:
            assert_never(task)
    return *rows, *opened


def learned(spec: JobSpec) -> tuple[Learned, ...]:
    """Who learns what, in words."""
    task, parties, vertical = model_parameters(spec), spec.job.parties, spec.is_vertical
    rows = align.learned(row_alignment(spec), parties) if vertical else ()
    match task:
        case NaiveBayesParameters():
            lines = naive_bayes.learned(task, parties, spec.learners, vertical=vertical)
        case TreeParameters():
            lines = decision_tree.learned(task, parties, vertical=vertical)
        case KMeansParameters():
            lines = kmeans.learned(parties, spec.learners, vertical=vertical)
        case _:
            assert_never(task)
    return *rows, *lines


def collusion(spec: JobSpec) -> str:
    """Which parties may work together without learning more, in words."""
    parties = spec.job.parties
    opened = collusion_of_sums(parties)
    if not spec.is_vertical:
        return opened
    if len(parties) == 2:
        return "none is needed: each of the two parties is alone"
    rows = align.collusion(parties, spec.alignment.mode)
    if spec.k_means is not None:
        first, second = spec.compute
        hidden = (
            f"distances withstand all parties but {first} and {second}; these two together could learn the sum over "
            "the others of each distance's parts"
        )
        return f"{hidden}; of the alignment, {rows}"
    first, second = parties[:2]
    hidden = (
        f"products over two parties withstand either of them, and those over more all parties but {first} and "
        f"{second}, which together could learn each product's count"
    )
    return f"{hidden}; {opened}; of the alignment, {rows}"


def worst(spec: JobSpec) -> str:
    """The worst that colluders could find out, in plain words."""
    parties = spec.job.parties
    if not spec.is_vertical:
        return worst_of_sums(parties, "part of every sum")
    if len(parties) == 2:
        return NOBODY_ELSE
    if spec.k_means is not None:
        first, second = spec.compute
        return f"{first} and {second} together could compute the others' part of every row's distances"
    first, second = parties[:2]
    return f"{first} and {second} together could compute the count of every combination of values"
