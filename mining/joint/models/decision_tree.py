"""Decision trees over all parties' rows, or over columns that lie at several parties: a level is one batch of counts.

A node's histograms, how many of its rows have each class and value, are all that the choice of its split takes. They
are opened to all parties, who each grow the same tree from them (`mining.models.decision_tree`).

Horizontal, every party holds whole rows:
    1. One secure sum opens how many rows each class has.
    2. Level by level every party counts the histograms of the open nodes over its own rows, which it sends down the
       tree as it grows; one secure sum opens those of all rows.
Vertical, every party holds columns of common rows:
    1. The parties open who holds which column; where not every row is everywhere, N is counted and opened.
    2. The rows of a node are a conjunction of conditions at several parties. A count of its histogram is that of a
       conjunction with one more value and a class: an engine leaves it shared, one secure sum for a level opens all.
       Nobody learns which rows reach a node.

Rounds:     one batch a level. Horizontal: that of a secure sum; vertical: that, and the engine's.
Output:     to all parties the tree of all rows, exactly that of the pooled ones.
Adversary:  semi-honest. Sums withstand any n − 2 colluders; products of two parties either of them, those of more any
            but the first two parties of the job together, who could learn each product's count.
Leakage:    `openings` lists all that is opened, `learned` what follows. More than the tree: the histograms of
            attributes that were not chosen, at every node of 2·min_rows rows and more that is not of one class.
Source:     Emekci, Sahin, Agrawal and El Abbadi, "Privacy preserving decision tree learning over multiple parties",
            Data & Knowledge Engineering 63(2), 2007 (counts of all parties' rows by secure sums); Vaidya, Clifton,
            Kantarcioglu and Patterson, "Privacy-preserving decision trees over vertically partitioned data", ACM TKDD
            2(3), 2008 (counts as products over the parties).
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from functools import partial

import numpy as np
from numpy.typing import NDArray

from crypto.protocols.comparison.two_party import Pairs
from crypto.protocols.sums.pairwise import PairwiseSecrets, agree
from link.disclosure import Declared, Learned
from link.journal import Known
from link.session import Session
from link.steps import step
from mining.joint.models.aligned import (
    AlignedAttributes,
    Condition,
    begin,
    columns_opening,
    equals,
)
from mining.joint.models.totals import Learnt, rows_opening, total_counts, total_rows
from mining.joint.tally import Addends, Counts, no_sum
from mining.joint.vertical.grouped.groups import Groups
from mining.lattice import Sets
from mining.models.attributes import Categorical, Codes, Discrete
from mining.models.coded_tables import Labelled
from mining.models.decision_tree import DecisionTree, Growth, Offer, TreeParameters, class_counts
from mining.models.splits import WHOLE, Split


def openings(
    task: TreeParameters, parties: tuple[str, ...], *, vertical: bool, everywhere: bool
) -> tuple[Declared, ...]:
    """Every label under which something may be opened, with its recipients and the most values.

    Args:
        task: The public parameters.
        parties: Of the job.
        vertical: Whether parties hold columns; rows otherwise.
        everywhere: Vertical only: whether every row is at every party.
    """
    everyone = frozenset(parties)
    found = [columns_opening(parties, (task.target, *task.attributes))] if vertical else []
    if not (vertical and everywhere):
        found.append(rows_opening(parties))
    what = "how many rows of a node have each class with each value of an attribute"
    return (
        *found,
        Declared("classes", everyone, "how many rows have each class", task.target.size, "at the start"),
        Declared("histograms", everyone, what, task.max_counts, "once per level of the tree"),
    )


def learned(
    task: TreeParameters, parties: tuple[str, ...], *, vertical: bool, holders: str = "parties"
) -> tuple[Learned, ...]:
    """Who learns what, in words; arguments as for `openings`, and `holders` of columns: `parties` or `groups`."""
    looked_at = f"every node of {2 * task.min_rows} rows or more of several classes"
    short = "at every node that may be split, the counts of each class with each value, down to 1"
    what = (
        f"at {looked_at}, how many of its rows have each class with each value of every attribute, chosen or not; "
        "counts may be as small as 1"
    )
    others = "; so also the other's" if len(parties) == 2 and not vertical else ""
    if others:
        short += others
        what += "; so all of these for the other's rows"
    size = f"the number of rows that all {holders} have in common" if vertical else "the number of all rows"
    lines = [
        Learned(parties, "result", "the tree, with the number of rows of each class at each node").main(
            "the tree with its counts"
        ),
        Learned(parties, "count", short, what).main(f"all counts at nodes that may be split, down to 1{others}"),
        Learned(parties, "size", size).main("the number of common rows" if vertical else ""),
    ]
    if vertical:
        lines.append(
            Learned(parties, "membership", "which party has which column of the model").main("whose each column is")
        )
        lines.append(Learned(parties, "membership", "of no row which nodes it reaches, but by one's own columns"))
    return tuple(lines)


async def learn_horizontal(session: Session, rows: Labelled, task: TreeParameters) -> Learnt[DecisionTree]:
    """Runs the part of a party that holds rows.

    Args:
        session: A lane of the job's session.
        rows: This party's; perhaps none.
        task: The public parameters, equal at all parties.

    Raises:
        ConfigurationError: The tree has more nodes than the job allows.
        InputDataError: No party has any row.
        ProtocolViolation: What was opened cannot be sums of counts.
    """
    secrets = await agree(session.lane("keys"))
    n_rows = await total_rows(session.lane("rows"), secrets, rows.n_rows)

    async def classes() -> Addends:
        return await session.compute(rows.total, partial(class_counts, target=task.target))

    async def histograms(_: Session) -> Addends:
        return await session.compute(rows.total, growth.histograms())

    growth, level = Growth(task, await _classes(session, secrets, n_rows, classes)), 0
    while growth.offers:
        await _grow(session.lane(f"level {level}"), secrets, growth, n_rows, histograms)
        level += 1
    return Learnt(n_rows, growth.tree)


async def learn_vertical(
    session: Session, pairs: Pairs, aligned: AlignedAttributes, task: TreeParameters, groups: Groups = ()
) -> Learnt[DecisionTree]:
    """Runs the part of a party that holds columns; what is not said here is as for `learn_horizontal`.

    Args:
        session: A lane of the job's session.
        pairs: From `two_party.pairs_of` in this session; those of the alignment, if it has used some.
        aligned: This party's attributes over the common rows.
        task: The public parameters.
        groups: Of parties that hold the same columns of different rows, if there are any.

    Raises:
        ConfigurationError: A column is at no party or at two, or the tree has more nodes than the job allows.
        InputDataError: No row is common to all parties, or some id is at two parties of a group.
        ProtocolViolation: What was opened cannot be counts of rows.
    """
    numbers = Numbers(task)
    begun = await begin(session, pairs, aligned, (task.target, *task.attributes), numbers.conditions(), groups)
    secrets, n_rows, engine, conditions = begun

    async def classes() -> Addends:
        sets = np.arange(task.target.size, dtype=np.int32)[:, None]
        return await conditions.addends(session.lane("class products"), engine, sets)

    async def histograms(lane: Session) -> Addends:
        sets = await session.compute(numbers.sets, growth, conditions.none)
        return await conditions.addends(lane.lane("products"), engine, sets)

    growth, level = Growth(task, await _classes(session, secrets, n_rows, classes)), 0
    while growth.offers:
        await _grow(session.lane(f"level {level}"), secrets, growth, n_rows, histograms, numbers.histograms)
        level += 1
    return Learnt(n_rows, growth.tree)


async def _classes(
    session: Session, secrets: PairwiseSecrets, n_rows: int, count: Callable[[], Awaitable[Addends]]
) -> list[int]:
    """Opens how many rows each class has."""

    async def take() -> Known:
        return Known(await total_counts(session.lane("classes"), secrets, await count(), n_rows, label="classes"))

    totals = (await step(session, "classes", take)).public
    if totals is None or int(totals.sum()) != n_rows:
        raise no_sum(session)
    return [int(total) for total in totals]


async def _grow(
    session: Session,
    secrets: PairwiseSecrets,
    growth: Growth,
    n_rows: int,
    count: Callable[[Session], Awaitable[Addends]],
    complete: Callable[[Growth, Counts], Counts] = lambda growth, counts: counts,
) -> None:
    """Opens a level's counts, makes histograms of them, and divides its nodes."""

    async def take() -> Known:
        addends = await count(session)
        return Known(await total_counts(session.lane("histograms"), secrets, addends, n_rows, label="histograms"))

    totals = (await step(session, "histograms", take)).public
    if totals is None:
        raise AssertionError("histograms are opened to all")
    try:
        await session.compute(growth.grow, complete(growth, totals))
    except ValueError:
        raise no_sum(session) from None


class Numbers:
    """The conditions of a vertical tree in order: the classes, then by attribute its values, or both sides of its cuts.

    Of each histogram all codes but the last are counted, of numbers all up to each cut; what remains is the last.
    """

    def __init__(self, task: TreeParameters) -> None:
        self._task = task
        sizes = [len(_of_attribute(attribute)) for attribute in task.attributes]
        self._starts = np.cumsum([task.target.size, *sizes]).tolist()

    def conditions(self) -> list[Condition]:
        """All, in order."""
        attributes: tuple[Discrete, ...] = (self._task.target, *self._task.attributes)
        return [Condition(attribute.name, holds) for attribute in attributes for holds in _of_attribute(attribute)]

    def sets(self, growth: Growth, none: int) -> Sets:
        """The conjunctions to be counted: offer by offer, code by code, class by class."""
        n_classes = self._task.target.size
        depth = max(len(path) for _, path in growth.open)
        found = []
        for offer in growth.offers:
            path = [self._number(condition.split, condition.branch) for condition in growth.open[offer.place].path]
            codes = [self._number(self._split(offer, code), self._side(offer, code)) for code in _counted(offer)]
            part = np.full((len(codes), n_classes, depth + 2), none, np.int32)
            part[:, :, : len(path)] = path
            part[:, :, -2] = np.array(codes)[:, None]
            part[:, :, -1] = np.arange(n_classes)
            found.append(part.reshape(-1, depth + 2))
        return np.concatenate(found)

    def histograms(self, growth: Growth, counts: Counts) -> Counts:
        """The histograms, flat, from the counts of the conjunctions."""
        n_classes, stop, found = self._task.target.size, 0, []
        for offer in growth.offers:
            start, stop = stop, stop + (offer.size - 1) * n_classes
            part = counts[start:stop].reshape(-1, n_classes)
            if not self._is_categorical(offer):
                part = np.diff(part, axis=0, prepend=0)
            last = np.array(growth.open[offer.place].node.counts) - part.sum(axis=0)
            found.append(np.concatenate([part, last[None]]).reshape(-1))
        return np.concatenate(found)

    def _number(self, split: Split, branch: int) -> int:
        """Of the condition of a branch."""
        place = branch if split.cut == WHOLE else 2 * split.cut + branch
        return int(self._starts[split.attribute] + place)

    def _split(self, offer: Offer, code: int) -> Split:
        return Split(offer.attribute, WHOLE if self._is_categorical(offer) else code)

    def _side(self, offer: Offer, code: int) -> int:
        return code if self._is_categorical(offer) else 0

    def _is_categorical(self, offer: Offer) -> bool:
        return isinstance(self._task.attributes[offer.attribute], Categorical)


def _counted(offer: Offer) -> range:
    """All codes of an offer but the last."""
    return range(offer.first, offer.first + offer.size - 1)


def _of_attribute(attribute: Discrete) -> list[Callable[[Codes], NDArray[np.bool_]]]:
    """The conditions of a column."""
    if isinstance(attribute, Categorical):
        return [partial(equals, place) for place in range(attribute.size)]
    return [partial(side, cut) for cut in range(attribute.size - 1) for side in (_up_to, _above)]


def _up_to(cut: int, codes: Codes) -> NDArray[np.bool_]:
    return np.less_equal(codes, cut)


def _above(cut: int, codes: Codes) -> NDArray[np.bool_]:
    return np.greater(codes, cut)
