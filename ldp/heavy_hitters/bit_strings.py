"""Values as bit strings of one length, which protocols can cut into prefixes and fragments.

Many strings are an array of 32-bit words, the first bit highest; a few are whole numbers of Python.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ldp.parameters import checked
from link.errors import ConfigurationError, InputDataError

Words = NDArray[np.uint64]
"""Shape (n, ⌈bits / 32⌉): 32 bits in each word, filled up with zeros behind the last bit."""

WORD: Final = 32

_MOST_BYTES: Final = 256
# Behind the first byte of a character come up to three from 0x80 to 0xBF; which of them are right depends on the first.
_CONTINUED: Final = (b"\x80", b"\xbf")
_MOST_CONTINUED: Final = 3
_LONGEST_INTEGER: Final = 64


class Strings(ABC):
    """A public way to write values as strings of `bits` bits."""

    @property
    @abstractmethod
    def bits(self) -> int:
        """The length of a string."""

    @abstractmethod
    def encode(self, values: ArrayLike) -> Words:
        """The strings of values.

        Args:
            values: Shape (n,).

        Raises:
            InputDataError: A value has no string.
        """

    @abstractmethod
    def decode(self, number: int) -> str | int:
        """The value of a string, given as a number, for which `plausible` holds at full length."""

    @abstractmethod
    def plausible(self, prefix: int, length: int) -> bool:
        """Whether a prefix of `length` bits may begin the string of a value."""


@checked
@dataclass(frozen=True, slots=True)
class Integers(Strings):
    """Whole numbers from 0 to 2^width − 1, the highest bit first.

    Attributes:
        width: Bits of a number, 1 … 64.

    Example:
        >>> universe = Integers(width=8)
        >>> universe.decode(200), universe.bits
        (200, 8)
    """

    width: int

    def __post_init__(self) -> None:
        if not 1 <= self.width <= _LONGEST_INTEGER:
            raise ConfigurationError(f"whole numbers have between 1 and {_LONGEST_INTEGER} bits, not {self.width}")

    @property
    def bits(self) -> int:
        """The width."""
        return self.width

    def encode(self, values: ArrayLike) -> Words:
        """The numbers' words."""
        array = np.asarray(values)
        if array.ndim != 1 or (array.size and array.dtype.kind not in "iu"):
            raise InputDataError(f"values must be a list of whole numbers from 0 to 2^{self.width} - 1")
        if array.size and (int(array.min()) < 0 or int(array.max()) >> self.width):
            raise InputDataError(f"a value is outside 0 to 2^{self.width} - 1; give the numbers more bits")
        left = array.astype(np.uint64) << np.uint64(_LONGEST_INTEGER - self.width)
        return np.stack([left >> np.uint64(WORD), left & np.uint64(0xFFFF_FFFF)], axis=1)[:, : word_count(self.width)]

    def decode(self, number: int) -> int:
        """The number itself."""
        return number

    def plausible(self, prefix: int, length: int) -> bool:  # noqa: ARG002 (the question is one for texts)
        """All are."""
        return True


@checked
@dataclass(frozen=True, slots=True)
class Texts(Strings):
    """Texts of at most `size` bytes in UTF-8, filled up with zero bytes.

    Texts are compared byte for byte: bring them to one case and one Unicode form, and cut long ones, beforehand.

    Attributes:
        size: Bytes of the longest text, 1 … 256.
    """

    size: int

    def __post_init__(self) -> None:
        if not 1 <= self.size <= _MOST_BYTES:
            raise ConfigurationError(f"texts have between 1 and {_MOST_BYTES} bytes, not {self.size}")

    @property
    def bits(self) -> int:
        """Eight for each byte."""
        return 8 * self.size

    def encode(self, values: ArrayLike) -> Words:
        """The texts' bytes as words."""
        texts = np.asarray(values, dtype=object)
        if texts.ndim != 1 or not all(isinstance(text, str) for text in texts):
            raise InputDataError("values must be a list of texts")
        try:
            encoded = [text.encode() for text in texts]
        except UnicodeEncodeError:
            raise InputDataError("a text holds half a character (a lone surrogate); correct or leave it out") from None
        longest = max(map(len, encoded), default=0)
        if longest > self.size:
            raise InputDataError(
                f"a text has {longest} bytes in UTF-8, more than the {self.size} agreed upon; cut it, or allow more"
            )
        if any(b"\0" in each for each in encoded):
            raise InputDataError("a text holds the character U+0000, which ends texts here; leave it out")
        padded = 4 * word_count(self.bits)
        data = b"".join(each.ljust(padded, b"\0") for each in encoded)
        return np.frombuffer(data, ">u4").reshape(len(texts), padded // 4).astype(np.uint64)

    def decode(self, number: int) -> str:
        """The text in front of the zero bytes."""
        return number.to_bytes(self.size, "big").rstrip(b"\0").decode()

    def plausible(self, prefix: int, length: int) -> bool:
        """Whether some text goes on like this, in UTF-8, with nothing but zeros behind a zero byte."""
        size, rest = divmod(length, 8)
        if rest:  # some next byte must fit
            free = 8 - rest
            return any(self.plausible(prefix << free | bits, length + free) for bits in range(1 << free))
        text, ended, padding = prefix.to_bytes(size, "big").partition(b"\0")
        return not any(padding) and _begins_text(text, 0 if ended else self.size - size)


def _begins_text(data: bytes, more: int) -> bool:
    """Whether at most `more` bytes make it UTF-8: if any can, then as many of the least or of the largest ones."""
    for missing in range(min(more, _MOST_CONTINUED) + 1):
        for byte in _CONTINUED:
            try:
                (data + byte * missing).decode()
            except UnicodeDecodeError:
                continue
            return True
    return False


def word_count(bits: int) -> int:
    """How many words a string takes."""
    return -(-bits // WORD)


def words_of(numbers: Iterable[int], bits: int) -> Words:
    """Strings that are given as numbers of `bits` bits, as words."""
    size = 4 * word_count(bits)
    data = b"".join((number << 8 * size - bits).to_bytes(size, "big") for number in numbers)
    return np.frombuffer(data, ">u4").reshape(-1, size // 4).astype(np.uint64)


def prefixes(words: Words, length: int) -> Words:
    """The first `length` bits of strings, at least one; shape (n, ⌈length / 32⌉)."""
    cut = words[:, : word_count(length)].copy()
    cut[:, -1] &= np.uint64((0xFFFF_FFFF << -length % WORD) & 0xFFFF_FFFF)
    return cut


def fragments(words: Words, start: int, width: int) -> NDArray[np.int64]:
    """The `width` ≤ 32 bits of strings from bit `start` on, as numbers; shape (n,)."""
    first, offset = divmod(start, WORD)
    window = words[:, first] << np.uint64(WORD)
    if first + 1 < words.shape[1]:
        window = window | words[:, first + 1]
    number = window >> np.uint64(2 * WORD - offset - width) & np.uint64((1 << width) - 1)
    return number.astype(np.int64)
