"""Bloom filters of RAPPOR: which bits a text sets in each cohort.

Each cohort has hash functions of its own, so that two texts that share bits in one cohort rarely do so in another.
Source: Erlingsson, Pihur and Korolova, "RAPPOR: Randomized Aggregatable Privacy-Preserving Ordinal Response", CCS 2014,
sections 3.1 and 5.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ldp.arithmetic.packed import Rows, row_bytes, set_bits
from ldp.parameters import checked
from link.errors import ConfigurationError, InputDataError

GOOGLE_BITS: Final = 32
"""The longest filter of Google's clients: their permanent response has a byte of one SHA-256 digest for each bit."""

_MOST_BITS: Final = 1 << 16
_MOST_HASHES: Final = 16
_MOST_COHORTS: Final = 1 << 16


@checked
@dataclass(frozen=True, slots=True)
class BloomFilters:
    """The filters of all cohorts.

    Attributes:
        bits: k, the length of a filter.
        hashes: h, how many hash functions set a bit each; at most k/2.
        cohorts: m.
        google: Hashes as Google's clients do, one byte of an MD5 digest each; otherwise 32 bits of a BLAKE2b digest.

    Raises:
        ConfigurationError: A number is out of its range.
    """

    bits: int
    hashes: int
    cohorts: int
    google: bool = False

    def __post_init__(self) -> None:
        most = GOOGLE_BITS if self.google else _MOST_BITS
        if not 2 <= self.bits <= most:
            raise ConfigurationError(f"a Bloom filter has between 2 and {most:,} bits here, not {self.bits}")
        if not 1 <= self.hashes <= min(_MOST_HASHES, self.bits // 2):
            raise ConfigurationError(
                f"a Bloom filter of {self.bits} bits takes between 1 and {min(_MOST_HASHES, self.bits // 2)} hash "
                f"functions, not {self.hashes}"
            )
        if not 1 <= self.cohorts <= _MOST_COHORTS:
            raise ConfigurationError(f"there are between 1 and {_MOST_COHORTS:,} cohorts, not {self.cohorts}")

    def positions(self, text: str, cohort: int) -> list[int]:
        """The bits that a text sets in a cohort, one for each hash function; some may be equal."""
        data = cohort.to_bytes(4, "big") + text.encode(errors="surrogatepass")
        if self.google:
            digest = hashlib.md5(data, usedforsecurity=False).digest()
            return [byte % self.bits for byte in digest[: self.hashes]]
        digest = hashlib.blake2b(data, digest_size=4 * self.hashes).digest()
        words = (digest[start : start + 4] for start in range(0, len(digest), 4))
        return [int.from_bytes(word, "little") * self.bits >> 32 for word in words]

    def rows(self, texts: Sequence[str], cohorts: NDArray[np.int64]) -> Rows:
        """The filters of users.

        Args:
            texts: n values.
            cohorts: Shape (n,): the users' cohorts.

        Returns:
            Shape (n, ⌈k / 8⌉).
        """
        known: dict[str, int] = {}
        codes = np.fromiter((known.setdefault(text, len(known)) for text in texts), np.int64, len(texts))
        pairs, inverse = np.unique(codes * self.cohorts + cohorts, return_inverse=True)
        distinct = list(known)
        places = self._places((distinct[pair // self.cohorts], pair % self.cohorts) for pair in pairs.tolist())
        table = np.zeros((len(pairs), row_bytes(self.bits)), dtype=np.uint8)
        for column in places.T:
            set_bits(table, column, np.ones(len(table), dtype=np.bool_))
        return table[inverse]

    def design(self, candidates: Sequence[str]) -> Any:
        """Which bits of which cohort each candidate sets.

        Args:
            candidates: S texts.

        Returns:
            A sparse matrix of ones in column form, shape (m·k, S); row j·k + i is bit i of cohort j.
        """
        from scipy import sparse  # which clients do without

        cohorts = range(self.cohorts)
        places = self._places((text, cohort) for text in candidates for cohort in cohorts)
        rows = places.reshape(len(candidates), self.cohorts, self.hashes) + np.arange(self.cohorts)[:, None] * self.bits
        columns = np.repeat(np.arange(len(candidates)), self.cohorts * self.hashes)
        matrix = sparse.csc_array(
            (np.ones(columns.size), (rows.ravel(), columns)), shape=(self.cohorts * self.bits, len(candidates))
        )
        matrix.data[:] = 1.0  # where two hash functions set the same bit, it is set once
        return matrix

    def _places(self, pairs: Iterable[tuple[str, int]]) -> NDArray[np.int64]:
        found = [self.positions(text, cohort) for text, cohort in pairs]
        return np.array(found, dtype=np.int64).reshape(len(found), self.hashes)


def texts_of(values: ArrayLike) -> list[str]:
    """Values as a list of texts.

    Raises:
        InputDataError: One of them is no text.
    """
    array = np.asarray(values, dtype=object)
    if array.ndim != 1 or not all(isinstance(text, str) for text in array):
        raise InputDataError("RAPPOR encodes a list of texts; write numbers and other values as texts first")
    texts: list[str] = array.tolist()
    return texts
