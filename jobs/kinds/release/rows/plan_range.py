"""The range of a joint release's costs: which nodes are examined, or how regions are cut, depends on unseen rows.

At least every job compares the rows as one class, and brings all rows together. At most a search looks at every node
within its limits, and regions are cut until k rows are in each and every cut of every axis is tried. Both follow from
the sizes of the rows, the hierarchies and the model; what a step sends is that of the cost functions of its protocols.
Where a step is bounded from above by another one that is easier to count, a comment says so.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import prod
from typing import Final

from anonymize.models import RecursiveDiversity
from crypto.primitives.sealed import OVERHEAD
from crypto.protocols.comparison.comparison import width_for
from crypto.protocols.comparison.costs import agreement_traffic as seeds_traffic
from crypto.protocols.comparison.costs import comparison_traffic, opened_traffic, shared_sum_traffic
from crypto.protocols.sums.costs import agreement_traffic, maximum_traffic, sum_traffic
from crypto.protocols.sums.secure_sum import word_for
from crypto.protocols.transfers.costs import correlated_traffic
from jobs.plan.answer import Answer
from jobs.plan.prices import AGREEMENT, SETTLE_S, comparison_s, moving_s
from link.traffic import Traffic
from mining.joint.anonymisation.assembly import ROWS
from mining.joint.anonymisation.conditions.bits import word_of
from mining.joint.anonymisation.conditions.models import offered
from mining.joint.anonymisation.oblivious import BATCH
from mining.joint.anonymisation.parameters import MOST_CELLS, JointAnonymisation
from mining.joint.anonymisation.public_lattice import possible_classes
from mining.joint.anonymisation.row_form import Form
from mining.joint.hybrid.sizes import document_traffic
from protos.v1.plan_pb2 import Speed

_ANY_WIDTH: Final = 62  # of a comparison: none is wider
_WORD: Final = 8
_ROUNDS_OF_A_NODE: Final = 4  # at least: a comparison, a selection, a comparison and an opening that begin beside it


@dataclass(frozen=True)
class Cost:
    """What a job, or a part of it, costs.

    Attributes:
        rounds: Messages that wait for each other.
        seconds: Of the slowest party.
        sent: Bytes by party.
        received: The same.
    """

    rounds: int
    seconds: float
    sent: Mapping[str, int]
    received: Mapping[str, int]

    def plus(self, other: Cost, times: int = 1) -> Cost:
        """This and another one, so many times."""
        return Cost(
            self.rounds + times * other.rounds,
            self.seconds + times * other.seconds,
            {name: size + times * other.sent[name] for name, size in self.sent.items()},
            {name: size + times * other.received[name] for name, size in self.received.items()},
        )


@dataclass(frozen=True)
class Setting:
    """What the costs depend on beside the task.

    Attributes:
        certificates: Bytes of each party's certificate.
        speeds: Of the parties' machines.
        least_rows: The fewest rows that each party may have.
        most_rows: The most; None where nobody publishes them.
        latency_s: Of a message.
        bytes_per_s: What the network carries, where the job says it.
    """

    certificates: dict[str, int]
    speeds: Mapping[str, Speed]
    least_rows: Mapping[str, int]
    most_rows: Mapping[str, int] | None
    latency_s: float
    bytes_per_s: float | None

    @classmethod
    def of(
        cls, task: JointAnonymisation, answers: Mapping[str, Answer], latency_s: float, bytes_per_s: float | None
    ) -> Setting:
        """From what the parties are taken to be; who hides its rows may have none, and at most what the bound says."""
        published = {name: answer.n_rows for name, answer in answers.items() if answer.n_rows is not None}
        most: dict[str, int] | None = published
        if len(published) < len(answers):
            most = None if task.bound is None else dict.fromkeys(answers, ROWS.rounded(task.bound)) | published
        return cls(
            {name: answer.certificate_bytes for name, answer in answers.items()},
            {name: answer.speed for name, answer in answers.items()},
            {name: published.get(name, 0) for name in answers},
            most,
            latency_s,
            bytes_per_s,
        )


def cost_range(task: JointAnonymisation, setting: Setting) -> tuple[Traffic, float, Cost | None]:
    """Traffic and seconds at the least, and the most that a job costs.

    That is None where no rows bound it, or where keys of classes are asked for.
    """
    few = setting.least_rows
    least = _Steps(task, setting, sum(few.values()))
    least.fixed()
    begun = least.traffic.rounds
    if task.disclose == "node":
        least.examined(*_candidates(task), every_test=False)
        least.chosen(_candidates(task)[0])
    else:
        least.examined(1, 1, every_test=False)
    least.traffic.rounds = begun + _ROUNDS_OF_A_NODE
    least.assembled(few, released=_released(task, sum(few.values())))
    most_rows = setting.most_rows
    if most_rows is None or task.keys == "union":
        return least.traffic, least.cost(settles=True).seconds, None
    n_rows = sum(most_rows.values())
    most = _Steps(task, setting, n_rows)
    most.agreed()
    most.fixed()
    most.assembled(most_rows, released=n_rows)
    repeated, times = (_cutting if task.algorithm == "mondrian" else _searching)(task, setting, n_rows, most)
    most_cost = most.cost(settles=True).plus(repeated.cost(), times)
    return least.traffic, least.cost(settles=True).seconds, most_cost


def _released(task: JointAnonymisation, n_rows: int) -> int:
    return n_rows - int(task.max_suppression * n_rows)


def _candidates(task: JointAnonymisation) -> tuple[int, int]:
    """Nodes that a search may look at, and their classes together."""
    cells = possible_classes(task)
    within = cells[cells <= (task.node_cells if task.disclose == "node" else MOST_CELLS)]
    return len(within), int(within.sum())


def _searching(task: JointAnonymisation, setting: Setting, n_rows: int, whole: _Steps) -> tuple[_Steps, int]:
    """All classes at once, and for every node what a batch of its own adds: frames and words that are filled up."""
    nodes, cells = _candidates(task)
    labels, levels = sum(len(one) for each in task.hierarchies for one in each.labels), sum(task.shape)
    each = _Steps(task, setting, n_rows)
    # Of every level it is asked whether its labels have enough rows, or none; then what rows lose there is opened.
    whole.examined(levels, labels, every_test=False)
    whole.compared(labels, width_for(len(setting.speeds) * task.k))
    whole.opened(8 * _WORD * levels)
    for steps, n, m in ((whole, nodes, cells), (each, 1, 1)):
        steps.crowded(n, m)
        steps.examined(n, m, every_test=True)
    if task.disclose == "node":
        whole.chosen(nodes)
    elif task.max_suppression:  # every node may be better than the best so far, and be held against all others
        each.compared(1, _ANY_WIDTH)
        each.compared(nodes, _ANY_WIDTH)
        each.selected(nodes, _WORD)
        each.opened(_WORD)
    each.opened(1)
    whole.opened(cells)
    if task.disclose == "node":  # of two batches after one another no more than one is half empty
        numbers = (
            2
            + len(setting.speeds)
            + sum(len(column.values or ()) for column in task.carried) * len(task.requirements.models)
        )
        nodes = min(nodes, 2 * cells * numbers // BATCH + 1)
    return each, nodes + levels  # the latter for the lanes of steps that are entered as one


def _cutting(task: JointAnonymisation, setting: Setting, n_rows: int, whole: _Steps) -> tuple[_Steps, int]:
    """Regions of k rows at least: a binary tree over them, of which every box tries every cut of every axis."""
    places = [len(each.leaves) for each in task.hierarchies]
    regions = max(1, min(n_rows // task.k, prod(places)))
    boxes, cuts = 2 * regions - 1, sum(places) - len(places)
    levels, axes = min(regions - 1, cuts) + 1, len(places)
    each = _Steps(task, setting, n_rows)
    for steps, b, m in ((whole, boxes, boxes * max(cuts, 1)), (each, 1, 1)):
        steps.shared(2 * m, len(setting.speeds))
        steps.compared(2 * m, width_for(len(setting.speeds)))
        steps.opened(2 * m)
        steps.examined(b, 2 * m, every_test=True)
        steps.selected(m, 1)
        steps.selected(m, _WORD)
        steps.compared(b * axes, width_for(cuts + 1))
        steps.opened(b * axes)
        # Of one axis of a box the best cut is found; boxes of up to twice as many cuts are padded to the same length.
        steps.shared(m, (1 << 62) - 1)
        for _ in range(2):  # of its sign, and among all
            steps.compared(2 * m, width_for(n_rows + 2) + cuts.bit_length())
            steps.selected(2 * m, _WORD)
        steps.opened(_WORD * b)
    each.traffic.rounds += 4 * max(places).bit_length()  # of a tournament
    return each, levels * (1 + axes)


class _Steps:
    """Steps of a job, entered one after the other."""

    def __init__(self, task: JointAnonymisation, setting: Setting, n_rows: int) -> None:
        self.task, self.setting, self.n_rows = task, setting, n_rows
        self.traffic, self.work_s = Traffic(tuple(setting.speeds)), 0.0
        self._models = offered(task.requirements)

    def cost(self, *, settles: bool = False) -> Cost:
        """What has been entered; with the begin and the end of a session where `settles`."""
        traffic, setting = self.traffic, self.setting
        if settles:
            traffic.session(setting.certificates)
        moved = max(moving_s(traffic, name, speed, setting.bytes_per_s) for name, speed in setting.speeds.items())
        seconds = SETTLE_S * settles + traffic.rounds * setting.latency_s + self.work_s + moved
        return Cost(
            traffic.rounds,
            seconds,
            {name: traffic.bytes_sent(name) for name in traffic.parties},
            {name: traffic.bytes_received(name) for name in traffic.parties},
        )

    def agreed(self) -> None:
        """What the computing parties agree upon, unless they have kept it."""
        seeds_traffic(self.traffic, self.task.compute)
        self.work_s += AGREEMENT * max(self.setting.speeds[name].multiply_s for name in self.task.compute)

    def fixed(self) -> None:
        """Keys, N, and the bound of all parties' rows."""
        agreement_traffic(self.traffic)
        sum_traffic(self.traffic, _WORD)
        maximum_traffic(self.traffic, [ROWS.beyond])

    def assembled(self, rows: Mapping[str, int], released: int) -> None:
        """All rows padded, sealed and shuffled, and those that are released once more to every learner."""
        task, traffic = self.task, self.traffic
        size, bound = Form.of(task).size, ROWS.rounded(task.bound or max(rows.values()))
        for party in rows:
            if party not in (task.shuffler, task.collector):
                traffic.send(party, task.shuffler, bound * (size + OVERHEAD))
        traffic.send(task.shuffler, task.collector, (len(rows) - 1) * bound * (size + OVERHEAD))
        document_traffic(traffic, task.collector, task.learners, released * size)
        traffic.rounds += 2 + any(name != task.collector for name in task.learners)

    def crowded(self, nodes: int, cells: int) -> None:
        """Whether nodes have too many rows in classes below k."""
        largest = len(self.traffic.parties) * self.task.k
        self.shared(cells, largest)
        self.shared(cells, self.n_rows + 1)
        self.compared(cells, width_for(largest))
        self.lost(nodes, cells, word_of(self.n_rows + 1).itemsize)

    def examined(self, nodes: int, cells: int, *, every_test: bool) -> None:
        """Whether nodes can be released.

        Args:
            nodes: How many.
            cells: Classes of all together.
            every_test: Whether all that may be asked of sensitive values is entered, or none of it.
        """
        task, parties = self.task, len(self.traffic.parties)
        largest, conditions = parties * task.k, 1
        self.shared(cells, largest)
        self.compared(cells, width_for(largest))
        if task.insider_k > 1:
            largest, coalitions = (parties - 1) * task.insider_k, len(task.coalitions(parties))
            self.shared(parties * cells, largest)
            self.compared(2 * coalitions * cells, width_for(largest))
            conditions += coalitions
        if task.k_site is not None:
            self.shared(cells, parties)
            self.compared(cells, width_for(parties))
            conditions += 1
        if every_test:
            tests = self._tests()
            self.shared(tests * cells, (1 << 62) - 1)
            self.compared(tests * cells, _ANY_WIDTH)
            self.selected(tests * cells, _WORD)
            self.selected((conditions + tests) * cells, 1)  # an AND takes no more than two selections of a byte
        whole = _WORD if task.max_suppression else word_of(self.n_rows + 1).itemsize
        self.shared(cells, (1 << (8 * whole - 2)) - 1)
        self.lost(nodes, cells, whole)

    def _tests(self) -> int:
        """Comparisons of a class that models of sensitive values take at most.

        A limit of each value's share takes one or two, a distance two for each value or label of its tree, and the
        largest counts of recursive (c, l) one for each value and rank.
        """
        values = {each.name: len(each.values) for each in self.task.carried if each.values is not None}
        ranks = [model.l if isinstance(model, RecursiveDiversity) else 1 for model in self._models]
        return sum(4 * values[model.column] * rank for model, rank in zip(self._models, ranks, strict=True))

    def lost(self, nodes: int, cells: int, word_bytes: int) -> None:
        """Rows in classes that are not released, held against MaxSup; a bit of each node is opened."""
        self.selected(cells, word_bytes)
        self.compared(nodes, width_for(self.n_rows + 1))
        self.opened(nodes)

    def chosen(self, nodes: int) -> None:
        """The least loss of all nodes, found without revealing another one's."""
        largest = self.task.loss_unit(max(self.n_rows, 1)) * len(self.task.hierarchies) * max(self.n_rows, 1) + 1
        width = min(_ANY_WIDTH, width_for(largest) + nodes.bit_length())
        self.selected(nodes, _WORD)
        self.selected(nodes, _WORD)
        self.compared(1, width_for(nodes))
        self.opened(1)
        left, number = nodes, 0
        while left > 1:  # a tournament
            self.compared(left // 2, width)
            self.selected(left // 2, _WORD)
            left, number = left - left // 2, number + 1
        self.opened(nodes.bit_length())

    # -- protocols ---------------------------------------------------------------------------------------------------
    def shared(self, values: int, largest: int) -> None:
        """A sum in shares of the computing parties."""
        size = values * word_for((1 << width_for(largest)) - 1).itemsize
        shared_sum_traffic(self.traffic, size, self.task.compute)
        masked = size * (len(self.traffic.parties) - 1)
        self.work_s += masked * max(speed.byte_s for speed in self.setting.speeds.values())

    def compared(self, number: int, width: int) -> None:
        """A comparison of shared numbers."""
        if number > 0:
            comparison_traffic(self.traffic, self.task.compute, number=number, width=width)
            self.work_s += comparison_s(number, width, self.task.compute, self.setting.speeds)

    def selected(self, number: int, word_bytes: int) -> None:
        """Selections by shared bits: a correlated transfer in each direction."""
        if number <= 0:
            return
        for sender, receiver in (self.task.compute, self.task.compute[::-1]):
            correlated_traffic(self.traffic, sender, receiver, number, word_bytes)
        self.traffic.rounds += 2
        self.work_s += number * max(self.setting.speeds[name].transfer_s for name in self.task.compute)

    def opened(self, number: int) -> None:
        """Bits that are opened to all."""
        opened_traffic(self.traffic, -(-number // 8), self.task.compute)
