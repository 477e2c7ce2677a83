"""Whether nodes can be released, decided on counts that stay shared between two parties.

A possible class of a node is a cell. Party i has n_ic rows in cell c, n_c = Σ n_ic, and a cell is good if it meets all
requirements. Of a node, all that is opened is whether the rows in cells that are not good are more than MaxSup.

Too many small cells (`crowded`), for nodes that may be condemned by k alone:
    1. every party shares u_ic = min(n_ic, k): Σ u_ic ≥ k exactly where n_c ≥ k, and below k the sum is n_c itself
    2. the computing parties compare, b_c = [Σ u_ic ≥ k], and select V = Σ (1 − b_c)·Σ u_ic
    3. they compare V with MaxSup and open one bit a node to all
Whole nodes (`examine`), where more than k is asked:
    1. every party shares n_ic besides
    2. b_c is the AND of [n_c ≥ k] and of the bits of all other requirements (`conditions`)
    3. as before with V = Σ (1 − b_c)·n_c
    4. of nodes that pass, the loss stays shared: Σ_c (1 − b_c)·n_c·(loss of a suppressed row − loss of a row in c), to
       which is added what all rows lose, be it opened or not (`public_losses`). Two are compared, and one bit is opened
Where no verdict may be opened (`score`), the bits of step 3 stay shared, and a node that fails scores a public worst.

Rounds:     1, those of the comparisons and of a selection, and 1.
Adversary:  semi-honest; shares withstand all parties but both computing parties together, who could learn the cells'
            counts over the others.
Leakage:    sizes; the bits that are opened, and the keys that are asked for (`occurring`).
Source:     Jurczyk and Xiong, "Distributed anonymization: achieving privacy for both data subjects and data providers",
            DBSec 2009 (horizontal); Goryczka, Xiong and Fung, "m-Privacy for collaborative data publishing", IEEE TKDE
            26(10), 2014 (insiders).
"""

from __future__ import annotations

import itertools
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial

import numpy as np
from numpy.typing import NDArray

from anonymize.fulldomain.lattice import Node
from crypto.primitives.shares.additive import AdditiveShare
from crypto.primitives.shares.xor import XorShare
from crypto.protocols.comparison.argmin import select
from crypto.protocols.comparison.comparison import at_least, width_for
from crypto.protocols.comparison.conversion import to_additive
from crypto.protocols.comparison.shared_bits import open_bits, open_values
from crypto.protocols.comparison.two_party import TwoParty
from crypto.protocols.sums.pairwise import PairwiseSecrets
from crypto.protocols.sums.secure_sum import shared_sum
from link.journal import Known
from link.session import Session
from link.steps import step
from mining.joint.anonymisation.conditions.bits import joined, node_sums, of_word, repeated, word_of
from mining.joint.anonymisation.conditions.conditions import condition_bits
from mining.joint.anonymisation.conditions.models import SensitiveTests
from mining.joint.anonymisation.occurring import counts_of, histogram_of, losses_of, occurring_keys
from mining.joint.anonymisation.parameters import JointAnonymisation
from mining.joint.anonymisation.public_losses import Losses
from mining.joint.anonymisation.rows import Cells, Counter, cell_losses
from mining.joint.tally import Mask


@dataclass(frozen=True, eq=False)
class Passed:
    """What is kept of a node that can be released.

    Attributes:
        node: Its levels.
        bound: What it loses at least, public; without suppression exactly that.
        good: At a computing party, the share of which cells are good, shape (cells,).
        loss: At a computing party, the share of the loss.
        bare: Whether an earlier attempt has decided so, and there are no shares yet, at any party.
    """

    node: Node
    bound: int
    good: XorShare | None
    loss: AdditiveShare | None
    bare: bool = False


Judged = tuple[list[int], XorShare | None, AdditiveShare | None, XorShare | None]


@dataclass(frozen=True, eq=False)
class Scored:
    """What is kept of nodes whose verdicts stay shared, at a computing party.

    Attributes:
        good: The share of which cells are good, node by node.
        satisfies: The share of which nodes can be released.
        scores: The share of the loss of each of these, and of the public worst for the others.
    """

    good: XorShare
    satisfies: XorShare
    scores: AdditiveShare


@dataclass(frozen=True, eq=False)
class Examiner:
    """The parties' common means to examine nodes.

    Attributes:
        session: The lane of the search.
        secrets: Pairwise secrets of this session.
        two_party: This party's half of what the computing parties agree upon; None at the others.
        pairs: With each of the others, for unions.
        task: The public parameters.
        counter: This party's rows.
        n_rows: N, of all parties.
        allowed: MaxSup in rows.
        unit: What a suppressed cell loses.
        tests: Of sensitive values.
        losses: What all rows lose at each level.
        keys: By node that is examined over the classes that occur, their keys; all others are over all possible ones.
        shared_again: By node, what has been shared once more of what an earlier attempt has decided.
    """

    session: Session
    secrets: PairwiseSecrets
    two_party: TwoParty | None
    pairs: Mapping[str, TwoParty]
    task: JointAnonymisation
    counter: Counter
    n_rows: int
    allowed: int
    unit: int
    tests: SensitiveTests
    losses: Losses
    keys: dict[Node, Cells] = field(default_factory=dict, kw_only=True)
    shared_again: dict[Node, Passed] = field(default_factory=dict, kw_only=True)

    @property
    def plain(self) -> bool:
        """Whether k-anonymity is all that is asked."""
        one_k = self.task.insider_k <= 1 and self.task.k_site is None
        return one_k and not self.tests.models

    async def crowded(self, name: str, nodes: Sequence[Node]) -> Mask:
        """Opens which nodes have more rows in cells below k than may be suppressed.

        Args:
            name: Of the lane, unused so far.
            nodes: At least one.

        Raises:
            MalformedMessage: A computing party sent messages of another size.
        """
        return await self._decided(name, len(nodes), partial(self._crowded, name, nodes))

    async def _crowded(self, name: str, nodes: Sequence[Node]) -> Mask:
        lane, task = self.session.lane(name), self.task
        counts, starts = await self.session.compute(self._counts, nodes)
        capped = np.minimum(counts, task.k)
        largest = min(len(lane.parties) * task.k, self.n_rows)
        small = await self._shared(lane.lane("capped"), capped, max(largest, task.k))
        whole = await self._shared(lane.lane("sum"), capped, self.n_rows + 1)
        over = None
        if self.two_party is not None and small is not None and whole is not None:
            width = width_for(max(largest, task.k))
            enough = await at_least(lane.lane("k"), self.two_party, small, task.k, width)
            lost = await select(lane.lane("lost"), self.two_party, ~enough, whole)
            over = await self._too_many(lane.lane("allowed"), node_sums(lost, starts))
        return await self._open(lane, over, "verdicts", len(nodes))

    async def examine(self, name: str, nodes: Sequence[Node], bounds: Sequence[int]) -> list[Passed | None]:
        """Opens which nodes can be released; of these everything else stays shared.

        Args:
            name: Of the lane, unused so far.
            nodes: At least one.
            bounds: What each loses at least, public; where nothing is suppressed exactly that, if it can be released.

        Returns:
            By node, what is kept of it; None of one that cannot be released.
        """
        judged = list[Judged]()

        async def decide() -> Mask:
            lane = self.session.lane(name)
            judged.append(await self._judged(lane, nodes))
            return await self._open(lane, judged[0][-1], "verdicts", len(nodes))

        failed = await self._decided(name, len(nodes), decide)
        kept: list[Passed | None] = [None] * len(nodes)
        for number in np.flatnonzero(~failed).tolist():
            node, bound = nodes[number], bounds[number]
            found = self._passed(node, bound, number, judged[0]) if judged else Passed(node, bound, None, None, True)
            kept[number] = found
        return kept

    async def shared(self, passed: Passed) -> Passed:
        """A node with its shares, made again where an earlier attempt decided on it; all parties call this."""
        node = passed.node
        if passed.bare and node not in self.shared_again:
            judged = await self._judged(self.session.lane(f"again {node}"), [node])
            self.shared_again[node] = self._passed(node, passed.bound, 0, judged)
        return self.shared_again[node] if passed.bare else passed

    async def score(self, name: str, nodes: Sequence[Node], bounds: Sequence[int], worst: int) -> Scored | None:
        """Examines nodes, and opens nothing.

        Args:
            name: Of the lane, unused so far.
            nodes: At least one.
            bounds: As for `examine`.
            worst: More than any node loses, public.

        Returns:
            What is kept of all nodes; None at a party that computes nothing.
        """
        lane = self.session.lane(name)
        starts, met, lost, over = await self._judged(lane, nodes)
        if self.two_party is None or met is None or lost is None or over is None:
            return None
        if self.allowed:
            parts = [lost[slice(start, end)] for start, end in itertools.pairwise(starts)]
            losses = joined([self._loss(*each) for each in zip(nodes, bounds, parts, strict=True)])
        else:
            nothing = AdditiveShare(np.zeros(len(nodes), np.uint64), self.two_party.me, self.two_party.holders)
            losses = nothing.plus_public(np.array(bounds, np.uint64))
        satisfies = ~over
        apart = await select(lane.lane("scores"), self.two_party, satisfies, losses.plus_public(-worst))
        return Scored(met, satisfies, apart.plus_public(worst))

    async def ask_keys(self, node: Node, bound: int) -> None:
        """Opens which classes of a node occur, over which it is examined from then on.

        Args:
            node: With at most `occurring.MOST_KEYED` possible classes.
            bound: The most rows that any party has, public.
        """

        async def take() -> Known:
            lane, levels = self.session.lane(f"keys {node}"), self._levels(node)
            return Known(await occurring_keys(lane, self.secrets, self.pairs, self.counter, levels, bound))

        self.keys[node] = (await step(self.session, f"keys {node}", take)).public

    async def is_less(self, name: str, one: Passed, other: Passed) -> bool:
        """Opens whether the loss of a node is less, or as small and the node comes first."""

        async def decide() -> Mask:
            lane, bits = self.session.lane(name), None
            loss, least = (await self.shared(one)).loss, (await self.shared(other)).loss
            if self.two_party is not None and loss is not None and least is not None:
                first = 0 if one.node < other.node else 1
                bits = await at_least(lane, self.two_party, least - loss, first, self._width)
            return await self._open(lane, bits, "improvements", 1)

        return bool((await self._decided(name, 1, decide))[0])

    async def in_question(self, name: str, best: Passed, least: NDArray[np.int64]) -> int:
        """Opens how many of some thresholds the loss of the best node so far reaches.

        Args:
            name: Of the lane, unused so far.
            best: The best one.
            least: By node, what the best loses at least if the node may be better; ascending, shape (m,), m ≥ 1.
        """

        async def take() -> Known:
            lane, total, loss = self.session.lane(name), None, (await self.shared(best)).loss
            if self.two_party is not None and loss is not None:
                losses, thresholds = repeated(loss, len(least)), least.astype(np.uint64)
                bits = await at_least(lane.lane("bounds"), self.two_party, losses, thresholds, self._width)
                each = await to_additive(lane.lane("number"), self.two_party, bits)
                total = node_sums(each, [0])
            opened = await open_values(lane, total, label="bounds", holders=self.task.compute, number=1)
            assert opened is not None  # it is opened to all
            return Known(min(int(opened[0]), len(least)))

        return int((await step(self.session, name, take)).public)

    async def release(self, node: Node, good: Callable[[], Awaitable[XorShare | None]]) -> Mask:
        """Opens which cells of a node are good, shape (cells,): the classes that are released.

        Args:
            node: The chosen one.
            good: Brings, to a computing party, the share of which of its cells are good.
        """
        number = len(self.keys[node]) if node in self.keys else self.task.cells(self._levels(node))

        async def decide() -> Mask:
            return await self._open(self.session.lane("released"), await good(), "classes", number)

        return await self._decided("released", number, decide)

    # -- steps of the above ------------------------------------------------------------------------------------------
    @property
    def _width(self) -> int:
        """Bits of a comparison of losses."""
        return width_for(self.unit * len(self.task.hierarchies) * self.n_rows + 1)

    async def _decided(self, name: str, number: int, decide: Callable[[], Awaitable[Mask]]) -> Mask:
        """So many bits that are opened to all, as a step of the job."""

        async def take() -> Known:
            return Known(np.packbits(await decide()))

        return np.unpackbits((await step(self.session, name, take)).public, count=number).view(np.bool_)

    def _passed(self, node: Node, bound: int, number: int, judged: Judged) -> Passed:
        """What is kept of one of the nodes that were judged."""
        starts, met, lost, _ = judged
        part = slice(starts[number], starts[number + 1])
        loss = self._loss(node, bound, lost[part]) if lost is not None and self.allowed else None
        return Passed(node, bound, None if met is None else met[part], loss)

    async def _judged(self, lane: Session, nodes: Sequence[Node]) -> Judged:
        """Steps 1 and 2 of whole nodes.

        Returns:
            Where each node's cells start, and where the last one's end; at a computing party besides the shares of
            which cells are good, of the rows in the others, and of which nodes have too many of these.
        """
        counts, starts = await self.session.compute(self._counts, nodes)
        # Losses of suppressed rows take whole words; where none is suppressed they are not asked for.
        whole = await self._shared(lane.lane("sum"), counts, (1 << 62) - 1 if self.allowed else self.n_rows + 1)
        met = await condition_bits(
            lane.lane("conditions"),
            self.secrets,
            self.two_party,
            self.task,
            self.tests,
            counts,
            partial(self._histogram, nodes),
        )
        over = lost = None
        if self.two_party is not None and whole is not None and met is not None:
            lost = await select(lane.lane("lost"), self.two_party, ~met, whole)
            total = of_word(node_sums(lost, starts), word_of(self.n_rows + 1))
            over = await self._too_many(lane.lane("allowed"), total)
        return [*starts, len(counts)], met, lost, over

    def _counts(self, nodes: Sequence[Node]) -> tuple[Cells, list[int]]:
        """This party's rows in all cells, and where each node's cells start."""
        parts = [
            counts_of(self.counter, self._levels(node), self.keys[node])
            if node in self.keys
            else self.counter.counts(self._levels(node))
            for node in nodes
        ]
        starts = np.cumsum([0, *(len(part) for part in parts)])[:-1]
        return np.concatenate(parts), starts.tolist()

    def _levels(self, node: Node) -> dict[int, int]:
        """The levels, by place."""
        return dict(enumerate(node))

    async def _shared(self, lane: Session, numbers: Cells, largest: int) -> AdditiveShare | None:
        """The sum of all parties' numbers, none above `largest`, at the computing parties."""
        return await shared_sum(lane, self.secrets, numbers.astype(word_of(largest)), self.task.compute)

    def _histogram(self, nodes: Sequence[Node], column: str) -> NDArray[np.int64]:
        """This party's rows in all cells with each value of a column, shape (cells, values)."""
        return np.concatenate(
            [
                histogram_of(self.counter, self._levels(node), self.keys[node], column)
                if node in self.keys
                else self.counter.histogram(self._levels(node), column)
                for node in nodes
            ]
        )

    async def _too_many(self, lane: Session, lost: AdditiveShare) -> XorShare:
        """Whether more rows are lost than may be."""
        assert self.two_party is not None
        return await at_least(lane, self.two_party, lost, self.allowed + 1, width_for(self.n_rows + 1))

    def _loss(self, node: Node, bound: int, lost: AdditiveShare) -> AdditiveShare:
        """The share of a node's loss: its public bound, what all rows lose above that, and what suppression adds."""
        if node in self.keys:
            losses = losses_of(self.task, node, self.keys[node], self.unit)
        else:
            losses = cell_losses(self.task, node, self.unit)
        more = len(node) * self.unit - losses
        added = node_sums(lost.times_public(more.astype(np.uint64)), [0])
        return (added + self.losses.beyond(node)).plus_public(bound)

    async def _open(self, lane: Session, bits: XorShare | None, label: str, number: int) -> Mask:
        opened = await open_bits(lane, bits, label=label, holders=self.task.compute, number=number)
        assert opened is not None  # it is opened to all
        return np.asarray(opened != 0, bool)
