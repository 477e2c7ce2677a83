"""What joint anonymisation of columns at several parties discloses: every label, and what follows for whom."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Final

from crypto.protocols.union.size_classes import LISTS
from link.disclosure import Declared, Learned
from mining.joint import align
from mining.joint.align import RowAlignment
from mining.joint.anonymisation.conditions.models import compared_columns
from mining.joint.anonymisation.disclosure import (
    learned_of_left_out,
    learned_of_losses,
    learned_of_nodes,
    openings_of_losses,
)
from mining.joint.anonymisation.parameters import JointAnonymisation
from mining.joint.anonymisation.vertical.columns import column_names
from mining.joint.anonymisation.vertical.local_pruning import LABEL as LOCAL
from mining.joint.anonymisation.vertical.table_choice import MOST_CELLS
from mining.joint.collusion import NOBODY_ELSE
from mining.joint.models.totals import rows_opening
from mining.joint.vertical.grouped.disclosure import repeated_learned, repeated_openings
from mining.joint.vertical.grouped.groups import Groups

_LOOKS: Final = 4  # at a node, at most: whether it is crowded and whether it can be released, twice by Samarati


def openings(
    task: JointAnonymisation, parties: Sequence[str], alignment: RowAlignment, groups: Groups = ()
) -> tuple[Declared, ...]:
    """Every label under which something may be opened, with its recipients and the most values."""
    everyone, nodes = frozenset(parties), math.prod(task.shape)
    most = LISTS.rounded(alignment.bound or LISTS.most)
    what = "which of the job's columns each party has"
    found = [
        *align.openings(alignment, parties),
        Declared("columns", everyone, what, len(column_names(task)) + 1, "after the alignment"),
    ]
    if groups:
        most *= len(parties)  # positions
        found += [*repeated_openings(groups, tuple(parties)), rows_opening(parties)]
    else:
        what = "at each combination of a party's own levels, whether too many rows lie in its local classes below k"
        found.append(Declared(LOCAL, everyone, what, nodes, "before the search"))
    found += openings_of_losses(task, everyone, "before the search")
    compared = compared_columns(task.requirements)
    if compared:
        sizes = sum(len(each.values or ()) for each in task.carried if each.name in compared)
        what = "how many common rows have each sensitive value that the model compares with"
        found.append(Declared("sensitive values", everyone, what, sizes, "before the search"))
    what = "whether a node has too many rows in classes that may not be released"
    found.append(Declared("verdicts", everyone, what, _LOOKS * nodes, "once per node that is looked at"))
    if task.max_suppression:
        what = "whether a node loses less than the best so far"
        found.append(Declared("improvements", everyone, what, nodes, "once per node that can be released"))
        what = "how many nodes may lose less than the best so far"
        found.append(Declared("bounds", everyone, what, nodes, "once per node that is better"))
    what = "which possible classes of the chosen node are released"
    found.append(Declared("classes", everyone, what, MOST_CELLS, "at the end of the search"))
    if task.max_suppression or groups:
        what = "in an order that nobody knows, whether each row is released"
        both = frozenset([task.collector, task.shuffler])
        found.append(Declared("released rows", both, what, most, "when rows are joined"))
    what = "the shuffler's shares of the released rows, in an order of its own"
    found.append(Declared("joined rows", frozenset([task.collector]), what, most, "when rows are joined"))
    if len(task.learners) > 1:
        found.append(Declared("release", frozenset(task.learners), "the released rows", most, "at the end"))
    return tuple(found)


def learned(
    task: JointAnonymisation, parties: Sequence[str], alignment: RowAlignment, groups: Groups = ()
) -> tuple[Learned, ...]:
    """Who learns what, in words."""
    everyone = tuple(parties)
    what = "at which of its own levels a party's columns alone put more than the allowed rows into local classes below "
    alone = [] if groups else [Learned(everyone, "membership", f"{what}k = {task.k}")]
    lines = [
        *align.learned(alignment, parties),
        Learned(everyone, "membership", "which party has which column of the job").main("whose each column is"),
        Learned(task.learners, "result", "the release: its node, its classes and their rows"),
        Learned(everyone, "result", "the node of the release and which classes it has").main(
            "the node and the classes of the release"
        ),
        *alone,
        *learned_of_losses(task, everyone),
        *learned_of_left_out(task, everyone),
        learned_of_nodes(task, everyone),
    ]
    if groups:
        common = Learned(everyone, "size", "the number of rows that all groups have in common")
        lines += [*repeated_learned(groups, everyone), common.main("the number of common rows")]
    if compared_columns(task.requirements):
        what = "how many common rows have each value of the columns that the model compares with"
        lines.append(Learned(everyone, "count", what))
    if task.max_suppression:
        what = "which nodes lose less than others, and between which public bounds the least loss lies"
        lines.append(Learned(everyone, "membership", what))
        what = (
            "how many rows are suppressed; of no row whether it is, but where one's own local class has no released one"
        )
        lines.append(Learned(everyone, "count", what))
    if groups:
        what = "for people whom one's own published columns single out in the release, that all groups have them"
        detail = (
            "of people whom one's own published columns tell apart in the release, that a party of every group has them"
        )
        lines.append(Learned(task.learners, "membership", what, detail))
    lines.append(
        Learned(
            task.learners,
            "membership",
            "for people whom one's own published columns single out in the release, what the others' columns show",
            "of people whose own published columns tell them apart in the release, what it shows of the others' "
            "columns: generalised, but for columns that are published as they are. The result says of how many rows",
        ).main("others' columns of people that one's own single out")
    )
    return tuple(lines)


def collusion(task: JointAnonymisation, parties: Sequence[str], groups: Groups = ()) -> str:
    """Which parties may work together without learning more, in words."""
    if len(parties) == 2:
        return "none is needed: each of the two parties is alone"
    first, second = task.compute
    counts, which = "counts", "all common rows"
    if groups:
        counts += ", and of the groups how many ids are at two of their parties,"
        which = "all rows, and which of these are common"
    return (
        f"{counts} withstand all parties but {first} and {second}, which together could learn them; rows withstand all "
        f"but {task.collector} and {task.shuffler}, which together read all parties' published parts of {which}; of "
        f"the alignment, {align.collusion(parties)}"
    )


def worst(task: JointAnonymisation, parties: Sequence[str], groups: Groups = ()) -> str:
    """The worst that colluders could find out, in plain words."""
    if len(parties) == 2:
        return NOBODY_ELSE
    if groups:
        return f"{task.collector} and {task.shuffler} together could read all published columns of all rows"
    return f"{task.collector} and {task.shuffler} together could read all published columns of all common rows"
