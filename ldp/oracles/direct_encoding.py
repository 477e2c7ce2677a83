"""Direct encoding (DE), also called generalised or k-ary randomised response (GRR, k-RR): the value or another one.

Source: Wang, Blocki, Li and Jha, USENIX Security 2017, section 4.1; Kairouz, Oh and Viswanath, NIPS 2014.
"""

from __future__ import annotations

from fractions import Fraction
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from crypto.primitives.randomness import Randomness
from ldp.arithmetic.dyadic import PRECISE_BITS
from ldp.arithmetic.sampling import Bits
from ldp.blanket import Blanket
from ldp.budget import exp_below, log_above
from ldp.domain import Codes, DomainLike
from ldp.frequency_oracle import PureOracle
from ldp.mechanism import Channel
from ldp.numbered_reports import NumberedReports
from ldp.reports import Reports


class DirectEncoding(NumberedReports, PureOracle):
    """Keeps the value with probability e^ε / (e^ε + d − 1), and otherwise reports another one, uniformly.

    The best oracle for small domains, d < 3·e^ε + 2. One uniform 64-bit word a value decides: each other value has
    ⌈2^64 / (e^ε + d − 1)⌉ of the words, the true one all the rest, so the ratio is at most e^ε.

    Args:
        domain: The domain, its size, or the texts of its values.
        epsilon: The privacy budget ε.
    """

    name: ClassVar[str] = "grr"

    def __init__(self, domain: DomainLike, epsilon: float) -> None:
        super().__init__(domain, epsilon)
        words, d = 1 << PRECISE_BITS, self.domain.size
        self._other = -(-words // (exp_below(self.epsilon) + d - 1))
        self._kept = words - (d - 1) * self._other
        self.p, self.q = Fraction(self._kept, words), Fraction(self._other, words)

    @property
    def exact_epsilon(self) -> float:
        """ln(p / q)."""
        return log_above(self.p / self.q)

    def _perturb(self, values: ArrayLike, rng: Randomness) -> tuple[NDArray[Any], ...]:
        codes = self.domain.codes(values)
        words = rng.uint64(len(codes))
        kept = words < np.uint64(self._kept)
        # The rest of the words is cut into d − 1 equal pieces, one for each value but the true one.
        others = ((words - np.uint64(self._kept)) // np.uint64(self._other)).astype(np.int64)
        others += others >= codes
        return (np.where(kept, codes, others),)

    def channel(self) -> Channel:
        """The diagonal holds p, every other place q."""
        size = range(self.domain.size)
        return [[self.p if y == x else self.q for y in size] for x in size]

    def supports(self, reports: Reports, values: Codes) -> Bits:
        """The value that it names."""
        found: Bits = np.equal(reports.fields[0][:, None], values)
        return found

    def blanket(self) -> Blanket:
        """Uniform over the domain, with weight d·q."""
        d = self.domain.size
        return Blanket.between(d * self.q, d * self.p)
