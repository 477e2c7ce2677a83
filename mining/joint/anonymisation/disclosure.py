"""What joint anonymisation discloses: every label that may be opened, and what follows for whom."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Final

import numpy as np

from crypto.protocols.sums import masked_maximum
from crypto.protocols.union import common_length
from crypto.protocols.union.prefix_disclosure import leakage, most_opened
from crypto.protocols.union.prefixes import LIMITS
from crypto.protocols.union.size_classes import SETS
from link.disclosure import Declared, Learned
from mining.joint.anonymisation.assembly import ROWS
from mining.joint.anonymisation.axes import TREES
from mining.joint.anonymisation.conditions.models import compared_columns, offered
from mining.joint.anonymisation.occurring import KEY_BYTES, MOST_KEYED
from mining.joint.anonymisation.occurring import LABEL as KEYS
from mining.joint.anonymisation.parameters import MOST_CELLS, JointAnonymisation
from mining.joint.anonymisation.public_lattice import possible_classes
from mining.joint.anonymisation.public_losses import levels_between
from mining.joint.collusion import NOBODY_ELSE
from mining.joint.hybrid.shuffle import LABEL as SHUFFLED
from mining.joint.models.totals import rows_opening

OF_A_RELEASE: Final = frozenset({"classes", "cuts", "released rows", "joined rows", "release", SHUFFLED})
"""Labels under which something is opened only where there is a release."""
_LOOKS: Final = 4  # at a node, at most: whether it is crowded and whether it can be released, twice by Samarati


def openings(task: JointAnonymisation, parties: Sequence[str]) -> tuple[Declared, ...]:
    """Every label under which something may be opened, with its recipients and the most values."""
    everyone = frozenset(parties)
    most = len(parties) * ROWS.rounded(task.bound or ROWS.most)
    found = [rows_opening(parties)]
    maxima = ROWS.beyond
    if task.keys == "union":
        maxima += nodes_with_unions(task) * sum(LIMITS)
    found.append(masked_maximum.declared(parties, maxima))
    if task.algorithm == "mondrian":
        return (*found, *_of_values(task, everyone), *_of_regions(task, everyone, most), *_of_rows(task, most))
    found += openings_of_losses(task, everyone, "at the start")
    found += _of_values(task, everyone)
    found += _of_the_search(task, everyone)
    most_classes = min(task.node_cells, MOST_CELLS) if task.disclose == "node" else MOST_CELLS
    if task.keys == "union":
        nodes = nodes_with_unions(task)
        what = "which combinations of generalised values occur in any party's rows, bit by bit"
        when = "once per large node that may be better than the best"
        united = len(parties) * SETS.rounded(min(task.bound or SETS.most, SETS.most))
        found.append(Declared(KEYS, everyone, what, nodes * most_opened(united, KEY_BYTES), when))
        most_classes = max(most_classes, most)
    what = "which possible classes of the chosen node are released"
    found.append(Declared("classes", everyone, what, most_classes, "at the end"))
    return (*found, *_of_rows(task, most))


def nodes_with_unions(task: JointAnonymisation) -> int:
    """How many nodes may take a union of class keys."""
    cells = possible_classes(task)
    return int(np.count_nonzero((cells > MOST_CELLS) & (cells <= MOST_KEYED)))


def openings_of_losses(task: JointAnonymisation, everyone: frozenset[str], when: str) -> list[Declared]:
    """What is opened of the rows' losses (`public_losses`)."""
    number = len(levels_between(task))
    if not number:
        return []
    which = "whether each label of a level of a quasi-identifier has no row, or as many as a class must have"
    what = "what all rows lose at each level of which that holds"
    return [Declared("open levels", everyone, which, number, when), Declared("losses", everyone, what, number, when)]


def _of_the_search(task: JointAnonymisation, everyone: frozenset[str]) -> list[Declared]:
    """What is opened of nodes."""
    nodes = math.prod(task.shape)
    if task.disclose == "node":
        end = "once all nodes are examined"
        return [
            Declared("satisfiable", everyone, "whether any node that is examined can be released", 1, end),
            Declared("node", everyone, "the chosen node", 1, end),
        ]
    what = "whether a node has too many rows in classes that may not be released"
    found = [Declared("verdicts", everyone, what, _LOOKS * nodes, "once per node that is looked at")]
    if task.max_suppression:
        what = "whether a node loses less than the best so far"
        found.append(Declared("improvements", everyone, what, nodes, "once per node that can be released"))
        what = "how many nodes may lose less than the best so far"
        found.append(Declared("bounds", everyone, what, nodes, "once per node that is better"))
    return found


def _of_values(task: JointAnonymisation, everyone: frozenset[str]) -> list[Declared]:
    """What models take that compare classes with all rows."""
    columns = compared_columns(task.requirements)
    if not columns:
        return []
    sizes = sum(len(each.values or ()) for each in task.carried if each.name in columns)
    what = "how many of all rows have each sensitive value that the model compares with"
    return [Declared("sensitive values", everyone, what, sizes, "at the start")]


def _of_regions(task: JointAnonymisation, everyone: frozenset[str], rows: int) -> list[Declared]:
    """What the cutting of regions takes, of which there are fewer than two a row."""
    regions, d = 2 * rows, len(task.hierarchies)
    places = sum(len(each.leaves) for each in task.hierarchies)
    level = "once per level of the regions"
    found = []
    if not task.requirements.monotone:
        what = "whether regions that show the same fail the requirements together"
        found.append(Declared("shown classes", everyone, what, 1, "at the end"))
    return [
        *found,
        Declared("verdicts", everyone, "whether all rows as one class fail the requirements", 1, "at the start"),
        Declared("spans", everyone, "the first and last values of each region", 2 * places * regions, level),
        Declared("splits", everyone, "whether a region can be cut along a quasi-identifier", d * regions, level),
        Declared("cuts", everyone, "where a region is cut", regions, level),
    ]


def _of_rows(task: JointAnonymisation, most: int) -> list[Declared]:
    """What bringing the rows together takes."""
    what = "the released rows, sealed and in secret order, with dummies"
    found = [Declared(SHUFFLED, frozenset([task.collector]), what, most, "at the end")]
    if len(task.learners) > 1:
        found.append(Declared("release", frozenset(task.learners), "the released rows", most, "at the end"))
    return found


def learned(task: JointAnonymisation, parties: Sequence[str]) -> tuple[Learned, ...]:
    """Who learns what, in words."""
    everyone = tuple(parties)
    public = [
        Learned(everyone, "size", "the number N of all rows").main(),
        common_length.leakage(everyone, "rows", task.bound),
    ]
    if compared_columns(task.requirements):
        what = "how many of all rows have each value of the columns that the model compares with"
        public.append(Learned(everyone, "count", what).main("how many rows have each compared sensitive value"))
    if task.algorithm == "mondrian":
        refused = "" if _of_k_alone(task) else ", and along which quasi-identifiers a region could not be cut"
        lines = [
            Learned(task.learners, "result", "the release: its classes and their rows"),
            Learned(
                everyone,
                "result",
                "the regions of the release, their outermost values, and how each could be cut; no count of a region",
                f"the regions of the release, and of how they were cut which of two neighbouring cuts it was{refused}; "
                "no count of any region, and no median of a quasi-identifier along which a region was not "
                f"cut{_trees(task)}",
            ).main("the regions of the release, their outermost values, and how each could be cut"),
            *public,
        ]
        return (*lines, *_of_origin(task, parties))
    lines = [
        Learned(task.learners, "result", "the release: its node, its classes and their rows"),
        Learned(everyone, "result", "the node of the release and which classes it has").main(
            "the node and the classes of the release"
        ),
        *public,
        *learned_of_losses(task, everyone),
        *learned_of_left_out(task, everyone),
    ]
    if task.disclose == "node":
        what = "whether any examined node can be released, and that no node preferred to the chosen one can"
        detail = (
            f"whether any node of at most {task.node_cells} possible classes can be released, and that none of these "
            "can that would have been chosen before the node of the release; nothing else of any other node but what "
            "is said of levels, and no count of any class"
        )
        examined = Learned(everyone, "membership", what, detail).main("that no node preferred to it can be released")
        return (*lines, examined, *_of_origin(task, parties))
    lines.append(learned_of_nodes(task, everyone))
    if task.max_suppression:
        what = "which nodes lose less than others, and between which public bounds the least loss lies"
        lines.append(Learned(everyone, "membership", what))
    if task.keys == "union":
        lines += _of_keys(parties)
    return (*lines, *_of_origin(task, parties))


def learned_of_nodes(task: JointAnonymisation, everyone: tuple[str, ...]) -> Learned:
    """What is learnt of nodes that are examined."""
    what = "which examined nodes cannot be released, and why; no count of any class, and no class of a node not chosen"
    detail = (
        f"of nodes that are examined, whether more than the allowed rows lie in classes below k = {task.k} or miss the "
        "model; no count of any class, and no class of a node that is not chosen"
    )
    return Learned(everyone, "membership", what, detail).main("which nodes cannot be released, and why")


def learned_of_losses(task: JointAnonymisation, everyone: tuple[str, ...]) -> list[Learned]:
    """What follows from the losses that are opened."""
    if not levels_between(task):
        return []
    what = "which levels have labels with few rows; of other levels the total loss, which may reveal each label's rows"
    detail = (
        "which levels of the quasi-identifiers have labels with some rows, but fewer than a class must have "
        f"(k = {task.k}); of each other level what all rows lose at it together, which may reveal how many rows each "
        "of its labels has"
    )
    return [Learned(everyone, "count", what, detail).main("losses, which may show counts of labels")]


def learned_of_left_out(task: JointAnonymisation, everyone: tuple[str, ...]) -> list[Learned]:
    """What is learnt of rows that are left out."""
    if not task.max_suppression:
        return []
    lines = list[Learned]()
    if compared_columns(task.requirements):
        what = "the values in the model's compared columns of the rows that are left out, all together"
        detail = (
            "of the columns that the model compares with, the values of the rows that are left out: those of all rows "
            "without those of the release; max_suppression = 0 prevents it"
        )
        lines.append(Learned(task.learners, "count", what, detail))
    if task.insider_k > 1:
        what = "of an unreleased class with enough rows of one's own, that the others have some there, but few"
        detail = (
            f"of a class that is not released and in which one has {task.k} rows or more oneself: that the others "
            f"have fewer than insider_k = {task.insider_k} there, but some, unless the model or k_site keeps it back; "
            "max_suppression = 0 prevents it"
        )
        lines.append(Learned(everyone, "count", what, detail))
    return lines


def _of_keys(parties: Sequence[str]) -> list[Learned]:
    """What the unions of class keys reveal."""
    what = "at large nodes, which combinations of generalised values occur, even those of a single row"
    detail = (
        f"of nodes with more than {MOST_CELLS:,} possible classes that may be better than the best so far, which of "
        "these classes occur in any party's rows: combinations of generalised values, those of a single row among them"
    )
    of_unions = (line.of("the union of class keys of such a node") for line in leakage(parties, limits=False))
    brief = "at large nodes, which generalised values occur together"
    return [Learned(tuple(parties), "membership", what, detail).main(brief), *of_unions]


def _trees(task: JointAnonymisation) -> str:
    """What is disclosed of regions beyond what the release shows."""
    names = [each.name for each in task.quasi_identifiers if each.kind in TREES]
    if not names:
        return ""
    return (
        f"; of {' and '.join(names)} the first and the last leaf that occur in each region, where the release shows "
        "their common label"
    )


def _of_k_alone(task: JointAnonymisation) -> bool:
    """Whether nothing but k-anonymity is asked."""
    return task.insider_k <= 1 and task.k_site is None and not offered(task.requirements)


def _of_origin(task: JointAnonymisation, parties: Sequence[str]) -> tuple[Learned, ...]:
    """What is learnt of whose rows are whose."""
    everyone, lines = tuple(parties), list[Learned]()
    if len(parties) == 2:
        what = "the other's number of rows, perhaps how many have each label, and which released rows are the other's"
        detail = (
            "the other's number of rows, and its losses where these are opened, which may reveal how many rows with a "
            "label it has; of every released row whether it is the other's"
        )
        brief = "the other's number of rows, and which released rows are the other's"
        lines.append(Learned(everyone, "membership", what, detail).main(brief))
    elif task.origin == "hidden":
        what = f"whose row is whose, of no row but one's own, unless {task.collector} and {task.shuffler} work together"
        lines.append(Learned(everyone, "membership", what))
    if task.origin == "shown":
        what = f"of every released row whose it is; a party has none in a class, or {task.k_site} at least"
        lines.append(Learned(task.learners, "membership", what).main("whose every released row is"))
    brief = ""
    if task.insider_k <= 1:
        what = "of a class in which others have a single row, that row; insider_k = 2 prevents it"
        brief = "of a class where others have one row, that row"
    elif task.insiders == 1:
        what = f"without one's own rows, classes in which the others have {task.insider_k} rows or more, or none"
    else:
        what = (
            f"without the rows of up to {task.insiders} parties that put theirs together, classes in which the others "
            f"have {task.insider_k} rows or more, or none"
        )
    lines.append(Learned(task.learners, "count", what, brief=brief))
    return tuple(lines)


def collusion(task: JointAnonymisation, parties: Sequence[str]) -> str:
    """Which parties may work together without learning more, in words."""
    if len(parties) == 2:
        return "none is needed: each of the two parties is alone"
    first, second = task.compute
    counts = (
        f"counts withstand all parties but {first} and {second}; these two together could learn the sum over the "
        "others of each count"
    )
    if task.insider_k > 1:
        counts += f", and of each party its counts up to insider_k = {task.insider_k}"
    rows = f"; whose row is whose withstands all but {task.collector} and {task.shuffler} together"
    if {task.collector, task.shuffler} == {first, second}:
        rows = ", and which released rows are whose"
    return f"{counts}{rows}{_together(task)}"


def worst(task: JointAnonymisation, parties: Sequence[str]) -> str:
    """The worst that colluders could find out, in plain words."""
    if len(parties) == 2:
        return NOBODY_ELSE
    counts, rows = " and ".join(task.compute), f"{task.collector} and {task.shuffler}"
    if set(task.compute) == {task.collector, task.shuffler}:
        return f"{counts} together could compute the others' sum of every count, and see whose row is whose"
    return f"{counts} together could compute the others' sum of every count; {rows} could see whose row is whose"


def _together(task: JointAnonymisation) -> str:
    """What parties find in the release that put their rows together."""
    if task.insider_k <= 1:
        return ""
    if task.insiders == 1:
        return "; two parties that put their rows together may find others' single rows in the release (insiders = 1)"
    return (
        f"; up to {task.insiders} parties that put their rows together find classes in which the others have "
        f"{task.insider_k} rows or more, or none"
    )
