"""What joint anonymisation discloses: every label that may be opened, and what follows for whom."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Final

from anonymize.models import TCloseness
from link.disclosure import Declared, Learned
from mining.joint.anonymisation.assembly import MAX_BOUND
from mining.joint.anonymisation.models import offered
from mining.joint.anonymisation.parameters import MOST_CELLS, JointAnonymisation
from mining.joint.hybrid.shuffle import LABEL as SHUFFLED
from mining.joint.models.totals import rows_opening

_LOOKS: Final = 4  # at a node, at most: whether it is crowded and whether it can be released, twice by Samarati


def openings(task: JointAnonymisation, parties: Sequence[str]) -> tuple[Declared, ...]:
    """Every label under which something may be opened, with its recipients and the most values."""
    everyone, nodes = frozenset(parties), math.prod(task.shape)
    most = len(parties) * (task.bound or MAX_BOUND)
    found = [rows_opening(parties)]
    if task.bound is None:
        found.append(Declared("size classes", everyone, "the next power of two of a party's rows", 1, "at the start"))
    if task.algorithm == "mondrian":
        return (*found, *_of_values(task, everyone), *_of_regions(task, everyone, most), *_of_rows(task, most))
    found.append(
        Declared(
            "losses",
            everyone,
            "what all rows lose at each level of each quasi-identifier",
            sum(task.shape),
            "at the start",
        )
    )
    found += _of_values(task, everyone)
    what = "whether a node has too many rows in classes that may not be released"
    found.append(Declared("verdicts", everyone, what, _LOOKS * nodes, "once per node that is looked at"))
    if task.max_suppression:
        what = "whether a node loses less than the best so far"
        found.append(Declared("improvements", everyone, what, nodes, "once per node that can be released"))
        what = "how many nodes may lose less than the best so far"
        found.append(Declared("bounds", everyone, what, nodes, "once per node that is better"))
    what = "which possible classes of the chosen node are released"
    found.append(Declared("classes", everyone, what, MOST_CELLS, "at the end"))
    return (*found, *_of_rows(task, most))


def _of_values(task: JointAnonymisation, everyone: frozenset[str]) -> list[Declared]:
    """What t-closeness takes."""
    columns = {model.column for model in offered(task.requirements) if isinstance(model, TCloseness)}
    if not columns:
        return []
    sizes = sum(len(each.values or ()) for each in task.carried if each.name in columns)
    what = "how many of all rows have each sensitive value that t-closeness compares with"
    return [Declared("sensitive values", everyone, what, sizes, "at the start")]


def _of_regions(task: JointAnonymisation, everyone: frozenset[str], rows: int) -> list[Declared]:
    """What the cutting of regions takes, of which there are fewer than two a row."""
    regions, d = 2 * rows, len(task.hierarchies)
    places = sum(len(each.leaves) for each in task.hierarchies)
    level = "once per level of the regions"
    return [
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
    size = "the number N of all rows" + ("" if task.bound else ", and of each party the next power of two of its rows")
    if task.algorithm == "mondrian":
        refused = "" if _of_k_alone(task) else ", and along which quasi-identifiers a region could not be cut"
        told = [
            Learned(task.learners, "result", "the release: its classes and their rows"),
            Learned(
                everyone,
                "result",
                f"the regions of the release, and of how they were cut which of two neighbouring cuts it was{refused}; "
                "no count of any region, and no median of a quasi-identifier along which a region was not cut",
            ),
            Learned(everyone, "size", size),
        ]
        return (*told, *_of_origin(task, parties))
    lines = [
        Learned(task.learners, "result", "the release: its node, its classes and their rows"),
        Learned(everyone, "result", "the node of the release and which classes it has"),
        Learned(everyone, "size", size),
        Learned(everyone, "count", "of all rows together, what each quasi-identifier loses at each of its levels"),
        Learned(
            everyone,
            "membership",
            f"of nodes that are looked at, whether more than the allowed rows lie in classes below k = {task.k} or "
            "miss the model; no count of any class, and no class of a node that is not chosen",
        ),
    ]
    if task.max_suppression:
        what = "which nodes lose less than others, and between which public bounds the least loss lies"
        lines.append(Learned(everyone, "membership", what))
    return (*lines, *_of_origin(task, parties))


def _of_k_alone(task: JointAnonymisation) -> bool:
    """Whether nothing but k-anonymity is asked."""
    return task.insider_k <= 1 and task.k_site is None and not offered(task.requirements)


def _of_origin(task: JointAnonymisation, parties: Sequence[str]) -> tuple[Learned, ...]:
    """What is learnt of whose rows are whose."""
    everyone, lines = tuple(parties), list[Learned]()
    if len(parties) == 2:
        what = (
            "the other's number of rows, and its losses where these are opened; of every released row whether it is "
            "the other's"
        )
        lines.append(Learned(everyone, "membership", what))
    elif task.origin == "hidden":
        what = f"whose row is whose, of no row but one's own, unless {task.collector} and {task.shuffler} work together"
        lines.append(Learned(everyone, "membership", what))
    if task.origin == "shown":
        what = f"of every released row whose it is; a party has none in a class, or {task.k_site} at least"
        lines.append(Learned(task.learners, "membership", what))
    if task.insider_k <= 1:
        what = "of a class in which others have a single row, that row; insider_k = 2 prevents it"
    else:
        what = f"without one's own rows, classes in which the others have {task.insider_k} rows or more, or none"
    lines.append(Learned(task.learners, "count", what))
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
    if {task.collector, task.shuffler} == {first, second}:
        return f"{counts}, and which released rows are whose"
    return f"{counts}; whose row is whose withstands all but {task.collector} and {task.shuffler} together"
