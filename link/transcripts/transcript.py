"""Hash chains over all frames of a session: what A records as sent to B is what B records as received from A.

A receipt is one frame, so it names only so many lanes one by one; of a session with more, `folded` takes the lanes
beneath a common path together.
"""

from __future__ import annotations

import hashlib
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final, Literal

from protos.v1.link_pb2 import ChainHead, Frame

Direction = Literal["sent", "received"]

MARK_BYTES: Final = 8
MAX_HEADS_BYTES: Final = 1 << 20  # of one direction: a receipt of both, with its certificate, fits into a frame
_DEEPEST: Final = 16  # parts of a path that are kept apart where lanes are taken together


@dataclass(slots=True)
class Chain:
    """head ← SHA-256(head ‖ SHA-256(header) ‖ SHA-256(body)), over frames in the order of their numbers."""

    frames: int = 0
    head: bytes = bytes(32)

    def add(self, header: bytes, body: bytes) -> None:
        """Extends the chain by one frame, of which the caller has the hash of the header and the body at hand."""
        self.extend(header, hashlib.sha256(body).digest())

    def extend(self, header: bytes, body: bytes) -> None:
        """As `add`, by the hash of the body."""
        digest = hashlib.sha256(self.head)
        digest.update(header)
        digest.update(body)
        self.frames += 1
        self.head = digest.digest()


def header_of(frame: Frame) -> bytes:
    """SHA-256 of a frame's header: of all but its body and its mark."""
    header = "\0".join(
        (
            frame.sender,
            frame.receiver,
            frame.lane,
            str(frame.seq),
            frame.type,
            str(frame.last),
            str(frame.round),
        )
    )
    return hashlib.sha256(frame.session + header.encode()).digest()


def mark_of(header: bytes) -> bytes:
    """What a frame carries of the hash of its header, so that one that was changed on its way is known at once.

    A change of the body shows where it is read, at the latest in the receipts. One of the header may not: a frame on a
    lane that nobody reads, or a stream without its end, would be waited for in vain.
    """
    return header[:MARK_BYTES]


@dataclass(slots=True)
class Transcript:
    """One chain per peer, direction and lane: lanes run concurrently, so only the order within one is fixed.

    Attributes:
        chains: By peer and direction, then by lane.
    """

    chains: dict[tuple[str, Direction], dict[str, Chain]] = field(default_factory=lambda: defaultdict(dict))

    def add(self, peer: str, direction: Direction, lane: str, header: bytes, body: bytes) -> bytes:
        """Records a frame that left for, or arrived from, `peer`, by the hash of its header and its body.

        Returns:
            The head of its chain, which is that of no other frames.
        """
        chain = self.chains[peer, direction].setdefault(lane, Chain())
        chain.add(header, body)
        return chain.head

    def head(self, peer: str, direction: Direction, lane: str) -> bytes:
        """The head of a lane's chain."""
        return self.chains[peer, direction][lane].head

    def frames(self, peer: str, direction: Direction, lane: str) -> int:
        """How many frames of a lane have been recorded, which is the number of the next one."""
        chain = self.chains[peer, direction].get(lane)
        return 0 if chain is None else chain.frames

    def heads(self, peer: str, direction: Direction) -> list[ChainHead]:
        """The state of all chains with `peer`, by lane name."""
        chains = self.chains.get((peer, direction), {})
        return [ChainHead(lane=lane, frames=c.frames, head=c.head) for lane, c in sorted(chains.items())]


@dataclass(slots=True)
class Passed:
    """Which frames have left and been read since they were asked for last, lane by lane.

    What has arrived and nobody has read is not among them. So where two parties have come to the same place, and what
    either has sent the other has read, both have the same.

    Attributes:
        heads: By peer, direction and lane, the head of the chain after the last of them.
        aside: Lanes that are used beside all else, where no place of the job says what has passed: what is on them, and
            on lanes beneath, waits until they are taken away.
    """

    heads: dict[tuple[str, Direction], dict[str, bytes]] = field(default_factory=lambda: defaultdict(dict))
    aside: set[str] = field(default_factory=set)

    def take(self, me: str, peer: str, path: str) -> bytes:
        """SHA-256 of what passed between two parties on a lane and all lanes beneath, equal at both; it is forgotten.

        Args:
            me: This party.
            peer: The other one.
            path: The lane.
        """
        digest = hashlib.sha256()
        directions: tuple[Direction, Direction] = ("sent", "received") if me < peer else ("received", "sent")
        for direction in directions:
            heads = self.heads[peer, direction]
            lanes = sorted(
                lane for lane in heads if _is_in(lane, path) and not any(_is_in(lane, other) for other in self.aside)
            )
            digest.update(len(lanes).to_bytes(8, "big"))
            for lane in lanes:
                digest.update(hashlib.sha256(lane.encode()).digest())
                digest.update(heads.pop(lane))
        return digest.digest()


def _is_in(lane: str, path: str) -> bool:
    return lane == path or lane.startswith(f"{path}/")


def folded(heads: Sequence[ChainHead]) -> list[ChainHead]:
    """The chains of one peer and direction, few enough for a receipt.

    Up to `MAX_HEADS_BYTES` of them stay as they are. Of more, all lanes beneath a path become one head, `PATH/*`, at
    the greatest depth that leaves few enough: its frames are theirs together, and its hash is over all their hashes.
    Both ends of a session that has ended do the same, since their chains are the same. Before that an equal number of
    frames still means equal frames: no lane has received more than was sent on it.

    Args:
        heads: The chains, in the order of their lanes.
    """
    found = list(heads)
    depth = min(_DEEPEST, max((head.lane.count("/") for head in heads), default=0))
    while depth > 0 and sum(head.ByteSize() for head in found) > MAX_HEADS_BYTES:
        depth -= 1
        found = _folded_at(depth, heads)
    return found


def _folded_at(depth: int, heads: Sequence[ChainHead]) -> list[ChainHead]:
    """Takes together the lanes whose paths have more than `depth` parts."""
    found: list[ChainHead] = []
    beneath: dict[str, list[ChainHead]] = defaultdict(list)
    for head in heads:
        parts = head.lane.split("/", depth + 1)
        if len(parts) <= depth + 1:
            found.append(head)
        else:
            beneath["/".join((*parts[:-1], "*"))].append(head)
    for path, lanes in beneath.items():
        digest = hashlib.sha256()
        for lane in lanes:
            digest.update(hashlib.sha256(lane.lane.encode()).digest())
            digest.update(lane.frames.to_bytes(8, "big"))
            digest.update(lane.head)
        found.append(ChainHead(lane=path, frames=sum(lane.frames for lane in lanes), head=digest.digest()))
    return sorted(found, key=lambda head: head.lane)
