"""What a party knows of nodes by its own columns alone: where too many of its rows lie in local classes below k.

A class of a node lies inside one local class of every party. So where more rows than may be suppressed lie in local
classes below k, the same is true of the node and of all its specialisations, whatever the other columns are.

    1. every party counts its own columns at all their levels
    2. it opens to all, by its levels, whether there are too many rows in local classes below k

Rounds:     1. Leakage: these bits, one for each combination of a party's own levels.
Source:     LeFevre, DeWitt and Ramakrishnan, "Incognito", SIGMOD 2005, section 3 (subset property).
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping
from typing import Final

import numpy as np
from numpy.typing import NDArray

from link.errors import MalformedMessage
from link.session import Session
from mining.joint.anonymisation.parameters import JointAnonymisation
from mining.joint.anonymisation.vertical.columns import HeldColumns

LABEL: Final = "local verdicts"

Marks = NDArray[np.bool_]


async def prune_locally(session: Session, held: HeldColumns, allowed: int) -> dict[str, Marks]:
    """Opens, by party and its own levels, whether too many rows lie in local classes below k.

    Args:
        session: A lane of its own.
        held: This party's columns.
        allowed: MaxSup in rows.

    Returns:
        By party that has quasi-identifiers an array with an axis for each of them.

    Raises:
        MalformedMessage: A peer opened something else than such bits.
    """
    found, me = dict[str, Marks](), session.me
    shapes = {party: tuple(held.task.shape[place] for place in held.places(party)) for party in session.parties}
    if shapes[me]:
        found[me] = await session.compute(_crowded, held, allowed)
        await session.open(LABEL, found[me].astype(np.uint8).ravel())
    for peer in session.others:
        if shapes[peer]:
            bits = await session.receive_opened(peer, LABEL, np.uint8, (math.prod(shapes[peer]),))
            found[peer] = _checked(bits, peer).reshape(shapes[peer])
    return found


def spread(task: JointAnonymisation, places: Mapping[str, tuple[int, ...]], local: Mapping[str, Marks]) -> Marks:
    """Which nodes are condemned, in the shape of the whole lattice.

    Args:
        task: The public parameters.
        places: By party the places of its quasi-identifiers.
        local: By party what its own columns condemn.
    """
    dead: Marks = np.zeros(task.shape, np.bool_)
    for party, marks in local.items():
        shape = [size if place in places[party] else 1 for place, size in enumerate(task.shape)]
        dead |= marks.reshape(shape)
    return dead


def _crowded(held: HeldColumns, allowed: int) -> Marks:
    counter, shape = held.counter(), held.own.shape
    marks: Marks = np.zeros(shape, np.bool_)
    for levels in itertools.product(*(reversed(range(size)) for size in shape)):
        if marks[levels]:
            continue
        _, cells = np.unique(counter.keys(dict(enumerate(levels))), return_inverse=True)
        sizes = np.bincount(cells.reshape(-1), counter.weights)
        if int(sizes[sizes < held.task.k].sum()) > allowed:
            marks[tuple(slice(level + 1) for level in levels)] = True
    return marks


def _checked(bits: NDArray[np.uint8], peer: str) -> Marks:
    if (bits > 1).any():
        raise MalformedMessage(f"{peer} opened bits that are neither 0 nor 1; check that node", party=peer)
    return bits.astype(np.bool_)
