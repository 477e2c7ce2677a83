"""What a party keeps of one job, so that another attempt of it goes on from the last step that all have completed.

A step is a part of a job whose result is known to its parties anyway: an itemset is frequent, a sum was opened, these
of my rows are common. No share, no key and no mask is ever kept: another attempt is another session, with new ones.
Beside steps a journal has secrets: coins of one party that all attempts of a job must draw alike, as those of noise,
since the same result under new noise would tell more with each attempt.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Protocol

from link.encoding.values import pack, unpack

MAX_STEPS: Final = 4096  # beyond which nothing is kept
SECRET_BYTES: Final = 32
ROOT: Final = "root"  # of the secret from which all coins of a job follow
FIRST: Final = "first"  # under which a journal says whether it has all that its party has drawn for the job
WHOLE: Final = bytes(SECRET_BYTES)  # it has: it was made in the first attempt, or nobody had come far before it was
BEHIND: Final = b"\1" * SECRET_BYTES  # it has not


@dataclass(frozen=True, eq=False, slots=True)
class Known:
    """The result of a step, by who knows it.

    Attributes:
        public: What all parties know; a value of `link.encoding.values`, as are the others.
        learned: What `to` know beside that; None at anybody else.
        to: Who they are, as all parties know.
        own: What this party alone knows, which is compared with nobody's.
    """

    public: Any
    learned: Any = None
    to: tuple[str, ...] = ()
    own: Any = None


@dataclass(frozen=True, eq=False, slots=True)
class Step:
    """A step that is kept.

    Attributes:
        name: Names it among those of the job.
        session: In which it was made.
        known: Its result.
        frames: By peer, a digest of the frames that passed between the two until then, equal at both; see `Passed`.
    """

    name: str
    session: bytes
    known: Known
    frames: Mapping[str, bytes] = field(default_factory=dict)

    def pack(self) -> bytes:
        """The step as bytes, equal for equal steps."""
        known, frames = self.known, tuple(sorted(self.frames.items()))
        return pack((self.name, self.session, known.public, known.learned, known.to, known.own, frames))

    @classmethod
    def unpack(cls, packed: bytes) -> Step:
        """What `pack` made.

        Raises:
            ValueError: It is something else.
        """
        match unpack(packed):
            case (str(name), bytes(session), public, learned, tuple(to), own, tuple(frames)) if all(
                type(each) is str for each in to
            ) and all(map(_is_of_peer, frames)):
                return cls(name, session, Known(public, learned, to, own), dict(frames))
        raise ValueError("these bytes are no step of a job")

    @property
    def called(self) -> str:
        """Its name for people."""
        return self.name.rpartition("/")[2]

    @property
    def heading(self) -> bytes:
        """SHA-256 of which step of which session it is: what all parties know before they compare results."""
        return hashlib.sha256(pack((self.name, self.session))).digest()

    def account(self, peer: str, *, learned: bool) -> bytes:
        """SHA-256 of its result, as of `digest`, and of what passed between this party and a peer until then."""
        return hashlib.sha256(self.digest(learned=learned) + self.frames.get(peer, b"")).digest()

    def digest(self, *, learned: bool) -> bytes:
        """SHA-256 of its result, with or without what only some have learned."""
        known = self.known
        told = (self.name, known.public, known.to, known.learned if learned else None)
        return hashlib.sha256(pack(told)).digest()


def _is_of_peer(frames: Any) -> bool:
    match frames:
        case (str(), bytes()):
            return True
    return False


class Journal(Protocol):
    """What one party keeps of one job. Its methods are called off the event loop, one at a time."""

    def steps(self) -> Sequence[Step]:
        """What it has kept in earlier attempts, in order; none in a first attempt."""

    def keep(self, place: int, step: Step) -> bool:
        """Keeps a step in its place, and nothing behind it; it is safe when this returns.

        Returns:
            False where the journal is full, or cannot be written: then nothing is kept from this place on.
        """

    def secret(self, name: str, fresh: bytes) -> bytes:
        """32 bytes that no other name, job or party has, the same in all attempts of this job on these rows.

        Args:
            name: Of what they are for.
            fresh: They, where the name has none yet: drawn for this call. They are safe when this returns.

        Raises:
            ComineError: They cannot be kept, or those of an earlier attempt are lost.
        """


class MemoryJournal:
    """A journal in memory, for simulations and tests.

    Args:
        kept: What was kept in earlier attempts.
        coins: Secrets that have been drawn.
    """

    def __init__(self, kept: Sequence[Step] = (), coins: Mapping[str, bytes] | None = None) -> None:
        self.kept, self.coins = list(kept), {FIRST: WHOLE, **(coins or {})}

    def steps(self) -> Sequence[Step]:
        """As of `Journal`, as are the others."""
        return tuple(self.kept)

    def keep(self, place: int, step: Step) -> bool:
        """Keeps it."""
        self.kept[place:] = [step]
        return True

    def secret(self, name: str, fresh: bytes) -> bytes:
        """The first of that name."""
        return self.coins.setdefault(name, fresh)


@dataclass(slots=True)
class Resumption:
    """How far a party has come with the steps of a job, in one session.

    Attributes:
        journal: What it keeps; None where the job cannot go on after a failure, and nothing is kept.
        agreed: By name, the steps of earlier attempts that all parties go on from.
        before: By name, further steps that this party has kept, which are made again.
        place: Of the next step that is kept; None where nothing more is.
        behind: Whether this party has drawn for the job what the journal does not have.
    """

    journal: Journal | None = None
    agreed: dict[str, Step] = field(default_factory=dict)
    before: dict[str, Step] = field(default_factory=dict)
    place: int | None = 0
    behind: bool = False
