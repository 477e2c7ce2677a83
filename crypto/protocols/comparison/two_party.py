"""What two computing parties agree upon once per session and then pass to every computation on their shares.

These are the seeds of oblivious-transfer extensions in both directions, made when they are first asked for and
forgotten with the session. Every computation draws from streams of its own, named by the session and its lane, so that
computations may run beside one another.

Rounds: those of `extension_seeds`, once per direction, both at once in `prepare` and where a computation asks for both.
Adversary, leakage and source: those of `extension_seeds`.
"""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Coroutine, Mapping
from typing import Any, Never, TypeVar

from crypto.primitives.hashing import encode_labels
from crypto.protocols.transfers.extension_codes import SYMBOL_BITS
from crypto.protocols.transfers.extension_seeds import (
    DEFAULT_FIELD_BITS,
    ReceiverSeeds,
    SenderSeeds,
    prepare_receiving,
    prepare_sending,
)
from link.errors import InternalError
from link.session import Session
from link.tasks import together

S = TypeVar("S")
T = TypeVar("T")


class TwoParty:
    """One computing party's half of what the two of them agree upon; only the two holders make one.

    Attributes:
        holders: Both parties, in the order that both use.
        me: This party.
        peer: The other one.
    """

    __slots__ = (
        "_asked",
        "_field_bits",
        "_keyed",
        "_locks",
        "_receiver",
        "_sender",
        "_session",
        "holders",
        "me",
        "peer",
    )

    def __init__(
        self,
        session: Session,
        holders: tuple[str, str],
        *,
        field_bits: int = DEFAULT_FIELD_BITS,
        seeds: tuple[SenderSeeds, ReceiverSeeds] | None = None,
        keyed: bool = False,
    ) -> None:
        """Agrees upon nothing yet.

        Args:
            session: The lane to agree on, fresh for this object.
            holders: Two different parties of the job, this one among them, in the same order at both.
            field_bits: k of the extensions, public: 2 costs least work, 4 half the bytes.
            seeds: Of both directions, where the two have agreed upon them.
            keyed: Whether both Δ are keys of authenticated bits: choices are bits alone, and the lowest bit of Δ is 1
                at the first holder and 0 at the second.

        Raises:
            ValueError: The holders are not this party and another one of the job.
        """
        first, second = holders
        if first == second or session.me not in holders or not set(holders) <= set(session.parties):
            raise ValueError(f"two computing parties are {session.me} and another party of the job, not {holders}")
        self.holders, self.me = holders, session.me
        self.peer = second if session.me == first else first
        self._session, self._field_bits, self._keyed = session, field_bits, keyed
        self._sender: SenderSeeds | None = seeds[0] if seeds else None
        self._receiver: ReceiverSeeds | None = seeds[1] if seeds else None
        self._locks = (asyncio.Lock(), asyncio.Lock())
        self._asked: dict[tuple[str, str], int] = defaultdict(int)

    @property
    def is_first(self) -> bool:
        """Whether this is the first holder."""
        return self.me == self.holders[0]

    @property
    def _symbol_bits(self) -> int:
        return 1 if self._keyed else SYMBOL_BITS

    async def prepare(self, sender: str | None = None) -> None:
        """Agrees upon directions, where that has not been done; both holders call it, in a task beside other work.

        Args:
            sender: The holder that sends, where only one direction is needed.

        Raises:
            MalformedMessage: The peer's part of the agreement is not as it must be.
        """
        if sender is None:
            await beside(self._as_sender(), self._as_receiver())
        elif sender == self.me:
            await self._as_sender()
        else:
            await self._as_receiver()

    async def sending(self, session: Session) -> SenderSeeds:
        """Seeds of a computation in which this party is the sender; the other asks with `receiving` on the same lane.

        Args:
            session: The computation's lane.

        Raises:
            InternalError: The lane belongs to another session.
            MalformedMessage: The peer's part of the agreement is not as it must be.
        """
        label, seeds = self._label(session, self.me), await self._as_sender()
        self._lane(self.me).counts()
        return seeds.fork(label)

    async def receiving(self, session: Session) -> ReceiverSeeds:
        """Seeds of a computation in which this party is the receiver; arguments and errors as for `sending`."""
        label, seeds = self._label(session, self.peer), await self._as_receiver()
        self._lane(self.peer).counts()
        return seeds.fork(label)

    async def both(self, sending: Session, receiving: Session) -> tuple[SenderSeeds, ReceiverSeeds]:
        """Seeds of both directions at once, each for a lane of its own."""
        return await beside(self.sending(sending), self.receiving(receiving))

    async def _as_sender(self) -> SenderSeeds:
        async with self._locks[0]:
            if self._sender is None:
                lane = self._lane(self.me)
                lane.aside()  # others may have asked for it than who needs it first
                self._sender = await prepare_sending(
                    lane,
                    self.peer,
                    field_bits=self._field_bits,
                    symbol_bits=self._symbol_bits,
                    lowest=int(self.is_first) if self._keyed else None,
                )
            return self._sender

    async def _as_receiver(self) -> ReceiverSeeds:
        async with self._locks[1]:
            if self._receiver is None:
                lane = self._lane(self.peer)
                lane.aside()
                self._receiver = await prepare_receiving(
                    lane, self.peer, field_bits=self._field_bits, symbol_bits=self._symbol_bits
                )
            return self._receiver

    def _lane(self, sender: str) -> Session:
        """On which a direction is agreed upon."""
        return self._session.lane(f"from {sender}")

    def _label(self, session: Session, sender: str) -> bytes:
        """Session, lane, direction, and how often they were asked for: the same labels at both parties, each once."""
        if session.id != self._session.id:
            raise InternalError("two parties' seeds were used in another session than the one that agreed upon them")
        asked = self._asked[session.path, sender]
        self._asked[session.path, sender] += 1
        return encode_labels("two-party", session.id, sender, session.path, asked)

    def __reduce_ex__(self, protocol: object) -> Never:
        raise TypeError("two parties' seeds are never copied or pickled: a copy would repeat their streams")

    def __repr__(self) -> str:
        return f"<TwoParty of {self.holders[0]} and {self.holders[1]}>"


class InTurn(TwoParty):
    """Of an agreement what serves computations that follow one another, in the same order at both parties.

    Each direction's streams begin once, under the lane of the first; that is most of the work of small computations.
    """

    __slots__ = ("_pair",)

    def __init__(self, pair: TwoParty) -> None:
        """Begins nothing yet."""
        super().__init__(pair._session, pair.holders)
        self._pair = pair

    async def sending(self, session: Session) -> SenderSeeds:
        """As `TwoParty.sending`, but from where the computation before stopped."""
        async with self._locks[0]:
            if self._sender is None:
                self._sender = await self._pair.sending(session)
            return self._sender

    async def receiving(self, session: Session) -> ReceiverSeeds:
        """As `TwoParty.receiving`, but from where the computation before stopped."""
        async with self._locks[1]:
            if self._receiver is None:
                self._receiver = await self._pair.receiving(session)
            return self._receiver


Pairs = Mapping[str, TwoParty]
"""By peer, a party's half of the agreement with it."""


def pairs_of(session: Session) -> dict[str, TwoParty]:
    """By peer, this party's half of the agreement with it, made when it is first used; holders in the order of the job.

    Args:
        session: A lane of its own.
    """
    found = {}
    for peer in session.others:
        first, second = (party for party in session.parties if party in (session.me, peer))
        found[peer] = TwoParty(session.lane(f"{first} and {second}"), (first, second))
    return found


async def beside(one: Coroutine[Any, Any, S], other: Coroutine[Any, Any, T]) -> tuple[S, T]:
    """Both at once; the first error ends the other."""
    results: list[Any] = await together([one, other])
    return results[0], results[1]
