"""Sealed reports at a shuffler: what came before is dropped, and the rest leaves in secret uniform order.

Few reports stay in memory. More go to the disk, encrypted (`scratch_file`), so that memory is bounded whatever their
number. Each report has a tag, a keyed hash under a fresh secret key; the first bits of its tag say in which of B
buckets it is. Equal reports have equal tags, so that repetitions are found within a bucket. At the end one bucket after
the other is read, cleared of repetitions and put into a uniform order (`Randomness.permutation`).

That the order of all is uniform: different reports have independent uniform labels (tags are a pseudorandom function,
as the words of the project's randomness are). For any order π of n reports and any sizes n_1 + … + n_B = n of buckets,
the labels must be those that π gives, which has probability B⁻ⁿ, and the order within each bucket must be that of π,
which has 1 / (n_1! · … · n_B!). Neither depends on π. So every order is equally likely, also for someone who sees where
one bucket ends and the next begins; and the sum over all sizes is B⁻ⁿ · Bⁿ/n! = 1/n! by the multinomial theorem.

Source: Bittau et al., "Prochlo", SOSP 2017, section 4.1.4 (shuffling in small private memory); Sanders, "Random
permutations on distributed, external and hierarchical memory", IPL 1998.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from crypto.primitives.scratch_file import ScratchFile
from crypto.primitives.sealed import Rows
from ldp.shuffling.batch import first_seen, shuffled, tags_of
from link.randomness import RandomStream
from mining.joint.hybrid.spool_limits import SpoolLimits

_PARTS: Final = 8  # of the memory: of reports that wait, and of a bucket, there are a few copies at a time
_MOST_BITS: Final = 16
_HEAD: Final = np.dtype([("tag", "<u8"), ("sender", "<u2")])

Heads = NDArray[np.void]


class Kept(NamedTuple):
    """What is left without repetitions.

    Attributes:
        by_sender: How many reports of each sender.
        replayed: How many were there before.
    """

    by_sender: tuple[int, ...]
    replayed: int


class _Part(NamedTuple):
    """Reports by bucket: on the disk, or those that came last, in memory.

    Attributes:
        ends: Where each bucket ends.
        heads: Of all, or where they are.
        rows: The same.
    """

    ends: NDArray[np.uint32]
    heads: Heads | int
    rows: Rows | int

    def bounds(self, bucket: int) -> tuple[int, int]:
        return int(self.ends[bucket - 1]) if bucket else 0, int(self.ends[bucket])


class Spool:
    """Takes reports of one size piece by piece, and gives them back in secret order.

    Args:
        limits: What they may take.
        size: Bytes of each.
        expected: How many there are at most.
        tag_key: 32 secret bytes, fresh.
        secret: 32 more.
    """

    def __init__(self, limits: SpoolLimits, size: int, expected: int, tag_key: bytes, secret: bytes) -> None:
        self.size = size
        width, self._most = size + _HEAD.itemsize, max(1, limits.memory // _PARTS)
        self._bits = min(_MOST_BITS, max(0, (-(-expected * width // self._most) - 1).bit_length()))
        self._held = max(1, self._most // width)  # reports that wait in memory
        self._tag_key = tag_key
        self._file = ScratchFile(limits.folder, secret, "sealed reports", "report_memory")
        self._waiting: list[tuple[Heads, Rows]] = []
        self._count = 0  # of those
        self._parts: list[_Part] = []

    @property
    def bytes_on_disk(self) -> int:
        """Of reports that did not fit memory."""
        return self._file.size

    def add(self, sender: int, rows: Rows) -> None:
        """Takes reports of a sender.

        Args:
            sender: Its number; of equal reports, the first of the lowest number stays.
            rows: Shape (n, size).

        Raises:
            ResourceError: The disk refuses them.
        """
        heads = np.empty(len(rows), _HEAD)
        heads["tag"], heads["sender"] = tags_of([row.data for row in rows], self._tag_key), sender
        self._waiting.append((heads, rows))
        self._count += len(rows)
        if self._bits and self._count > self._held:
            part = self._gathered()
            heads, rows = part.heads, part.rows  # type: ignore[assignment]
            at = self._file.append(heads.view(np.uint8))
            self._parts.append(_Part(part.ends, at, self._file.append(rows.reshape(-1))))

    def kept(self, senders: int) -> Kept:
        """How many reports are left; nothing is added from now on.

        Args:
            senders: How many there are.
        """
        self._parts.append(self._gathered())
        left, all_of_them = np.zeros(senders, np.int64), 0
        for bucket in range(1 << self._bits):
            heads = self._heads(bucket)
            senders_of = heads["sender"][_first(heads)]
            left += np.bincount(senders_of, minlength=senders)
            all_of_them += len(heads)
        return Kept(tuple(map(int, left)), all_of_them - int(left.sum()))

    def in_secret_order(self, random: RandomStream) -> Iterator[Rows]:
        """The reports that are left, in uniform order, piece by piece; after `kept`.

        Args:
            random: What the order comes from.
        """
        for bucket in range(1 << self._bits):
            rows = self._rows(bucket)[_first(self._heads(bucket))]
            yield shuffled(rows, random)

    def close(self) -> None:
        """Gives up what is on the disk."""
        self._file.close()

    def _gathered(self) -> _Part:
        """What waits in memory, by bucket."""
        heads = np.concatenate([np.empty(0, _HEAD), *(each for each, _ in self._waiting)])
        rows = np.concatenate([np.empty((0, self.size), np.uint8), *(each for _, each in self._waiting)])
        self._waiting, self._count = [], 0
        if not self._bits:
            return _Part(np.array([len(rows)], np.uint32), heads, rows)
        buckets = heads["tag"] >> np.uint64(64 - self._bits)
        order = np.argsort(buckets, kind="stable")
        ends = np.cumsum(np.bincount(buckets.astype(np.int64), minlength=1 << self._bits))
        return _Part(ends.astype(np.uint32), heads[order], rows[order])

    def _heads(self, bucket: int) -> Heads:
        pieces = []
        for part in self._parts:
            first, end = part.bounds(bucket)
            if isinstance(part.heads, int):
                read = self._file.read(part.heads + first * _HEAD.itemsize, (end - first) * _HEAD.itemsize)
                pieces.append(read.view(_HEAD))
            else:
                pieces.append(part.heads[first:end])
        return np.concatenate(pieces)

    def _rows(self, bucket: int) -> Rows:
        pieces = []
        for part in self._parts:
            first, end = part.bounds(bucket)
            if isinstance(part.rows, int):
                read = self._file.read(part.rows + first * self.size, (end - first) * self.size)
                pieces.append(read.reshape(-1, self.size))
            else:
                pieces.append(part.rows[first:end])
        return np.concatenate(pieces)


def _first(heads: Heads) -> NDArray[np.int64]:
    """The places of reports that were not there before, by sender and as they came."""
    order = np.argsort(heads["sender"], kind="stable")
    fresh = first_seen(heads["tag"][order], lambda tags: np.zeros(len(tags), np.bool_))
    return order[fresh]
