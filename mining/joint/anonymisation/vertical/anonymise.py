"""Joint anonymisation of aligned rows whose columns lie at several parties: the release of the joined table.

    1. the parties say who has which column; N, the number of common rows, follows from the alignment
    2. every party opens which levels of its own columns are condemned by these columns alone (`local_pruning`)
    3. what all rows lose at each level of each quasi-identifier is opened, where that reveals no small count
       (`mining.joint.anonymisation.public_losses`)
    4. all look for the node together (`mining.joint.anonymisation.search`), on contingency tables that stay shared
       (`contingency`, `examination`); the classes that are released are opened
    5. the released rows are joined in an order that nobody knows (`assembly`)

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
from typing import Final

import numpy as np
from numpy.typing import NDArray

from anonymize.fulldomain.lattice import Node
from anonymize.release import allowed_suppression
from crypto.primitives.scratch_file import ScratchLimits
from crypto.protocols.alignment.list_limits import IN_MEMORY
from crypto.protocols.comparison.two_party import pairs_of
from crypto.protocols.sums.pairwise import agree
from link.errors import ConfigurationError, shareable
from link.session import Session
from mining.data.table_rows import TableRows
from mining.joint.align import RowAlignment, align
from mining.joint.anonymisation.anonymise import JointRelease
from mining.joint.anonymisation.conditions.models import SensitiveTests, compared_columns, offered
from mining.joint.anonymisation.parameters import JointAnonymisation
from mining.joint.anonymisation.public_losses import open_losses
from mining.joint.anonymisation.release_check import check_models
from mining.joint.anonymisation.search import Search
from mining.joint.anonymisation.vertical.assembly import assemble
from mining.joint.anonymisation.vertical.columns import HeldColumns, find_holders
from mining.joint.anonymisation.vertical.contingency import ContingencyTables
from mining.joint.anonymisation.vertical.examination import VerticalExaminer
from mining.joint.anonymisation.vertical.insiders import rows_read_by
from mining.joint.anonymisation.vertical.local_pruning import prune_locally, spread
from mining.joint.models.totals import no_rows
from mining.joint.tally import no_sum
from mining.joint.vertical.parameters import in_job_order

_FEW: Final = 2  # quasi-identifiers


async def anonymise_columns(
    session: Session,
    table: TableRows,
    task: JointAnonymisation,
    alignment: RowAlignment,
    limits: ScratchLimits = IN_MEMORY,
) -> JointRelease:
    """Runs one party's part.

    Args:
        session: A lane of the job's session.
        table: This party's columns, with ids.
        task: The public parameters, equal at all parties.
        alignment: How rows are aligned; `intersection`.
        limits: What lists of ids may take at this party.

    Raises:
        ConfigurationError: No node satisfies, a column is at no party or at two, or a model or rule is not offered for
            parties that hold columns.
        InputDataError: A cell is no value that the job names, or there is no common row.
        ProtocolViolation: What was opened cannot be.
    """
    check(task, alignment)
    task = replace(task, compute=in_job_order(session.parties, task.compute))
    models = offered(task.requirements)
    pairs = pairs_of(session.lane("pairs"))
    placed = (await align(session, pairs, table, alignment, limits)).rows
    assert placed is not None  # an intersection shows them
    session = session.lane("anonymisation")
    if not len(placed):
        raise no_rows()
    if len(placed) < task.k:
        raise shareable(
            ConfigurationError(
                f"all parties have {len(placed)} rows in common, and every class needs {task.k}; weaken the model"
            )
        )
    secrets = await agree(session.lane("keys"))
    holders = await find_holders(session.lane("columns"), table, task)
    held = await session.compute(HeldColumns.of, table, task, holders, placed, session.me)
    allowed = allowed_suppression(task.max_suppression, held.n_rows)
    local = await prune_locally(session.lane("local"), held, allowed)
    unit = task.loss_unit(held.n_rows)
    counter = await session.compute(held.counter)
    values = _values(task)
    tested = sorted({model.column for model in models})
    totals = {}
    for column in compared_columns(task.requirements):
        totals[column] = await _totals(session.lane(f"values of {column}"), held, column)
    two_party = None
    if session.me in task.compute:
        (peer,) = set(task.compute) - {session.me}
        two_party = pairs[peer]
    occurring = held.occurring(counter, session.me)
    losses = await open_losses(session.lane("losses"), secrets, two_party, task, occurring, held.n_rows)
    axes = held.axes(tested, session.me)
    tables = ContingencyTables(
        session.lane("tables"), secrets, pairs, task.compute, axes, len(task.hierarchies), held.n_rows
    )
    examiner = VerticalExaminer(
        session.lane("search"),
        secrets,
        two_party,
        pairs,
        task,
        counter,
        held.n_rows,
        allowed,
        unit,
        SensitiveTests.of(task, totals, held.n_rows),
        losses,
        tables,
        local,
        {party: held.places(party) for party in session.parties},
    )
    search = ColumnSearch(examiner)
    search.hopeless |= spread(held, local)
    tables.dead |= search.hopeless
    search.too_large = search.cells * max((len(values[name]) for name in tested), default=1) > tables.most_cells
    found = await search.run()
    whole = await assemble(session.lane("assembly"), secrets, pairs, held, found, allowed)
    shown = {
        name: {value: count for value, count in zip(values[name], counts.tolist(), strict=True) if count}
        for name, counts in totals.items()
    }
    statistics = {**found.statistics, "table_cells": tables.computed}
    if whole is not None:
        await session.compute(check_models, task, totals, whole)
        read = await session.compute(rows_read_by, held, found, whole, session.parties)
        statistics |= {f"rows_read_by_{party}": number for party, number in read.items()}
    return JointRelease(held.n_rows, found.node, statistics, whole, shown)


class ColumnSearch(Search):
    """A search over columns of several parties."""

    def _showing(self, number: int) -> list[Node]:
        """Of nodes that show few quasi-identifiers only those of two: more would take more tables than they spare."""
        return [] if number > _FEW else super()._showing(number)


def check(task: JointAnonymisation, alignment: RowAlignment) -> None:
    """Refuses what is not offered for parties that hold columns.

    Raises:
        ConfigurationError: With the reason.
    """
    if alignment.mode != "intersection":
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


async def _totals(session: Session, held: HeldColumns, column: str) -> NDArray[np.int64]:
    """Its holder opens how many common rows have each value of a column."""
    size = len(_values(held.task)[column])
    if held.holders[column] == session.me:
        counts = np.bincount(held.rows.codes[column], minlength=size).astype(np.uint64)
        await session.open("sensitive values", counts)
    else:
        counts = await session.receive_opened(held.holders[column], "sensitive values", np.uint64, (size,))
    if (counts > held.n_rows).any() or int(counts.sum()) != held.n_rows:
        raise no_sum(session)
    return counts.astype(np.int64)


def _values(task: JointAnonymisation) -> dict[str, tuple[str, ...]]:
    return {each.name: each.values for each in task.carried if each.values is not None}
