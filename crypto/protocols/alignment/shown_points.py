"""That the merger could read what all others have programmed at the points that it opens, where parties may deviate.

Each party but the merger programs a second word at its points: of a pseudorandom function whose key it alone has.
    1  the merger opens the common points and, for each other party, a digest of the words that it has read from that
       one there
    2  all parties compare what they have been told (`broadcasts`)
    3  each other party opens the digest of its own words at these points, held or not, and all compare

Whoever lacks an opened point says nothing of that before the digests have been compared. They differ if any party lacks
one, since the merger cannot know that party's word there. So whether a party ends the job tells a merger that deviates
nothing: it knows beforehand. Digests of 3 leave once those of 1 are fixed, so that none can be passed on.

Rounds: 2 beside the opening. Bytes: a word more for each row of a programmed store; 32 for each two parties and step.
Adversary: malicious, the merger together with any others, but for a guess of a word of 64 bits; in the random oracle
    model of the digests.
Leakage: none; words are random, and the merger has those at common points.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import Any, Final

import numpy as np

from crypto.primitives.groups.point_hash import KEY_BYTES, Points, Words, words_of
from crypto.protocols.replicated.broadcasts import compare_heard
from crypto.protocols.replicated.crosschecks import DIGEST_BYTES, contradiction
from link.disclosure import Declared
from link.errors import ProtocolViolation
from link.session import Session

_WHAT: Final = "which rows are common"


class OwnWords:
    """The words of a party that is not the merger, and the digest of those at the points that were opened."""

    def __init__(self, lane: Session) -> None:
        """Draws the key; `lane` is the alignment's."""
        self._key = lane.randomness("shown points").bytes(KEY_BYTES)
        self._digest = hashlib.sha256()

    def at(self, points: Points) -> Words:
        """The words of points, shape (n, 1)."""
        return words_of(points, self._key, 2, "shown points")[:, :1]

    def opened(self, points: Points) -> None:
        """Takes up the next opened points."""
        self._digest.update(self.at(points).tobytes())

    def digest(self) -> bytes:
        """Of all that were opened."""
        return self._digest.digest()


class ReadWords:
    """At the merger, digests of the words that it has read from each other party at common points."""

    def __init__(self, others: Sequence[str]) -> None:
        """Of these."""
        self._digests: list[Any] = [hashlib.sha256() for _ in others]

    def opened(self, words: Words) -> None:
        """Takes up the words at the next points, shape (n, others)."""
        for digest, column in zip(self._digests, words.T, strict=True):
            digest.update(column.tobytes())

    def digests(self) -> list[bytes]:
        """By other party."""
        return [digest.digest() for digest in self._digests]


async def show(lane: Session, label: str, others: Sequence[str], told: bytes, read: ReadWords) -> None:
    """The merger's part, after it has opened points.

    Args:
        lane: The alignment's.
        label: Of the points.
        others: In their order.
        told: A digest of what it has opened.
        read: What it has read there.

    Raises:
        ProtocolViolation: A party says that it was told something else, or has programmed other words.
    """
    digests = read.digests()
    await lane.open(shown_label(label), _rows(digests))
    await compare_heard(lane.lane("compare"), {lane.me: told + b"".join(digests)}, _WHAT)
    await _compare(lane, label, lane.me, others, digests)


async def check_shown(
    lane: Session, label: str, merger: str, others: Sequence[str], told: bytes, own: OwnWords
) -> None:
    """The other parties' part, after points were opened; arguments as of `show`.

    Raises:
        ProtocolViolation: The merger opens a point that some party does not hold, or has told another party something
            else; or another party has programmed other words.
    """
    shape = (len(others), DIGEST_BYTES)
    shown = await lane.receive_opened(merger, shown_label(label), np.uint8, shape)
    digests = [row.tobytes() for row in shown]
    await compare_heard(lane.lane("compare"), {merger: told + b"".join(digests)}, _WHAT)
    await lane.open(shown_label(label), _rows([own.digest()]))
    if digests[others.index(lane.me)] != own.digest():
        raise ProtocolViolation(
            f"{merger} has opened rows as common that it cannot know to be; its node must be checked", party=merger
        )
    await _compare(lane, label, merger, others, digests)


def shown_label(label: str) -> str:
    """Under which digests are opened."""
    return f"{label}-shown"


def declared(parties: Sequence[str], label: str) -> Declared:
    """The statement's line for the digests."""
    what = "digests of random words, by which the merger shows that all hold what it opens"
    return Declared(shown_label(label), frozenset(parties), what, len(parties), "at the end of the alignment")


async def _compare(lane: Session, label: str, merger: str, others: Sequence[str], digests: Sequence[bytes]) -> None:
    """What the others open of their own words with what the merger has shown of them."""
    for other, expected in zip(others, digests, strict=True):
        if other == lane.me:
            continue
        (found,) = await lane.receive_opened(other, shown_label(label), np.uint8, (1, DIGEST_BYTES))
        if found.tobytes() == expected:
            continue
        if merger == lane.me:
            raise ProtocolViolation(
                f"{other} has programmed other words than it says, in the alignment; its node must be checked",
                party=other,
            )
        raise contradiction(merger, other, _WHAT)


def _rows(digests: Sequence[bytes]) -> np.ndarray[Any, np.dtype[np.uint8]]:
    return np.frombuffer(b"".join(digests), np.uint8).reshape(-1, DIGEST_BYTES)
