"""A comparison of short numbers, digit by digit: what comes out of one digit goes into the next, always as shares.

The roles change from digit to digit (the leader sends the last digit's tables), and a sender draws its share of the
outcome beforehand. So a receiver's whole index, its own digit and the share that it drew for the digit below, is
known from the start:

    1.  both choose at once, for all digits that they receive;
    2.  the lowest digit's sender sends its tables, the receiver reads its share of the outcome;
    3.  with it, it makes the next digit's tables, and so on.

Against digits whose outcomes are brought together by ANDs this costs one bit more per digit instead of triples, and a
round a digit.

Rounds: one more than digits. Chunks follow one another through the steps, a few at a time, so that neither party runs
far ahead of the other; their number costs no rounds.
Output: XOR shares of one bit a number.
Adversary: semi-honest, as in `ot_extension`; every share that a party gets is uniform, since its sender drew it.
Leakage: how many numbers, and their bits.
Bytes a number: 7·⌈32/k⌉/8 for each symbol of an index from its receiver, the tables from their sender.

Source: `table_transfers` and `digit_tables`; carrying shares into the next transfer after Kolesnikov, Sadeghi and
Schneider, "Improved Garbled Circuit Building Blocks and Applications to Auctions and Computing Minima", CANS 2009,
section 3.1 (the comparison that ripples from the lowest bit up).
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Final

import numpy as np

from crypto.primitives.shares.masks import Words
from crypto.protocols.comparison.digit_tables import Digit, Packed, chain, index_of, look_up, outcomes
from crypto.protocols.comparison.two_party import TwoParty
from crypto.protocols.transfers.extension_batches import tell_batch
from crypto.protocols.transfers.extension_seeds import Expanded, ReceiverSeeds, SenderSeeds, Told
from crypto.protocols.transfers.stages import in_stages
from crypto.protocols.transfers.table_transfers import (
    INDEX_BITS,
    Table,
    choose,
    chunks,
    filled,
    hear_choices,
    octets,
    pads_of,
    symbol_count,
)
from link.session import Session
from protos.v1.shares_pb2 import LeafTables

CHUNKS_AT_ONCE: Final = 2


@dataclass
class _Chunk:
    """A chunk of the numbers on its way, at one party.

    Attributes:
        numbers: This party's, filled up with zeros.
        place: Where its shares go in the result.
        shares: By digit, this party's shares of the outcome, packed: drawn where it sends the tables, else read.
        pads: By digit.
        indices: By digit that this party receives.
    """

    numbers: Words
    place: slice
    shares: dict[int, Packed] = field(default_factory=dict)
    pads: dict[int, Words] = field(default_factory=dict)
    indices: dict[int, Words] = field(default_factory=dict)


@dataclass(frozen=True)
class _Sending:
    """The digits whose tables this party sends."""

    seeds: SenderSeeds
    digits: dict[int, Digit]
    order: bool

    @property
    def tables(self) -> list[Table]:
        return [digit.table for digit in self.digits.values()]

    def prepare(self, chunk: _Chunk, told: Told) -> None:
        pads = pads_of(self.seeds, self.tables, told, len(chunk.numbers))
        chunk.pads.update(zip(self.digits, (pad[0] for pad in pads), strict=True))

    def write(self, chunk: _Chunk, i: int) -> Words:
        carry, share = chunk.shares.get(i - 1), chunk.shares[i]
        found = outcomes(self.digits[i], chunk.numbers, order=self.order, carry=carry, share=share)
        found ^= chunk.pads.pop(i)
        return found


@dataclass(frozen=True)
class _Receiving:
    """The digits whose tables this party receives."""

    seeds: ReceiverSeeds
    digits: dict[int, Digit]

    @property
    def tables(self) -> list[Table]:
        return [digit.table for digit in self.digits.values()]

    def choose(self, chunk: _Chunk) -> Expanded:
        indices = [index_of(digit, chunk.numbers, chunk.shares.get(i - 1)) for i, digit in self.digits.items()]
        batch, pads = choose(self.seeds, self.tables, indices)
        chunk.indices.update(zip(self.digits, indices, strict=True))
        chunk.pads.update(zip(self.digits, (pad[0] for pad in pads), strict=True))
        return batch

    def read(self, chunk: _Chunk, i: int, found: Words) -> None:
        chunk.shares[i] = look_up(found ^ chunk.pads.pop(i), chunk.indices.pop(i))


async def carried(
    session: Session, parties: TwoParty, numbers: Words, bits: int, *, leader: str, order: bool
) -> Packed:
    """This party's shares of the carry out of the sum of both parties' numbers, or of whether they are equal.

    Args:
        session: The lane to use, fresh for this call.
        parties: This party's half of the agreement with the other.
        numbers: This party's own, shape (n,), unsigned; n is public and equal at both.
        bits: m, of a number, public; `digit_tables.chain` has digits for so many.
        leader: The holder that sends the last digit's tables; the same at both.
        order: Whether the carry is wanted, else equality.

    Returns:
        Packed, shape (⌈n / 8⌉,).

    Raises:
        MalformedMessage: The peer's messages have another size.
    """
    peer = parties.peer
    choosing, offering = session.lane(f"choices of {parties.me}"), session.lane(f"choices of {peer}")
    sending, receiving = await _roles(parties, offering, choosing, bits, leads=parties.me == leader, order=order)
    count = len(sending.digits if sending else ()) + len(receiving.digits if receiving else ())
    random, lanes = session.randomness("shares"), dict[int, Session]()
    result = np.empty(-(-len(numbers) // 8), np.uint8)

    async def tell_choices(chunk: _Chunk) -> None:
        if sending:  # what this party draws for a digit is part of its index into the next
            chunk.shares = {i: _bits(random.bytes(len(chunk.numbers) // 8)) for i in sending.digits}
        if receiving:
            await tell_batch(choosing, peer, await session.compute(receiving.choose, chunk))  # -> 1

    async def take_choices(chunk: _Chunk) -> None:
        if sending:
            told = await hear_choices(offering, peer, sending.seeds, sending.tables, len(chunk.numbers))  # <- 1
            await session.compute(sending.prepare, chunk, told)

    async def pass_digit(chunk: _Chunk, i: int) -> None:
        if i not in lanes:
            lanes[i] = session.lane(f"digit {i}")  # made after the digit below has come, whose round it counts
        if sending and i in sending.digits:
            await lanes[i].send_array(peer, LeafTables, await session.compute(sending.write, chunk, i))  # -> i + 2
        elif receiving:
            word, shape = receiving.digits[i].table.word, (len(chunk.numbers),)
            found = await lanes[i].recv_array(peer, LeafTables, word, shape)  # <- i + 2
            await session.compute(receiving.read, chunk, i, found)

    async def keep(chunk: _Chunk) -> None:
        result[chunk.place] = chunk.shares[count - 1][: chunk.place.stop - chunk.place.start]

    steps: list[Callable[[_Chunk], Awaitable[None]]]
    steps = [tell_choices, take_choices, *(partial(pass_digit, i=i) for i in range(count)), keep]
    symbols = max(_symbols(role) for role in (sending, receiving))
    pieces = (_Chunk(filled(numbers[part]), octets(part)) for part in chunks(len(numbers), symbols))
    await in_stages(pieces, steps, CHUNKS_AT_ONCE)
    return result


async def _roles(
    parties: TwoParty, offering: Session, choosing: Session, bits: int, *, leads: bool, order: bool
) -> tuple[_Sending | None, _Receiving | None]:
    """The leader sends the last digit, and from there down every other one."""
    if bits <= INDEX_BITS:
        if leads:
            return _Sending(await parties.sending(offering), {0: _chain(bits)[0]}, order), None
        return None, _Receiving(await parties.receiving(choosing), {0: _chain(bits)[0]})
    sender, receiver = await parties.both(offering, choosing)
    digits = _chain(bits)
    mine = {i: digit for i, digit in enumerate(digits) if ((len(digits) - 1 - i) % 2 == 0) == leads}
    theirs = {i: digit for i, digit in enumerate(digits) if i not in mine}
    return _Sending(sender, mine, order), _Receiving(receiver, theirs)


def _chain(bits: int) -> tuple[Digit, ...]:
    cut = chain(bits)
    if cut is None:
        raise ValueError(f"numbers of {bits} bits are too long for a chain of digits")
    return cut


def _symbols(role: _Sending | _Receiving | None) -> int:
    return symbol_count(role.tables) if role else 0


def _bits(drawn: bytes) -> Packed:
    return np.frombuffer(drawn, np.uint8)
