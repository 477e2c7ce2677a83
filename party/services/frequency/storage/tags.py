"""What is kept of who took part in a period: tags that nobody can link to anybody without the period's key.

    tag of a report    = first 8 bytes of AES-128_k(pseudonym ⊕ offset of its submitter)
    offset ‖ tag of a submitter = BLAKE2b_k'(submitter's name), 16 ‖ 8 bytes

The key (k, k') is drawn for the period and deleted with it; then nobody can test whether a pseudonym or a certificate
took part. Since a submitter's offset is secret, no submitter can name a pseudonym whose tag is that of another's.
A tag of 64 bits is taken for another one of the same period with probability at most n²/2^65: below 3·10^-6 for all of
10^7 reports together. Then one honest report counts as a duplicate.
"""

from __future__ import annotations

import hashlib
from typing import Final

import numpy as np
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes
from numpy.typing import NDArray

KEY_BYTES: Final = 48
PSEUDONYM_BYTES: Final = 16

TAG_MEMORY: Final = 26  # bytes that a tag takes in a set, at most

_AES_BYTES: Final = 16
_EMPTY: Final = np.uint64(0)  # of a place in a table; a tag that is 0 becomes 1
_LEAST_PLACES: Final = 10  # as a power of two
_FULL: Final = 5 / 8
_AT_ONCE: Final = 1 << 16

Tags = NDArray[np.uint64]
"""Shape (n,): none is 0."""


class Tagger:
    """The tags of one period.

    Args:
        key: 48 secret bytes.
    """

    def __init__(self, key: bytes) -> None:
        # One permutation on all blocks: their first halves are as good as random for far fewer than 2^64 of them.
        self._cipher = Cipher(algorithms.AES(key[:_AES_BYTES]), modes.ECB()).encryptor()  # noqa: S305
        self._names = key[_AES_BYTES:]

    def submitter(self, name: str) -> tuple[NDArray[np.uint64], int]:
        """The offset of a submitter's pseudonyms, shape (2,), and its own tag."""
        words = np.frombuffer(hashlib.blake2b(name.encode(), key=self._names, digest_size=24).digest(), "<u8")
        return words[:2], max(int(words[2]), 1)

    def tags(self, pseudonyms: NDArray[np.uint8], offsets: NDArray[np.uint64]) -> Tags:
        """The tags of reports.

        Args:
            pseudonyms: Shape (n, 16).
            offsets: Of their submitters, shape (n, 2) or (2,).
        """
        blocks = np.ascontiguousarray(pseudonyms).view("<u8") ^ offsets
        hashed = np.empty((len(blocks) + 1, 2), np.uint64)  # with a block of slack, for which the cipher asks
        self._cipher.update_into(blocks.reshape(-1).view(np.uint8).data, hashed.reshape(-1).view(np.uint8).data)
        return np.maximum(hashed[:-1, 0], 1)


class TagSet:
    """A set of tags in one array: open addressing with double hashing; 13 to 26 bytes a tag.

    A tag's upper bits are its first place, its lower ones the step to the next: both are random already.

    Args:
        tags: To begin with, all different.
    """

    def __init__(self, tags: Tags | None = None) -> None:
        self._size = 0
        self._allot(_LEAST_PLACES)
        if tags is not None:
            self.add(np.sort(tags))  # in the order of places, which memory likes better

    def __len__(self) -> int:
        return self._size

    @property
    def nbytes(self) -> int:
        """Of the table."""
        return self._places.nbytes

    def holds(self, tags: Tags) -> NDArray[np.bool_]:
        """Which of the tags are in the set, shape (n,)."""
        at = self._first(tags)
        kept = self._places[at]
        found: NDArray[np.bool_] = kept == tags
        left = np.flatnonzero(~found & (kept != _EMPTY))
        at, wanted = at[left], tags[left]
        while left.size:
            at = self._next(at, wanted)
            kept = self._places[at]
            hit = kept == wanted
            found[left[hit]] = True
            going = ~hit & (kept != _EMPTY)
            left, at, wanted = left[going], at[going], wanted[going]
        return found

    def reserve(self, more: int) -> None:
        """Makes room, so that adding so many tags asks for no more memory."""
        places = len(self._places)
        while self._size + more > _FULL * places:
            places *= 2
        if places == len(self._places):
            return
        earlier = self._places
        self._allot(places.bit_length() - 1)
        for start in range(0, len(earlier), _AT_ONCE):
            part = earlier[start : start + _AT_ONCE]
            self._put(part[part != _EMPTY])

    def add(self, tags: Tags) -> None:
        """Adds tags that are all different, and none of which is in the set."""
        self.reserve(len(tags))
        for start in range(0, len(tags), _AT_ONCE):
            self._put(tags[start : start + _AT_ONCE])
        self._size += len(tags)

    def _allot(self, power: int) -> None:
        self._places: Tags = np.zeros(1 << power, np.uint64)  # where this fails, all is as before
        self._shift, self._mask = np.uint64(64 - power), np.uint64((1 << power) - 1)

    def _put(self, tags: Tags) -> None:
        at = self._first(tags)
        while len(tags):
            free = self._places[at] == _EMPTY
            self._places[at[free]] = tags[free]  # of several that meet at one place the last one stays
            lost = self._places[at] != tags
            tags = tags[lost]
            at = self._next(at[lost], tags)

    def _first(self, tags: Tags) -> NDArray[np.int64]:
        return (tags >> self._shift).view(np.int64)

    def _next(self, at: NDArray[np.int64], tags: Tags) -> NDArray[np.int64]:
        return (at + ((tags & self._mask).view(np.int64) | 1)) & np.int64(self._mask)  # an odd step meets every place
