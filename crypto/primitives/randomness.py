"""The project's one source of randomness.

Every secret number of comine comes from a `Randomness`. Its bytes are an AES-128-CTR keystream (12 GB/s, three times
numpy's own generator, which is no cryptographic one). AES-128 meets the suite's 128 bits; the first counter block is
secret too, so that many streams are no easier prey than one.
"""

from __future__ import annotations

import builtins
import os
import secrets
from typing import Any, Final, Never

import numpy as np
from numpy.typing import NDArray

from crypto.primitives.hashing import derive_key
from crypto.primitives.keystream import Keystream
from link.errors import InternalError

KEY_BYTES: Final = 32
_STATE_BYTES: Final = 64
_WORD: Final = 1 << 64

_forks = 0


def _count_fork() -> None:
    global _forks
    _forks += 1


os.register_at_fork(after_in_child=_count_fork)


class Randomness:
    """A cryptographic random stream that belongs to one task.

    It implements `link.randomness.RandomStream`. Streams are not shared between threads ('Already borrowed'), not
    copied, not pickled, and die in a forked child, since each of these would use the same bytes twice. A worker gets a
    stream of its own by `Randomness.from_key(random.derive("worker", i).bytes(32))`, the bytes passed explicitly.
    """

    __slots__ = ("_forks", "_root", "_stream")

    def __init__(self, state: builtins.bytes) -> None:
        """Use `from_os`, `from_key` or `from_seed`, which say where the key comes from."""
        # The root, from which streams are derived, and the keystream's secret are independent parts of the state.
        self._root = state[:KEY_BYTES]
        self._stream = Keystream.from_secret(state[KEY_BYTES:])
        self._forks = _forks

    @classmethod
    def from_os(cls) -> Randomness:
        """A stream keyed by the operating system."""
        return cls(secrets.token_bytes(_STATE_BYTES))

    @classmethod
    def from_key(cls, key: builtins.bytes) -> Randomness:
        """A stream of a secret key: drawn from another stream for a worker, or agreed upon with a peer.

        Args:
            key: 32 bytes, uniform and secret, used for nothing else.

        Raises:
            ValueError: The key has another length.
        """
        if len(key) != KEY_BYTES:
            raise ValueError(f"a stream's key has {KEY_BYTES} bytes, not {len(key)}")
        return cls(derive_key(key, "stream of a key", size=_STATE_BYTES))

    @classmethod
    def from_seed(cls, seed: builtins.bytes | int) -> Randomness:
        """A repeatable stream for simulations and tests ONLY: who knows the seed knows every 'secret'.

        Args:
            seed: Any integer or bytes.
        """
        return cls(derive_key(bytes(16), "stream of a seed", seed, size=_STATE_BYTES))

    def derive(self, *label: str | int | builtins.bytes) -> Randomness:
        """An independent stream for `label`, whatever has been drawn from this one.

        Args:
            *label: The purpose; the same path under the same root gives the same stream.

        Returns:
            A stream keyed by HKDF-SHA256 of this stream's root key and the injectively encoded path.
        """
        self._check()
        return Randomness(derive_key(self._root, "derived stream", *label, size=_STATE_BYTES))

    def bytes(self, size: int) -> builtins.bytes:
        """The next `size` bytes."""
        self._check()
        return self._stream.take(size)

    def uint64(self, size: int) -> NDArray[np.uint64]:
        """The next `size` words, each uniform over 64 bits; shape (size,)."""
        self._check()
        return self._stream.words(size)

    def below(self, bound: int) -> int:
        """A uniform integer in [0, bound), by rejection; `bound` may have any size.

        Raises:
            ValueError: The bound is below 1.
        """
        if bound < 1:
            raise ValueError("a bound must be at least 1")
        bits = (bound - 1).bit_length()
        size, excess = -(-bits // 8), -bits % 8
        while True:
            value = int.from_bytes(self.bytes(size), "big") >> excess
            if value < bound:
                return value

    def integers(self, bound: int, size: int) -> NDArray[np.uint64]:
        """Uniform integers in [0, bound), without modulo bias.

        Words at or above the largest multiple of `bound` are redrawn, so each residue keeps as many words.

        Args:
            bound: From 1 to 2^64.
            size: How many.

        Returns:
            Shape (size,).

        Raises:
            ValueError: The bound is outside 1 … 2^64.
        """
        if not 1 <= bound <= _WORD:
            raise ValueError("a bound must lie between 1 and 2^64")
        words = self.uint64(size)
        if bound == _WORD:
            return words
        surplus = _WORD % bound
        if surplus == 0:
            np.bitwise_and(words, np.uint64(bound - 1), out=words)
            return words
        limit = np.uint64(_WORD - surplus)
        rejected = np.flatnonzero(words >= limit)
        while rejected.size:
            words[rejected] = self.uint64(rejected.size)
            rejected = rejected[words[rejected] >= limit]
        np.remainder(words, np.uint64(bound), out=words)
        return words

    def permutation(self, size: int) -> NDArray[np.int64]:
        """A uniform permutation of 0 … size − 1.

        It is the order of `size` random 64-bit keys. Given that the keys differ, every order is equally likely, and
        equal keys are never kept: all keys are redrawn together (probability about size² / 2^65), so nothing is biased.

        Returns:
            Shape (size,).

        Raises:
            ValueError: More than 2^31 elements, where redrawing would become likely.
        """
        if not 0 <= size <= 1 << 31:
            raise ValueError("a permutation must have between 0 and 2^31 elements")
        while True:
            keys = self.uint64(size)
            order = np.argsort(keys)
            ordered = keys[order]
            if not bool(np.any(ordered[1:] == ordered[:-1])):
                return order.astype(np.int64, copy=False)

    def rows(self, which: NDArray[Any]) -> Randomness:  # noqa: ARG002 (`RowStreams` needs it)
        """What to draw from for some rows of a batch: this stream, which is the same for all.

        Mechanisms that perturb batches draw for part of their rows by it, so that each row may have a stream of its own
        (`crypto.primitives.row_streams`).
        """
        return self

    def _check(self) -> None:
        if self._forks != _forks:
            raise InternalError(
                "A random stream was used in a forked process, where it would repeat its parent's bytes; "
                "pass the worker a key of its own."
            )

    def __reduce_ex__(self, protocol: object) -> Never:
        raise TypeError("a random stream is never copied or pickled: two copies would yield the same bytes")

    def __repr__(self) -> str:
        return "<Randomness>"
