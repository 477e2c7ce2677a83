"""Joint anonymisation of aligned rows whose columns lie at several parties: the release of the joined table.

    1. the parties say who has which column; N, the number of common rows, follows from the alignment
    2. every party opens which levels of its own columns are condemned by these columns alone (`local_pruning`)
    3. what all rows lose at each level of each quasi-identifier is opened, where that reveals no small count
       (`mining.joint.anonymisation.public_losses`)
    4. all look for the node together (`mining.joint.anonymisation.search`), on contingency tables that stay shared
       (`contingency`, `examination`); the classes that are released are opened
    5. the released rows are joined in an order that nobody knows (`assembly`)

Where the parties of column groups hold the same columns of different rows, rows are aligned by union, and nobody knows
which positions are common: those at which a party of every group has a row. No id may be at two parties of a group
(`mining.joint.models.aligned.common_rows`), where N is counted as well. Nothing is known of a group's columns alone, so
step 2 is left out, and what steps 3 and 4 take of them comes from tables as well.

Rounds:     those of the alignment, of the tables and examinations one after another, and of the assembly.
Output:     to the learners the release of full-domain recoding: node, loss and rows are those of the joined table.
Adversary:  semi-honest. With two parties nobody has to be trusted; counts of more withstand all parties but both
            computing parties together.
Leakage:    `disclosure` lists all that is opened, and what follows.
Source:     Jiang and Clifton, "A secure distributed framework for achieving k-anonymity", VLDB Journal 15(4), 2006;
            LeFevre, DeWitt and Ramakrishnan, "Incognito", SIGMOD 2005 (search).
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from anonymize.release import allowed_suppression
from crypto.primitives.scratch_file import ScratchLimits
from crypto.primitives.shares.masks import Words
from crypto.protocols.alignment.list_limits import IN_MEMORY
from crypto.protocols.comparison.shared_bits import open_values
from crypto.protocols.comparison.two_party import Pairs, pairs_of
from crypto.protocols.sums.pairwise import PairwiseSecrets, agree
from link.errors import ConfigurationError, shareable
from link.journal import Known
from link.session import Session
from link.steps import step
from mining.data.table_rows import TableRows
from mining.joint.align import RowAlignment, align
from mining.joint.anonymisation.anonymise import JointRelease
from mining.joint.anonymisation.conditions.models import SensitiveTests, compared_columns, offered
from mining.joint.anonymisation.parameters import JointAnonymisation
from mining.joint.anonymisation.public_losses import open_losses
from mining.joint.anonymisation.release_check import check_models
from mining.joint.anonymisation.rows import Cells
from mining.joint.anonymisation.vertical.assembly import assemble
from mining.joint.anonymisation.vertical.columns import HeldColumns, find_holders
from mining.joint.anonymisation.vertical.contingency import ContingencyTables
from mining.joint.anonymisation.vertical.examination import VerticalExaminer
from mining.joint.anonymisation.vertical.insiders import rows_read_by
from mining.joint.anonymisation.vertical.local_pruning import prune_locally
from mining.joint.anonymisation.vertical.search import ColumnSearch
from mining.joint.models.aligned import AlignedAttributes, Conditions, common_rows
from mining.joint.models.totals import no_rows
from mining.joint.tally import no_sum
from mining.joint.vertical.engines.grouped import GroupedProducts
from mining.joint.vertical.engines.transfers.products import TransferProducts
from mining.joint.vertical.grouped.groups import Groups, column_holders
from mining.joint.vertical.parameters import in_job_order


async def anonymise_columns(
    session: Session,
    table: TableRows,
    task: JointAnonymisation,
    alignment: RowAlignment,
    limits: ScratchLimits = IN_MEMORY,
    groups: Groups = (),
) -> JointRelease:
    """Runs one party's part.

    Args:
        session: A lane of the job's session.
        table: This party's columns, with ids.
        task: The public parameters, equal at all parties.
        alignment: How rows are aligned: by intersection, or with groups by union.
        limits: What lists of ids may take at this party.
        groups: Of parties that hold the same columns of different rows; none: every party holds columns of its own.

    Raises:
        ConfigurationError: No node satisfies, a column is at no party or at two, at some parties of a group alone or in
            two groups, or a model or rule is not offered for parties that hold columns.
        InputDataError: A cell is no value that the job names, there is no common row, or some id is at two parties of a
            group.
        ProtocolViolation: What was opened cannot be.
    """
    check(task, alignment, groups)
    task = replace(task, compute=in_job_order(session.parties, task.compute))
    models = offered(task.requirements)
    pairs = pairs_of(session.lane("pairs"))
    placed = (await align(session, pairs, table, alignment, limits)).rows
    assert placed is not None  # which only a cardinality does not show
    session = session.lane("anonymisation")
    n_rows = len(placed)
    if not groups:
        _check_rows(task, n_rows)
    secrets = await agree(session.lane("keys"))
    holders = await find_holders(session.lane("columns"), table, task, groups)
    if groups:
        n_rows = await _common_rows(session.lane("common rows"), secrets, pairs, task, placed, groups)
        _check_rows(task, n_rows)
    held = await session.compute(HeldColumns.of, table, task, holders, placed, n_rows, session.me, groups)
    allowed = allowed_suppression(task.max_suppression, n_rows)
    local = {} if groups else await prune_locally(session.lane("local"), held, allowed)
    unit = task.loss_unit(n_rows)
    counter = await session.compute(held.counter)
    values = _values(task)
    tested = sorted({model.column for model in models})
    axes = held.axes(tested)
    tables = ContingencyTables(
        session.lane("tables"),
        secrets,
        pairs,
        task.compute,
        axes,
        len(task.hierarchies),
        held.n_positions,
        groups=groups,
        presence=held.presence,
    )
    totals = {}
    for column in compared_columns(task.requirements):
        lane = session.lane(f"values of {column}")
        if groups:
            place = len(task.hierarchies) + tested.index(column)
            totals[column] = await _counted_totals(lane, held, tables, place, len(values[column]))
        else:
            totals[column] = await _totals(lane, held, column)
    two_party = None
    if session.me in task.compute:
        (peer,) = set(task.compute) - {session.me}
        two_party = pairs[peer]
    occurring = await _shared_leaves(tables, task) if groups else held.occurring(counter)
    lane = session.lane("losses")
    losses = await open_losses(lane, secrets, two_party, task, occurring, n_rows, shared=bool(groups))
    places = {} if groups else {party: held.places(party) for party in session.parties}
    examiner = VerticalExaminer(
        session.lane("search"),
        secrets,
        two_party,
        pairs,
        task,
        counter,
        n_rows,
        allowed,
        unit,
        SensitiveTests.of(task, totals, n_rows),
        losses,
        tables,
        local,
        places,
    )
    found = await ColumnSearch(examiner, tables.choice, places, local).run()
    whole = await assemble(session.lane("assembly"), secrets, pairs, held, found, allowed, groups)
    shown = {
        name: {value: count for value, count in zip(values[name], counts.tolist(), strict=True) if count}
        for name, counts in totals.items()
    }
    statistics = {**found.statistics, "table_cells": tables.choice.cells}
    if whole is not None:
        await session.compute(check_models, task, totals, whole)
        read = await session.compute(rows_read_by, held, found, whole, column_holders(groups, session.parties))
        statistics |= {f"rows_read_by_{holder}": number for holder, number in read.items()}
    return JointRelease(n_rows, found.node, statistics, whole, shown)


def check(task: JointAnonymisation, alignment: RowAlignment, groups: Groups = ()) -> None:
    """Refuses what is not offered for parties that hold columns.

    Raises:
        ConfigurationError: With the reason.
    """
    if groups and alignment.mode != "union":
        raise ConfigurationError('rows of column groups are aligned by union: take [align] mode = "union"')
    if not groups and alignment.mode != "intersection":
        raise ConfigurationError(
            'columns of several parties are anonymised over the rows that all have: take [align] mode = "intersection"'
        )
    if task.algorithm == "mondrian":
        raise ConfigurationError(
            'algorithm = "mondrian" cuts regions of rows that parties hold as a whole; where they hold columns take '
            '"optimal" or "samarati"'
        )
    if task.insider_k > 1 or task.k_site is not None:
        raise ConfigurationError(
            "insider_k and k_site are about parties that hold rows; of parties that hold columns everyone has a part "
            "of every row: leave them out"
        )
    if task.origin != "hidden":
        raise ConfigurationError("every row has columns of all parties, so that its origin says nothing; leave it out")


def _check_rows(task: JointAnonymisation, n_rows: int) -> None:
    """Refuses too few common rows."""
    if not n_rows:
        raise no_rows()
    if n_rows < task.k:
        raise shareable(
            ConfigurationError(
                f"all parties have {n_rows} rows in common, and every class needs {task.k}; weaken the model"
            )
        )


async def _common_rows(
    session: Session,
    secrets: PairwiseSecrets,
    pairs: Pairs,
    task: JointAnonymisation,
    placed: NDArray[np.int64],
    groups: Groups,
) -> int:
    """How many rows all groups have in common, where no id is at two parties of one."""
    engine = GroupedProducts(TransferProducts(secrets, pairs, task.compute), groups)
    presence = AlignedAttributes({}, len(placed), placed >= 0)
    numbered = await session.compute(Conditions.of, session, presence, (), {}, groups)
    return await common_rows(session, secrets, pairs, engine, numbered, task.compute)


async def _shared_leaves(tables: ContingencyTables, task: JointAnonymisation) -> list[Cells]:
    """By quasi-identifier this party's share of how many common rows have each leaf."""
    found = list[Cells]()
    for place, hierarchy in enumerate(task.hierarchies):
        share = await tables.along(place)
        found.append(np.zeros(len(hierarchy.leaves), np.int64) if share is None else share.values.view(np.int64))
    return found


async def _counted_totals(
    session: Session, held: HeldColumns, tables: ContingencyTables, place: int, size: int
) -> NDArray[np.int64]:
    """The computing parties open how many common rows have each value of a column, of which nobody has all."""
    share = await tables.along(place)

    async def reveal() -> Known:
        return Known(
            await open_values(session, share, label="sensitive values", holders=held.task.compute, number=size)
        )

    counts = (await step(session, "sensitive values", reveal)).public
    assert counts is not None  # they are opened to all
    return _checked(session, held, counts)


async def _totals(session: Session, held: HeldColumns, column: str) -> NDArray[np.int64]:
    """Its holder opens how many common rows have each value of a column."""
    size = len(_values(held.task)[column])
    if held.holders[column] == held.me:
        counts = np.bincount(held.rows.codes[column], minlength=size).astype(np.uint64)
        await session.open("sensitive values", counts)
    else:
        counts = await session.receive_opened(held.holders[column], "sensitive values", np.uint64, (size,))
    return _checked(session, held, counts)


def _checked(session: Session, held: HeldColumns, counts: Words) -> NDArray[np.int64]:
    """Counts of all common rows by a column's values."""
    if (counts > held.n_rows).any() or int(counts.sum()) != held.n_rows:
        raise no_sum(session)
    return counts.astype(np.int64)


def _values(task: JointAnonymisation) -> dict[str, tuple[str, ...]]:
    return {each.name: each.values for each in task.carried if each.values is not None}
