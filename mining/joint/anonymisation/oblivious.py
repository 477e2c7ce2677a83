"""Full-domain search over the union of all parties' rows that discloses the chosen node, and nothing of the others.

    1. Candidates are all nodes with at most `node_cells` possible classes, which is public. They are examined in public
       batches: whether a node satisfies stays shared, and so does its score, its loss or a public worst if it fails
       (`examination.Examiner.score`).
    2. One bit is opened: whether any candidate satisfies.
    3. The first candidate of the least score is found by a tournament, and its place opened (`argmin`).
    4. Which of its classes are released is opened.

Rounds:     of each batch those of an examination and of a selection; of a comparison; of a tournament; and 3.
Output:     the node of least loss of the candidates, of equal ones the lexicographically least; exactly that of the
            pooled rows.
Adversary:  semi-honest; shares withstand all parties but both computing parties together.
Leakage:    what is opened of losses (`public_losses`); whether a candidate satisfies; the node, and its classes. That
            better candidates fail follows.
Source:     full search as in LeFevre, DeWitt and Ramakrishnan, "Incognito", SIGMOD 2005, section 3, without its
            pruning, which would reveal what has been pruned.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import numpy as np

from anonymize.fulldomain.lattice import Node
from crypto.primitives.shares.xor import XorShare
from crypto.protocols.comparison.argmin import MAX_CANDIDATES, argmin, open_positions
from crypto.protocols.comparison.comparison import at_least, width_for
from crypto.protocols.comparison.conversion import to_additive
from crypto.protocols.comparison.shared_bits import open_bits
from link.errors import ConfigurationError, MalformedMessage, shareable
from link.journal import Known
from link.steps import step
from mining.joint.anonymisation.conditions.bits import joined, joined_bits, node_sums
from mining.joint.anonymisation.examination import Examiner, Scored
from mining.joint.anonymisation.parameters import Found, JointAnonymisation
from mining.joint.anonymisation.public_lattice import PublicLattice, possible_classes

MOST_TOGETHER: Final = 1 << 26
"""Possible classes of all candidates together: each takes a comparison, so this is a matter of minutes."""

BATCH: Final = 1 << 19  # numbers that a party shares at once


def check_candidates(task: JointAnonymisation) -> None:
    """Refuses a job in which too much would be examined.

    Raises:
        ConfigurationError: With what would be allowed.
    """
    cells = possible_classes(task)
    candidates = cells[cells <= task.node_cells]
    if len(candidates) > MAX_CANDIDATES or candidates.sum() > MOST_TOGETHER:
        raise shareable(
            ConfigurationError(
                f'with disclose = "node" all {len(candidates):,} nodes of at most {task.node_cells:,} possible classes '
                f"would be examined, which have {int(candidates.sum()):,} together; at most {MAX_CANDIDATES:,} "
                f"nodes and {MOST_TOGETHER:,} classes are: lower node_cells"
            )
        )


class ObliviousSearch:
    """A search of which nothing is public but its candidates.

    Args:
        examiner: The parties' means.
        lattice: What is public of each node.
    """

    def __init__(self, examiner: Examiner, lattice: PublicLattice) -> None:
        self.examiner, self.task, self.lattice = examiner, examiner.task, lattice
        self.candidates: list[Node] = [
            (*map(int, node),) for node in np.argwhere(lattice.cells <= self.task.node_cells)
        ]
        self.worst = examiner.unit * len(self.task.hierarchies) * examiner.n_rows + 1

    async def run(self) -> Found:
        """Finds the node, and opens its released classes.

        Raises:
            ConfigurationError: No candidate satisfies.
            MalformedMessage: A computing party sent messages of another size, or opened a node that there is not.
        """
        session, batches = self.examiner.session, list(self._batches())
        scored: list[Scored] | None = None

        async def scores() -> list[Scored]:  # needed again where an earlier attempt went as far as any step below
            nonlocal scored
            if scored is None:
                scored = await self._scored(batches)
            return scored

        async def some() -> Known:
            return Known(await self._any(await scores()))

        async def least() -> Known:
            return Known(await self._least(await scores()))

        if not (await step(session, "any", some)).public:
            raise no_node(self.examiner.allowed)
        node = self.candidates[(await step(session, "least", least)).public]

        async def good() -> XorShare | None:
            return self._good_cells(await scores(), batches, node)

        released = await self.examiner.release(node, good)
        return Found(node, released, {"nodes": self.lattice.size, "checked": len(self.candidates)})

    def might_be_better(self, node: Node, loss: int) -> int:
        """How many nodes that were left out might have been chosen instead.

        Args:
            node: The chosen one.
            loss: What it loses.
        """
        left_out = self.lattice.cells > self.task.node_cells
        return int((left_out & (self.lattice.least_loss_of(node) <= loss)).sum())

    # -- steps of the above ------------------------------------------------------------------------------------------
    async def _scored(self, batches: list[list[Node]]) -> list[Scored]:
        """Step 1."""
        scored = list[Scored]()
        for number, batch in enumerate(batches):
            bounds = [int(self.lattice.bounds[node]) for node in batch]
            found = await self.examiner.score(f"batch {number}", batch, bounds, self.worst)
            scored += [] if found is None else [found]
            self.examiner.session.progress("examining the lattice", number + 1, len(batches))
        return scored

    def _batches(self) -> Iterator[list[Node]]:
        """The candidates in lexicographic order, as many at once as fit."""
        task, batch, numbers = self.task, list[Node](), 0.0
        parties = len(self.examiner.session.parties) if task.insider_k > 1 else 0
        each = 2 + parties + sum(self.examiner.tests.sizes[model.column] for model in self.examiner.tests.models)
        for node in self.candidates:
            more = self.lattice.cells[node] * each
            if batch and numbers + more > BATCH:
                yield batch
                batch, numbers = [], 0.0
            batch.append(node)
            numbers += more
        yield batch

    async def _any(self, scored: list[Scored]) -> bool:
        """Step 2."""
        lane, some = self.examiner.session.lane("any"), None
        if self.examiner.two_party is not None:
            satisfies = joined_bits([each.satisfies for each in scored])
            number = node_sums(await to_additive(lane.lane("number"), self.examiner.two_party, satisfies), [0])
            width = width_for(len(self.candidates))
            some = await at_least(lane.lane("some"), self.examiner.two_party, number, 1, width)
        opened = await open_bits(lane, some, label="satisfiable", holders=self.task.compute, number=1)
        assert opened is not None  # it is opened to all
        return bool(opened[0])

    async def _least(self, scored: list[Scored]) -> int:
        """Step 3."""
        lane, place, number = self.examiner.session.lane("least"), None, len(self.candidates)
        if self.examiner.two_party is not None:
            scores = joined([each.scores for each in scored])
            columns = [scores[slice(start, start + 1)] for start in range(number)]
            place = await argmin(lane.lane("tournament"), self.examiner.two_party, columns, self.worst)
        opened = await open_positions(lane, place, label="node", holders=self.task.compute, number=1, candidates=number)
        assert opened is not None  # it is opened to all
        if opened[0] >= number:
            raise MalformedMessage(
                f"{' and '.join(self.task.compute)} opened a node that there is not; check these nodes"
            )
        return int(opened[0])

    def _good_cells(self, scored: list[Scored], batches: list[list[Node]], node: Node) -> XorShare | None:
        """At a computing party, the shares of which cells of a node are good."""
        if not scored:
            return None
        number = next(place for place, batch in enumerate(batches) if node in batch)
        before = batches[number][: batches[number].index(node)]
        start = int(sum(self.lattice.cells[each] for each in before))
        return scored[number].good[slice(start, start + int(self.lattice.cells[node]))]


def no_node(allowed: int) -> ConfigurationError:
    """No node satisfies.

    Args:
        allowed: Rows that may be suppressed.
    """
    return shareable(
        ConfigurationError(
            "even with every quasi-identifier at its highest level the requirements fail for more than "
            f"{allowed} rows of all parties; allow more suppression or weaken the model"
        )
    )
