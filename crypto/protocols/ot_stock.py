"""A stock of extension seeds: base transfers once for many sessions, each of which leases a number at both ends.

A stock belongs to two parties and a direction. Each end keeps its half of the seeds and the number of the next lease.
Steps of a session, for one direction:
    1. the extension's receiver spends its next number durably and bids it;
    2. the sender spends the first number that is neither spent at its end nor below the bid, and bids that;
    3. where the two differ, they go on in turns. The first number that both have named is the lease. It differs from
       the receiver's first bid only where an end has burnt a lease, or another session of the two came in between.
An end without a stock of use says so instead. Then both make fresh seeds, and keep them as their new stock.

To spend a number is to replace the kept seeds by their next generation (`extension_seeds.ratchet`): what is leased
leaves the disk with the very step that makes the number durable. So no number is ever leased twice: not after a crash
at any point, which burns the lease, and not by sessions side by side. The hash tweaks' domain begins with the lease's
number, thus tweaks count per Δ. Streams are named by their session, too (`two_party`), so that not even copies of both
ends restored together would give the same streams again.

Restored copies: each bid tells the highest number that was ever heard from the peer. Who is told a number that it has
not spent, or hears the highest one for a second time, drops the stock.

Rounds: 2, of some 110 bytes each; 1 more for each bid that was overtaken. Fresh seeds take 1 or 2 more than without
a stock.
Adversary: semi-honest. A peer that bids at random can burn leases and force fresh seeds, nothing else.
Forward secrecy: who gets one end's stock learns the streams of later leases, not those of earlier ones. Δ stays for a
stock's life: with it a *receiver* that kept what it had to forget reads both messages of all transfers of the stock.
Leakage: that a stock exists, and how many leases were taken from it.

Source: leases are one-time state under a counter that only rises, as in Beaver, "Precomputing Oblivious Transfer",
CRYPTO 1995; the ratchet is the forward-secure generator of Bellare and Yee, "Forward-Security in Private-Key
Cryptography", CT-RSA 2003, over every seed of `extension_seeds`.
"""

from __future__ import annotations

import hashlib
import time
from dataclasses import dataclass, replace
from functools import partial
from typing import Final, Literal, Protocol

import numpy as np

from crypto.primitives.hashing import encode_labels
from crypto.protocols.base_ot import KEY_BYTES
from crypto.protocols.extension_seeds import (
    DEFAULT_FIELD_BITS,
    LEASES,
    ReceiverSeeds,
    Seeds,
    SenderSeeds,
    agree_receiving,
    agree_sending,
    ratchet,
)
from link.session import Session
from link.version import WIRE_VERSION
from protos.v1.ot_stock_pb2 import LeaseBid

ID_BYTES: Final = 16
MAX_AGE_S: Final = 30 * 24 * 3600.0  # of a stock; it also ends with its last number, `LEASES` − 1
MAX_SKIPPED: Final = 64  # numbers passed over at once, a millisecond each
MAX_BIDS: Final = 32  # of one end; each after the second means that another session was faster

Role = Literal["receiver", "sender"]
Reason = Literal[
    "made under other terms",
    "used up",
    "too old",
    "unknown to the peer",
    "rolled back here",
    "rolled back at the peer",
    "too far behind",
    "contended",
    "the peer broke the protocol",
]
"""Why a stock is dropped."""


@dataclass(frozen=True, slots=True, repr=False)
class Stock:
    """One end's half of a stock. `seeds` and `delta` are secret.

    Attributes:
        id: 16 bytes, the same at both ends.
        terms: 32 bytes: parties, direction, versions, suite and k, under which it was made.
        made: Unix seconds.
        next: The next lease's number; all numbers below are spent.
        heard: One more than the highest number that the peer has named.
        seeds: The generation of lease `next`, shape (⌈128 / k⌉, 2^k, 16) as bytes.
        delta: Δ at the extension's sender; empty at its receiver.
    """

    id: bytes
    terms: bytes
    made: float
    next: int
    heard: int
    seeds: bytes
    delta: bytes = b""

    def __repr__(self) -> str:
        return f"<Stock, next lease {self.next}>"


class StockStore(Protocol):
    """Where a party keeps its stocks: one per peer and role. May be called from several threads at once.

    A call that writes returns only when what it wrote would survive a loss of power.
    """

    def get(self, peer: str, role: Role) -> Stock | None:
        """The stock with `peer` in which this party has `role`."""

    def put(self, peer: str, role: Role, stock: Stock) -> None:
        """Keeps a new stock. Of two that were made at once both ends keep the same one: that with the larger id."""

    def advance(self, peer: str, role: Role, before: Stock, after: Stock) -> bool:
        """Replaces `before`, of which soon nothing is left; False where another `id`, `next` or `heard` is kept now."""

    def drop(self, peer: str, role: Role, stock_id: bytes, why: Reason) -> None:
        """Forgets this stock, if it is still kept."""


@dataclass(frozen=True, slots=True)
class _End:
    """One end in one session."""

    store: StockStore
    peer: str
    role: Role
    terms: bytes
    field_bits: int
    held: bytes  # id of the stock that was kept when the session asked first; empty: none

    def drop(self, why: Reason) -> None:
        if self.held:
            self.store.drop(self.peer, self.role, self.held, why)


@dataclass(frozen=True, slots=True, repr=False)
class _Lease:
    """A number that this end has spent, and the seeds that only it gives."""

    stock_id: bytes
    number: int
    heard: int
    seeds: Seeds
    delta: bytes


# -- the roles ---------------------------------------------------------------------------------------------------------
async def lease_receiving(
    session: Session, peer: str, store: StockStore, *, field_bits: int = DEFAULT_FIELD_BITS
) -> ReceiverSeeds:
    """The extension's receiver: bids first.

    Args:
        session: The lane to talk on, fresh for this call.
        peer: The extension's sender.
        store: This party's stocks.
        field_bits: k, public.

    Raises:
        MalformedMessage: The peer's bid is not as it must be.
    """
    terms = _terms(session, sender=peer, receiver=session.me, field_bits=field_bits)
    end = await session.compute(_end, store, peer, "receiver", terms, field_bits)
    bids = session.lane("bids")
    first = await session.compute(_spend, end)
    await bids.send(peer, _bid(first))  # -> 1
    lease = None if first is None else await _settle(bids, end, first)  # <- 2, and on while bids differ
    if lease is None:
        seeds = await agree_receiving(session.lane("fresh"), peer, field_bits=field_bits)
        lease = await session.compute(_keep, end, session.id, session.path, seeds)
    return ReceiverSeeds(lease.seeds, lease=lease.number)


async def lease_sending(
    session: Session, peer: str, store: StockStore, *, field_bits: int = DEFAULT_FIELD_BITS
) -> SenderSeeds:
    """The extension's sender: answers bids. Arguments and errors as for `lease_receiving`."""
    terms = _terms(session, sender=session.me, receiver=peer, field_bits=field_bits)
    end = await session.compute(_end, store, peer, "sender", terms, field_bits)
    lease = await _settle(session.lane("bids"), end, None)  # <- 1  -> 2, and on while bids differ
    if lease is None:
        seeds, delta = await agree_sending(session.lane("fresh"), peer, field_bits=field_bits)
        lease = await session.compute(_keep, end, session.id, session.path, seeds, delta)
    return SenderSeeds(lease.seeds, lease.delta, lease=lease.number)


async def _settle(bids: Session, end: _End, mine: _Lease | None) -> _Lease | None:
    """Answers the peer's bids until both have named one number, or one end has no stock of use.

    Args:
        bids: The lane.
        end: This end.
        mine: What this end has bid; None where the peer bids first.
    """
    turns = MAX_BIDS
    while True:
        theirs = await bids.recv(end.peer, LeaseBid, partial(_check, mine=mine))
        if not theirs.stock:
            await bids.compute(end.drop, "unknown to the peer")
            return None
        if mine is not None and theirs.number == mine.number:
            await bids.compute(_hear, end, mine)
            return mine
        turns -= 1
        mine = await bids.compute(_spend, end, theirs) if turns else None
        if not turns:
            await bids.compute(end.drop, "contended")
        await bids.send(end.peer, _bid(mine))
        if mine is None or mine.number == theirs.number:
            return mine


def abandon(store: StockStore, peer: str) -> None:
    """Drops both stocks with a peer that broke a protocol: what it learnt of Δ must not serve it in a later session."""
    roles: tuple[Role, ...] = ("receiver", "sender")
    for role in roles:
        if (stock := store.get(peer, role)) is not None:
            store.drop(peer, role, stock.id, "the peer broke the protocol")


# -- messages ----------------------------------------------------------------------------------------------------------
def _bid(lease: _Lease | None) -> LeaseBid:
    return LeaseBid() if lease is None else LeaseBid(stock=lease.stock_id, number=lease.number, heard=lease.heard)


def _check(bid: LeaseBid, mine: _Lease | None) -> None:
    if len(bid.stock) not in (0, ID_BYTES):
        raise ValueError(f"a stock's id has {ID_BYTES} bytes")
    if not bid.stock and (bid.number or bid.heard):
        raise ValueError("a number without a stock")
    if bid.number >= LEASES or bid.heard > LEASES:
        raise ValueError(f"a stock has {LEASES} numbers")
    if bid.stock and mine is not None and bid.stock != mine.stock_id:
        raise ValueError("another stock than the one that was bid for")
    if bid.stock and mine is not None and bid.number < mine.number:
        raise ValueError("a number below the one that was bid")


# -- one end, off the event loop ---------------------------------------------------------------------------------------
def _terms(session: Session, *, sender: str, receiver: str, field_bits: int) -> bytes:
    """What both ends must have in common for a stock to be of use."""
    labels = encode_labels("ot stock 1", WIRE_VERSION, session.suite, field_bits, sender, receiver)
    return hashlib.sha256(labels).digest()


def _end(store: StockStore, peer: str, role: Role, terms: bytes, field_bits: int) -> _End:
    stock = store.get(peer, role)
    return _End(store, peer, role, terms, field_bits, b"" if stock is None else stock.id)


def _spend(end: _End, theirs: LeaseBid | None = None) -> _Lease | None:
    """Spends the first number at this end that is not below the peer's bid; None where the stock is of no use."""
    while (stock := end.store.get(end.peer, end.role)) is not None:
        if (why := _useless(stock, end.terms, theirs)) is not None:
            end.drop(why)
            return None
        number, heard = stock.next, stock.heard
        if theirs is not None:
            number, heard = max(number, theirs.number), max(heard, theirs.number + 1)
        kept = np.frombuffer(stock.seeds, np.uint8).reshape(-1, 1 << end.field_bits, KEY_BYTES)
        for _ in range(number - stock.next):
            kept, _burnt = ratchet(kept)
        kept, leased = ratchet(kept)
        after = replace(stock, next=number + 1, heard=heard, seeds=kept.tobytes())
        if end.store.advance(end.peer, end.role, stock, after):
            return _Lease(stock.id, number, heard, leased, stock.delta)
        # Another session was faster: its number is spent, so this one takes a later one.
    return None


def _useless(stock: Stock, terms: bytes, theirs: LeaseBid | None) -> Reason | None:
    """Why no lease can be taken, if none can."""
    if stock.terms != terms:
        return "made under other terms"
    if stock.next >= LEASES:
        return "used up"
    if not 0 <= time.time() - stock.made < MAX_AGE_S:
        return "too old"
    if theirs is None:
        return None
    if theirs.stock != stock.id:
        return "unknown to the peer"
    if theirs.heard > stock.next:
        return "rolled back here"  # the peer has heard a number from this end that is not spent here
    if theirs.number == stock.heard - 1:
        return "rolled back at the peer"  # it names a number again; one below may only have been overtaken
    if theirs.number - stock.next > MAX_SKIPPED:
        return "too far behind"
    return None


def _hear(end: _End, agreed: _Lease) -> None:
    """Notes that the peer has named the number of the lease."""
    while (stock := end.store.get(end.peer, end.role)) is not None:
        if stock.id != agreed.stock_id or stock.heard > agreed.number:
            return
        if end.store.advance(end.peer, end.role, stock, replace(stock, heard=agreed.number + 1)):
            return


def _keep(end: _End, session_id: bytes, lane: str, seeds: Seeds, delta: bytes = b"") -> _Lease:
    """Makes a stock of fresh seeds; this session has its lease 0."""
    stock_id = hashlib.sha256(end.terms + encode_labels(session_id, lane)).digest()[:ID_BYTES]
    kept, leased = ratchet(seeds)
    stock = Stock(stock_id, end.terms, time.time(), next=1, heard=1, seeds=kept.tobytes(), delta=delta)
    end.store.put(end.peer, end.role, stock)
    return _Lease(stock_id, 0, 1, leased, delta)
