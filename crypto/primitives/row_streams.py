"""Many random streams side by side: one for each row of a batch, whatever other rows the batch has.

Who perturbs the values of many clients together would use one stream for all, and then what a client's report is
depends on who else is in the batch. Sent again in another batch, its value would be perturbed anew, and the two reports
together reveal twice as much. Here each row draws from a stream of its own, which is fixed by a secret of the row.

A row's stream is AES-128 in counter mode. All rows of a batch share the key; the first counter block of each is
CBC-MAC(secret of the row ‖ what the draws are for), so rows' blocks are those of a random function at different places:
with 2^24 rows of 2^20 blocks, two meet with a probability below 2^-59.
"""

from __future__ import annotations

import builtins
from typing import Any, Final, Never

import numpy as np
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes
from numpy.typing import NDArray

from crypto.primitives.hashing import derive_key
from crypto.primitives.randomness import KEY_BYTES, Randomness
from link.errors import InternalError

Bytes = NDArray[np.uint8]

_BLOCK: Final = 16
_WORDS: Final = 2  # of 64 bits in a block


class RowStreams(Randomness):
    """The streams of n rows. Draws are laid out row by row: of n·k words, the first k are the first row's.

    A draw that has not as many words for each row is refused, so no row ever takes another one's words; draws for some
    of the rows go to `rows(which)`.

    Args:
        key: 32 bytes, uniform and secret.
        purpose: What the draws are for, beside what `about` says; the same for all rows.
        secrets: Shape (n, 32): the rows' secrets.
        about: Shape (n, 16): what each row's draws are for, such as the digest of a value.
    """

    __slots__ = ("_cipher", "_starts", "_used", "_which")

    def __init__(
        self, key: builtins.bytes, purpose: tuple[str | int | builtins.bytes, ...], secrets: Bytes, about: Bytes
    ) -> None:
        state = derive_key(key, "streams of rows", *purpose, size=2 * KEY_BYTES)
        super().__init__(state)
        mac, drawing = state[:_BLOCK], state[_BLOCK : 2 * _BLOCK]
        self._cipher = _cipher(drawing)
        self._starts = _cbc_mac(_cipher(mac), np.concatenate([secrets, about], axis=1)).view("<u8")
        self._used = np.zeros(len(secrets), dtype=np.uint64)  # blocks of each row
        self._which: NDArray[np.int64] = np.arange(len(secrets))

    def rows(self, which: NDArray[Any]) -> RowStreams:
        """The same streams for a draw of some rows only.

        Args:
            which: Numbers among the rows here, ascending; a number that comes k times means k parts of its row.
        """
        part = object.__new__(RowStreams)
        for slot in (*Randomness.__slots__, "_cipher", "_starts", "_used"):
            object.__setattr__(part, slot, getattr(self, slot))
        part._which = self._which[which]
        return part

    def uint64(self, size: int) -> NDArray[np.uint64]:
        """The next words of each row, as many for all; shape (size,).

        Raises:
            InternalError: They cannot be dealt out evenly.
        """
        self._check()
        n = len(self._which)
        if size == 0:
            return np.zeros(0, dtype=np.uint64)
        if n == 0 or size % n:
            raise InternalError(f"{size} random words were asked for {n} rows, which have a stream each")
        words = size // n
        blocks = -(-words // _WORDS)
        counters = np.empty((n, blocks, _WORDS), dtype="<u8")
        first = self._used[self._which] + np.uint64(blocks) * _ranks(self._which)
        counters[:, :, 0] = self._starts[self._which, 0][:, None]
        counters[:, :, 1] = (self._starts[self._which, 1] + first)[:, None] + np.arange(blocks, dtype=np.uint64)
        np.add.at(self._used, self._which, np.uint64(blocks))
        drawn = _encrypted(self._cipher, counters).reshape(n, blocks * _WORDS)
        return np.ascontiguousarray(drawn[:, :words], dtype=np.uint64).reshape(size)

    def integers(self, bound: int, size: int) -> NDArray[np.uint64]:
        """Uniform integers in [0, bound), as many for each row; what has to be redrawn comes from its own row's stream.

        Raises:
            ValueError: The bound is outside 1 … 2^64.
        """
        if not 1 <= bound <= 1 << 64:
            raise ValueError("a bound must lie between 1 and 2^64")
        words = self.uint64(size)
        if bound == 1 << 64:
            return words
        limit = (1 << 64) - (1 << 64) % bound
        if limit < 1 << 64:
            each = size // max(1, len(self._which))
            rejected = np.flatnonzero(words >= np.uint64(limit))
            while rejected.size:
                words[rejected] = self.rows(rejected // each).uint64(rejected.size)
                rejected = rejected[words[rejected] >= np.uint64(limit)]
        np.remainder(words, np.uint64(bound), out=words)
        return words

    def bytes(self, size: int) -> Never:
        """Refused: bytes are no row's."""
        raise InternalError(f"{size} random bytes were asked for of no row in particular")

    def permutation(self, size: int) -> Never:
        """Refused: an order of rows is no row's own."""
        raise InternalError(f"a random order of {size} was asked for, which is no row's own")

    def derive(self, *label: str | int | builtins.bytes) -> Never:
        """Refused: a derived stream would be the same for all rows."""
        raise InternalError(f"a stream for {label!r} was asked for, which is no row's own")


def _cipher(key: builtins.bytes) -> Any:
    return Cipher(algorithms.AES(key), modes.ECB()).encryptor()  # noqa: S305 - of counters and MACs, never of data


def _encrypted(cipher: Any, blocks: NDArray[Any]) -> NDArray[np.uint64]:
    """AES of each block; shape (n, 2)."""
    clear = np.ascontiguousarray(blocks).view(np.uint8).reshape(-1)
    found = np.empty(clear.size // 8 + _WORDS, dtype="<u8")  # the cipher asks for a block of slack
    cipher.update_into(clear.data, found.view(np.uint8).data)
    return found[:-_WORDS].reshape(-1, _WORDS)


def _cbc_mac(cipher: Any, messages: Bytes) -> Bytes:
    """CBC-MAC of messages of one length, a whole number of blocks, for which it is a pseudorandom function."""
    found = np.zeros((len(messages), _WORDS), dtype="<u8")
    for start in range(0, messages.shape[1], _BLOCK):
        block = np.ascontiguousarray(messages[:, start : start + _BLOCK]).view("<u8")
        found = _encrypted(cipher, found ^ block)
    return found.view(np.uint8).reshape(len(messages), _BLOCK)


def _ranks(which: NDArray[np.int64]) -> NDArray[np.uint64]:
    """How many times each number came before, where numbers ascend."""
    if len(which) < 2 or bool(np.all(which[1:] > which[:-1])):
        return np.zeros(len(which), dtype=np.uint64)
    return (np.arange(len(which)) - np.searchsorted(which, which)).astype(np.uint64)
