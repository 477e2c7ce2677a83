"""The course that a search over columns is expected to take, from public sizes: what a plan can know of it.

Which nodes are examined, and which tables are computed for them, depends on the rows. Supposed are rows that fall into
the possible classes of a node evenly and independently: so a class has Poisson(N / classes) rows, which says how many
rows to expect in classes below k. All else is the very search, with these verdicts in place of those of the rows.

Source:     Johnson, Kemp and Kotz, "Univariate Discrete Distributions", 3rd ed., 2005, section 10.3 (balls in cells).
"""

from __future__ import annotations

import math
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Self

import numpy as np
from numpy.typing import NDArray

from anonymize.fulldomain.lattice import Node
from anonymize.release import allowed_suppression
from crypto.primitives.shares.xor import XorShare
from link.errors import ConfigurationError
from mining.joint.anonymisation.conditions.models import SensitiveTests, compared_columns
from mining.joint.anonymisation.examination import Examiner, Passed
from mining.joint.anonymisation.parameters import JointAnonymisation
from mining.joint.anonymisation.public_losses import Level, Losses, levels_between, losses_by_level
from mining.joint.anonymisation.vertical.search import ColumnSearch
from mining.joint.anonymisation.vertical.table_choice import TableChoice
from mining.joint.tally import Mask

MOST_FORESEEN: Final = 1 << 13
"""The largest lattice of which a course is foreseen: a plan is a matter of a second."""


def expected_lost(n_rows: int, classes: float, k: int) -> float:
    """How many rows to expect in classes below k."""
    mean = n_rows / classes
    if not mean:
        return 0.0
    fewer = range(max(k - 1, 0))  # a row's class has so many others
    return n_rows * sum(math.exp(each * math.log(mean) - mean - math.lgamma(each + 1)) for each in fewer)


@dataclass
class Course:
    """What is expected to happen.

    Attributes:
        choice: The tables that are computed.
        crowded: Of nodes that are asked whether they condemn others, batch by batch, how many, and their classes.
        examined: The same of nodes that are examined.
        improvements: How often a node is held against the best so far.
        bounds: How many nodes are held against the best, each time.
        node: The one that is released; the highest where none is expected to satisfy.
        lost: Rows that are suppressed there.
        is_whole: Whether the search was followed to its end.
    """

    choice: TableChoice
    node: Node
    crowded: list[tuple[int, int]] = field(default_factory=list)
    examined: list[tuple[int, int]] = field(default_factory=list)
    improvements: int = 0
    bounds: list[int] = field(default_factory=list)
    lost: int = 0
    is_whole: bool = False

    @classmethod
    def of(cls, task: JointAnonymisation, holders: Mapping[str, str], n_rows: int, *, grouped: bool) -> Self:
        """Follows the search.

        Args:
            task: The public parameters.
            holders: By column of the job, the party or the group that is taken to have it.
            n_rows: Common rows, at least one.
            grouped: Whether there are column groups, so that nobody knows anything by itself.
        """
        examiner = _Expected.of(task, holders, n_rows, grouped=grouped)
        course = cls(examiner.choice, tuple(each.height for each in task.hierarchies))
        examiner.course.append(course)
        if grouped:
            examiner.ask_margins()
        if math.prod(task.shape) > MOST_FORESEEN:
            _finished(examiner.examine("top", [course.node], [0]))
            return course
        try:
            search = ColumnSearch(examiner, examiner.choice, examiner.places, examiner.local)
            found = _finished(search.run())
        except ConfigurationError:  # none satisfies, as far as that can be foreseen
            return course
        course.node, course.is_whole = found.node, True
        course.lost = min(round(examiner.lost(found.node)), examiner.allowed)
        return course


class _Quiet:
    """In place of a session: nothing is sent."""

    def progress(self, _step: str, _done: int, _total: int) -> None:
        """Nobody waits."""


@dataclass(frozen=True, eq=False)
class _Expected(Examiner):
    """Verdicts as they are expected.

    Attributes:
        choice: Of the tables.
        places: By holder the places of its quasi-identifiers; none where nobody knows anything by itself.
        rest: The highest levels of the axes of sensitive columns.
        tested: Their names.
        course: Where everything is noted: one.
    """

    choice: TableChoice
    places: Mapping[str, tuple[int, ...]]
    tested: tuple[str, ...]
    course: list[Course] = field(default_factory=list, kw_only=True)

    @classmethod
    def of(cls, task: JointAnonymisation, holders: Mapping[str, str], n_rows: int, *, grouped: bool) -> Self:
        """For so many rows."""
        values = {each.name: each.values for each in task.carried if each.values is not None}
        totals = {name: np.ones(len(each), np.int64) for name, each in values.items()}
        tests = SensitiveTests.of(task, totals, max(map(len, totals.values()), default=1))
        tested = tuple(sorted({model.column for model in tests.models}))
        labels = [[len(each) for each in hierarchy.labels] for hierarchy in task.hierarchies]
        choice = TableChoice([*labels, *([len(values[name]), 1] for name in tested)], len(task.hierarchies))
        places = dict[str, tuple[int, ...]]()
        for holder in () if grouped else sorted(set(holders.values())):
            own = (at for at, each in enumerate(task.quasi_identifiers) if holders[each.name] == holder)
            places[holder] = tuple(own)
        unit, quiet = task.loss_unit(n_rows), _Quiet()
        nothing: Any = quiet
        evenly = [np.full(len(each.leaves), n_rows // len(each.leaves), np.int64) for each in task.hierarchies]
        pairs = zip(task.hierarchies, evenly, strict=True)
        least = np.concatenate([losses_by_level(*each, unit) for each in pairs]).astype(np.int64)
        allowed = allowed_suppression(task.max_suppression, n_rows)
        losses = Losses(task, least, {}, None)
        found = cls(
            *(nothing, nothing, None, {}, task, nothing, n_rows, allowed, unit, tests, losses, choice, places, tested)
        )
        for asked in levels_between(task):
            losses.passed[asked] = not found._fails(found.showing(asked))
        return found

    @property
    def local(self) -> dict[str, Mask]:
        """By holder what its own columns condemn."""
        found = {}
        for holder, places in self.places.items():
            shape = tuple(self.task.shape[place] for place in places)
            marks = np.zeros(shape, np.bool_)
            for levels in np.ndindex(shape):
                node = [each.height for each in self.task.hierarchies]
                for place, level in zip(places, levels, strict=True):
                    node[place] = level
                marks[levels] = self._fails(tuple(node))
            if places:
                found[holder] = marks
        return found

    def showing(self, asked: Level) -> Node:
        """The node that shows one level alone."""
        node = [each.height for each in self.task.hierarchies]
        node[asked.place] = asked.level
        return tuple(node)

    def ask_margins(self) -> None:
        """The tables of each quasi-identifier and each compared column alone."""
        columns = compared_columns(self.task.requirements)
        places = [len(self.task.hierarchies) + self.tested.index(name) for name in columns]
        for place in (*places, *range(len(self.task.hierarchies))):
            highest = [len(each) - 1 for each in self.choice.labels]
            highest[place] = 0
            self.choice.place_of(tuple(highest))

    def lost(self, node: Node) -> float:
        """How many rows to expect in classes below k."""
        return expected_lost(self.n_rows, self._cells(node), self.task.k)

    async def crowded(self, name: str, nodes: Sequence[Node]) -> Mask:  # noqa: ARG002
        """See `Examiner`."""
        joint = [node for node in nodes if not self._is_alone(node)]
        self._ask_tables(joint, None)
        if joint:
            self.course[0].crowded.append((len(joint), sum(map(self._cells, joint))))
        return self._verdicts(nodes)

    async def examine(
        self,
        name: str,  # noqa: ARG002
        nodes: Sequence[Node],
        bounds: Sequence[int],
    ) -> list[Passed | None]:
        """See `Examiner`."""
        for column in (None, *(model.column for model in self.tests.models)):
            self._ask_tables(nodes, column)
        self.course[0].examined.append((len(nodes), sum(map(self._cells, nodes))))
        fails = self._verdicts(nodes)
        each = zip(nodes, bounds, fails.tolist(), strict=True)
        return [None if failed else Passed(node, bound, None, None) for node, bound, failed in each]

    async def is_less(self, name: str, one: Passed, other: Passed) -> bool:  # noqa: ARG002
        """See `Examiner`."""
        self.course[0].improvements += 1
        return (self._expected_loss(one), one.node) < (self._expected_loss(other), other.node)

    async def in_question(self, name: str, best: Passed, least: NDArray[np.int64]) -> int:  # noqa: ARG002
        """See `Examiner`."""
        self.course[0].bounds.append(len(least))
        return int(np.count_nonzero(least <= self._expected_loss(best)))

    async def release(
        self,
        node: Node,
        good: Callable[[], Awaitable[XorShare | None]],  # noqa: ARG002
    ) -> Mask:
        """See `Examiner`."""
        return np.ones(self._cells(node), np.bool_)

    # -- steps of the above ------------------------------------------------------------------------------------------
    def _ask_tables(self, nodes: Sequence[Node], column: str | None) -> None:
        rest = tuple(0 if name == column else 1 for name in self.tested)
        for node in nodes:
            self.choice.place_of((*node, *rest))

    def _verdicts(self, nodes: Sequence[Node]) -> Mask:
        fails = np.array([self._fails(node) for node in nodes], np.bool_)
        for node, failed in zip(nodes, fails.tolist(), strict=True):
            if failed:
                self.choice.dead[tuple(slice(level + 1) for level in node)] = True
        return fails

    def _fails(self, node: Node) -> bool:
        return self.lost(node) > self.allowed + 0.5

    def _is_alone(self, node: Node) -> bool:
        """Whether a node shows one party's columns alone, of which everyone knows."""
        shown = [p for p in self.places.values() if any(node[at] < self.task.hierarchies[at].height for at in p)]
        return bool(self.places) and len(shown) <= 1

    def _cells(self, node: Node) -> int:
        return self.task.cells(dict(enumerate(node)))

    def _expected_loss(self, passed: Passed) -> int:
        beyond = len(passed.node) * self.unit - passed.bound / self.n_rows
        return passed.bound + int(min(self.lost(passed.node), self.allowed) * max(beyond, 0))


def _finished(steps: Any) -> Any:
    """What steps come to that wait for nobody."""
    try:
        steps.send(None)
    except StopIteration as end:
        return end.value
    raise AssertionError("a search whose verdicts are known waits for nobody")
