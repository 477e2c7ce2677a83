"""The AES-128-CTR keystream, written straight into numpy arrays."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Final, Never

import numpy as np
from cryptography.hazmat.primitives.ciphers import Cipher, CipherContext, algorithms, modes
from numpy.typing import NDArray

_BLOCK: Final = 16
_CHUNK: Final = 1 << 18  # 256 KB of zeros stay in the second-level cache
_ZEROS: Final = memoryview(bytes(_CHUNK))


class Keystream:
    """AES-128 in counter mode (NIST SP 800-38A, section 6.5): an endless string of pseudorandom bytes.

    A keystream belongs to one task: two threads that use it at once meet 'Already borrowed' from the cipher. It is
    neither copied nor pickled, since two copies would yield the same bytes.

    Args:
        key: 16 bytes.
        counter: First counter block, 16 bytes; it counts up modulo 2^128.
    """

    __slots__ = ("_cipher",)

    def __init__(self, key: bytes, counter: bytes) -> None:
        if len(key) != _BLOCK:
            raise ValueError(f"an AES-128 key has 16 bytes, not {len(key)}")
        self._cipher = Cipher(algorithms.AES128(key), modes.CTR(counter)).encryptor()

    @classmethod
    def from_secret(cls, secret: bytes) -> Keystream:
        """Start at a secret counter, so that a search for one key among many streams gains nothing from their number.

        Args:
            secret: 32 bytes: key, then first counter block.
        """
        return cls(secret[:_BLOCK], secret[_BLOCK:])

    @classmethod
    def of_keys(cls, keys: Iterable[bytes], counter: bytes) -> list[Keystream]:
        """A stream of each key, all from one counter: the many short ones of a small job begin in half the time.

        Args:
            keys: Of 16 bytes each.
            counter: First counter block, 16 bytes.
        """
        streams = []
        for cipher in _begun(keys, modes.CTR(counter)):
            stream = cls.__new__(cls)
            stream._cipher = cipher
            streams.append(stream)
        return streams

    def go_to(self, counter: bytes) -> None:
        """Go on from another counter block, 16 bytes; whoever goes back sees to it that no byte serves twice."""
        self._cipher.reset_nonce(counter)

    def take(self, size: int) -> bytes:
        """The next `size` bytes."""
        if size <= _CHUNK:
            return self._cipher.update(_ZEROS[:size])
        return self.words(-(-size // 8)).tobytes()[:size]

    def words(self, size: int) -> NDArray[np.uint64]:
        """The next 8 · `size` bytes as little-endian words, shape (size,)."""
        # The cipher asks for a block of slack behind the last byte that it writes.
        words = np.empty(size + _BLOCK // 8, dtype="<u8")
        self.fill(words)
        return words[:size]

    def fill(self, slackened: NDArray[np.uint64]) -> None:
        """Overwrite all but the last two words of an array with keystream; the last two may change.

        Args:
            slackened: C-contiguous, shape (size + 2,).
        """
        target = slackened.view(np.uint8).data
        end = len(target) - _BLOCK
        update_into = self._cipher.update_into
        if end <= _CHUNK:
            update_into(_ZEROS[:end], target)
            return
        for start in range(0, end, _CHUNK):
            stop = min(start + _CHUNK, end)
            update_into(_ZEROS[: stop - start], target[start : stop + _BLOCK])

    def add_to(self, source: memoryview, target: memoryview) -> None:
        """Overwrite `target` with `source` XOR the next keystream; what sums many streams saves a pass over each.

        Args:
            source: Bytes.
            target: As many bytes and 16 more, which may change.
        """
        self._cipher.update_into(source, target)

    def __reduce_ex__(self, protocol: object) -> Never:
        raise TypeError("a keystream is never copied or pickled: two copies would yield the same bytes")

    def __repr__(self) -> str:
        return "<Keystream>"


class CounterBlocks:
    """The keystreams of several keys wherever they are asked for, at the same counter blocks: AES-128 of these.

    Where little is taken of each of many streams, most of the time of a `Keystream` goes into setting where it is. As
    there, two threads may not use one object at once.

    Args:
        keys: n of 16 bytes each; None where a key is not known.
    """

    __slots__ = ("_ciphers",)

    def __init__(self, keys: Iterable[bytes | None]) -> None:
        every = list(keys)
        begun = _begun((key for key in every if key is not None), modes.ECB())  # noqa: S305 - counter mode is made of it
        self._ciphers = [None if key is None else next(begun) for key in every]

    def write(self, counters: bytes, target: memoryview) -> None:
        """Overwrite the first n · size bytes of `target` with each key's keystream, one after the other.

        Args:
            counters: Counter blocks, `size` bytes together.
            target: n · size bytes and 16 more, which may change; what belongs to an unknown key means nothing.
        """
        size = len(counters)
        for place, cipher in enumerate(self._ciphers):
            if cipher is not None:
                cipher.update_into(counters, target[place * size :])

    def __reduce_ex__(self, protocol: object) -> Never:
        raise TypeError("a keystream is never copied or pickled: two copies would yield the same bytes")

    def __repr__(self) -> str:
        return f"<CounterBlocks of {len(self._ciphers)} keys>"


def next_rows(streams: Sequence[Keystream], size: int, onto: NDArray[np.uint8] | None = None) -> NDArray[np.uint8]:
    """The next bytes of each stream, as rows of one array.

    Args:
        streams: n of them.
        size: How many bytes of each.
        onto: What they are added to, shape (n, size), C-contiguous; left as it is. Zeros where it is not given.

    Returns:
        Shape (n, size).
    """
    rows = np.empty(
        len(streams) * size + _BLOCK, np.uint8
    )  # what a cipher changes behind a row, the next one overwrites
    target, source = rows.data, _zeros(size) if onto is None else onto.reshape(-1).data
    step = 0 if onto is None else size
    for number, stream in enumerate(streams):
        start, place = number * step, number * size
        stream.add_to(source[start : start + size], target[place : place + size + _BLOCK])
    return rows[: len(streams) * size].reshape(len(streams), size)


def _begun(keys: Iterable[bytes], mode: modes.CTR | modes.ECB) -> Iterator[CipherContext]:
    """A cipher of each key. The library looks at what it is given once for all."""
    algorithm = algorithms.AES128(bytes(_BLOCK))
    cipher = Cipher(algorithm, mode)
    for key in keys:
        if len(key) != _BLOCK:
            raise ValueError(f"an AES-128 key has 16 bytes, not {len(key)}")
        algorithm.key = key
        yield cipher.encryptor()


def _zeros(size: int) -> memoryview:
    return _ZEROS[:size] if size <= _CHUNK else memoryview(bytes(size))
