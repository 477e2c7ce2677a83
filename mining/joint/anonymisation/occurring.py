"""The classes of a node that occur in some party's rows, by a union of their keys.

A node with more possible classes than can be compared is examined over those that occur, of which there are at most as
many as rows. A key is the number of a class among the possible ones, the labels in mixed radix.

Rounds:     those of a union by prefixes.
Leakage:    to all, which combinations of generalised values occur, not at which party, at how many, or how often.
Source:     the union is that of `crypto.protocols.union.prefix_union`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray

from crypto.protocols.comparison.two_party import TwoParty
from crypto.protocols.sums.pairwise import PairwiseSecrets
from crypto.protocols.union.prefix_union import prefix_union
from crypto.protocols.union.size_classes import SETS
from link.errors import ProtocolViolation
from link.session import Session
from mining.joint.anonymisation.parameters import JointAnonymisation
from mining.joint.anonymisation.rows import Cells, Counter, label_losses

LABEL: Final = "class keys"
MOST_KEYED: Final = float(1 << 62)
"""Keys are numbers below it: nodes with more possible classes are left out."""

KEY_BYTES: Final = 8  # the most significant first


async def occurring_keys(
    session: Session,
    secrets: PairwiseSecrets,
    pairs: Mapping[str, TwoParty],
    counter: Counter,
    node: Mapping[int, int],
    bound: int,
) -> Cells:
    """The keys of all classes of a node that occur, ascending, shape (classes,).

    Args:
        session: A lane of its own.
        secrets: Pairwise secrets of this session.
        pairs: From `shared_or.pairs_of` in this session.
        counter: This party's rows.
        node: Levels by the places of the quasi-identifiers.
        bound: The most rows that any party has, public.

    Raises:
        MalformedMessage: A peer's messages have another size.
        ProtocolViolation: What came out lacks this party's keys, or holds what is no key.
    """
    own = np.unique(counter.keys(node)).astype(">u8").tobytes()
    found = await prefix_union(
        session,
        secrets,
        pairs,
        [own[start : start + KEY_BYTES] for start in range(0, len(own), KEY_BYTES)],
        max_element_bytes=KEY_BYTES,
        bound=min(bound, SETS.most),
        label=LABEL,
    )
    if any(len(key) != KEY_BYTES for key in found):
        raise _no_key(session)
    keys = np.frombuffer(b"".join(found), ">u8").astype(np.uint64)
    if (keys >= counter.task.cells(node)).any():
        raise _no_key(session)
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


def _no_key(session: Session) -> ProtocolViolation:
    return ProtocolViolation(
        "the union of class keys has keys of classes that there are not, so a peer sent wrong bits or has another "
        "version; check all nodes",
        party=session.others[0] if len(session.others) == 1 else None,
    )
