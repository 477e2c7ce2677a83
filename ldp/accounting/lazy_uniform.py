"""Uniform numbers with as many bits as a comparison needs: how samplers decide exactly and fast.

A comparison of a 64-bit word with a real number is done in floating point where that cannot be wrong, by a proven
margin. The few words that lie closer to the number are compared here, exactly, with further bits where 64 do not
suffice.
"""

from __future__ import annotations

from fractions import Fraction
from typing import Final

from crypto.primitives.randomness import Randomness
from ldp.budget import exp_below

WORD: Final = 64
_PRECISE: Final = 1 + Fraction(1, 10**57)  # `exp_below` is less than the power by less than this factor


class LazyUniform:
    """A uniform number from 0 to 1 of which the first bits are known; further ones are drawn when they are needed.

    Args:
        word: Its first 64 bits.
        rng: Where further bits come from.
    """

    def __init__(self, word: int, rng: Randomness) -> None:
        self._known, self._bits, self._rng = word, WORD, rng

    def below_power(self, exponent: Fraction) -> bool:
        """Whether it is below e^−exponent.

        The power is known to some 190 bits. Where even these do not decide, with a probability of 2^-180, it is "no".

        Args:
            exponent: Not negative.
        """
        low = exp_below(-exponent)
        high = low * _PRECISE
        while True:
            scale = 1 << self._bits
            if self._known + 1 <= low * scale:
                return True
            if self._known >= high * scale or (high - low) * scale >= 1:
                return False
            self._known = self._known << WORD | int(self._rng.uint64(1)[0])
            self._bits += WORD
