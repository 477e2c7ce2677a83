"""Unary encodings: one bit a value of the domain, each flipped on its own.

    SUE   symmetric unary encoding, basic RAPPOR with one hash and one cohort: p + q = 1
    OUE   optimised unary encoding: p = 1/2, the least variance that unary encodings reach
    THE   thresholding with histogram encoding: Laplace noise on each bit, sent as 'above θ'; a unary encoding too

Source: Wang, Blocki, Li and Jha, USENIX Security 2017, sections 4.2 and 4.3; Erlingsson, Pihur and Korolova, CCS 2014.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from fractions import Fraction
from typing import Any, ClassVar, Final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from crypto.primitives.randomness import Randomness
from ldp.arithmetic.dyadic import Dyadic, bits_for
from ldp.arithmetic.packed import bits_at, clean, coin_rows, column_sums, row_bytes, set_bits
from ldp.arithmetic.sampling import Bits, coin_flips
from ldp.blanket import Blanket
from ldp.budget import exp_below, log_above
from ldp.domain import Codes, DomainLike
from ldp.frequency_oracle import PureOracle
from ldp.mechanism import Channel, Tally
from ldp.reports import Field, Reports

_LARGEST_ENUMERATED: Final = 8


class UnaryEncoding(PureOracle):
    """Sends d bits: the true value's is 1 with probability p, each other with probability q.

    A value changes two bits, so ε = ln(p(1 − q) / ((1 − p)q)).

    Args:
        domain: The domain, its size, or the texts of its values.
        epsilon: The privacy budget ε.
    """

    def __init__(self, domain: DomainLike, epsilon: float) -> None:
        super().__init__(domain, epsilon)
        self._p, self._q = self._probabilities()
        self.p, self.q = self._p.fraction, self._q.fraction

    @abstractmethod
    def _probabilities(self) -> tuple[Dyadic, Dyadic]:
        """Of a one at the true value, and at another one."""

    @property
    def exact_epsilon(self) -> float:
        """ln(p(1 − q) / ((1 − p)q))."""
        return log_above(self.p * (1 - self.q) / ((1 - self.p) * self.q))

    @property
    def layout(self) -> tuple[Field, ...]:
        """⌈d / 8⌉ bytes of bits."""
        return (Field("uint8", row_bytes(self.domain.size)),)

    def _perturb(self, values: ArrayLike, rng: Randomness) -> tuple[NDArray[Any], ...]:
        codes = self.domain.codes(values)
        rows = coin_rows(self._q, len(codes), self.domain.size, rng)
        set_bits(rows, codes, coin_flips(self._p, len(codes), rng))
        return (rows,)

    def _valid(self, reports: Reports) -> bool:
        return clean(reports.fields[0], self.domain.size)

    def tally(self, reports: Reports) -> Tally:
        """How often each bit is set."""
        return column_sums(reports.fields[0], self.domain.size)

    def channel(self) -> Channel:
        """Over all 2^d strings of bits, the first value's bit lowest."""
        d = self.domain.size
        if d > _LARGEST_ENUMERATED:
            raise NotImplementedError(f"2^{d} outputs are not enumerated")
        ones = [[self.p if v == x else self.q for v in range(d)] for x in range(d)]
        return [[_likelihood(row, bits) for bits in range(1 << d)] for row in ones]

    def outcomes(self, reports: Reports) -> NDArray[np.int64]:
        """The strings of bits as numbers."""
        return reports.fields[0][:, 0].astype(np.int64)

    def supports(self, reports: Reports, values: Codes) -> Bits:
        """The values whose bits are set."""
        return bits_at(reports.fields[0], values)

    def blanket(self) -> Blanket:
        """All bits drawn with q, weight (1 − p)/(1 − q): a one favours its own value by p / q, a zero by the weight."""
        return Blanket.independent((1 - self.p) / (1 - self.q), self.p / self.q)


def _likelihood(ones: list[Fraction], bits: int) -> Fraction:
    """Of a string of independent bits, the first lowest, given each one's probability to be set."""
    return math.prod((one if bits >> place & 1 else 1 - one for place, one in enumerate(ones)), start=Fraction(1))


class SymmetricUnaryEncoding(UnaryEncoding):
    """SUE: p = e^(ε/2) / (e^(ε/2) + 1) and q = 1 − p.

    Example:
        >>> mechanism = SymmetricUnaryEncoding(["bread", "milk"], epsilon=1.0)
        >>> len(mechanism.privatise(["milk", "milk"]))
        2
    """

    name: ClassVar[str] = "sue"

    def _probabilities(self) -> tuple[Dyadic, Dyadic]:
        root = exp_below(Fraction(self.epsilon) / 2)
        p = Dyadic.floor(root / (root + 1), bits_for(self.epsilon))
        return p, p.complement


class OptimisedUnaryEncoding(UnaryEncoding):
    """OUE: p = 1/2 and q = 1 / (e^ε + 1)."""

    name: ClassVar[str] = "oue"

    def _probabilities(self) -> tuple[Dyadic, Dyadic]:
        bits = bits_for(self.epsilon)
        return Dyadic(1 << bits - 1, bits), Dyadic.ceil(1 / (exp_below(self.epsilon) + 1), bits)
