"""Full-domain search over the union of all parties' rows; every party takes the same public course.

    1. Λ, what all rows lose at each level of each quasi-identifier, is opened as far as no small count follows
       (`public_losses`): so everyone knows what each node loses at least. Levels that reveal too much fail where
       nothing may be suppressed, and condemn all nodes with them.
    2. Nodes that show few quasi-identifiers come first, by their number and from the top downwards, all of a height at
       once. One with too many rows in classes below k condemns all its specialisations (Incognito's subset property).
    3. `optimal`: from the top downwards along the best satisfying specialisation, then all nodes that are left and may
       lose less than the best so far, those of great bounds first: they lie near the border between nodes that fail
       and nodes that satisfy, where one failure condemns most others.
       `samarati`: the least height with a satisfying node, by bisection; of its nodes that of least loss.
    4. With `keys = "union"`, nodes with too many possible classes that may still be better follow, the coarsest first.
       If no generalisation condemns it, which of its classes occur is opened (`occurring`), and it is examined over
       these.
    5. Which classes of the found node are released is opened.

Where nothing may be suppressed, a satisfying node loses exactly its bound. Otherwise losses stay shared: a bit shows
whether a node is better than the best so far, and a number how many nodes may still be.

Output:     the node of least loss of those whose possible classes are at most `parameters.MOST_CELLS`, or of all nodes
            where keys are asked for; the lexicographically least of equal ones, exactly that of the pooled rows.
Source:     LeFevre, DeWitt and Ramakrishnan, "Incognito", SIGMOD 2005, section 3 (subset property); Samarati,
            "Protecting respondents' identities in microdata release", IEEE TKDE 13(6), 2001, section 5.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray

from anonymize.fulldomain.lattice import Node
from crypto.primitives.shares.xor import XorShare
from mining.joint.anonymisation.examination import Examiner, Passed
from mining.joint.anonymisation.oblivious import no_node
from mining.joint.anonymisation.occurring import MOST_KEYED
from mining.joint.anonymisation.parameters import MOST_CELLS, Found
from mining.joint.anonymisation.public_lattice import PublicLattice
from mining.joint.anonymisation.public_losses import Level

FEW: Final = 3
"""Up to so many quasi-identifiers are shown by nodes that are only asked whether they condemn others."""

FEW_CELLS: Final = 2000
"""The most possible classes of such a node."""

_BATCH_CELLS: Final = 1 << 16
_COARSER_CELLS: Final = 1 << 18  # of a node that is asked about before a finer one's keys are
_BATCH: Final = 16  # nodes that are examined at once: one of them could have spared another


class Search:
    """What is public of a search so far.

    Args:
        examiner: The parties' means.
        most_rows: Of any party, public; needed where keys are asked for.
    """

    def __init__(self, examiner: Examiner, most_rows: int = 0) -> None:
        task, self.most_rows = examiner.task, most_rows
        self.examiner, self.task = examiner, task
        self.lattice = PublicLattice(task, examiner.losses.least)
        self.bounds, self.cells = self.lattice.bounds, self.lattice.cells
        self.hopeless: NDArray[np.bool_] = self.lattice.zeros(np.bool_)
        self.uncrowded: NDArray[np.bool_] = self.lattice.zeros(np.bool_)
        self.examined: NDArray[np.bool_] = self.lattice.zeros(np.bool_)
        self.too_large = self.cells > MOST_CELLS
        self.best: Passed | None = None
        self.beaten: NDArray[np.bool_] = self.lattice.zeros(np.bool_)
        self.looks = 0
        strict_models = all(model.monotone_with_suppression for model in task.requirements.models)
        self._condemns = (
            examiner.plain
            or (examiner.allowed == 0 and task.requirements.monotone)
            or (strict_models and task.insider_k <= 1 and task.k_site is None)
        )
        for level, passed in examiner.losses.passed.items():
            self.note_level(level, passed)

    def note_level(self, asked: Level, passed: bool) -> None:
        """What the bit of a level says of the node that shows this level alone."""
        node = list(self.lattice.top)
        node[asked.place] = asked.level
        if passed:
            self.uncrowded[tuple(node)] = True
        elif not self.examiner.allowed:
            self.hopeless[self.lattice.below(tuple(node))] = True

    async def run(self) -> Found:
        """Finds the node, and opens its released classes.

        Raises:
            ConfigurationError: No node satisfies.
        """
        await self._few_quasi_identifiers()
        if self.task.algorithm == "samarati":
            await self._samarati()
        else:
            await self._optimal()
        if self.task.keys == "union":
            await self._over_keys()
        if self.best is None:
            raise no_node(self.examiner.allowed)
        best = self.best

        async def good() -> XorShare | None:
            return (await self.examiner.shared(best)).good

        released = await self.examiner.release(best.node, good)
        left = int(np.count_nonzero(self._not_asked()))
        statistics = {"nodes": self.lattice.size, "checked": self.looks, "left_out": left}
        if self.task.keys == "union":
            statistics["unions"] = len(self.examiner.keys)
        return Found(best.node, released, statistics, self.examiner.keys.get(best.node))

    # -- 2: nodes that show few quasi-identifiers --------------------------------------------------------------------
    async def _few_quasi_identifiers(self) -> None:
        d = len(self.lattice.top)
        for shown in range(1, min(FEW, d - 1) + 1):
            nodes = [node for node in self._showing(shown) if self.cells[node] <= FEW_CELLS]
            below = {node: sum(self.lattice.top) - sum(node) for node in nodes}
            for depth in sorted(set(below.values())):
                asked = [node for node in nodes if below[node] == depth and self._is_unknown(node)]
                if not asked:
                    continue
                crowded = await self.examiner.crowded(f"few {shown}.{depth}", asked)
                self.looks += len(asked)
                self._note_crowded(asked, crowded)
                self.examiner.session.progress("pruning the lattice", shown, FEW)

    def _is_unknown(self, node: Node) -> bool:
        return not (self.hopeless[node] or self.uncrowded[node])

    def _showing(self, number: int) -> list[Node]:
        """The nodes that show so many quasi-identifiers: all others are at their highest levels."""
        top, found = self.lattice.top, list[Node]()
        for places in itertools.combinations(range(len(top)), number):
            for levels in itertools.product(*(range(top[place]) for place in places)):
                node = list(top)
                for place, level in zip(places, levels, strict=True):
                    node[place] = level
                found.append(tuple(node))
        return found

    def _note_crowded(self, nodes: Sequence[Node], crowded: NDArray[np.bool_]) -> None:
        for node, fails in zip(nodes, crowded.tolist(), strict=True):
            if fails:
                self.hopeless[self.lattice.below(node)] = True
            else:
                self.uncrowded[node] = True

    # -- 3: whole nodes ----------------------------------------------------------------------------------------------
    async def _optimal(self) -> None:
        node: Node | None = self.lattice.top
        if await self._visit([self.lattice.top]):
            while node is not None:
                below = [lower for lower in self.lattice.specialisations(node) if self._is_open(lower)]
                found = await self._visit(below)
                node = min(found, key=lambda each: (self.bounds[each], each), default=None)
        while batch := self._next_batch():
            await self._visit(batch)

    async def _samarati(self) -> None:
        low, high = 0, sum(self.lattice.top)
        while low < high:
            middle = (low + high) // 2
            nodes = [node for node in self.lattice.of_height(middle) if not self.too_large[node]]
            await self._ask_crowded([node for node in nodes if self._is_open(node) and not self.uncrowded[node]])
            if any(not self.hopeless[node] for node in nodes):
                high = middle
            else:
                low = middle + 1
        for height in range(low, sum(self.lattice.top) + 1):
            nodes = [node for node in self.lattice.of_height(height) if self._is_open(node)]
            await self._visit(nodes)
            if self.best is not None:
                return

    async def _over_keys(self) -> None:
        """Step 4."""
        while (pending := np.flatnonzero(self._not_asked() & (self.cells <= MOST_KEYED))).size:
            order = np.lexsort((self.cells.ravel()[pending], -self.lattice.heights.ravel()[pending]))
            node = (*map(int, np.unravel_index(pending[order[0]], self.lattice.shape)),)
            await self._ask_coarser(node)
            if not self.hopeless[node]:
                await self.examiner.ask_keys(node, self.most_rows)
                await self._visit([node])

    async def _ask_coarser(self, node: Node) -> None:
        """Asks the closest generalisations of a large node whether they condemn it: that reveals less than its keys."""
        above = self.lattice.above(node)
        useful = self.lattice.zeros(np.bool_)
        useful[above] = ~(self.too_large | self.uncrowded | self.examined)[above]
        flat = np.flatnonzero(useful & (self.cells <= _COARSER_CELLS))
        asked = list[Node]()
        for place in flat[np.argsort(self.lattice.heights.ravel()[flat], kind="stable")].tolist():
            coarser = (*map(int, np.unravel_index(place, self.lattice.shape)),)
            if not any(_comparable(coarser, other) for other in asked):
                asked.append(coarser)
            if len(asked) == _BATCH:
                break
        await self._ask_crowded(asked)

    def _not_asked(self) -> NDArray[np.bool_]:
        """Nodes with too many possible classes that may be better than the best."""
        return self.too_large & ~self.hopeless & ~self.beaten & ~self.examined

    def _is_open(self, node: Node) -> bool:
        return not (self.hopeless[node] or self.examined[node] or self.too_large[node])

    def _next_batch(self) -> list[Node]:
        """Nodes of which none generalises another, those of great bounds first."""
        pending = np.flatnonzero(~self.too_large & ~self.beaten & ~self.hopeless & ~self.examined)
        order = np.lexsort((-self.lattice.heights.ravel()[pending], -self.bounds.ravel()[pending]))
        batch, cells = list[Node](), 0.0
        for flat in pending[order][: 8 * _BATCH].tolist():
            node = tuple(map(int, np.unravel_index(flat, self.lattice.shape)))
            cells += self.cells[node]
            if batch and (cells > _BATCH_CELLS or any(_comparable(node, other) for other in batch)):
                break
            batch.append(node)
            if len(batch) == _BATCH:
                break
        return batch

    async def _ask_crowded(self, nodes: list[Node]) -> None:
        if nodes:
            self.looks += len(nodes)
            self._note_crowded(nodes, await self.examiner.crowded(f"crowded {self.looks}", nodes))

    async def _visit(self, nodes: list[Node]) -> list[Node]:
        """Examines nodes and keeps the best; those that satisfy."""
        if not self.examiner.plain:
            await self._ask_crowded([node for node in nodes if not self.uncrowded[node]])
            nodes = [node for node in nodes if not self.hopeless[node]]
        if not nodes:
            return []
        self.looks += len(nodes)
        bounds = [int(self.bounds[node]) for node in nodes]
        kept = await self.examiner.examine(f"nodes {self.looks}", nodes, bounds)
        for node, passed in zip(nodes, kept, strict=True):
            self.examined[node] = True
            if passed is None and self._condemns:
                self.hopeless[self.lattice.below(node)] = True
        found = sorted((each for each in kept if each is not None), key=lambda each: (each.bound, each.node))
        better = False
        for each in found:
            if not self.beaten[each.node]:
                better |= await self._hold_against_best(each)
        if better:
            await self._narrow()
        self.examiner.session.progress("searching the lattice", self.looks, self.looks + 1)
        return [each.node for each in found]

    async def _hold_against_best(self, passed: Passed) -> bool:
        """Keeps a satisfying node if it is the best so far; whether it is."""
        if self.best is None:
            self.best = passed
            return True
        if self.examiner.allowed:
            name = f"better {self.looks} {passed.node}"
            better = await self.examiner.is_less(name, passed, self.best)
        else:
            better = (passed.bound, passed.node) < (self.best.bound, self.best.node)
        if better:
            self.best = passed
        return better

    async def _narrow(self) -> None:
        """Leaves out nodes that can lose no less than the best."""
        best = self.best
        assert best is not None
        pending = np.flatnonzero(~self.beaten & ~self.hopeless & ~self.examined)
        if not len(pending):
            return
        least = self.lattice.least_loss_of(best.node).ravel()[pending]
        order = np.argsort(least, kind="stable")
        pending, least = pending[order], least[order]
        if self.examiner.allowed:
            number = await self.examiner.in_question(f"narrow {self.looks} {best.node}", best, least)
        else:
            number = int(np.count_nonzero(least <= best.bound))
        self.beaten.ravel()[pending[number:]] = True


def _comparable(one: Node, other: Node) -> bool:
    """Whether one generalises the other."""
    pairs = list(zip(one, other, strict=True))
    return all(a <= b for a, b in pairs) or all(a >= b for a, b in pairs)
