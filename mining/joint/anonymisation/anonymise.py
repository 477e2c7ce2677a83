"""Joint anonymisation of rows that lie at several parties: the release of the pooled rows, and no count of any class.

    1. N is opened, and for a search the rows' losses at each level; a party without rows takes part like any other
    2. all look for the node together (`search`, or `oblivious` where nothing of other nodes may be told), on counts
       that stay shared between the computing parties (`examination`, `conditions`), and the classes that are released
       are opened; or all cut regions (`mondrian`)
    3. the rows in these classes are brought together (`assembly`); every learner holds the release against its
       own rows

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
from crypto.protocols.ot_stock import StockStore
from crypto.protocols.pairwise import PairwiseSecrets, agree
from crypto.protocols.secure_sum import secure_sum
from crypto.protocols.two_party import TwoParty
from link.errors import ConfigurationError, ProtocolViolation
from link.session import Session
from mining.joint.anonymisation.assembly import Assembled, assemble, public_bounds
from mining.joint.anonymisation.examination import Examiner
from mining.joint.anonymisation.models import SensitiveTests, compared_columns
from mining.joint.anonymisation.mondrian import Boxes, partitioner
from mining.joint.anonymisation.oblivious import ObliviousSearch
from mining.joint.anonymisation.parameters import Found, JointAnonymisation
from mining.joint.anonymisation.public_lattice import PublicLattice
from mining.joint.anonymisation.rows import CodedRows, Counter, cell_losses
from mining.joint.anonymisation.search import Search
from mining.joint.models.totals import total_counts, total_rows
from mining.joint.tally import no_sum
from mining.tables import Table


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
    session: Session, table: Table, task: JointAnonymisation, stock: StockStore | None = None
) -> JointRelease:
    """Runs one party's part.

    Args:
        session: A lane of the job's session.
        table: This party's rows; perhaps none.
        task: The public parameters, equal at all parties.
        stock: What this party has kept of agreements with its peers in earlier sessions; all parties keep such a stock,
            or none does.

    Raises:
        ConfigurationError: No node satisfies, or a model is not offered for several parties.
        InputDataError: A column is missing, a cell is no value that the job names, or there are no rows.
        ProtocolViolation: What was opened cannot be, or the release does not hold what it must.
    """
    compared = compared_columns(task.requirements)
    rows = await session.compute(CodedRows.of, table, task, session.me)
    counter = await session.compute(Counter.of, rows, task)
    secrets = await agree(session.lane("keys"))
    n_rows = await total_rows(session.lane("rows"), secrets, rows.n_rows)
    if n_rows < task.k:
        raise ConfigurationError(
            f"all parties together have {n_rows} rows, and every class needs {task.k}; weaken the model"
        )
    bounds = await public_bounds(session.lane("bounds"), task, rows.n_rows)
    totals = {}
    for column in compared:
        totals[column] = await _totals(session, secrets, task, rows, column, n_rows)
    values = {each.name: each.values for each in task.carried if each.values is not None}
    two_party = None
    if session.me in task.compute:
        two_party = TwoParty(session.lane("two-party"), task.compute, stock=stock)
    tests = SensitiveTests.of(task, totals, n_rows)
    node = boxes = hidden = keys = None
    unit = task.loss_unit(n_rows)
    if task.algorithm == "mondrian":
        cutting = partitioner(session.lane("partition"), secrets, two_party, task, tests, rows, counter, n_rows)
        boxes, statistics = await cutting.run()
        released, cells = np.ones(len(boxes.low), np.bool_), cutting.own.classes
    else:
        losses = await _total_losses(session.lane("losses"), secrets, task, counter, n_rows, unit)
        lane, allowed = session.lane("search"), allowed_suppression(task.max_suppression, n_rows)
        examiner = Examiner(lane, secrets, two_party, task, counter, rows, n_rows, allowed, unit, tests)
        if task.disclose == "node":
            hidden = ObliviousSearch(examiner, PublicLattice(task, losses))
            found = await hidden.run()
        else:
            found = await Search(examiner, losses, max(bounds.values())).run()
        node, released, keys, statistics = found.node, found.released, found.keys, dict(found.statistics)
        cells = await session.compute(_released_cells, counter, found)
    whole = await assemble(session.lane("assembly"), task, rows, cells, bounds)
    if whole is not None:
        await session.compute(_check, task, released, keys, whole, cells, session.me)
        if hidden is not None and node is not None:
            statistics["left_out"] = hidden.might_be_better(node, _loss(task, node, whole, n_rows, unit))
    told = {
        name: {value: count for value, count in zip(values[name], counts.tolist(), strict=True) if count}
        for name, counts in totals.items()
    }
    return JointRelease(n_rows, node, statistics, whole, told, boxes)


async def _total_losses(
    session: Session, secrets: PairwiseSecrets, task: JointAnonymisation, counter: Counter, n_rows: int, unit: int
) -> NDArray[np.int64]:
    """Opens Λ: what all rows lose at each level of each quasi-identifier."""
    own = await session.compute(counter.losses, unit)
    total = await secure_sum(session, secrets, own, label="losses")
    assert total is not None  # it is opened to all
    tops = np.cumsum(task.shape) - 1
    most = [n_rows * unit if len(each.leaves) > 1 else 0 for each in task.hierarchies]
    if (total > n_rows * unit).any() or total[tops].tolist() != most:
        raise no_sum(session)
    return total.astype(np.int64)


def _loss(task: JointAnonymisation, node: Node, whole: Assembled, n_rows: int, unit: int) -> int:
    """What all rows lose in a release, those that were left out too."""
    told = int(cell_losses(task, node, unit)[whole.cells].sum())
    return told + (n_rows - len(whole.cells)) * len(node) * unit


async def _totals(
    session: Session, secrets: PairwiseSecrets, task: JointAnonymisation, rows: CodedRows, column: str, n_rows: int
) -> NDArray[np.int64]:
    """Opens how many rows have each value of a column."""
    size = next(len(each.values) for each in task.carried if each.name == column and each.values is not None)
    own = np.bincount(rows.codes[column], minlength=size).astype(np.int64)
    lane = session.lane(f"values of {column}")
    total = await total_counts(lane, secrets, own, n_rows, label="sensitive values")
    assert total is not None  # it is opened to all
    if int(total.sum()) != n_rows:
        raise no_sum(session)
    return total


def _released_cells(counter: Counter, found: Found) -> NDArray[np.int64]:
    """Class of each of this party's rows; −1 where it is not released."""
    cells = counter.keys(dict(enumerate(found.node)))[counter.owner]
    return np.where(found.released[_places(cells, found.released, found.keys)], cells, -1) if len(cells) else cells


def _places(cells: NDArray[np.int64], released: NDArray[np.bool_], keys: NDArray[np.int64] | None) -> NDArray[np.int64]:
    """Where classes stand in `released`, shape of `cells`; its length for what is none of them.

    Args:
        cells: Numbers of classes.
        released: Whether each class is released.
        keys: Their numbers, ascending; None where they are numbered as they stand.
    """
    if keys is None:
        return np.where((cells >= 0) & (cells < len(released)), cells, len(released))
    places = np.searchsorted(keys, cells)
    return np.where(np.append(keys, -1)[places] == cells, places, len(keys))


def _check(
    task: JointAnonymisation,
    released: NDArray[np.bool_],
    keys: NDArray[np.int64] | None,
    whole: Assembled,
    own: NDArray[np.int64],
    me: str,
) -> None:
    """Holds the release against what was decided, and what others have in each class against the insider rule.

    Raises:
        ProtocolViolation: A class is too small, is none that was to be released, or has too few rows of others.
    """
    size, places = len(released), _places(whole.cells, released, keys)
    if (places == size).any():
        raise _differs(task)
    sizes = np.bincount(places, minlength=size)
    mine = np.bincount(_places(own[own >= 0], released, keys), minlength=size)
    rest = sizes - mine
    if ((sizes > 0) != released).any() or (sizes[released] < task.k).any() or (rest < 0).any():
        raise _differs(task)
    if ((rest > 0) & (rest < task.insider_k)).any():
        raise ProtocolViolation(
            f"without the rows of {me} a class of the release is left with fewer than {task.insider_k}; do not use it"
        )


def _differs(task: JointAnonymisation) -> ProtocolViolation:
    return ProtocolViolation(
        f"the rows that {task.collector} opened are not those of the classes that all parties agreed to release; do "
        "not use them",
        party=task.collector,
    )
