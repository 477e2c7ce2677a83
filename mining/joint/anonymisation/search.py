"""Full-domain search over the union of all parties' rows; every party takes the same public course.

    1. Λ, what all rows lose at each level of each quasi-identifier, is opened: so everyone knows what each node loses
       without suppression, which bounds its loss with suppression from below.
    2. Nodes that tell few quasi-identifiers come first, by their number and from the top downwards, all of a height at
       once. One with too many rows in classes below k condemns all its specialisations (Incognito's subset property).
    3. `optimal`: from the top downwards along the best satisfying specialisation, then all nodes that are left and may
       lose less than the best so far, those of great bounds first: they lie near the border between nodes that fail
       and nodes that satisfy, where one failure condemns most others.
       `samarati`: the least height with a satisfying node, by bisection; of its nodes that of least loss.
    4. Which classes of the found node are released is opened.

Where nothing may be suppressed, a satisfying node loses exactly its bound. Otherwise losses stay shared: a bit tells
whether a node is better than the best so far, and a number how many nodes may still be.

Output:     the node of least loss of those whose possible classes are at most `parameters.MOST_CELLS`, the
            lexicographically least of equal ones; exactly that of the pooled rows.
Source:     LeFevre, DeWitt and Ramakrishnan, "Incognito", SIGMOD 2005, section 3 (subset property); Samarati,
            "Protecting respondents' identities in microdata release", IEEE TKDE 13(6), 2001, section 5.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from anonymize.fulldomain.lattice import Lattice, Node
from link.errors import ConfigurationError
from mining.joint.anonymisation.examination import Examiner, Passed
from mining.joint.anonymisation.parameters import MOST_CELLS, Found

FEW: Final = 3
"""Up to so many quasi-identifiers are told by nodes that are only asked whether they condemn others."""

FEW_CELLS: Final = 2000
"""The most possible classes of such a node."""

_BATCH_CELLS: Final = 1 << 16
_BATCH: Final = 16  # nodes that are examined at once: one of them could have spared another


class Search:
    """What is public of a search so far.

    Args:
        examiner: The parties' means.
        losses: Λ, what all rows lose at each level of each quasi-identifier, shape (levels of all,).
    """

    def __init__(self, examiner: Examiner, losses: NDArray[np.int64]) -> None:
        task = examiner.task
        self.examiner, self.task = examiner, task
        self.lattice = Lattice([each.height for each in task.hierarchies])
        self.hopeless: NDArray[np.bool_] = self.lattice.zeros(np.bool_)
        self.uncrowded: NDArray[np.bool_] = self.lattice.zeros(np.bool_)
        self.examined: NDArray[np.bool_] = self.lattice.zeros(np.bool_)
        per_level = np.split(losses, np.cumsum(self.lattice.shape)[:-1])
        self.bounds: NDArray[np.int64] = _outer(np.add, per_level)
        sizes = [np.array([len(labels) for labels in each.labels], np.float64) for each in task.hierarchies]
        self.cells: NDArray[np.float64] = _outer(np.multiply, sizes)
        self.too_large = self.cells > MOST_CELLS
        self.best: Passed | None = None
        self.in_question: NDArray[np.bool_] = ~self.too_large
        self.looks = 0
        strict_models = all(model.monotone_with_suppression for model in task.requirements.models)
        self._condemns = (
            examiner.plain or (examiner.allowed == 0) or (strict_models and task.insider_k <= 1 and task.k_site is None)
        )

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
        if self.best is None:
            raise ConfigurationError(
                "even with every quasi-identifier at its highest level the requirements fail for more than "
                f"{self.examiner.allowed} rows of all parties; allow more suppression or weaken the model"
            )
        released = await self.examiner.release(self.best)
        left = self.too_large & ~self.hopeless & (self.bounds < self.best.bound)
        statistics = {"nodes": self.lattice.size, "checked": self.looks, "left_out": int(left.sum())}
        return Found(self.best.node, released, statistics)

    # -- 2: nodes that tell few quasi-identifiers --------------------------------------------------------------------
    async def _few_quasi_identifiers(self) -> None:
        d = len(self.lattice.top)
        for told in range(1, min(FEW, d - 1) + 1):
            nodes = [node for node in self._telling(told) if self.cells[node] <= FEW_CELLS]
            below = {node: sum(self.lattice.top) - sum(node) for node in nodes}
            for depth in sorted(set(below.values())):
                asked = [node for node in nodes if below[node] == depth and not self.hopeless[node]]
                if not asked:
                    continue
                crowded = await self.examiner.crowded(f"few {told}.{depth}", asked)
                self.looks += len(asked)
                self._note_crowded(asked, crowded)
                self.examiner.session.progress("pruning the lattice", told, FEW)

    def _telling(self, number: int) -> list[Node]:
        """The nodes that tell so many quasi-identifiers: all others are at their highest levels."""
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

    def _is_open(self, node: Node) -> bool:
        return not (self.hopeless[node] or self.examined[node] or self.too_large[node])

    def _next_batch(self) -> list[Node]:
        """Nodes of which none generalises another, those of great bounds first."""
        pending = np.flatnonzero(self.in_question & ~self.hopeless & ~self.examined)
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
            if self.in_question[each.node]:
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
        pending = np.flatnonzero(self.in_question & ~self.hopeless & ~self.examined)
        if not len(pending):
            return
        # Of equal losses the first node counts, and nodes stand in lexicographic order.
        first = int(np.ravel_multi_index(best.node, self.lattice.shape))
        least = self.bounds.ravel()[pending] + (pending >= first)  # what the best loses at least if it is no better
        order = np.argsort(least, kind="stable")
        pending, least = pending[order], least[order]
        if self.examiner.allowed:
            number = await self.examiner.in_question(f"narrow {self.looks} {best.node}", best, least)
        else:
            number = int(np.count_nonzero(least <= best.bound))
        self.in_question.ravel()[pending[number:]] = False


def _outer(join: np.ufunc, per_level: Sequence[NDArray[Any]]) -> NDArray[Any]:
    """One number for each level of each quasi-identifier, joined for every node; in the lattice's shape."""
    joined = per_level[0]
    for numbers in per_level[1:]:
        joined = join(joined[..., None], numbers)
    return joined


def _comparable(one: Node, other: Node) -> bool:
    """Whether one generalises the other."""
    pairs = list(zip(one, other, strict=True))
    return all(a <= b for a, b in pairs) or all(a >= b for a, b in pairs)
