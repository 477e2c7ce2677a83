"""Hash chains over all frames of a session: what A records as sent to B is what B records as received from A."""

from __future__ import annotations

import hashlib
from collections import defaultdict
from dataclasses import dataclass, field
from typing import Literal

from protos.v1.link_pb2 import ChainHead, Frame

Direction = Literal["sent", "received"]


@dataclass(slots=True)
class Chain:
    """head ← SHA-256(head ‖ SHA-256(header) ‖ SHA-256(body)), over frames in the order of their numbers."""

    frames: int = 0
    head: bytes = bytes(32)

    def add(self, frame: Frame, body: bytes) -> None:
        """Extends the chain by one frame, whose body the caller has at hand; the rest of the frame is its header."""
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
        digest = hashlib.sha256(self.head)
        digest.update(hashlib.sha256(frame.session + header.encode()).digest())
        digest.update(hashlib.sha256(body).digest())
        self.frames += 1
        self.head = digest.digest()


@dataclass(slots=True)
class Transcript:
    """One chain per peer, direction and lane: lanes run concurrently, so only the order within one is fixed."""

    _chains: dict[tuple[str, Direction], dict[str, Chain]] = field(default_factory=lambda: defaultdict(dict))

    def add(self, peer: str, direction: Direction, frame: Frame, body: bytes) -> None:
        """Records a frame that left for, or arrived from, `peer`."""
        self._chains[peer, direction].setdefault(frame.lane, Chain()).add(frame, body)

    def heads(self, peer: str, direction: Direction) -> list[ChainHead]:
        """The state of all chains with `peer`, by lane name."""
        chains = self._chains.get((peer, direction), {})
        return [ChainHead(lane=lane, frames=c.frames, head=c.head) for lane, c in sorted(chains.items())]
