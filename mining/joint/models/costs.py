"""What it costs to learn a model from columns that lie at several parties, once rows are aligned."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations

import numpy as np

from crypto.protocols.comparison.argmin import position_word
from crypto.protocols.comparison.argmin_costs import argmin_traffic, selection_traffic
from crypto.protocols.comparison.costs import agreement_traffic as two_party_traffic
from crypto.protocols.comparison.costs import comparison_traffic, opened_traffic, shared_sum_traffic
from crypto.protocols.products.chains import Itemset
from crypto.protocols.sums.costs import agreement_traffic, sum_traffic
from crypto.protocols.sums.secure_sum import word_for
from link.traffic import Traffic
from mining.joint.models.decision_tree import Numbers
from mining.joint.models.naive_bayes import Digits
from mining.joint.models.shared_kmeans import sums_word
from mining.joint.vertical.engines.engine import EngineCosts, EngineSpeed
from mining.joint.vertical.engines.grouped import GroupedCosts
from mining.joint.vertical.engines.transfers.engine import TransferCosts
from mining.joint.vertical.grouped.groups import Groups, column_holder, column_holders
from mining.joint.vertical.grouped.sizes import repeated_traffic
from mining.joint.vertical.names import PREFIX_BYTES
from mining.joint.vertical.parameters import in_job_order
from mining.joint.vertical.run_sizes import batch_sizes
from mining.joint.vertical.split import Split
from mining.lattice import Sets
from mining.models.attributes import Attribute
from mining.models.decision_tree import Growth, TreeParameters
from mining.models.kmeans import KMeansParameters
from mining.models.naive_bayes import NaiveBayesParameters

_WORD_BYTES = 8

# Of a row at a computing party, as measured with two of them, k = 2 and 6, and three coordinates: 125 and 494 bytes
# where rows are everywhere, 188 and 416 elsewhere.
_SCORE_BYTES = 88
_SHARED_SCORE_BYTES, _POINT_BYTES = 60, 20


@dataclass(frozen=True)
class Learning:
    """A model that is to be learned, and where its columns are taken to lie.

    Attributes:
        task: The public parameters.
        parties: Of the job.
        holders: By column its party, or its group.
        common: Rows that all parties have.
        positions: To which rows are aligned.
        everywhere: Whether every position has a row at every party.
        learners: The parties that get the model.
        compute: The two computing parties of k-means, and of what groups compare.
        groups: Of parties that hold the same columns of different rows.
    """

    task: NaiveBayesParameters | TreeParameters | KMeansParameters
    parties: tuple[str, ...]
    holders: Mapping[str, str]
    common: int
    positions: int
    everywhere: bool
    learners: tuple[str, ...]
    compute: tuple[str, str]
    groups: Groups = ()

    def traffic(self, traffic: Traffic) -> None:
        """Enters what follows the alignment: all iterations of k-means, and of a tree its first node."""
        agreement_traffic(traffic)
        for party in self.parties:
            own = column_holder(self.groups, party)
            names = [len(name.encode()) for name, holder in self.holders.items() if holder == own]
            traffic.send(party, self.parties, sum(names) + len(names) * PREFIX_BYTES, 2)
        traffic.rounds += 1
        if isinstance(self.task, KMeansParameters) and self.everywhere:
            self._distances_traffic(traffic, self.task)
            return
        repeated_traffic(traffic, self.groups, self._compute, TransferCosts(self.parties), self.positions)
        self._products_traffic(traffic)
        self._sums_traffic(traffic)
        if isinstance(self.task, KMeansParameters):
            self._points_traffic(traffic, self.task)

    @property
    def _compute(self) -> tuple[str, str]:
        return in_job_order(self.parties, self.compute)

    def seconds(self, speed: EngineSpeed) -> float:
        """Processor time of products, all parties together."""
        costs = self._costs()
        return sum(costs.seconds(self.positions, call, speed) for call in self._calls)

    def shares_bytes(self, party: str) -> int:
        """The most that a party holds at a time of what k-means shares; nothing of other models."""
        if not isinstance(self.task, KMeansParameters):
            return 0
        columns, k = 1 + len(self.task.attributes), self.task.k
        if party not in self.compute:
            return self.positions * _WORD_BYTES * 2 * (k if self.everywhere else columns)
        measured = _SCORE_BYTES * k if self.everywhere else _POINT_BYTES * columns + _SHARED_SCORE_BYTES * k
        return self.positions * measured

    def _costs(self) -> EngineCosts:
        costs = TransferCosts(self.parties)
        return GroupedCosts(costs, self.groups) if self.groups else costs

    @cached_property
    def _calls(self) -> list[Sequence[Itemset]]:
        """What the engine is asked to multiply, one call after the other."""
        found: list[Sequence[Itemset]] = []
        if not self.everywhere and self.positions:
            found.append(self._spanning(np.full((1, 1), -1, np.int32)))  # the rows that all have
        match self.task:
            case NaiveBayesParameters():
                digits = Digits(self.task)
                columns = [each.attribute for each in digits.conditions()]
                found += self._batches(digits.sets(len(columns)), columns)
            case TreeParameters():
                numbers = Numbers(self.task)
                columns = [each.attribute for each in numbers.conditions()]
                classes = np.arange(self.task.target.size, dtype=np.int32)[:, None]
                found += self._batches(classes, columns)
                growth = Growth(self.task, [max(1, self.common // self.task.target.size)] * self.task.target.size)
                if growth.offers:
                    found += self._batches(numbers.sets(growth, len(columns)), columns)
        return [call for call in found if call]

    def _batches(self, sets: Sets, columns: Sequence[str]) -> Iterator[Sequence[Itemset]]:
        start = 0
        for size in batch_sizes(len(sets), self.positions):
            yield self._spanning(sets[start : start + size], columns)
            start += size

    def _spanning(self, sets: Sets, columns: Sequence[str] = ()) -> list[Itemset]:
        """Those of some sets of conditions, given by number, in which several parties take part."""
        names = column_holders(self.groups, self.parties)
        holder = np.array([*(names.index(self.holders[each]) for each in columns), -1], np.int64)
        return Split.of(sets, holder, names, everywhere=self.everywhere).itemsets()

    def _products_traffic(self, traffic: Traffic) -> None:
        begun, pairs = traffic.rounds, {pair for call in self._calls for each in call for pair in combinations(each, 2)}
        for pair in sorted(pairs) if self.everywhere else ():  # a union has agreed with everybody
            traffic.rounds = begun  # all at once
            two_party_traffic(traffic, pair)
        costs = self._costs()
        for call in self._calls:
            costs.traffic(traffic, rows=self.positions, itemsets=call)

    def _sums_traffic(self, traffic: Traffic) -> None:
        word = word_for(self.common).itemsize
        if not self.everywhere:
            sum_traffic(traffic, _WORD_BYTES)
        match self.task:
            case NaiveBayesParameters():
                sum_traffic(traffic, self.task.n_counts * word, self.learners)
                if self.task.numeric:
                    rounds = traffic.rounds  # moments are summed at the same time
                    sum_traffic(traffic, self.task.n_moments * _WORD_BYTES, self.learners)
                    traffic.rounds = rounds
            case TreeParameters():
                classes = self.task.target.size
                sum_traffic(traffic, classes * word)
                sum_traffic(traffic, classes * sum(each.size - 1 for each in self.task.attributes) * word)

    def _distances_traffic(self, traffic: Traffic, task: KMeansParameters) -> None:
        if task.k > 1:
            two_party_traffic(traffic, self.compute)
        opened = self.common * np.dtype(position_word(task.k)).itemsize
        for _ in range(task.max_iterations):
            shared_sum_traffic(traffic, self.common * task.k * _WORD_BYTES, self.compute)
            argmin_traffic(
                traffic, self.compute, rows=self.common, candidates=task.k, largest_difference=task.largest_distance
            )
            opened_traffic(traffic, opened, self.compute)
        for party in self.parties:
            coordinates = sum(holder == party for holder in self.holders.values())
            if coordinates:
                traffic.send(party, self.learners, task.k * coordinates * _WORD_BYTES)
        traffic.rounds += 1

    def _points_traffic(self, traffic: Traffic, task: KMeansParameters) -> None:
        """Of `shared_kmeans`."""
        compute, rows, n_holders = self._compute, self.positions, len(column_holders(self.groups, self.parties))
        begun, columns, word = traffic.rounds, 1 + len(task.attributes), sums_word(task, self.common).itemsize
        shared_sum_traffic(traffic, rows * word_for(n_holders).itemsize, compute)
        for _ in task.attributes:
            shared_sum_traffic(traffic, rows * _WORD_BYTES, compute)
        traffic.rounds = min(traffic.rounds, begun + 1)  # nobody waits for an answer
        comparison_traffic(traffic, compute, number=rows, width=n_holders.bit_length(), order=False)
        selection_traffic(traffic, compute, number=rows * columns, word_bytes=_WORD_BYTES)
        width = 8 * np.dtype(position_word(task.k)).itemsize
        for _ in range(task.max_iterations):
            argmin_traffic(traffic, compute, rows=rows, candidates=task.k, largest_difference=task.largest_distance)
            for _ in range(task.k - 1):
                comparison_traffic(traffic, compute, number=rows, width=width, order=False)
                selection_traffic(traffic, compute, number=rows * columns, word_bytes=word)
            sum_traffic(traffic, task.k * columns * word)


def dealt(target: Attribute | None, attributes: Sequence[Attribute], parties: Sequence[str]) -> dict[str, str]:
    """By column of a model a holder: the target at the first, all others at the rest in turn, which costs the most."""
    if target is None:
        return {each.name: parties[place % len(parties)] for place, each in enumerate(attributes)}
    others = parties[1:]
    return {target.name: parties[0]} | {each.name: others[place % len(others)] for place, each in enumerate(attributes)}
