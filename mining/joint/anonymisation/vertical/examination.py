"""Whether nodes can be released, decided on shared contingency tables of columns that lie at several parties.

n_c is the number of common rows in cell c, a possible class of a node, and n_cs that of those with the sensitive value
s. Both come as shares from `contingency`, without any message where a table has been computed.

    1. the computing parties compare, b_c = [n_c ≥ k], and test the models on n_cs
    2. they select V = Σ (1 − b_c)·n_c, and compare it with MaxSup: one bit a node is opened to all
    3. of nodes that pass, the loss stays shared, as in `mining.joint.anonymisation.examination`

What is asked of one party's columns alone has been opened before (`local_pruning`).

Rounds:     those of the tables that are not there yet, of the comparisons and of a selection, and 1.
Adversary:  semi-honest; shares withstand all parties but both computing parties together.
Leakage:    sizes; the bits that are opened.
"""

from __future__ import annotations

import itertools
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from anonymize.fulldomain.lattice import Node
from anonymize.models import DistinctDiversity, SensitiveLevels
from crypto.primitives.shares.additive import AdditiveShare
from crypto.primitives.shares.masks import Words
from crypto.primitives.shares.xor import XorShare
from crypto.protocols.comparison.argmin import select
from crypto.protocols.comparison.comparison import at_least, width_for
from crypto.protocols.comparison.conversion import to_additive
from link.journal import Known
from link.session import Session
from link.steps import step
from mining.joint.anonymisation.conditions.bits import all_of, node_sums, of_word, word_of
from mining.joint.anonymisation.conditions.models import Tested
from mining.joint.anonymisation.examination import Examiner, Judged, Passed
from mining.joint.anonymisation.vertical.contingency import ContingencyTables
from mining.joint.anonymisation.vertical.local_pruning import Marks
from mining.joint.tally import Mask


@dataclass(frozen=True, eq=False)
class VerticalExaminer(Examiner):
    """The means of parties that hold columns; what they inherit looks at no rows.

    Attributes:
        tables: Counts of the common rows.
        local: By party what its own columns condemn; nothing where parties do not know their common rows.
        places: By party the places of its quasi-identifiers.
    """

    tables: ContingencyTables
    local: Mapping[str, Marks]
    places: Mapping[str, tuple[int, ...]]

    async def crowded(self, name: str, nodes: Sequence[Node]) -> Mask:
        """See `Examiner`."""
        found = await super().crowded(name, nodes)
        for node, fails in zip(nodes, found.tolist(), strict=True):
            self._note(node, fails)
        return found

    async def _crowded(self, name: str, nodes: Sequence[Node]) -> Mask:
        lane, found = self.session.lane(name), np.zeros(len(nodes), np.bool_)
        alone = [self._alone(node) for node in nodes]
        joint = [number for number, known in enumerate(alone) if known is None]
        found[[number for number in range(len(nodes)) if number not in joint]] = [a for a in alone if a is not None]
        if joint:
            asked = [nodes[number] for number in joint]
            counts = await self._tables_of(asked)
            over = None
            if self.two_party is not None and counts is not None:
                small = of_word(counts, word_of(self.n_rows + 1))
                enough = await self._enough(lane.lane("k"), small)
                lost = await select(lane.lane("lost"), self.two_party, ~enough, small)
                over = await self._too_many(lane.lane("allowed"), node_sums(lost, self._starts(asked)))
            found[joint] = await self._open(lane, over, "verdicts", len(asked))
        return found

    async def examine(self, name: str, nodes: Sequence[Node], bounds: Sequence[int]) -> list[Passed | None]:
        """See `Examiner`."""
        kept = await super().examine(name, nodes, bounds)
        for node, passed in zip(nodes, kept, strict=True):
            self._note(node, passed is None and self.plain)
        return kept

    # -- steps of the above ------------------------------------------------------------------------------------------
    async def _decided(self, name: str, number: int, decide: Callable[[], Awaitable[Mask]]) -> Mask:
        """As of `Examiner`, with which tables were computed for it, so that another attempt takes the same course."""
        before = self.tables.number

        async def take() -> Known:
            bits = await decide()
            return Known((np.packbits(bits), self.tables.levels_from(before)))

        bits, levels = (await step(self.session, name, take)).public
        self.tables.note(before, levels)
        return np.unpackbits(bits, count=number).view(np.bool_)

    async def _judged(self, lane: Session, nodes: Sequence[Node]) -> Judged:
        starts = self._starts(nodes)
        counts = await self._tables_of(nodes)
        met = await self._met(lane, nodes, counts)
        over = lost = None
        if self.two_party is not None and counts is not None and met is not None:
            # Losses of suppressed rows take whole words; where none is suppressed they are not asked for.
            whole = counts if self.allowed else of_word(counts, word_of(self.n_rows + 1))
            lost = await select(lane.lane("lost"), self.two_party, ~met, whole)
            total = of_word(node_sums(lost, starts), word_of(self.n_rows + 1))
            over = await self._too_many(lane.lane("allowed"), total)
        return [*starts, sum(map(self._cells, nodes))], met, lost, over

    def _alone(self, node: Node) -> bool | None:
        """Whether a node that shows one party's columns alone is crowded, as far as that is known."""
        if not self.local:
            return None
        showing = [
            party
            for party, places in self.places.items()
            if any(node[place] < self.task.hierarchies[place].height for place in places)
        ]
        if len(showing) > 1:
            return None
        party = showing[0] if showing else next(party for party, places in self.places.items() if places)
        return bool(self.local[party][tuple(node[place] for place in self.places[party])])

    def _note(self, node: Node, crowded: bool) -> None:
        if crowded:
            self.tables.choice.dead[tuple(slice(level + 1) for level in node)] = True

    def _cells(self, node: Node) -> int:
        return self.task.cells(dict(enumerate(node)))

    def _starts(self, nodes: Sequence[Node]) -> list[int]:
        """Where each node's cells start."""
        return [0, *itertools.accumulate(map(self._cells, nodes))][:-1]

    async def _tables_of(self, nodes: Sequence[Node], column: str | None = None) -> AdditiveShare | None:
        """Shares of the counts of all nodes' cells, one node after another; by a sensitive column's values too."""
        rest = [axis.hierarchy for axis in self.tables.axes[len(self.task.hierarchies) :]]
        levels = tuple(0 if hierarchy.name == column else hierarchy.height for hierarchy in rest)
        parts = [await self.tables.shares((*node, *levels)) for node in nodes]
        values = [part.values for part in parts if part is not None]
        return AdditiveShare(np.concatenate(values), self.session.me, self.task.compute) if values else None

    async def _enough(self, lane: Session, counts: AdditiveShare) -> XorShare:
        assert self.two_party is not None
        return await at_least(lane, self.two_party, counts, self.task.k, width_for(max(self.n_rows, self.task.k)))

    async def _met(self, lane: Session, nodes: Sequence[Node], counts: AdditiveShare | None) -> XorShare | None:
        """Which cells meet all requirements; None at a party that computes nothing."""
        parts = list[XorShare]()
        if self.two_party is not None and counts is not None:
            parts.append(await self._enough(lane.lane("k"), of_word(counts, word_of(max(self.n_rows, self.task.k)))))
        for number, model in enumerate(self.tests.models):
            histogram = await self._tables_of(nodes, model.column)
            bits = await self._model_bits(lane.lane(f"model {number}"), model, nodes, histogram)
            parts += [] if bits is None else [bits]
        return await all_of(lane.lane("all"), self.two_party, parts) if self.two_party is not None else None

    async def _model_bits(
        self, lane: Session, model: Tested, nodes: Sequence[Node], histogram: AdditiveShare | None
    ) -> XorShare | None:
        """Shares of which cells meet a model.

        Args:
            lane: A lane of its own.
            model: One of the tests.
            nodes: Whose cells are asked for.
            histogram: Of all these cells the counts by the values of the model's column, the latter running fastest.
        """
        cells, values = sum(map(self._cells, nodes)), self.tests.sizes[model.column]
        if isinstance(model, DistinctDiversity | SensitiveLevels):
            if self.two_party is None or histogram is None:
                return None
            return await self._distinct(lane, model, histogram.values.reshape(cells, values))
        # What a party holds of the sums is its addend of them, as a party's own counts are where it holds rows.
        addends = np.zeros((cells, values), np.int64)
        if histogram is not None:
            addends = histogram.values.view(np.int64).reshape(cells, values)
        return await self.tests.bits(lane, self.secrets, self.two_party, model, addends)

    async def _distinct(self, lane: Session, model: DistinctDiversity | SensitiveLevels, counts: Words) -> XorShare:
        """Whether so many values, or levels of values, occur in each cell.

        Args:
            lane: A lane of its own.
            model: The test.
            counts: This party's shares, shape (cells, values).
        """
        assert self.two_party is not None
        by_group, least = counts, model.l if isinstance(model, DistinctDiversity) else model.h
        if isinstance(model, SensitiveLevels):
            values = self.tests.values[model.column]
            levels = [[values.index(each) for each in level] for level in model.levels]
            by_group = np.stack([counts[:, places].sum(axis=1, dtype=counts.dtype) for places in levels], axis=1)
        cells, groups = by_group.shape
        shared = AdditiveShare(by_group.reshape(-1), self.session.me, self.task.compute)
        present = await at_least(
            lane.lane("present"), self.two_party, of_word(shared, word_of(self.n_rows)), 1, width_for(self.n_rows)
        )
        counted = await to_additive(lane.lane("number"), self.two_party, present)
        number = node_sums(counted, range(0, cells * groups, groups))
        return await at_least(lane.lane("least"), self.two_party, number, least, width_for(max(groups, least)))
