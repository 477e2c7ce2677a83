"""What a session sends, from public sizes: its payload, and about as much for each frame as frames have beside it.

Every protocol has a cost function beside it, which enters what each party sends and the rounds that this takes. Bytes
are within `TOLERANCE` of those of a run, give or take `ALLOWANCE` for each peer, which matters in tiny sessions alone;
a test holds each cost function against runs.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from link.encoding.chunks import CHUNK_BYTES

TOLERANCE: Final = 0.15
ALLOWANCE: Final = 1024
"""Bytes that a party may send to a peer, or get from it, beside what is declared."""

_FRAME_BYTES: Final = 125  # names of the parties, of the lane and of the message's type; number, mark and tags
_LANE_BYTES: Final = 60  # that a lane takes in the receipt of either party
_SESSION_BYTES: Final = 330  # of a greeting and a receipt, without their certificates


class Traffic:
    """What the parties of one session send to each other.

    Attributes:
        parties: In the order of the job.
        rounds: The longest chain of messages that wait for each other; protocols add theirs.
    """

    def __init__(self, parties: Sequence[str]) -> None:
        self.parties, self.rounds = tuple(parties), 0
        self._bytes: dict[tuple[str, str], int] = defaultdict(int)
        self._frames: dict[tuple[str, str], int] = defaultdict(int)

    def among(self, parties: Sequence[str]) -> Traffic:
        """The same for a protocol that only some of the parties run: what is entered there is entered here, too.

        Rounds are not: both count from here on by themselves.
        """
        part = Traffic(parties)
        part.rounds, part._bytes, part._frames = self.rounds, self._bytes, self._frames
        return part

    def others(self, party: str) -> tuple[str, ...]:
        """All parties but this one."""
        return tuple(name for name in self.parties if name != party)

    def bytes_sent(self, party: str) -> int:
        """Bytes of all frames that the party sends."""
        return sum(self._bytes[party, peer] for peer in self.others(party))

    def bytes_received(self, party: str) -> int:
        """Bytes of all frames that the party gets."""
        return sum(self._bytes[peer, party] for peer in self.others(party))

    def frames(self, party: str) -> int:
        """Frames that the party sends or gets."""
        return sum(self._frames[party, peer] + self._frames[peer, party] for peer in self.others(party))

    def send(
        self, sender: str, receivers: str | Iterable[str], size: int, messages: int = 1, *, times: int = 1
    ) -> None:
        """So many bytes to each receiver but the sender itself, on a lane of its own, in so many messages or more.

        Args:
            sender: Who sends.
            receivers: One, or several.
            size: Bytes for each of them.
            messages: The fewest in which they go.
            times: How often this is sent, each time on another lane.
        """
        for receiver in (receivers,) if isinstance(receivers, str) else receivers:
            if receiver != sender and messages:
                frames = max(messages, -(-size // CHUNK_BYTES))
                self._frames[sender, receiver] += times * frames
                self._bytes[sender, receiver] += times * (size + frames * _FRAME_BYTES + _LANE_BYTES)
                self._bytes[receiver, sender] += times * _LANE_BYTES

    def session(self, certificate_bytes: Mapping[str, int]) -> None:
        """The greetings, and the exchange of receipts at the end: 1 round.

        Args:
            certificate_bytes: By party, the size of its certificate in PEM form.
        """
        for party in self.parties:
            self.send(party, self.parties, _SESSION_BYTES + 2 * certificate_bytes[party], messages=2)
        self.rounds += 1
