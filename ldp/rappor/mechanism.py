"""RAPPOR: a Bloom filter, a permanent randomised response of it, and an instantaneous one for every report.

A text sets h of the k bits of its cohort's filter. The permanent response flips each bit with probability f/2, once and
for all: however often a user reports a text, no more than ε∞ is ever spent on it. The instantaneous response reports a
bit as one with probability q or p, after the permanent bit is one or zero; a single report spends ε1.
Source: Erlingsson, Pihur and Korolova, "RAPPOR: Randomized Aggregatable Privacy-Preserving Ordinal Response", CCS 2014,
sections 3.1 (responses), 3.2 (theorem 1: ε∞; theorem 2: ε1) and 4 (counts).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from itertools import combinations
from typing import Any, ClassVar, Final, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from crypto.primitives.randomness import Randomness
from ldp.arithmetic.dyadic import PRECISE_BITS, Dyadic
from ldp.arithmetic.packed import Rows, clean, coin_rows, column_sums, row_bytes
from ldp.blanket import Blanket
from ldp.budget import exp_below, log_above
from ldp.longitudinal.memoised import permanent_budget
from ldp.mechanism import Channel, Mechanism, Tally, some
from ldp.rappor.encoding import BloomFilters, texts_of
from ldp.reports import Field, Reports
from link.errors import ConfigurationError

Floats = NDArray[np.float64]

GOOGLE_STEPS: Final = 128
"""Google's clients decide by 7 random bits whether a permanent bit is noise: f comes in steps of 1/128."""

_LARGEST_ENUMERATED: Final = 10


@dataclass(frozen=True, slots=True, eq=False)
class BloomCounts:
    """How many users of each cohort set each bit, estimated without bias.

    Attributes:
        mechanism: Whose reports these are.
        n: How many reports.
        sizes: Shape (m,): reports of each cohort.
        counts: Shape (m, k): t_ij.
        variances: Shape (m, k): of `counts`, the draw of a cohort's users included.
    """

    mechanism: Rappor
    n: int
    sizes: NDArray[np.int64]
    counts: Floats
    variances: Floats


class Rappor(Mechanism[BloomCounts]):
    """RAPPOR by the paper's parameters; `for_budget` finds f, p and q for given ε1 and ε∞.

    `epsilon` is ε1, what one report spends, and `permanent_epsilon` ε∞. `privatise` draws as new users do, one
    report each; a client that reports again and again is a `ldp.rappor.client.RapporClient`.

    Args:
        f: The share of permanent bits that are noise: a bit is flipped with probability f/2. It is rounded up to a
            multiple of 2^-63, with Google's clients of 1/128.
        p: The probability that a permanent zero is reported as one.
        q: The probability that a permanent one is reported as one, above p.
        bits: k, the length of a Bloom filter.
        hashes: h, how many bits a text sets.
        cohorts: m.
        google: Hashes, permanent responses and bit order of Google's clients; filters have 32 bits at most.

    Raises:
        ConfigurationError: A parameter is out of its range, or one report would spend more than is allowed.
    """

    name: ClassVar[str] = "rappor"

    def __init__(
        self,
        f: float | Fraction,
        p: float | Fraction = 0.5,
        q: float | Fraction = 0.75,
        bits: int = 128,
        hashes: int = 2,
        cohorts: int = 64,
        google: bool = False,
    ) -> None:
        self.filters = BloomFilters(bits, hashes, cohorts, google)
        self.bits, self.hashes, self.cohorts = self.filters.bits, self.filters.hashes, self.filters.cohorts
        self.google = google
        if not all(math.isfinite(each) for each in (f, p, q)) or not (0 < f < 1 and 0 <= p < q <= 1):
            raise ConfigurationError(f"RAPPOR needs 0 < f < 1 and 0 ≤ p < q ≤ 1, not f = {f}, p = {p}, q = {q}")
        self.f = _in_steps(Fraction(f), google)
        self._flipped = Dyadic.floor(self.f / 2, PRECISE_BITS)
        self._p, self._q = Dyadic.ceil(Fraction(p), PRECISE_BITS), Dyadic.floor(Fraction(q), PRECISE_BITS)
        self.p, self.q = self._p.fraction, self._q.fraction
        self.p_star = self.p + self.f / 2 * (self.q - self.p)
        self.q_star = self.q - self.f / 2 * (self.q - self.p)
        if self.p >= self.q:
            raise ConfigurationError(f"p = {p} and q = {q} are too close to show which bits are set; move them apart")
        super().__init__(self.exact_epsilon)

    @classmethod
    def for_budget(
        cls,
        epsilon: float,
        permanent_epsilon: float,
        bits: int = 128,
        hashes: int = 1,
        cohorts: int = 64,
        google: bool = False,
    ) -> Self:
        """The RAPPOR with the least variance of rare bits that spends at most given budgets.

        f is 2 / (e^(ε∞/2h) + 1). Of the p and q that give ε1, those with q* = 1/2 are best, as in optimised unary
        encoding; where the permanent response leaves none for them, p = 0 is.

        Args:
            epsilon: ε1, of one report.
            permanent_epsilon: ε∞, of all reports of a text together; above ε1.
            bits: k, the length of a Bloom filter.
            hashes: h, how many bits a text sets. They share the budgets: a count's variance grows almost like h, so one
                is best.
            cohorts: m.
            google: As Google's clients do; rounding f to 1/128 then may cost a good part of ε∞.

        Raises:
            ConfigurationError: A budget or another parameter is out of its range.
        """
        permanent = permanent_budget(epsilon, permanent_epsilon)
        BloomFilters(bits, hashes, cohorts, google)  # refuses wrong numbers before they are used
        root = exp_below(Fraction(permanent) / (2 * hashes))
        half = _in_steps(2 / (root + 1), google) / 2
        odds = exp_below(Fraction(epsilon) / hashes)
        p_star = 1 / (odds + 1)
        spread = (Fraction(1, 2) - p_star) / (1 - 2 * half)  # q − p
        p, q = p_star - half * spread, Fraction(1, 2) + half * spread
        if p < 0:
            kept = (1 - half) / half
            p, q = Fraction(0), (odds - kept) * (kept + 1) / (kept * (odds - 1))
        return cls(2 * half, p, min(q, Fraction(1)), bits, hashes, cohorts, google)

    # -- the client's half --------------------------------------------------------------------------------------------
    @property
    def exact_epsilon(self) -> float:
        """ε1 = h·ln(q*(1 − p*) / (p*(1 − q*)))."""
        return log_above((self.q_star * (1 - self.p_star) / (self.p_star * (1 - self.q_star))) ** self.hashes)

    @property
    def permanent_epsilon(self) -> float:
        """ε∞ = 2h·ln((1 − f/2) / (f/2)): what all reports of one text together spend at most."""
        return log_above(((1 - self.f / 2) / (self.f / 2)) ** (2 * self.hashes))

    @property
    def layout(self) -> tuple[Field, ...]:
        """A cohort's number and k bits."""
        return Field(np.min_scalar_type(self.cohorts - 1).name), Field("uint8", row_bytes(self.bits))

    def _perturb(self, values: ArrayLike, rng: Randomness) -> tuple[NDArray[Any], ...]:
        texts = texts_of(values)
        cohorts = rng.integers(self.cohorts, len(texts)).astype(np.int64)
        permanent = self.permanent(self.filters.rows(texts, cohorts), rng)
        return cohorts, self.instantaneous(permanent, rng)

    def permanent(self, filters: Rows, rng: Randomness) -> Rows:
        """The permanent response: flips each bit with probability f/2, ones to zeros as well as zeros to ones."""
        return filters ^ coin_rows(self._flipped, len(filters), self.bits, rng)

    def instantaneous(self, permanent: Rows, rng: Randomness) -> Rows:
        """The instantaneous response: ones with probability q where the permanent bit is one, and p elsewhere."""
        n = len(permanent)
        of_ones = permanent & coin_rows(self._q, n, self.bits, rng)
        return of_ones | (~permanent & coin_rows(self._p, n, self.bits, rng))

    def channel(self) -> Channel:
        """Given the cohort: of every filter with h ones, and with fewer, over all 2^k strings, the first bit lowest."""
        if self.bits > _LARGEST_ENUMERATED:
            raise NotImplementedError(f"2^{self.bits} outputs are not enumerated")
        rows = []
        for ones in range(1, self.hashes + 1):
            for places in combinations(range(self.bits), ones):
                odds = [self.q_star if bit in places else self.p_star for bit in range(self.bits)]
                row = [Fraction(1)]
                for odd in odds:
                    row = [each * (1 - odd) for each in row] + [each * odd for each in row]
                rows.append(row)
        return rows

    def outcomes(self, reports: Reports) -> NDArray[np.int64]:
        """The strings of bits as numbers."""
        rows = reports.fields[1].astype(np.int64)
        numbers: NDArray[np.int64] = (rows << 8 * np.arange(rows.shape[1])).sum(axis=1)
        return numbers

    def blanket(self) -> Blanket:
        """One report, as if no bit of the filter were set; two texts' filters differ most with 2h different bits."""
        bit = Blanket.independent((1 - self.q_star) / (1 - self.p_star), self.q_star / self.p_star)
        return Blanket.joint([bit] * self.hashes)

    # -- the server's half --------------------------------------------------------------------------------------------
    @property
    def tally_shape(self) -> tuple[int, ...]:
        """A row for each cohort: its reports, then how many of them have each bit."""
        return (self.cohorts, self.bits + 1)

    def tally(self, reports: Reports) -> Tally:
        """Reports of each cohort, and how many of them have each bit set."""
        cohorts, rows = reports.fields
        order = np.argsort(cohorts, kind="stable")
        ends = np.searchsorted(cohorts[order], np.arange(self.cohorts + 1))
        table = np.zeros(self.tally_shape, dtype=np.int64)
        table[:, 0] = np.diff(ends)
        for cohort in np.flatnonzero(table[:, 0]):
            table[cohort, 1:] = column_sums(rows[order[ends[cohort] : ends[cohort + 1]]], self.bits)
        return table

    def estimate(self, tally: Tally, n: int) -> BloomCounts:
        """The bits' counts t_ij = (c_ij − p*·N_j) / (q* − p*), and their variances with the estimates put in."""
        some(n)
        sizes, seen = tally[:, :1], tally[:, 1:]
        p_star, spread = float(self.p_star), float(self.q_star - self.p_star)
        counts = (seen - p_star * sizes) / spread
        shares = np.clip(counts / np.maximum(sizes, 1), 0, 1)
        return BloomCounts(self, n, sizes[:, 0].copy(), counts, sizes * self.drawn_variance(shares))

    def drawn_variance(self, shares: Floats) -> Floats:
        """The variance of one report about a bit, of a user drawn from those who set it with the given share.

        Args:
            shares: 0 … 1, of any shape.

        Returns:
            r(1 − r)/(q* − p*)² with r = p* + share·(q* − p*), of the same shape.
        """
        p_star, spread = float(self.p_star), float(self.q_star - self.p_star)
        ones = p_star + shares * spread
        return np.asarray(ones * (1 - ones) / spread**2, dtype=np.float64)

    def variance(self, counts: Floats, sizes: NDArray[np.int64]) -> Floats:
        """The exact variances of a fixed population's t_ij, over clients' randomness.

        Args:
            counts: Shape (m, k): how many users of each cohort set each bit.
            sizes: Shape (m,): users of each cohort.

        Returns:
            Shape (m, k).
        """
        of_ones, of_zeros = (float(odds * (1 - odds)) for odds in (self.q_star, self.p_star))
        return (counts * of_ones + (sizes[:, None] - counts) * of_zeros) / float(self.q_star - self.p_star) ** 2

    def _valid(self, reports: Reports) -> bool:
        cohorts, rows = reports.fields
        return bool(np.all(cohorts < self.cohorts)) and clean(rows, self.bits)


def _in_steps(f: Fraction, google: bool) -> Fraction:
    """The least f that clients can draw, from the given one on."""
    steps = GOOGLE_STEPS if google else 1 << PRECISE_BITS - 1
    found = Fraction(math.ceil(f * steps), steps)
    if found == 1:
        raise ConfigurationError(f"f = {float(f):g} is 1 in steps of 1/{steps}: nothing would be left of the texts")
    return found
