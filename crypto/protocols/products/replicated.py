"""Products of private columns by replicated sharing among three computing parties, at most one of them curious.

Any party of the job may own columns. For a product x·y each holder computes its part locally; under a fresh sharing of
zero, drawn from the streams that pairs of holders have in common, it goes to the holder before it, and is then shared
as x and y are. Inner products and whole matrix products cost no more messages than one product of numbers.

    `Input`: the owner's columns as shares. It draws one seed for each component but one, and sends the one that
        completes the sum: to one holder where it is a holder itself (its third component is zero), else to two.
    `multiply`, `matrix_product`: products of what is shared.
    `to_additive`: shares of two of the holders, as other protocols take them.

`replicated_counts` does all of it for a list of itemsets, in blocks of rows.

Rounds: 1 each but `to_additive` (0, or those of `lifting` for words of 32 bits).
Bytes: an owner sends a word for each row of a column, twice if it is no holder; `multiply` a word an element from each
    holder, `matrix_product` a word an element of the result, whatever the length of the columns.

Adversary: semi-honest, one of the three holders, together with any parties that are none. Any two holders together
read everything. Leakage: sizes.

Source: Araki, Furukawa, Lindell, Nof and Ohara, CCS 2016, section 2; sharings of zero ibid., section 2.2; products of
matrices as Mohassel and Rindal, "ABY3", CCS 2018, section 5.1.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import numpy as np

from crypto.primitives.randomness import KEY_BYTES, Randomness
from crypto.primitives.shares.additive import AdditiveShare
from crypto.primitives.shares.masks import Words
from crypto.primitives.shares.replicated import Holders3, ReplicatedShare
from crypto.primitives.shares.ring_matrix import random_matrix
from crypto.protocols.comparison.lifting import lift_sums
from crypto.protocols.comparison.two_party import TwoParty
from crypto.protocols.sums.pairwise import PairwiseSecrets
from link.session import Session
from protos.v1.products_pb2 import Component, ComponentSeed, ProductPart

Word = type[np.unsignedinteger[Any]]
_ZERO: Final = "sharing of zero"


# -- input -------------------------------------------------------------------------------------------------------------
class Input:
    """One owner's way of sharing its columns, block by block: the streams of components, where this party has them."""

    __slots__ = ("_holders", "_owner", "_rest", "_session", "_streams", "_word", "_zero")

    def __init__(self, session: Session, holders: Holders3, owner: str, word: Word) -> None:
        self._session, self._holders, self._owner, self._word = session, holders, owner, word
        # An owner that is holder i has components i and i + 1: the one that it lacks is zero.
        at = holders.index(owner) if owner in holders else 1
        self._zero = (at + 2) % 3 if owner in holders else None
        self._rest = (at + 1) % 3
        self._streams: dict[int, Randomness] = {}

    async def send(self, words: Words) -> dict[int, Words]:
        """The owner's part for a block: all components; what completes the sum leaves, the first time after seeds."""
        shape = (words.shape[0], words.shape[1])
        for component in self._drawn() if not self._streams else ():
            seed = self._session.randomness("component").bytes(KEY_BYTES)
            for holder in self._others(component):
                await self._session.send(holder, ComponentSeed(seed=seed))  # -> 1
            self._streams[component] = Randomness.from_key(seed)
        drawn = await self._session.compute(self._draw, shape)
        rest = words - sum(drawn.values())
        for holder in self._others(self._rest):
            await self._session.send_array(holder, Component, rest)  # -> 1
        return {**drawn, self._rest: rest}

    async def take(self, shape: tuple[int, int]) -> dict[int, Words]:
        """Another party's part for a block: the components that it holds."""
        me = self._session.me
        for component in self._drawn():
            if me in self._others(component) and component not in self._streams:
                message = await self._session.recv(self._owner, ComponentSeed, _check_seed)  # <- 1
                self._streams[component] = Randomness.from_key(message.seed)
        parts = await self._session.compute(self._draw, shape)
        if me in self._others(self._rest):
            parts[self._rest] = await self._session.recv_array(self._owner, Component, self._word, shape)  # <- 1
        return parts

    def share(self, parts: dict[int, Words], shape: tuple[int, int]) -> ReplicatedShare | None:
        """This party's share of a block; None where it is no holder."""
        if self._session.me not in self._holders:
            return None
        number = self._holders.index(self._session.me)
        own, following = (
            np.zeros(shape, self._word) if each == self._zero else parts[each] for each in (number, (number + 1) % 3)
        )
        return ReplicatedShare(own, following, self._session.me, self._holders)

    def _drawn(self) -> list[int]:
        """The components that come from streams."""
        return [component for component in range(3) if component not in (self._zero, self._rest)]

    def _draw(self, shape: tuple[int, int]) -> dict[int, Words]:
        return {number: random_matrix(stream, shape, self._word) for number, stream in sorted(self._streams.items())}

    def _others(self, component: int) -> list[str]:
        """Who holds a component, but for the owner."""
        both = (self._holders[component], self._holders[component - 1])
        return [holder for holder in both if holder != self._owner]


def check_holders(session: Session, holders: Sequence[str]) -> None:
    """Refuses holders that are not three parties of the job.

    Raises:
        ValueError: They are not.
    """
    if len(set(holders)) != 3 or len(holders) != 3 or not set(holders) <= set(session.parties):
        raise ValueError(f"the holders of replicated shares are three parties of the job, not {list(holders)}")


def _check_seed(message: ComponentSeed) -> None:
    if len(message.seed) != KEY_BYTES:
        raise ValueError(f"a seed has {KEY_BYTES} bytes, not {len(message.seed)}")


# -- products ----------------------------------------------------------------------------------------------------------
async def multiply(
    session: Session, secrets: PairwiseSecrets, x: ReplicatedShare, y: ReplicatedShare
) -> ReplicatedShare:
    """The share of x·y, element by element; the three holders call this.

    Args:
        session: The lane to use.
        secrets: From `pairwise.agree` in this session.
        x: Shape (columns, rows).
        y: Of the same shape, word and holders.

    Raises:
        TypeError: The shares are of other holders or words.
        MalformedMessage: A holder's part has another size.
    """
    return await reshare(session, secrets, x.holders, await session.compute(x.local_product, y))


async def matrix_product(
    session: Session, secrets: PairwiseSecrets, x: ReplicatedShare, y: ReplicatedShare
) -> ReplicatedShare:
    """The share of x·yᵀ, shape (columns of x, columns of y): all inner products. Arguments and errors as `multiply`."""
    return await reshare(session, secrets, x.holders, await session.compute(x.local_matrix_product, y))


async def reshare(session: Session, secrets: PairwiseSecrets, holders: tuple[str, ...], part: Words) -> ReplicatedShare:
    """Makes replicated shares of what three holders' parts add up to: under a sharing of zero, to the holder before."""
    number = holders.index(session.me)
    before, after = holders[number - 1], holders[(number + 1) % 3]
    context = secrets.context(session, _ZERO)
    shape, word = (part.shape[0], part.shape[1]), part.dtype.type
    masked = part + random_matrix(secrets.stream(after, context), shape, word)
    masked -= random_matrix(secrets.stream(before, context), shape, word)
    await session.send_array(before, ProductPart, masked)  # -> 1
    following = await session.recv_array(after, ProductPart, word, shape)  # <- 1
    return ReplicatedShare(masked, following, session.me, holders)


async def to_additive(session: Session, parties: TwoParty, share: ReplicatedShare) -> AdditiveShare:
    """Additive shares, at two of the holders, of a matrix with one row; both of them call this.

    Args:
        session: The lane to use, fresh for this call.
        parties: This party's half of the agreement with the other.
        share: Shape (n, 1); words of 32 bits hold numbers below 2^31.

    Returns:
        n numbers modulo 2^64.

    Raises:
        TypeError: The computing parties are no two of the share's holders.
        MalformedMessage: The peer's messages have another size.
    """
    if share.holder != parties.me or parties.peer not in share.holders:
        raise TypeError(f"a share of {share.holders} at {share.holder} becomes none of {parties.holders}")
    # Of three components the holder before takes both of its own, the one after it the third.
    before = share.holders.index(parties.peer) == (share.number + 1) % 3
    words = share.own + share.following if before else share.following
    if share.shape[1] != 1:
        raise ValueError(f"numbers to be shared by two come in one row, not in {share.shape[1]}")
    if words.dtype == np.uint64:
        return AdditiveShare(np.ascontiguousarray(words[:, 0], np.uint64), parties.me, parties.holders)
    return await lift_sums(session, parties, words)
