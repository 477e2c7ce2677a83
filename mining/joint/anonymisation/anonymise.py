"""Joint anonymisation of rows that lie at several parties: the release of the pooled rows, and no count of any class.

    1. N is opened, and for a search what the rows lose at each level, where that reveals no small count
       (`public_losses`); a party without rows takes part like any other
    2. all look for the node together (`search`, or `oblivious` where nothing of other nodes may be disclosed), on
       counts that stay shared between the computing parties (`examination`, `conditions`), and the classes that are
       released are opened; or all cut regions (`mondrian`)
    3. the rows in these classes are brought together (`assembly`); every learner holds the release against what was
       agreed, its own rows and the models (`release_check`)

Rounds:     those of the examinations, one after another, and 3.
Output:     to the learners the release of the pooled rows: its node or regions, its loss and its rows.
Adversary:  semi-honest; counts withstand all parties but both computing parties together. Whose row it is stays hidden
            unless collector and shuffler collude.
Leakage:    `disclosure` lists all that is opened, and what follows.
Source:     see `search`, `examination` and `assembly`; reading of the setting after Jurczyk and Xiong, DBSec 2009, and
            Tassa and Gudes, "Secure distributed computation of anonymized views of shared databases", ACM TODS 37(2),
            2012.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from anonymize.fulldomain.lattice import Node
from anonymize.release import allowed_suppression
from crypto.protocols.comparison.two_party import TwoParty, pairs_of
from crypto.protocols.sums.pairwise import PairwiseSecrets, agree
from link.errors import ConfigurationError, shareable
from link.journal import Known
from link.session import Session
from link.steps import step
from mining.data.table_rows import TableRows
from mining.joint.anonymisation.assembly import assemble, public_bound
from mining.joint.anonymisation.coding import Coding
from mining.joint.anonymisation.conditions.models import SensitiveTests, compared_columns
from mining.joint.anonymisation.examination import Examiner
from mining.joint.anonymisation.mondrian import Boxes, partitioner
from mining.joint.anonymisation.oblivious import ObliviousSearch
from mining.joint.anonymisation.parameters import Found, JointAnonymisation
from mining.joint.anonymisation.public_lattice import PublicLattice
from mining.joint.anonymisation.public_losses import open_losses
from mining.joint.anonymisation.release_check import check_classes, check_models, places
from mining.joint.anonymisation.row_form import Assembled
from mining.joint.anonymisation.rows import Counter, ReleasedRows, cell_losses
from mining.joint.anonymisation.search import Search
from mining.joint.hybrid.spool_limits import DEFAULT_SPOOL_LIMITS, SpoolLimits
from mining.joint.models.totals import total_counts, total_rows
from mining.joint.tally import no_sum


@dataclass(frozen=True, eq=False)
class JointRelease:
    """The outcome at one party.

    Attributes:
        n_rows: N, rows of all parties.
        node: Level of each quasi-identifier; None where regions were cut.
        statistics: Work of the search. With `disclose = "node"` only a learner knows how many nodes that were left out
            might have been better (`left_out`), since it takes the loss of the release.
        rows: The released rows, at a learner.
        totals: By column that classes are compared with, how many of all rows have each value that occurs.
        boxes: The regions that remain, where there is no node; the classes of `rows` are numbered as these.
    """

    n_rows: int
    node: Node | None
    statistics: Mapping[str, int]
    rows: Assembled | None
    totals: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    boxes: Boxes | None = None


async def anonymise(
    session: Session, table: TableRows, task: JointAnonymisation, limits: SpoolLimits = DEFAULT_SPOOL_LIMITS
) -> JointRelease:
    """Runs one party's part.

    Args:
        session: A lane of the job's session.
        table: This party's rows; perhaps none.
        task: The public parameters, equal at all parties.
        limits: What the sealed rows may take at this party, where it shuffles.

    Raises:
        ConfigurationError: No node satisfies, or a model is not offered for several parties.
        InputDataError: A column is missing, a cell is no value that the job names, or there are no rows.
        ProtocolViolation: What was opened cannot be, or the release does not hold what it must.
    """
    compared = compared_columns(task.requirements)
    coding = await session.compute(Coding.of, table, task, session.me)
    counter = await session.compute(Counter.counted, table, coding, task)
    secrets = await agree(session.lane("keys"))
    n_rows = await total_rows(session.lane("rows"), secrets, table.n_rows)
    if n_rows < task.k:
        raise shareable(
            ConfigurationError(
                f"all parties together have {n_rows} rows, and every class needs {task.k}; weaken the model"
            )
        )

    async def bounded() -> Known:
        return Known(await public_bound(session.lane("bound"), secrets, task, table.n_rows))

    bound = int((await step(session, "bound", bounded)).public)
    totals = {}
    for column in compared:
        totals[column] = await _totals(session, secrets, counter, column, n_rows)
    values = {each.name: each.values for each in task.carried if each.values is not None}
    two_party, pairs = None, pairs_of(session.lane("pairs"))
    if session.me in task.compute:
        two_party = TwoParty(session.lane("two-party"), task.compute)
        pairs[two_party.peer] = two_party
    tests = SensitiveTests.of(task, totals, n_rows)
    node = boxes = hidden = keys = None
    unit, allowed = task.loss_unit(n_rows), 0
    if task.algorithm == "mondrian":
        cutting = partitioner(session.lane("partition"), secrets, two_party, task, tests, counter, n_rows)
        boxes, statistics = await cutting.run()
        released, cells = np.ones(len(boxes.low), np.bool_), cutting.own.classes
    else:
        losses = await open_losses(session.lane("losses"), secrets, two_party, task, counter.occurring(), n_rows)
        lane, allowed = session.lane("search"), allowed_suppression(task.max_suppression, n_rows)
        examiner = Examiner(lane, secrets, two_party, pairs, task, counter, n_rows, allowed, unit, tests, losses)
        if task.disclose == "node":
            hidden = ObliviousSearch(examiner, PublicLattice(task, losses.least))
            found = await hidden.run()
        else:
            found = await Search(examiner, bound).run()
        node, released, keys, statistics = found.node, found.released, found.keys, dict(found.statistics)
        cells = await session.compute(_released_cells, counter, found)
    site = session.parties.index(session.me) if task.origin == "shown" else 0
    released_rows = ReleasedRows.of(table, coding, counter, cells, site)
    whole = await assemble(session.lane("assembly"), task, released_rows, bound, limits)
    if whole is not None:
        missing = n_rows - len(whole.cells)
        own = np.repeat(cells, counter.weights)
        await session.compute(check_classes, task, released, keys, whole, own, missing, allowed, session.me)
        await session.compute(check_models, task, totals, whole)
        if hidden is not None and node is not None:
            statistics["left_out"] = hidden.might_be_better(node, _loss(task, node, whole, n_rows, unit))
    shown = {
        name: {value: count for value, count in zip(values[name], counts.tolist(), strict=True) if count}
        for name, counts in totals.items()
    }
    return JointRelease(n_rows, node, statistics, whole, shown, boxes)


def _loss(task: JointAnonymisation, node: Node, whole: Assembled, n_rows: int, unit: int) -> int:
    """What all rows lose in a release, those that were left out too."""
    shown = int(cell_losses(task, node, unit)[whole.cells].sum())
    return shown + (n_rows - len(whole.cells)) * len(node) * unit


async def _totals(
    session: Session, secrets: PairwiseSecrets, counter: Counter, column: str, n_rows: int
) -> NDArray[np.int64]:
    """Opens how many rows have each value of a column."""
    held = counter.values[column]
    own = np.bincount(held.value, held.count, held.domain).astype(np.int64)
    lane = session.lane(f"values of {column}")

    async def take() -> Known:
        return Known(await total_counts(lane, secrets, own, n_rows, label="sensitive values"))

    total: NDArray[np.int64] | None = (await step(lane, "totals", take)).public
    assert total is not None  # it is opened to all
    if int(total.sum()) != n_rows:
        raise no_sum(session)
    return total


def _released_cells(counter: Counter, found: Found) -> NDArray[np.int64]:
    """Class of each of this party's distinct tuples; −1 where it is not released."""
    cells = counter.keys(dict(enumerate(found.node)))
    return np.where(found.released[places(cells, found.released, found.keys)], cells, -1) if len(cells) else cells
