"""A frequency oracle by which a client reports its value with a secret probability g, and covers for it otherwise.

Secret sampling makes a report of ε₀ spend ln(1 + g·(e^ε₀ − 1)) only, as long as nobody learns who was sampled
(`ldp.streams.composition.amplified`). A collector sees who sends nothing, or a blank: then a report that did come
spends all of ε₀. So a client that is not sampled sends a report as well, of a value that it draws uniformly. That hides
at least as much as the theorem asks for, and more the fewer values there are (`ldp.streams.composition.covered`). It
holds against anyone who sees the report, the collector included, and takes no trust in anybody but the client's own
coin. Who learns the coin learns what a report of ε₀ reveals.

The coin is no gift: an oracle that spends the same ε without one is about as exact, or more. Take sampling where it
must be deniable that a report was about one's own value at all.

Source: Li, Qardaji and Su, "On Sampling, Anonymization, and Differential Privacy", ASIACCS 2012, theorem 1.
"""

from __future__ import annotations

from fractions import Fraction
from typing import Any, ClassVar, Final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from crypto.primitives.randomness import Randomness
from ldp.arithmetic.dyadic import PRECISE_BITS, Dyadic
from ldp.arithmetic.sampling import Bits, coin_flips
from ldp.blanket import Blanket
from ldp.budget import LARGEST_EPSILON, check_epsilon
from ldp.domain import Codes, Domain, DomainLike
from ldp.estimate import Estimate
from ldp.frequency_oracle import Floats, FrequencyOracle
from ldp.longitudinal.memoised import MemoisedMechanism
from ldp.mechanism import Channel, Tally
from ldp.registry import oracle as oracle_of
from ldp.reports import Field, Reports
from ldp.streams.composition import before_covering, covered
from link.errors import ConfigurationError

MOST_BITS: Final = 32


class Sampled(FrequencyOracle):
    """A frequency oracle that hears of a client's value with probability g, and of a uniform one otherwise.

    `epsilon` is what a report spends, less than that of the oracle inside.

    Args:
        domain: The domain, its size, or the texts of its values.
        oracle: What makes the reports, for values 0 … d − 1; one that draws every report anew.
        probability: g, above 0 and below 1, a fraction of a power of two up to 2^32, which bits hit exactly.

    Raises:
        ConfigurationError: The probability is none of these, or the oracle does not fit.
    """

    name: ClassVar[str] = "sampled"

    def __init__(self, domain: DomainLike, oracle: FrequencyOracle, probability: Fraction) -> None:
        self._coin = Dyadic.floor(check_probability(probability), PRECISE_BITS)
        if not isinstance(oracle, FrequencyOracle) or isinstance(oracle, MemoisedMechanism | Sampled):
            raise ConfigurationError("sampling takes a frequency oracle that draws every report anew")
        size = Domain.of(domain).size
        if oracle.domain != Domain(size):
            raise ConfigurationError("the oracle behind a sample takes the numbers of the domain's values")
        super().__init__(domain, covered(oracle.epsilon, probability, size))
        self.oracle, self.probability = oracle, Fraction(probability)

    @classmethod
    def for_budget(
        cls, name: str, domain: DomainLike, epsilon: float, probability: Fraction, **parameters: Any
    ) -> Sampled:
        """The sampled oracle whose reports spend ε at most.

        Args:
            name: An oracle of `ldp.registry`, or "auto".
            domain: The domain, its size, or the texts of its values.
            epsilon: What a report may spend.
            probability: g, as above.
            **parameters: Further parameters of that oracle.

        Raises:
            ConfigurationError: A parameter is wrong, or the coin alone hides the value better than ε asks for.
        """
        known = Domain.of(domain)
        inner = before_covering(check_epsilon(epsilon), check_probability(probability), known.size)
        if inner > LARGEST_EPSILON:
            most = covered(LARGEST_EPSILON, probability, known.size)
            raise ConfigurationError(
                f"where a client reports its value among {known.size:,} with a probability of {probability}, reports "
                f"spend {most:.4g} at most, and not {epsilon:g}; take a larger probability, or a smaller epsilon"
            )
        return cls(known, oracle_of(name, Domain(known.size), inner, **parameters), probability)

    # -- the client's half --------------------------------------------------------------------------------------------
    @property
    def exact_epsilon(self) -> float:
        """`covered` for the ε₀ that the oracle really spends."""
        return min(covered(self.oracle.exact_epsilon, self.probability, self.domain.size), self.epsilon)

    @property
    def layout(self) -> tuple[Field, ...]:
        """As the oracle's: nothing distinguishes a cover report from another."""
        return self.oracle.layout

    def _perturb(self, values: ArrayLike, rng: Randomness) -> tuple[NDArray[Any], ...]:
        codes = self.domain.codes(values)
        sampled = coin_flips(self._coin, len(codes), rng)
        cover = rng.integers(self.domain.size, len(codes)).astype(np.int64)
        return self.oracle._perturb(np.where(sampled, codes, cover), rng)

    def channel(self) -> Channel:
        """The oracle's row with probability g, and for the rest the mean of all rows."""
        rows, g = self.oracle.channel(), self.probability
        cover = [(1 - g) * sum(column, Fraction(0)) / len(rows) for column in zip(*rows, strict=True)]
        return [[g * own + other for own, other in zip(row, cover, strict=True)] for row in rows]

    def outcomes(self, reports: Reports) -> NDArray[np.int64]:
        """As the oracle's."""
        return self.oracle.outcomes(reports)

    def supports(self, reports: Reports, values: Codes) -> Bits:
        """As the oracle says."""
        return self.oracle.supports(reports, values)

    def blanket(self) -> Blanket:
        """The oracle's: what is drawn before a report is made can only blur it further."""
        return self.oracle.blanket()

    # -- the server's half --------------------------------------------------------------------------------------------
    @property
    def tally_shape(self) -> tuple[int, ...]:
        """As the oracle's."""
        return self.oracle.tally_shape

    def tally(self, reports: Reports) -> Tally:
        """As the oracle's."""
        return self.oracle.tally(reports)

    def estimate(self, tally: Tally, n: int) -> Estimate:
        """Unbiased counts; their variances are the oracle's and that of what was drawn, both over g²."""
        raw = self.oracle.estimate(tally, n)
        counts = self._corrected(raw.counts, n)
        variances = (raw.variances + self._drawing(np.clip(counts, 0, n), n)) / float(self.probability) ** 2
        return Estimate(self.domain, n, counts, variances)

    def unbiased(self, tally: Tally, n: int) -> Floats:
        """(ĉ − n·(1 − g)/d) / g, for the count ĉ of reported values."""
        return self._corrected(self.oracle.unbiased(tally, n), n)

    def variance(self, counts: Floats, n: int) -> Floats:
        """(V(E[reported]) + Σ a(1 − a)·own + b(1 − b)·others) / g²; a and b are the chances of a report by either.

        Exact where the oracle's variance V is a sum over users. Where public functions are drawn (flh, cms, hcms), what
        collisions add lacks a part of about 1/n of it.
        """
        own, other = self._chances
        counts = np.asarray(counts, dtype=np.float64)
        reported = counts * own + (n - counts) * other
        return (self.oracle.variance(reported, n) + self._drawing(counts, n)) / float(self.probability) ** 2

    def _valid(self, reports: Reports) -> bool:
        return self.oracle._valid(reports)

    @property
    def _chances(self) -> tuple[float, float]:
        """How probably a report is made of a value if it is its client's, and if it is not."""
        cover = (1 - self.probability) / self.domain.size
        return float(self.probability + cover), float(cover)

    def _corrected(self, reported: Floats, n: int) -> Floats:
        counts: Floats = (reported - n * self._chances[1]) / float(self.probability)
        return counts

    def _drawing(self, counts: Floats, n: int) -> Floats:
        own, other = self._chances
        variances: Floats = counts * own * (1 - own) + (n - counts) * other * (1 - other)
        return variances


def check_probability(probability: Fraction) -> Fraction:
    """A probability that bits hit exactly.

    Raises:
        ConfigurationError: It is none.
    """
    found = Fraction(probability)
    bits = found.denominator.bit_length() - 1
    if not 0 < found < 1 or found.denominator != 1 << bits or bits > MOST_BITS:
        raise ConfigurationError(
            "a probability of sampling lies between 0 and 1 and is a fraction of a power of two up to 2^32, such as "
            f"1/8 or 0.375; {float(found):g} is not"
        )
    return found
