"""What a job has disclosed step by step, by which another attempt goes on after a failure.

Once rows are aligned by intersection, every party knows which of its own rows all others have; once the parties have
decided on a level, all of them know which itemsets of that length are frequent, and the learners their supports. Every
party keeps this, and nothing else: no share, no key, no value of a pseudorandom function. In another attempt of the
same job the parties go on from the last level of which all have kept the same result, with the rows of the alignment
that all have kept; where some party has kept none, or that of another attempt, they align anew.

Steps:
    0. every party opens in which session the alignment was made that it has kept, and how many rows are common
    1. every party opens of how many levels it has kept the results; the least number is common to all
    2. every party opens a digest of each common level. From one learner to another it covers the supports too; to
       anybody else only what all parties know

Rounds:     1 for rows; for levels 2, or 1 where some party has kept nothing.
Output:     the common rows; the common levels.
Adversary:  semi-honest parties.
Leakage:    how far each party had come when the attempt before failed. All else that is opened its receivers know.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Final

import numpy as np
from numpy.typing import NDArray

from link.disclosure import Declared, Learned
from link.errors import MalformedMessage, ProtocolViolation
from link.files.json_text import read_json
from mining.lattice import Sets

if TYPE_CHECKING:
    from link.session import Session
    from mining.joint.tally import Counts

MAX_ATTEMPTS: Final = 5  # of a job: one may align anew, and unite a group's items under new noise
MAX_LEVELS: Final = 64  # beyond which nothing is kept
LABEL: Final = "levels_kept"
_DIGEST_BYTES: Final = 32
_NUMBER: Final = np.dtype("<u8")


@dataclass(frozen=True, eq=False, slots=True)
class KeptLevel:
    """The public result of one level.

    Attributes:
        n_rows: Rows that all parties have in common.
        sets: Shape (m, k): the frequent itemsets, as positions in the public dictionary of frequent items.
        supports: Shape (m,), at a party that learns them.
        names: By party, in the order of the job, its frequent items as it has named them; of level 1 only.
    """

    n_rows: int
    sets: Sets
    supports: Counts | None
    names: Mapping[str, list[str]] = field(default_factory=dict)

    @property
    def length(self) -> int:
        """Items of each itemset."""
        return int(self.sets.shape[1])

    def pack(self) -> bytes:
        """The level as bytes, equal for equal levels."""
        header = {
            "n_rows": self.n_rows,
            "shape": self.sets.shape,
            "counted": self.supports is not None,
            "names": dict(self.names),
        }
        supports = b"" if self.supports is None else self.supports.astype("<i8").tobytes()
        return json.dumps(header, sort_keys=True).encode() + b"\n" + self.sets.astype("<i4").tobytes() + supports

    @classmethod
    def unpack(cls, packed: bytes) -> KeptLevel:
        """What `pack` made.

        Raises:
            ValueError: It is something else.
        """
        text, _, body = packed.partition(b"\n")
        header = read_json(text)
        try:
            (number, length), counted = header["shape"], header["counted"]
            names, n_rows = dict(header["names"]), header["n_rows"]
        except (KeyError, TypeError):
            raise ValueError("these bytes are no level of a job") from None
        if not all(type(count) is int and count >= 0 for count in (number, length, n_rows)):
            raise ValueError("these bytes are no level of a job")
        middle = 4 * number * length
        if len(body) != middle + (8 * number if counted else 0):
            raise ValueError("these bytes are no level of a job")
        sets = np.frombuffer(body[:middle], "<i4").astype(np.int32).reshape(number, length)
        return cls(n_rows, sets, np.frombuffer(body[middle:], "<i8").astype(np.int64) if counted else None, names)

    def digest(self, *, supports: bool) -> bytes:
        """SHA-256 of the level, with or without what only learners know."""
        return hashlib.sha256((self if supports else replace(self, supports=None)).pack()).digest()


@dataclass(frozen=True, eq=False, slots=True)
class KeptRows:
    """Which rows of a party's own all others have.

    Attributes:
        session: The id of the session in which they were aligned.
        common: Of each row, whether it is common.
    """

    session: bytes
    common: NDArray[np.bool_]

    def pack(self) -> bytes:
        """The rows as bytes, a bit for each."""
        header = json.dumps({"session": self.session.hex(), "rows": len(self.common)}).encode()
        return header + b"\n" + np.packbits(self.common).tobytes()

    @classmethod
    def unpack(cls, packed: bytes) -> KeptRows:
        """What `pack` made.

        Raises:
            ValueError: It is something else.
        """
        text, _, body = packed.partition(b"\n")
        header = read_json(text)
        try:
            session, rows = bytes.fromhex(header["session"]), header["rows"]
        except (KeyError, TypeError):
            raise ValueError("these bytes are no rows of a job") from None
        if type(rows) is not int or rows < 0 or len(body) != -(-rows // 8):
            raise ValueError("these bytes are no rows of a job")
        return cls(session, np.unpackbits(np.frombuffer(body, np.uint8), count=rows).view(np.bool_))

    def told(self) -> NDArray[np.uint8]:
        """What all parties know of the alignment: shape (1, 40)."""
        number = np.array([self.common.sum()], _NUMBER)
        return np.frombuffer(hashlib.sha256(self.session).digest() + number.tobytes(), np.uint8)[None]


def _forget(_: KeptLevel | KeptRows) -> None:
    """Keeps nothing."""


@dataclass(frozen=True, slots=True)
class LevelKeeper:
    """What a party has kept of a job's earlier attempts, and how it keeps more.

    Attributes:
        kept: The results of levels 1, 2, …, perhaps of none; None in a first attempt.
        keep: Called with the result of each level as soon as it is public; what it gets is safe when it returns.
        rows: Of the latest alignment; None in a first attempt, and where none was kept.
        keep_rows: As `keep`, called after an alignment by intersection.
    """

    kept: tuple[KeptLevel, ...] | None = None
    keep: Callable[[KeptLevel], None] = _forget
    rows: KeptRows | None = None
    keep_rows: Callable[[KeptRows], None] = _forget


KEEPS_NOTHING: Final = LevelKeeper()


async def common_rows(session: Session, keeper: LevelKeeper, rows: int) -> KeptRows | None:
    """The rows of the alignment that all parties have kept; None where they align anew, as in a first attempt.

    Args:
        session: A lane of its own.
        keeper: This party's.
        rows: How many it has.

    Raises:
        ProtocolViolation: A peer has kept another result of the same alignment.
    """
    if keeper.kept is None:
        return None
    kept = keeper.rows if keeper.rows is not None and len(keeper.rows.common) == rows else None
    mine = np.zeros((1, _DIGEST_BYTES + _NUMBER.itemsize), np.uint8) if kept is None else kept.told()
    await session.open(LABEL, mine)
    same = kept is not None
    for peer in session.others:
        theirs = await session.receive_opened(peer, LABEL, np.uint8, mine.shape)
        alike = (theirs == mine)[0]
        if same and alike[:_DIGEST_BYTES].all() and not alike.all():
            raise ProtocolViolation(
                f"{peer} and {session.me} have kept different results of the alignment of this job, so it cannot go "
                "on; run it again as a new job",
                party=peer,
            )
        same = same and bool(alike.all())
    return kept if same else None


async def common_levels(session: Session, keeper: LevelKeeper, learners: Collection[str]) -> tuple[KeptLevel, ...]:
    """The levels from which all parties go on; none in a first attempt.

    Args:
        session: A lane of its own.
        keeper: This party's.
        learners: Who learns supports.

    Raises:
        MalformedMessage: A peer names more levels than anybody keeps.
        ProtocolViolation: A peer has kept another result than this party.
    """
    if keeper.kept is None:
        return ()
    mine = keeper.kept[:MAX_LEVELS]
    common = len(mine)
    await session.open(LABEL, np.array([common], np.uint32))
    for peer in session.others:
        (number,) = await session.receive_opened(peer, LABEL, np.uint32, (1,))
        if number > MAX_LEVELS:
            raise MalformedMessage(f"{peer} names more than {MAX_LEVELS} levels; check that node", party=peer)
        common = min(common, int(number))
    if not common:
        return ()

    def digests(peer: str) -> list[bytes]:
        both = session.me in learners and peer in learners
        return [level.digest(supports=both) for level in mine[:common]]

    for peer in session.others:
        rows = np.frombuffer(b"".join(digests(peer)), np.uint8).reshape(common, _DIGEST_BYTES)
        await session.open(LABEL, rows, to=(peer,))
    for peer in session.others:
        rows = await session.receive_opened(peer, LABEL, np.uint8, (common, _DIGEST_BYTES))
        for length, (ours, theirs) in enumerate(zip(digests(peer), rows, strict=True), 1):
            if ours != theirs.tobytes():
                raise ProtocolViolation(
                    f"{peer} and {session.me} have kept different results of level {length} of this job, so it cannot "
                    "go on; run it again as a new job",
                    party=peer,
                )
    return mine[:common]


def openings(parties: tuple[str, ...]) -> Declared:
    """The statement's line for what is opened when an attempt begins that is not the first."""
    what = (
        "of which alignment and of how many levels each party has kept the public results, how many rows are common, "
        "and digests of levels"
    )
    return Declared(LABEL, frozenset(parties), what, 2 + MAX_LEVELS, "at the start of another attempt")


def learned(parties: tuple[str, ...]) -> Learned:
    """What another attempt reveals."""
    what = "if the job goes on after a failure, how far each party had come, and again what the alignment reveals"
    detail = (
        f"where the job goes on after a failure, in at most {MAX_ATTEMPTS} attempts in all: how far each party had "
        "come, and again what the alignment of rows reveals; noise in that is drawn anew, so its ε adds up over the "
        "attempts"
    )
    return Learned(parties, "size", what, detail)


def openings_of_rows(parties: Sequence[str]) -> Declared:
    """The same of a job that has no levels."""
    what = "of which alignment each party has kept the result, and how many rows are common"
    return Declared(LABEL, frozenset(parties), what, 1, "at the start of another attempt")


def learned_of_rows(parties: Sequence[str]) -> Learned:
    """What another attempt of such a job reveals."""
    what = "if the job goes on after a failure, whether each party had aligned its rows, and again what the job reveals"
    detail = (
        f"where the job goes on after a failure, in at most {MAX_ATTEMPTS} attempts in all: which of these each party "
        "has kept the alignment of, and again what the alignment and all that follows reveal"
    )
    return Learned(tuple(parties), "size", what, detail)
