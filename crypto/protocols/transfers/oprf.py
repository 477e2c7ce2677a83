"""An oblivious pseudorandom function by oblivious-transfer extension: the sender gets a key, the receiver some values.

For points y_1 … y_n of the receiver and a code C of 512 pseudorandom bits a point:
    0  keys     512 random transfers, the OPRF's sender choosing by the bits of a secret s: of each pair of the
                receiver's streams (T, T') it holds one
    1  rows     the receiver fills a store D with C(y) for each y (`okvs`) and sends its seed and U = T ⊕ T' ⊕ D; row by
                row the sender then has Q = T ⊕ s·D (bit by bit)
    Reading is linear: for any point x what the sender reads in Q, plus s·C(x), is what the receiver reads in T, plus
    s·(D(x) ⊕ C(x)). The last is 0 for the receiver's own points, and hides at least 128 bits of s at all others. The
    value of x is the hash of that.

Points come in parts of up to 2^17, each with a store of its own, whose capacities are public.

Rounds: 2 after the seeds of `two_party`; the parts follow one another without waiting.
Bytes: 64 for each row of the stores, at 1.3 rows a point and 40.

Adversary: semi-honest. The receiver's points are hidden by streams (AES-CTR), the sender's values at other points by s
    (BLAKE2b correlation robust for differences of Hamming weight 128; `docs/protocols/oprf.md` derives that 512 bits
    leave as many, but with a chance of 2^-78 for 2^24 points of the sender). A receiver whose store holds no code words
    can learn s, and so F everywhere.
Leakage: the capacities.

Source: Kolesnikov, Kumaresan, Rosulek and Trieu, "Efficient Batched Oblivious PRF with Applications to Private Set
Intersection", CCS 2016 (pseudorandom codes); Pinkas, Rosulek, Trieu and Yanai, "PSI from PaXoS", EUROCRYPT 2020 (stores
of code words).
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from crypto.primitives.bit_matrix import ROWS, transpose
from crypto.primitives.keystream import Keystream
from crypto.primitives.okvs import MOST_KEYS, Layout, Places, Solution, filled, read, solved
from crypto.primitives.point_hash import KEY_BYTES, Points, Words, words_of
from crypto.protocols.transfers.extension_seeds import ReceiverSeeds, SenderSeeds
from crypto.protocols.transfers.ot_extension import receive_random, send_random
from link.errors import InternalError
from link.session import Session
from protos.v1.oblivious_prf_pb2 import CodeRows, StoreSeed

COLUMNS: Final = 512
MOST_VALUE_BYTES: Final = 32
_WORDS: Final = COLUMNS // 64
_ROW_BYTES: Final = COLUMNS // 8
_AT_ONCE: Final = 1 << 14  # rows of which streams and transposes stay in the cache
_STATISTICAL_BITS: Final = 41  # with which parts may be full: half of the 2^-40 that stores leave

Packed = NDArray[np.uint8]
Indices = NDArray[np.int64]


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

    def numbers(self, points: Points) -> Sequence[Indices]:
        """By part, which points are in it."""
        parts = points[:, 0] % np.uint64(self.number)
        order = np.argsort(parts, kind="stable")
        return np.split(order, np.searchsorted(parts[order], np.arange(1, self.number)))

    def stored(self, points: Points) -> Sequence[Indices]:
        """The same for points that the parts' stores shall hold.

        Raises:
            InternalError: One part has more than it has room for.
            ValueError: All together are more than the capacity.
        """
        if len(points) > self.capacity:
            raise ValueError(f"{len(points)} points are more than the {self.capacity} that were agreed upon")
        numbers = self.numbers(points)
        if max(map(len, numbers)) > self.layout.capacity:
            raise InternalError("by chance, too many points came into one store; start the job again")
        return numbers


def _most_of(capacity: int, number: int) -> int:
    """What one of so many parts holds at most, but for a chance of 2^-41 that one holds more (Bernstein)."""
    mean, exponent = capacity / number, _STATISTICAL_BITS * math.log(2) + math.log(number)
    return math.ceil(mean + exponent / 3 + math.sqrt(exponent**2 / 9 + 2 * mean * exponent))


# -- the receiver ------------------------------------------------------------------------------------------------------
async def receive_values(
    session: Session, peer: str, seeds: SenderSeeds, points: Points, capacity: int, key: bytes, size: int
) -> Packed:
    """The receiver's part: the function's values at its points.

    Args:
        session: The lane to use, fresh for this call.
        peer: The sender.
        seeds: From `TwoParty.sending`, for this call alone: the receiver of values sends the streams' keys.
        points: Different ones, at most `capacity`, shape (n, 2).
        capacity: Public.
        key: 16 bytes, public, of the code; fresh, and chosen independently of all points.
        size: Bytes of a value, public.

    Returns:
        Shape (n, size).

    Raises:
        InternalError: One part has more points than chance would put there, or a point is given twice.
        MalformedMessage: The sender's part of the transfers is not as it must be.
        ValueError: There are more points than the capacity, or values are too long.
    """
    parts = Parts.of(capacity)
    by_part = parts.stored(points)
    keys = send_random(session.lane("keys"), peer, seeds, COLUMNS)  # <- 1
    streams = [_streams(either) async for pair in keys for either in pair]
    random, values = session.randomness("store"), np.empty((len(points), _checked_size(size)), np.uint8)

    def masked(some: Points) -> tuple[bytes, Words, Words, Solution]:
        seed, solution = solved(parts.layout, some, random)
        rows = filled(solution, words_of(some, key, _WORDS, "code"), random)
        own = wide_rows(streams[0], len(rows))
        rows ^= own
        rows ^= wide_rows(streams[1], len(rows))
        return seed, rows, own, solution

    for numbers in by_part:
        seed, rows, own, solution = await session.compute(masked, points[numbers])
        await session.send(peer, StoreSeed(seed=seed))  # -> 2
        await session.send_array(peer, CodeRows, rows)  # -> 2
        values[numbers] = await session.compute(_read, parts.layout, own, solution.places, size)
    return values


# -- the sender --------------------------------------------------------------------------------------------------------
@dataclass(frozen=True, repr=False)
class PartKey:
    """The sender's key of one part: evaluates the function at any point of that part.

    Attributes:
        layout: Of the part's store.
        seed: Of the store.
        code_key: Of the code.
        secret: s, shape (8,).
        rows: Q, shape (layout.rows, 8).
    """

    layout: Layout
    seed: bytes
    code_key: bytes
    secret: NDArray[np.uint64]
    rows: Words

    def values(self, points: Points, size: int) -> Packed:
        """The function's values, shape (n, size)."""
        codes = words_of(points, self.code_key, _WORDS, "code")
        codes &= self.secret
        codes ^= read(self.layout, self.rows, self.layout.places(points, self.seed))
        return _hashed(codes, _checked_size(size))


async def part_keys(
    session: Session, peer: str, seeds: ReceiverSeeds, capacity: int, key: bytes
) -> AsyncIterator[PartKey]:
    """The sender's part: the function's keys, part by part of `Parts.of(capacity)`, each as soon as it is there.

    Args:
        session: The lane to use, fresh for this call.
        peer: The receiver.
        seeds: From `TwoParty.receiving`, for this call alone.
        capacity: The receiver's own.
        key: The receiver's own.

    Raises:
        MalformedMessage: The receiver's seeds or rows have another size.
    """
    parts = Parts.of(capacity)
    choices = np.frombuffer(session.randomness("secret").bytes(_ROW_BYTES), np.uint8)
    secret = choices.view("<u8")
    keys = receive_random(session.lane("keys"), peer, seeds, choices)  # -> 1
    (streams,) = [_streams(chosen) async for chosen in keys]

    def corrected(rows: Words) -> Words:
        rows &= secret
        rows ^= wide_rows(streams, len(rows))
        return rows

    for _ in range(parts.number):
        seed = (await session.recv(peer, StoreSeed, check_seed)).seed  # <- 2
        rows = await session.recv_array(peer, CodeRows, np.uint64, (parts.layout.rows, _WORDS))  # <- 2
        yield PartKey(parts.layout, seed, key, secret, await session.compute(corrected, rows))


async def send_values(
    session: Session, peer: str, seeds: ReceiverSeeds, points: Points, capacity: int, key: bytes, size: int
) -> Packed:
    """The sender's part, with the values at points of its own; of one part's key after the other, none is kept.

    Args:
        session: As for `part_keys`.
        peer: As for `part_keys`.
        seeds: As for `part_keys`.
        points: The sender's, any number of them, shape (n, 2).
        capacity: As for `part_keys`.
        key: As for `part_keys`.
        size: Bytes of a value, the receiver's own.

    Returns:
        Shape (n, size).
    """
    values = np.empty((len(points), _checked_size(size)), np.uint8)
    numbers = iter(Parts.of(capacity).numbers(points))
    async for part in part_keys(session, peer, seeds, capacity, key):
        some = next(numbers)
        values[some] = await session.compute(part.values, points[some], size)
    return values


# -- rows --------------------------------------------------------------------------------------------------------------
def wide_rows(streams: Sequence[Keystream], number: int) -> Words:
    """The next rows of 512 streams' bits, shape (number, 8): bit j of stream i is bit i of row j."""
    rows = np.empty((number, _WORDS), np.uint64)
    for start in range(0, number, _AT_ONCE):
        part = rows[start : start + _AT_ONCE]
        size = -(-len(part) // ROWS) * ROWS // 8
        taken = b"".join([stream.take(size) for stream in streams])
        columns = np.frombuffer(taken, np.uint8).reshape(-1, ROWS, size)
        for group, matrix in enumerate(columns):
            part[:, 2 * group : 2 * group + 2] = transpose(matrix)[: len(part)]
    return rows


def _streams(keys: NDArray[np.uint64]) -> list[Keystream]:
    """A stream of each key, which serves for nothing else."""
    return [Keystream(key.tobytes(), bytes(KEY_BYTES)) for key in keys]


def _read(layout: Layout, rows: Words, places: Places, size: int) -> Packed:
    return _hashed(read(layout, rows, places), size)


def _hashed(rows: Words, size: int) -> Packed:
    """Of each row of 512 bits a hash."""
    hashed = hashlib.blake2b
    joined = b"".join([hashed(row, digest_size=size).digest() for row in _as_bytes(rows)])
    return np.frombuffer(bytearray(joined), np.uint8).reshape(-1, size)


def _as_bytes(rows: Words) -> list[bytes]:
    each: list[bytes] = np.ascontiguousarray(rows).reshape(-1).view(f"V{_ROW_BYTES}").tolist()
    return each


def _checked_size(size: int) -> int:
    if not 1 <= size <= MOST_VALUE_BYTES:
        raise ValueError(f"values of a pseudorandom function have 1 to {MOST_VALUE_BYTES} bytes, not {size}")
    return size


def check_seed(message: StoreSeed) -> None:
    """Refuses what is no seed of a store."""
    if len(message.seed) != KEY_BYTES:
        raise ValueError(f"a store's seed has {KEY_BYTES} bytes, not {len(message.seed)}")
