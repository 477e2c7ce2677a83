"""What a party has sent on a lane and has signed: `Words`, which others can check; see `link.transcripts.vouching`."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, replace
from typing import Final, NamedTuple

from link.pki.identity import verify
from link.pki.trust import Trust
from link.transcripts.transcript import Chain, header_of
from protos.v1.link_pb2 import Frame

_PURPOSE: Final = b"comine voucher 1\0"


class Shown(NamedTuple):
    """A frame as its sender made it.

    Attributes:
        type: Full name of the message.
        last: Whether it ends a stream.
        round: What its header says of the round.
        body: The message.
    """

    type: str
    last: bool
    round: int
    body: bytes


class Withheld(NamedTuple):
    """What a chain needs of a frame that is not shown.

    Attributes:
        header: SHA-256 of its header.
        body: SHA-256 of its body.
    """

    header: bytes
    body: bytes


@dataclass(frozen=True, slots=True)
class Origin:
    """Where words were said: on which lane of which session, by whom to whom.

    Attributes:
        session: Id of the session.
        job: Id of the job.
        attempt: Counts the starts of the job.
        spec_digest: SHA-256 of the job specification that the sender has agreed to.
        wire: Version of the wire protocol.
        sender: Who said it.
        receiver: To whom.
        lane: On which lane.
    """

    session: bytes
    job: bytes
    attempt: int
    spec_digest: bytes
    wire: int
    sender: str
    receiver: str
    lane: str

    def statement(self, chain: Chain) -> bytes:
        """What the sender signs: each field with its length before it, so that no two statements are the same bytes."""
        numbers = (self.attempt, self.wire, chain.frames)
        names = (self.sender, self.receiver, self.lane)
        fields = (
            *(self.session, self.job, self.spec_digest, chain.head),
            *(number.to_bytes(8, "big") for number in numbers),
            *(name.encode() for name in names),
        )
        return _PURPOSE + b"".join(len(field).to_bytes(4, "big") + field for field in fields)


@dataclass(frozen=True, slots=True)
class Words:
    """All that a party has sent to another on a lane up to its signature.

    Attributes:
        origin: Where it was said.
        frames: In order, from the lane's first.
        signature: The sender's, over the chain of the frames.
        certificate: To check it with, PEM.
    """

    origin: Origin
    frames: tuple[Shown | Withheld, ...]
    signature: bytes
    certificate: bytes

    def showing(self, *places: int) -> Words:
        """The same with all frames withheld but those at these places."""
        frames = (frame if place in places else self._withheld(place, frame) for place, frame in enumerate(self.frames))
        return replace(self, frames=tuple(frames))

    def shown(self, place: int) -> Shown:
        """The frame at a place.

        Raises:
            ValueError: It is withheld, or there is none.
        """
        frame = self.frames[place] if place < len(self.frames) else None
        if not isinstance(frame, Shown):
            raise ValueError(f"frame {place} of lane {self.origin.lane} is not shown")
        return frame

    def check(self, trust: Trust) -> None:
        """Makes sure that these are the sender's words.

        Args:
            trust: Whom the reader believes. The certificate may have expired since; it must not have been revoked.

        Raises:
            IdentityError: The sender has not signed this.
        """
        chain = Chain()
        for place, frame in enumerate(self.frames):
            chain.extend(*self._withheld(place, frame))
        origin = self.origin
        verify(trust, self.certificate, origin.sender, origin.statement(chain), self.signature, timed=False)

    def _withheld(self, place: int, frame: Shown | Withheld) -> Withheld:
        if isinstance(frame, Withheld):
            return frame
        origin = self.origin
        header = Frame(
            session=origin.session,
            sender=origin.sender,
            receiver=origin.receiver,
            lane=origin.lane,
            seq=place,
            type=frame.type,
            last=frame.last,
            round=frame.round,
        )
        return Withheld(header_of(header), hashlib.sha256(frame.body).digest())


@dataclass(frozen=True, slots=True)
class Evidence:
    """A party's own words that show that it has broken a rule.

    Attributes:
        rule: The name of the rule.
        words: All of one party.
    """

    rule: str
    words: tuple[Words, ...]
