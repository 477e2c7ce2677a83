"""Authenticated bits of which one holder knows all, and can prove relations to the other.

Who knows bit x has a code M on it, the other a key K for each and one key Δ for all:

    M = K ⊕ x·Δ.

XORs and public bits are computed locally. With nothing of the other's such bits are shared like others, too:
`AuthenticatedBits` of x at the one and 0 at the other.

Source: Nielsen, Nordholt, Orlandi and Burra, CRYPTO 2012, section 3; Yang, Sarkar, Weng and Wang, CCS 2021, section 2.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from crypto.primitives.shares.additive import read_only
from crypto.primitives.shares.authenticated import AuthenticatedBits, Bits, Tags


@dataclass(frozen=True, eq=False, repr=False)
class KnownBits:
    """What one of two has of planes of such bits.

    Args:
        values: The bits, shape (planes, number), uint8, at who knows them; zeros at the other. Kept as read-only
            view.
        codes: Of the same shape, uint64: M at who knows the bits, K at the other; likewise.
        key: 0 at who knows the bits, Δ at the other.
    """

    values: Bits
    codes: Tags
    key: np.uint64

    def __post_init__(self) -> None:
        if self.values.dtype != np.uint8 or self.codes.dtype != np.uint64 or self.values.ndim != 2:
            raise TypeError("known bits are planes of bits, uint8, and of codes, uint64")
        if self.values.shape != self.codes.shape:
            raise TypeError("known bits have as many codes as bits")
        object.__setattr__(self, "values", read_only(self.values))
        object.__setattr__(self, "codes", read_only(self.codes))

    @property
    def width(self) -> int:
        """How many planes."""
        return len(self.values)

    @property
    def number(self) -> int:
        """Bits of a plane."""
        return int(self.values.shape[1])

    def __xor__(self, other: KnownBits) -> KnownBits:
        return self._with(self.values ^ other.values, self.codes ^ other.codes)

    def bits(self, selection: slice | NDArray[np.int64]) -> KnownBits:
        """Some of the planes."""
        return self._with(self.values[selection], self.codes[selection])

    def replaced(self, selection: slice | NDArray[np.int64], other: KnownBits) -> KnownBits:
        """With another's planes in place of some."""
        values, codes = self.values.copy(), self.codes.copy()
        values[selection], codes[selection] = other.values, other.codes
        return self._with(values, codes)

    def inverted(self) -> KnownBits:
        """All bits turned over."""
        return self._with(self.values ^ np.uint8(not self.key), self.codes ^ self.key)

    def constant(self, bit: int) -> KnownBits:
        """One plane that holds a public bit everywhere."""
        shape = (1, self.number)
        zeros = self._with(np.zeros(shape, np.uint8), np.zeros(shape, np.uint64))
        return zeros.inverted() if bit else zeros

    def words(self, part: slice) -> KnownBits:
        """Some bits of every plane."""
        return self._with(self.values[:, part], self.codes[:, part])

    def reshaped(self, width: int) -> KnownBits:
        """The same bits, one after the other, in so many planes."""
        return self._with(self.values.reshape(width, -1), self.codes.reshape(width, -1))

    def spread(self, number: int) -> KnownBits:
        """Planes of so many bits, each of which is the first one of this one's plane."""
        return self._with(np.repeat(self.values[:, :1], number, axis=1), np.repeat(self.codes[:, :1], number, axis=1))

    def shared(self, key: np.uint64, holder: str, holders: tuple[str, str]) -> AuthenticatedBits:
        """The same bits as a share.

        Args:
            key: This holder's.
            holder: Its name.
            holders: The two, in the order that both use.
        """
        return AuthenticatedBits(self.values, self.codes ^ self.values * key, key, holder, holders)

    @staticmethod
    def stacked(parts: Sequence[KnownBits]) -> KnownBits:
        """One part's planes followed by another's, of equal length."""
        values, codes = ([getattr(each, name) for each in parts] for name in ("values", "codes"))
        return parts[0]._with(np.concatenate(values), np.concatenate(codes))

    def _with(self, values: Bits, codes: Tags) -> KnownBits:
        return KnownBits(values, codes, self.key)

    def __repr__(self) -> str:
        return f"<KnownBits of {self.width} planes>"
