"""The classes of a node that occur in some party's rows, by a secure set union of their keys.

A node with more possible classes than can be compared is examined over those that occur, of which there are at most as
many as rows. A key is the number of a class among the possible ones, the labels in mixed radix.

Rounds:     those of a set union.
Leakage:    to all, which combinations of generalised values occur, not at which party and not how often; to the merger
            more (`crypto.protocols.union.disclosure`).
Source:     the union is that of `crypto.protocols.union.set_union`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray

from crypto.protocols.sums.pairwise import PairwiseSecrets
from crypto.protocols.union.lists import Fill
from crypto.protocols.union.set_union import set_union
from link.errors import MalformedMessage
from link.session import Session
from mining.joint.anonymisation.parameters import JointAnonymisation
from mining.joint.anonymisation.rows import Cells, Counter, label_losses

LABEL: Final = "class keys"
FILL: Final[Fill] = "merged"
MOST_KEYED: Final = float(1 << 62)
"""Keys are numbers below it: nodes with more possible classes are left out."""

_WIDTH: Final = 8  # bytes of a key, the most significant first


def merger_of(parties: Sequence[str]) -> str:
    """The party that merges the sets: the first of the job."""
    return parties[0]


async def occurring_keys(
    session: Session, secrets: PairwiseSecrets, counter: Counter, node: Mapping[int, int], bound: int
) -> Cells:
    """The keys of all classes of a node that occur, ascending, shape (classes,).

    Args:
        session: A lane of its own.
        secrets: Pairwise secrets of this session.
        counter: This party's rows.
        node: Levels by the places of the quasi-identifiers.
        bound: The most rows that any party has, public.

    Raises:
        MalformedMessage: A peer sent what is no group element, or the merger opened what is no key.
        ProtocolViolation: What came out lacks this party's keys.
    """
    own = np.unique(counter.keys(node)).astype(">u8").tobytes()
    merger = merger_of(session.parties)
    found = await set_union(
        session,
        secrets,
        [own[start : start + _WIDTH] for start in range(0, len(own), _WIDTH)],
        merger=merger,
        max_element_bytes=_WIDTH,
        bound=bound,
        label=LABEL,
        fill=FILL,
    )
    if any(len(key) != _WIDTH for key in found):
        raise _no_key(merger)
    keys = np.frombuffer(b"".join(found), ">u8").astype(np.uint64)
    if (keys >= counter.task.cells(node)).any():
        raise _no_key(merger)
    return keys.astype(np.int64)


def counts_of(counter: Counter, node: Mapping[int, int], keys: Cells) -> Cells:
    """A party's rows in each class that occurs, shape (classes,)."""
    places = np.searchsorted(keys, counter.keys(node))
    return np.bincount(places, counter.weights, len(keys)).astype(np.int64)


def histogram_of(counter: Counter, node: Mapping[int, int], keys: Cells, column: str) -> NDArray[np.int64]:
    """A party's rows in each class that occurs with each value of a column, shape (classes, values).

    Args:
        counter: The party's rows.
        node: Levels by places.
        keys: Of the classes that occur.
        column: One whose values are counted.
    """
    return counter.values[column].of_classes(np.searchsorted(keys, counter.keys(node)), len(keys))


def losses_of(task: JointAnonymisation, node: Sequence[int], keys: Cells, unit: int) -> NDArray[np.int64]:
    """What a row of each class that occurs loses in all quasi-identifiers together, shape (classes,)."""
    total, rest = np.zeros(len(keys), np.int64), keys
    for hierarchy, level in reversed(list(zip(task.hierarchies, node, strict=True))):
        counts = hierarchy.leaf_counts(level)
        rest, label = np.divmod(rest, len(counts))
        total += label_losses(counts, unit)[label]
    return total


def _no_key(merger: str) -> MalformedMessage:
    return MalformedMessage(f"{merger} opened keys of classes that there are not; check that node", party=merger)
