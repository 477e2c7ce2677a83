"""An oblivious pseudorandom function by oblivious-transfer extension: the sender gets a key, the receiver some values.

For points y_1 … y_n of the receiver and a linear code C of 512 bits a point (`linear_code`):
    0  keys     512 random transfers, the OPRF's sender choosing by the bits of a secret s: of each pair of the
                receiver's streams (T, T') it holds one
    1  rows     the receiver fills a store D with y for each y (`okvs`) and sends its seed and U = T ⊕ T' ⊕ C(D), column
                by column; the sender then has Q = T ⊕ s·C(D) (bit by bit)
    2  check    the receiver answers a challenge with hashes of T's and D's columns; the sender compares (`oprf_check`)
    Reading is linear, as is C: for any point x what the sender reads in Q, plus s·C(x), is what the receiver reads in
    T, plus s·C(D(x) ⊕ x). The last is 0 for the receiver's own points, and hides at least 112 bits of s at all others.
    The value of x is the hash of that and of x (`row_hash`).

Points come in parts of up to 2^17, each with a store of its own, whose capacities are public.

Rounds: after seeds with field_bits = 1, 1 and then 3 for each part; a part's values are known before
    its rows are checked, and the sender gives no key before.
Bytes: 64 for each row of the stores, at 1.3 rows a point and 40, and about 40 KB a part.

Adversary: malicious, in the random oracle and ideal cipher model. A receiver that deviates from the code in t columns
    is caught unless it guesses t bits of s; else it has values at no more points than its stores have room for, up to
    a factor (`docs/protocols/oprf.md` derives both). Collusion: does not apply, two parties.
Leakage: the capacities.

Source: Orrù, Orsini and Scholl, "Actively Secure 1-out-of-N OT Extension with Application to Private Set Intersection",
CT-RSA 2017 (linear codes and a check); Pinkas, Rosulek, Trieu and Yanai, "PSI from PaXoS", EUROCRYPT 2020 (stores of
points).
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import dataclass, replace
from typing import Final

import numpy as np
from numpy.typing import NDArray

from crypto.primitives.bit_matrix import ROWS, transpose_back, unpack_bits
from crypto.primitives.groups.point_hash import KEY_BYTES, Points, Words
from crypto.primitives.hashing import encode_labels
from crypto.primitives.keystream import Keystream, next_rows
from crypto.primitives.linear_code import WORD_BITS, encoded, encoded_columns, encoding
from crypto.primitives.okvs import MOST_KEYS, Layout, Places, filled, read, read_in_pieces, solved
from crypto.primitives.polynomial_hash import SEED_BYTES
from crypto.primitives.row_hash import MOST_BYTES, row_hashes
from crypto.protocols.transfers.extension_seeds import ReceiverSeeds, SenderSeeds
from crypto.protocols.transfers.oprf_check import (
    Columns,
    Sent,
    answer_check,
    check,
    rows_from,
    rows_of,
)
from crypto.protocols.transfers.ot_extension import receive_random, send_random
from link.errors import InternalError
from link.session import Session
from link.tasks import together
from protos.v1.oblivious_prf_pb2 import CodeColumns, ColumnChallenge, StoreSeed

MOST_VALUE_BYTES: Final = MOST_BYTES
_NAME_BYTES: Final = 9  # of a function in its counter blocks, before two of the column and five that count up
_STATISTICAL_BITS: Final = 41  # with which parts may be full: half of the 2^-40 that stores leave

Packed = NDArray[np.uint8]
Indices = NDArray[np.int64]
BothStreams = tuple[Sequence[Keystream], Sequence[Keystream]]


# -- parts -------------------------------------------------------------------------------------------------------------
@dataclass(frozen=True)
class Parts:
    """How points are divided among stores.

    Attributes:
        capacity: The most points of all parts.
        number: Of parts.
        layout: Of each part's store.
    """

    capacity: int
    number: int
    layout: Layout

    @classmethod
    def of(cls, capacity: int) -> Parts:
        """For so many points; each part has room for its share and the chance excess."""
        if capacity <= MOST_KEYS:
            return cls(capacity, 1, Layout.of(max(capacity, 1)))
        number = -(-capacity // MOST_KEYS)
        while (most := _most_of(capacity, number)) > MOST_KEYS:
            number += 1
        return cls(capacity, number, Layout.of(most))

    def parts_of(self, points: Points) -> Words:
        """Of each point the part that it is in."""
        return points[:, 0] % np.uint64(self.number)

    def numbers(self, points: Points) -> Sequence[Indices]:
        """By part, which points are in it."""
        parts = self.parts_of(points)
        order = np.argsort(parts, kind="stable")
        return np.split(order, np.searchsorted(parts[order], np.arange(1, self.number)))

    def stored(self, points: Points) -> Sequence[Indices]:
        """The same for points that the parts' stores shall hold.

        Raises:
            InternalError: One part has more than it has room for.
            ValueError: All together are more than the capacity.
        """
        numbers = self.numbers(points)
        self.check([len(some) for some in numbers])
        return numbers

    def check(self, sizes: Sequence[int]) -> None:
        """Refuses points that the parts' stores cannot hold, by how many are in each part; errors as of `stored`."""
        if sum(sizes) > self.capacity:
            raise ValueError(f"{sum(sizes)} points are more than the {self.capacity} that were agreed upon")
        if max(sizes) > self.layout.capacity:
            raise InternalError("by chance, too many points came into one store; start the job again")


def _most_of(capacity: int, number: int) -> int:
    """What one of so many parts holds at most, but for a chance of 2^-41 that one holds more (Bernstein)."""
    mean, exponent = capacity / number, _STATISTICAL_BITS * math.log(2) + math.log(number)
    return math.ceil(mean + exponent / 3 + math.sqrt(exponent**2 / 9 + 2 * mean * exponent))


# -- the receiver ------------------------------------------------------------------------------------------------------
@dataclass(frozen=True, repr=False)
class KeyHolder:
    """A sender, at the receiver.

    Attributes:
        session: The lane to use, fresh for this call.
        name: The sender's.
        seeds: From `prepare_sending` with field_bits = 1, or a fork, for this call alone: the receiver of values sends
            the streams' keys.
    """

    session: Session
    name: str
    seeds: SenderSeeds

    def lane(self, name: str) -> KeyHolder:
        """The same on a lane of this one."""
        return replace(self, session=self.session.lane(name))


async def receive_values(
    session: Session, peer: str, seeds: SenderSeeds, points: Points, capacity: int, size: int
) -> Packed:
    """The receiver's part: the function's values at its points.

    Args:
        session: As of a `KeyHolder`.
        peer: The sender.
        seeds: As of a `KeyHolder`.
        points: As for `received_rows`.
        capacity: Public.
        size: Bytes of a value, public.

    Returns:
        Shape (n, size).

    Raises:
        InternalError: As `received_rows`.
        MalformedMessage: As `received_rows`.
        ProtocolViolation: As `received_rows`.
        ValueError: There are more points than the capacity, or values are too long.
    """
    (values,) = await receive_all_values(session, [KeyHolder(session, peer, seeds)], points, capacity, size)
    return values


async def receive_all_values(
    session: Session, holders: Sequence[KeyHolder], points: Points, capacity: int, size: int
) -> Sequence[Packed]:
    """The receiver's part of several functions, with one sender each, at the same points; see `receive_values`."""
    values = [np.empty((len(points), _checked_size(size)), np.uint8) for _ in holders]
    async for numbers, rows in received_rows(session, holders, points, capacity):
        for each, found in zip(values, rows, strict=True):
            each[numbers] = await session.compute(row_hashes, found, points[numbers], size)
    return values


async def received_rows(
    session: Session, holders: Sequence[KeyHolder], points: Points, capacity: int
) -> AsyncIterator[tuple[Indices, Sequence[Words]]]:
    """The receiver's part of several functions, with one sender each, at the same points: rows in place of values.

    The points' stores are the same for all, but for their last rows. Every sender sees them under streams of its own.

    Args:
        session: Names the randomness; with one sender its lane.
        holders: The senders.
        points: Different ones, at most `capacity`, shape (n, 2); hashes of elements under a key that nobody knew when
            these were chosen.
        capacity: Public.

    Yields:
        By part of `Parts.of(capacity)`, which points are in it, and for each sender their rows, shape (some, 8): secret
        but for hashes, `row_hashes`, as those of `PartKey`.

    Raises:
        InternalError: One part has more points than chance would put there, or a point is given twice.
        MalformedMessage: A sender's part of the transfers is not as it must be.
        ProtocolViolation: A sender's choices in the transfers contradict each other.
        ValueError: There are more points than the capacity.
    """
    parts = Parts.of(capacity)
    by_part = parts.stored(points)
    found = received_by_part(
        session, holders, [len(some) for some in by_part], lambda part: points[by_part[part]], parts
    )
    done = 0
    async for _, rows in found:
        yield by_part[done], rows
        done += 1


async def received_by_part(
    session: Session, holders: Sequence[KeyHolder], sizes: Sequence[int], points: Callable[[int], Points], parts: Parts
) -> AsyncIterator[tuple[Points, Sequence[Words]]]:
    """As `received_rows`, of points of which those of one part at a time are in memory.

    Args:
        session: As for `received_rows`.
        holders: As for `received_rows`.
        sizes: By part, how many points are in it.
        points: Those of a part; called once for each.
        parts: How points are divided.

    Yields:
        By part its points, and for each sender their rows.
    """
    parts.check(sizes)
    streams = await together(_both_streams(holder) for holder in holders)  # <- 1
    random, rows = session.randomness("store"), rows_of(parts.layout)

    def stored(number: int) -> tuple[Points, _Stored, Sequence[Words]]:
        some = points(number)
        seed, solution = solved(parts.layout, some, random)
        store = filled(solution, some, random)
        whole = len(store) // ROWS * ROWS
        ends = [random.uint64(2 * (rows - len(store))).reshape(-1, 2) for _ in holders]
        messages = transpose_back(store[:whole])
        found = _Stored(parts.layout, seed, solution.places, messages, encoded_columns(messages))
        return some, found, [np.concatenate([store[whole:], end]) for end in ends]

    for number in range(parts.number):
        some, part, ends = await session.compute(stored, number)
        found = await together(map(part.evaluated, holders, ends, streams))
        session.progress(session.path, number + 1, parts.number)
        yield some, found


@dataclass(frozen=True, repr=False)
class _Stored:
    """One part's points at the receiver, in a store D.

    Attributes:
        layout: Of the store.
        seed: Of the store.
        places: What the points read.
        messages: Columns of D but for the last rows, which every sender sees others of: its own ones, filled up.
        words: Of the code, the same rows.
    """

    layout: Layout
    seed: bytes
    places: Places
    messages: Columns
    words: Columns

    async def evaluated(self, holder: KeyHolder, end: Words, streams: BothStreams) -> Words:
        """The points' rows in one sender's function.

        Args:
            holder: The sender.
            end: The last rows of D, for this sender alone.
            streams: For this sender alone.
        """
        lane = holder.session
        columns, sent = await lane.compute(self._masked, end, streams)
        await lane.send(holder.name, StoreSeed(seed=self.seed))  # -> 2
        await lane.send_array(holder.name, CodeColumns, columns)  # -> 2
        del columns
        found = await lane.compute(self._rows_at, sent.streams)
        await answer_check(lane, holder.name, sent)  # <- 3 -> 4
        return found

    def _masked(self, end: Words, streams: BothStreams) -> tuple[Columns, Sent]:
        last = transpose_back(end)
        messages = np.concatenate([self.messages, last], axis=1)
        size, whole = messages.shape[1], self.messages.shape[1]
        first, columns = next_rows(streams[0], size), np.empty((WORD_BITS, size), np.uint8)
        np.bitwise_xor(self.words, first[:, :whole], out=columns[:, :whole])
        np.bitwise_xor(encoded_columns(last), first[:, whole:], out=columns[:, whole:])
        return next_rows(streams[1], size, columns), Sent(first, messages)

    def _rows_at(self, streams: Columns) -> Words:
        return read(self.layout, rows_from(streams), self.places)


async def _both_streams(holder: KeyHolder) -> BothStreams:
    """T and T', as the sender's transfers choose among them."""
    batches = send_random(holder.session.lane("keys"), holder.name, holder.seeds, WORD_BITS)
    ((zero, one),) = [keys async for keys in batches]
    return _streams(holder.session, zero), _streams(holder.session, one)


# -- the sender --------------------------------------------------------------------------------------------------------
@dataclass(frozen=True, repr=False)
class PartKey:
    """The sender's key of one part: evaluates the function at any point of that part.

    Attributes:
        layout: Of the part's store.
        seed: Of the store.
        secret: s, shape (8,).
        rows: Q, shape (at least layout.rows, 8).
    """

    layout: Layout
    seed: bytes
    secret: Words
    rows: Words

    def values(self, points: Points, size: int, words: Words | None = None) -> Packed:
        """The function's values.

        Args:
            points: Shape (n, 2).
            size: Bytes of a value.
            words: Of the code, for these points, where several functions need them: from `encoded`, shape (n, 8).

        Returns:
            Shape (n, size).
        """
        values, places = np.empty((len(points), _checked_size(size)), np.uint8), self.layout.places(points, self.seed)
        for some, rows in read_in_pieces(self.layout, self.rows, places):
            rows ^= (encoded(points[some], encoding()) if words is None else words[some]) & self.secret
            values[some] = row_hashes(rows, points[some], size)
        return values


async def part_keys(session: Session, peer: str, seeds: ReceiverSeeds, capacity: int) -> AsyncIterator[PartKey]:
    """The sender's part: the function's keys, part by part of `Parts.of(capacity)`, each as soon as it is checked.

    Args:
        session: The lane to use, fresh for this call.
        peer: The receiver.
        seeds: From `prepare_receiving` with field_bits = 1, or a fork, for this call alone.
        capacity: The receiver's own.

    Raises:
        MalformedMessage: The receiver's messages have another size.
        ProtocolViolation: The receiver's rows are not those of points.
    """
    parts = Parts.of(capacity)
    choices = np.frombuffer(session.randomness("secret").bytes(WORD_BITS // 8), np.uint8)
    secret, chosen = choices.view("<u8"), unpack_bits(choices, WORD_BITS).astype(np.bool_)
    batches = receive_random(session.lane("keys"), peer, seeds, choices)  # -> 1
    (keys,) = [rows async for rows in batches]
    streams = _streams(session, keys)
    challenges = session.randomness("challenges")
    shape = (WORD_BITS, rows_of(parts.layout) // 8)

    def corrected(columns: Columns) -> Columns:
        columns &= np.where(chosen, np.uint8(255), np.uint8(0))[:, None]
        return next_rows(streams, shape[1], columns)

    for _ in range(parts.number):
        seed = (await session.recv(peer, StoreSeed, check_seed)).seed  # <- 2
        columns = await session.recv_array(peer, CodeColumns, np.uint8, shape)  # <- 2
        challenge = challenges.bytes(SEED_BYTES)
        await session.send(peer, ColumnChallenge(seed=challenge))  # -> 3
        columns = await session.compute(corrected, columns)
        await check(session, peer, challenge, secret, columns)  # <- 4
        yield PartKey(parts.layout, seed, secret, await session.compute(rows_from, columns))


async def send_values(
    session: Session, peer: str, seeds: ReceiverSeeds, points: Points, capacity: int, size: int
) -> Packed:
    """The sender's part, with the values at points of its own; of one part's key after the other, none is kept.

    Args:
        session: As for `part_keys`.
        peer: As for `part_keys`.
        seeds: As for `part_keys`.
        points: The sender's, any number of them, shape (n, 2), hashed as the receiver's are.
        capacity: As for `part_keys`.
        size: Bytes of a value, the receiver's own.

    Returns:
        Shape (n, size).
    """
    values = np.empty((len(points), _checked_size(size)), np.uint8)
    numbers, done = Parts.of(capacity).numbers(points), 0
    async for part in part_keys(session, peer, seeds, capacity):
        some = numbers[done]
        values[some] = await session.compute(part.values, points[some], size)
        done += 1
        session.progress(session.path, done, len(numbers))
    return values


# -- rows --------------------------------------------------------------------------------------------------------------
def _streams(session: Session, keys: NDArray[np.uint64]) -> list[Keystream]:
    """A stream of each column's key, which serves for nothing else.

    Each begins at a counter of this function and column alone, so that a guess of a key is worth nothing but there.
    """
    name = hashlib.sha256(encode_labels("columns of a function", session.id, session.path)).digest()
    streams = Keystream.of_keys((key.tobytes() for key in keys), bytes(KEY_BYTES))
    for column, stream in enumerate(streams):
        stream.go_to(name[:_NAME_BYTES] + column.to_bytes(2, "big") + bytes(KEY_BYTES - _NAME_BYTES - 2))
    return streams


def _checked_size(size: int) -> int:
    if not 1 <= size <= MOST_VALUE_BYTES:
        raise ValueError(f"values of a pseudorandom function have 1 to {MOST_VALUE_BYTES} bytes, not {size}")
    return size


def check_seed(message: StoreSeed) -> None:
    """Refuses what is no seed of a store."""
    if len(message.seed) != KEY_BYTES:
        raise ValueError(f"a store's seed has {KEY_BYTES} bytes, not {len(message.seed)}")
