"""What a party reads off a release of the others' columns, by looking for its own people in it.

A party knows its own columns of every common row. In the release it finds a person among the rows that show what it
published of that person: its labels, and its columns that are published as they are. Where all of these agree in the
other parties' quasi-identifiers, it learns these, generalised, of that person. k protects the person's row among those
of its class, not that.

Source:     Jiang and Clifton, VLDB Journal 15(4), 2006, section 3 (what parties to a joint release know).
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from mining.joint.anonymisation.parameters import Found
from mining.joint.anonymisation.row_form import Assembled
from mining.joint.anonymisation.vertical.columns import HeldColumns


def rows_read_by(held: HeldColumns, found: Found, whole: Assembled, holders: tuple[str, ...]) -> dict[str, int]:
    """By holder of columns, of how many released rows it learns what the others' quasi-identifiers show.

    Each party of a group learns it of those of these rows that are its own people's.

    Args:
        held: Who has which column.
        found: The node.
        whole: The released rows.
        holders: Of columns: the parties of the job, or its groups.
    """
    if not len(whole.cells):
        return dict.fromkeys(holders, 0)
    labels = _labels(held, found, whole)
    return {holder: _read_by(holder, held, labels, whole.carried) for holder in holders}


def _labels(held: HeldColumns, found: Found, whole: Assembled) -> list[NDArray[np.int64]]:
    """By quasi-identifier the label of each released row."""
    left, labels = whole.cells, list[NDArray[np.int64]]()
    for hierarchy, level in reversed(list(zip(held.task.hierarchies, found.node, strict=True))):
        left, own = np.divmod(left, len(hierarchy.labels[level]))
        labels.append(own)
    return labels[::-1]


def _read_by(holder: str, held: HeldColumns, labels: list[NDArray[np.int64]], carried: Mapping[str, list[str]]) -> int:
    places = held.places(holder)
    texts = [cells for name, cells in carried.items() if held.holders[name] == holder]
    own = [labels[place] for place in places] + [np.unique(np.array(each), return_inverse=True)[1] for each in texts]
    others = [labels[place] for place in range(len(labels)) if place not in places]
    if not others:
        return 0
    groups, sizes = _grouped(own, len(labels[0]))
    both, _ = _grouped([groups, *others], len(labels[0]))
    views = np.bincount(groups[np.unique(both, return_index=True)[1]], minlength=len(sizes))
    return int(sizes[views == 1].sum())


def _grouped(columns: list[NDArray[np.int64]], number: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """The group of each row by equal cells, and the groups' sizes."""
    stacked = np.stack([np.zeros(number, np.int64), *(each.reshape(-1) for each in columns)], axis=1)
    _, groups, sizes = np.unique(stacked, axis=0, return_inverse=True, return_counts=True)
    return groups.reshape(-1).astype(np.int64), sizes.astype(np.int64)
