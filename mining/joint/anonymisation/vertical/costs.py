"""What a release of columns sends once rows are aligned, from the course that its search is expected to take."""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Final

from anonymize.models import DistinctDiversity, SensitiveLevels
from crypto.protocols.comparison.argmin_costs import selection_traffic
from crypto.protocols.comparison.comparison import width_for
from crypto.protocols.comparison.costs import agreement_traffic as two_party_traffic
from crypto.protocols.comparison.costs import (
    comparison_traffic,
    look_up_traffic,
    opened_traffic,
    permutation_rounds,
    permutation_switches,
    permutation_traffic,
    shared_sum_traffic,
)
from crypto.protocols.products.chains import Itemset
from crypto.protocols.products.costs import class_counts_traffic
from crypto.protocols.sums.costs import agreement_traffic, sum_traffic
from crypto.protocols.sums.secure_sum import word_for
from crypto.protocols.transfers.costs import correlated_traffic
from link.traffic import Traffic
from mining.joint.anonymisation.conditions.bits import word_of
from mining.joint.anonymisation.conditions.models import Tested, compared_columns, offered
from mining.joint.anonymisation.parameters import JointAnonymisation
from mining.joint.anonymisation.public_losses import levels_between
from mining.joint.anonymisation.row_form import Form
from mining.joint.anonymisation.vertical.columns import column_names, part_of
from mining.joint.anonymisation.vertical.course import Course
from mining.joint.anonymisation.vertical.table_choice import Levels
from mining.joint.hybrid.sizes import document_traffic
from mining.joint.vertical.engines.grouped import GroupedCosts
from mining.joint.vertical.engines.transfers.engine import TransferCosts
from mining.joint.vertical.grouped.groups import Groups, column_holder, column_holders, holder_members
from mining.joint.vertical.grouped.sizes import repeated_traffic
from mining.joint.vertical.names import PREFIX_BYTES
from mining.joint.vertical.parameters import in_job_order

_WORD: Final = 8
_ROW_WORD: Final = 4


@dataclass
class Work:
    """What costs processor time.

    Attributes:
        comparisons: How many numbers of how many bits, batch by batch.
        transfers: Of one of two, by either pair of parties.
        row_cells: Cells of tables, for each position and each pair of parties.
    """

    comparisons: list[tuple[int, int]] = field(default_factory=list)
    transfers: int = 0
    row_cells: int = 0


@dataclass(frozen=True)
class Release:
    """A release, and where its columns are taken to lie.

    Attributes:
        task: The public parameters.
        parties: Of the job.
        holders: By column of the job its party, or its group.
        common: Rows that all have.
        positions: To which rows are aligned.
        groups: Of parties that hold the same columns of different rows.
    """

    task: JointAnonymisation
    parties: tuple[str, ...]
    holders: Mapping[str, str]
    common: int
    positions: int
    groups: Groups = ()

    @property
    def is_possible(self) -> bool:
        """Whether there are rows enough for a class."""
        return self.common >= max(self.task.k, 1)

    @cached_property
    def course(self) -> Course:
        """What its search is expected to do."""
        return Course.of(self.task, self.holders, self.common, grouped=bool(self.groups))

    @property
    def row_bytes(self) -> int:
        """Of a joined row."""
        return sum(Form.of(part_of(self.task, self.holders, name)).size for name in self.names)

    @property
    def names(self) -> tuple[str, ...]:
        """Of the holders of columns."""
        return column_holders(self.groups, self.parties)

    def traffic(self, traffic: Traffic) -> Work:
        """Enters all that follows the alignment, and says what work it makes."""
        steps = _Steps(self, traffic)
        agreement_traffic(traffic)
        if not self.groups:
            steps.agreed()
        steps.begun()
        for levels in self.course.choice.chosen:
            steps.table(levels)
        steps.searched()
        steps.assembled()
        return steps.work


class _Steps:
    """Steps of a release, entered one after the other."""

    def __init__(self, release: Release, traffic: Traffic) -> None:
        self.release, self.traffic, self.work = release, traffic, Work()
        self.task, self.course, self.names = release.task, release.course, release.names
        self.compute = in_job_order(release.parties, release.task.compute)
        self.joining = in_job_order(release.parties, (release.task.collector, release.task.shuffler))
        hierarchies, rows = self.task.hierarchies, release.common
        self._loss_width = width_for(self.task.loss_unit(rows) * len(hierarchies) * rows + 1)
        tested = len(self.course.choice.labels) - len(hierarchies)
        columns = [each.name for each in self.task.quasi_identifiers]
        columns += sorted({model.column for model in offered(self.task.requirements)})[:tested]
        self._axes = [release.holders[name] for name in columns]

    def agreed(self) -> None:
        """Pairs of parties that compute together."""
        pairs, begun = {self.compute, self.joining}, self.traffic.rounds
        for levels in self.course.choice.chosen:
            counted = [name for name, cells in self._parts(levels).items() if cells > 1]
            pairs |= set(itertools.combinations(counted, 2))
        for pair in sorted(pairs):
            self.traffic.rounds = begun  # all at once
            two_party_traffic(self.traffic, pair)

    def begun(self) -> None:
        """What is opened before the search."""
        release, task, traffic = self.release, self.task, self.traffic
        for party in release.parties:
            own = column_holder(release.groups, party)
            names = [len(name.encode()) for name in column_names(task) if release.holders[name] == own]
            width = PREFIX_BYTES + max(names, default=0)
            traffic.send(party, release.parties, _WORD + len(names) * width, 2)
        traffic.rounds += 1
        if release.groups:
            costs = TransferCosts(release.parties, self.compute)
            repeated_traffic(traffic, release.groups, self.compute, costs, release.positions)
            everyone: Itemset = dict.fromkeys(self.names, 0)
            GroupedCosts(costs, release.groups).traffic(traffic, rows=release.positions, itemsets=[everyone])
            sum_traffic(traffic, _WORD)
        else:
            for name in self.names:
                own_levels = [
                    task.shape[at] for at, holder in enumerate(self._axes[: len(task.shape)]) if holder == name
                ]
                traffic.send(name, release.parties, math.prod(own_levels) if own_levels else 0, bool(own_levels))
            traffic.rounds += 1
        sizes = {each.name: len(each.values or ()) for each in task.carried}
        for name in compared_columns(task.requirements):
            self.opened(_WORD * sizes[name])
        asked = levels_between(task)
        labels = sum(len(task.hierarchies[place].labels[level]) for place, level in asked)
        largest = release.common if release.groups else len(release.parties) * task.k
        shared_sum_traffic(traffic, _WORD * sum(task.shape), self.compute)
        shared_sum_traffic(traffic, labels * word_of(largest).itemsize, self.compute)
        if asked:
            self.compared(2 * labels, width_for(largest))
            self.converted(labels)
            self.compared(len(asked), width_for(labels))
            self.opened(-(-len(asked) // 8))
            self.opened(_WORD * len(asked))

    def table(self, levels: Levels) -> None:
        """A contingency table."""
        release, parts = self.release, self._parts(levels)
        counted = {name: cells for name, cells in parts.items() if cells > 1 or release.groups}
        cells, absent = math.prod(parts.values()), int(bool(release.groups))
        if len(counted) == 2:
            one, other = counted
            members = holder_members(release.groups, one), holder_members(release.groups, other)
            begun, ends = self.traffic.rounds, [self.traffic.rounds]
            for pair in itertools.product(*members):
                holders = in_job_order(release.parties, pair)
                sizes = (counted[one] + absent, counted[other] + absent)
                self.traffic.rounds = begun
                ordered = sizes if holders == pair else sizes[::-1]
                class_counts_traffic(self.traffic, holders, rows=release.positions, sizes=ordered)
                ends.append(self.traffic.rounds)
                self.work.transfers += release.positions * (min(sizes) - 1).bit_length()
                self.work.row_cells += release.positions * math.prod(sizes)
            self.traffic.rounds = max(ends)
        elif len(counted) > 2:
            ranges = map(range, counted.values())
            products: list[Itemset] = [dict(zip(counted, each, strict=True)) for each in itertools.product(*ranges)]
            costs = TransferCosts(release.parties, self.compute)
            engine = GroupedCosts(costs, release.groups) if release.groups else costs
            engine.traffic(self.traffic, rows=release.positions, itemsets=products)
            ways = math.prod(len(holder_members(release.groups, name)) for name in counted)
            self.work.row_cells += release.positions * cells * ways
        shared_sum_traffic(self.traffic, _WORD * cells, self.compute)

    def searched(self) -> None:
        """All nodes that are looked at."""
        course, rows = self.course, self.release.common
        small, whole = word_of(rows + 1).itemsize, _WORD if self.task.max_suppression else word_of(rows + 1).itemsize
        for nodes, cells in course.crowded:
            self.judged(nodes, cells, small)
        for nodes, cells in course.examined:
            for model in offered(self.task.requirements):
                self.tested(model, cells)
            self.judged(nodes, cells, whole)
        for _ in range(course.improvements):
            self.compared(1, self._loss_width)
            self.opened(1)
        for number in course.bounds:
            self.compared(number, self._loss_width)
            self.converted(number)
            self.opened(_WORD)
        self.opened(-(-self.task.cells(dict(enumerate(course.node))) // 8))

    def judged(self, nodes: int, cells: int, word_bytes: int) -> None:
        """Which cells have enough rows, and whether too many rows lie in others."""
        rows = self.release.common
        self.compared(cells, width_for(max(rows, self.task.k)))
        self.selected(cells, word_bytes)
        self.compared(nodes, width_for(rows + 1))
        self.opened(-(-nodes // 8))

    def tested(self, model: Tested, cells: int) -> None:
        """Which cells meet a model, of those with limits about so many comparisons."""
        sizes = {each.name: len(each.values or ()) for each in self.task.carried}
        numbers, rows = cells * sizes[model.column], self.release.common
        if isinstance(model, DistinctDiversity | SensitiveLevels):
            numbers = cells * len(model.levels) if isinstance(model, SensitiveLevels) else numbers
            self.compared(numbers, width_for(rows))
            self.converted(numbers)
            self.compared(cells, width_for(sizes[model.column]))
            return
        shared_sum_traffic(self.traffic, _WORD * numbers, self.compute)
        self.compared(numbers, self._loss_width)

    def assembled(self) -> None:
        """The rows are joined."""
        release, task, traffic = self.release, self.task, self.traffic
        rows, width, first = release.positions, -(-release.row_bytes // _ROW_WORD), traffic.rounds
        shared_sum_traffic(traffic, rows * width * _ROW_WORD, self.joining)
        joined, owners = width, [task.shuffler]
        if task.max_suppression:
            shared_sum_traffic(traffic, rows * _ROW_WORD, self.joining)
        if release.groups:
            shared_sum_traffic(traffic, rows * word_for(len(self.names)).itemsize, self.joining)
        traffic.rounds = min(traffic.rounds, first + 1)
        if task.max_suppression:
            entries = task.cells(dict(enumerate(self.course.node)))
            look_up_traffic(traffic, self.joining, number=rows, entries=entries)
            self.work.transfers += rows * max(entries - 1, 0).bit_length()
        if release.groups:
            comparison_traffic(traffic, self.joining, number=rows, width=len(self.names).bit_length(), order=False)
        if task.max_suppression or release.groups:
            joined, owners = width + 1, [task.shuffler, task.collector]
            for sender, receiver in (self.joining, self.joining[::-1]):
                traffic.send(sender, receiver, rows)
            traffic.rounds += 1
        for owner in owners:
            (other,) = set(self.joining) - {owner}
            permutation_traffic(traffic, owner, other, rows=rows, width=joined, word_bytes=_ROW_WORD)
            traffic.rounds += permutation_rounds(rows, _ROW_WORD)
            self.work.transfers += permutation_switches(rows)
        released = release.common - self.course.lost
        traffic.send(task.shuffler, task.collector, released * width * _ROW_WORD)
        document_traffic(traffic, task.collector, task.learners, released * release.row_bytes)
        traffic.rounds += 1 + any(name != task.collector for name in task.learners)

    # -- protocols ---------------------------------------------------------------------------------------------------
    def compared(self, number: int, width: int) -> None:
        """A comparison of shared numbers."""
        if number:
            comparison_traffic(self.traffic, self.compute, number=number, width=width)
            self.work.comparisons.append((number, width))

    def selected(self, number: int, word_bytes: int) -> None:
        """Selections by shared bits."""
        selection_traffic(self.traffic, self.compute, number=number, word_bytes=word_bytes)
        self.work.transfers += 2 * number

    def converted(self, number: int) -> None:
        """Shared bits into numbers."""
        correlated_traffic(self.traffic, *self.compute, number, _WORD)
        self.traffic.rounds += 2
        self.work.transfers += number

    def opened(self, size: int) -> None:
        """Shares that are opened to all, while a comparison that begins already has its first message on the way."""
        begun = self.traffic.rounds
        opened_traffic(self.traffic, size, self.compute)
        self.traffic.rounds = begun

    def _parts(self, levels: Levels) -> dict[str, int]:
        """By holder its local classes."""
        shape = self.course.choice.shape(levels)
        return {
            name: math.prod(labels for labels, holder in zip(shape, self._axes, strict=True) if holder == name)
            for name in self.names
        }


def dealt_columns(task: JointAnonymisation, names: Sequence[str]) -> dict[str, str]:
    """By column of a job a holder: quasi-identifiers in turn, and so the others."""
    turns = [[each.name for each in task.quasi_identifiers], [each.name for each in task.carried]]
    return {name: names[place % len(names)] for turn in turns for place, name in enumerate(turn)}
