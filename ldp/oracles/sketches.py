"""Sketches: local hashing with a few public functions, so that a server keeps small tables instead of reports.

    FLH    fast local hashing: a function's number and a perturbed bucket
    CMS    count mean sketch: a function's number and a perturbed one-hot vector of buckets
    HCMS   Hadamard count mean sketch: a function's number and one perturbed coefficient of that vector's transform

Under all three a report supports its user's value with probability p, and another value with q over the draw of the
functions. But all users share the functions: values that collide under one of them do so for all its users, which adds
Σ_{x ≠ v} c_x² / (K(m − 1)) to the variance with K functions to m buckets. It grows with n², so K must grow with n.
For amplification by shuffling, too, the functions are fixed and known to all: nothing is averaged over them, and the
blankets are those of two values that no function sends to one bucket. Where some do, the guarantee is only better.
Source: Cormode, Maddock and Maple, "Frequency Estimation under Local Differential Privacy", PVLDB 14(11), 2021 (FLH);
Apple Differential Privacy Team, "Learning with Privacy at Scale", 2017 (CMS, HCMS: algebra turns their estimators into
this form).
"""

from __future__ import annotations

from fractions import Fraction
from typing import Any, ClassVar, Final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from crypto.primitives.randomness import Randomness
from ldp.arithmetic.dyadic import PRECISE_BITS, Dyadic, bits_for
from ldp.arithmetic.hadamard import parity, walsh_hadamard
from ldp.arithmetic.hashing import HashFamily
from ldp.arithmetic.packed import bits_at, clean, coin_rows, column_sums, row_bytes, set_bits
from ldp.arithmetic.sampling import Bits, coin_flips
from ldp.blanket import Blanket
from ldp.budget import exp_below, log_above
from ldp.domain import Codes, DomainLike
from ldp.estimate import Estimate
from ldp.frequency_oracle import Floats, PureOracle
from ldp.mechanism import Channel, Tally, some
from ldp.oracles.direct_encoding import DirectEncoding
from ldp.oracles.local_hashing import best_buckets
from ldp.reports import Field, Reports
from link.errors import ConfigurationError

_PUBLIC: Final = "the public functions of sketches"
_LARGEST_TABLE: Final = 1 << 28  # cells of eight bytes
_BLOCK: Final = 1 << 21  # hashes that are evaluated together


class Sketch(PureOracle):
    """Local hashing with K public functions to m buckets.

    Args:
        domain: The domain, its size, or the texts of its values.
        epsilon: The privacy budget ε.
        functions: K.
        buckets: m.
        salt: Which K functions; public, the same at clients and servers.

    Attributes:
        family: What the functions were drawn from.
        seeds: The K functions.
    """

    def __init__(self, domain: DomainLike, epsilon: float, functions: int, buckets: int, salt: int) -> None:
        super().__init__(domain, epsilon)
        if not 1 <= functions <= 1 << 24:
            raise ConfigurationError(f"a sketch takes between 1 and 2^24 functions, not {functions}")
        if not 2 <= buckets <= 1 << 24:
            raise ConfigurationError(f"a sketch takes between 2 and 2^24 buckets, not {buckets}")
        if (cells := functions * buckets) > _LARGEST_TABLE:
            raise ConfigurationError(
                f"a sketch of {functions:,} functions to {buckets:,} buckets would count in {cells:,} cells, more than "
                f"{_LARGEST_TABLE:,}; take fewer functions or buckets, or olh"
            )
        self.functions, self.buckets, self.salt = functions, buckets, salt
        self.family = HashFamily(self.domain.size, buckets)
        self.seeds = self.family.draw(functions, Randomness.from_seed(salt).derive(_PUBLIC))

    @property
    def tally_shape(self) -> tuple[int, ...]:
        """A table with a row for each function."""
        return (self.functions, self.buckets)

    @property
    def _number(self) -> Field:
        return Field(np.min_scalar_type(self.functions - 1).name)

    def _hashed(self, values: ArrayLike, rng: Randomness) -> tuple[NDArray[np.int64], Codes]:
        """A uniform function for each value, by its number, and the value's bucket under it."""
        codes = self.domain.codes(values)
        numbers = rng.integers(self.functions, len(codes)).astype(np.int64)
        return numbers, self.family.buckets(self.seeds[numbers], codes)

    def buckets_of(self, reports: Reports, values: Codes) -> Codes:
        """The bucket of each value under the function of each report, shape (n, k)."""
        return self.family.buckets(self.seeds[reports.fields[0]][:, None, :], values)

    def unbiased(self, tally: Tally, n: int) -> Floats:
        """(C_v − n·q) / (p − q), where C_v adds up the buckets of v under all functions."""
        return self.unbiased_of(np.arange(self.domain.size), tally, n)

    def unbiased_of(self, codes: Codes, tally: Tally, n: int) -> Floats:
        """The estimates of some values alone, where the domain is too large to look at each; shape as `codes`."""
        table = self._supports(tally).ravel()
        row = np.arange(self.functions) * self.buckets
        supports = np.empty(len(codes), dtype=np.int64)
        step = max(1, _BLOCK // self.functions)
        for start in range(0, len(codes), step):
            part = slice(start, start + step)
            places = self.family.buckets(self.seeds[None, :, :], codes[part, None])
            places += row
            supports[part] = table[places].sum(axis=1)
        return super().unbiased(self._of_all(supports, n), n)

    def _supports(self, tally: Tally) -> Tally:
        """How many reports of each function support each of its buckets."""
        return tally

    def _of_all(self, gathered: Tally, n: int) -> Tally:  # noqa: ARG002 (the Hadamard sketch needs it)
        """How many reports support each value, from what `_supports` gave for its buckets, added up."""
        return gathered

    def variance(self, counts: Floats, n: int) -> Floats:
        """That of a pure oracle, and of collisions, over the draw of the functions too."""
        squares = np.square(np.asarray(counts, dtype=np.float64))
        collisions: Floats = (squares.sum() - squares) / self._pairs
        return super().variance(counts, n) + collisions

    def estimate(self, tally: Tally, n: int) -> Estimate:
        """Unbiased counts, and variances whose part from collisions is not inflated by the estimates' own noise."""
        some(n)
        counts = self.unbiased(tally, n)
        alone, d = super().variance(np.clip(counts, 0, n), n), self.domain.size
        # An estimate's square exceeds the count's by its whole variance, the part from collisions included:
        # E Σ ĉ² = Σ c² + Σ alone + (d − 1)·Σ c² / pairs. Solved for Σ c², which is n²/d at least.
        squares = float((np.square(counts) - alone).sum()) / (1 + (d - 1) / self._pairs)
        own = np.clip(np.square(counts) - alone, 0, None)
        collisions = np.maximum(max(squares, n * n / d) - own, 0) / self._pairs
        return Estimate(self.domain, n, counts, alone + collisions)

    @property
    def _pairs(self) -> float:
        return self.functions * (self.buckets - 1.0)


class FastLocalHashing(Sketch):
    """FLH: local hashing, with one of K public functions instead of a function of the user's own.

    Args:
        domain: The domain, its size, or the texts of its values.
        epsilon: The privacy budget ε.
        functions: K; a server takes K·d steps for an estimate.
        buckets: g; by default the number with the least variance.
        salt: Which K functions; public, the same at clients and servers.

    Attributes:
        bucket: What perturbs a bucket.
    """

    name: ClassVar[str] = "flh"

    def __init__(
        self, domain: DomainLike, epsilon: float, functions: int = 4096, buckets: int | None = None, salt: int = 0
    ) -> None:
        chosen = best_buckets(epsilon) if buckets is None else buckets
        super().__init__(domain, epsilon, functions, chosen, salt)
        self.bucket = DirectEncoding(self.buckets, epsilon)
        self.p, self.q = self.bucket.p, Fraction(1, self.buckets)

    @property
    def exact_epsilon(self) -> float:
        """That of direct encoding over the buckets."""
        return self.bucket.exact_epsilon

    @property
    def layout(self) -> tuple[Field, ...]:
        """A function's number and a bucket."""
        return (self._number, *self.bucket.layout)

    def _perturb(self, values: ArrayLike, rng: Randomness) -> tuple[NDArray[Any], ...]:
        numbers, buckets = self._hashed(values, rng)
        return numbers, self.bucket.privatise(buckets, rng).fields[0]

    def _valid(self, reports: Reports) -> bool:
        return bool(np.all(reports.fields[0] < self.functions) and np.all(reports.fields[1] < self.buckets))

    def tally(self, reports: Reports) -> Tally:
        """How often each bucket of each function is reported."""
        places = reports.fields[0].astype(np.int64) * self.buckets + reports.fields[1]
        counts = np.bincount(places, minlength=self.functions * self.buckets)
        return counts.reshape(self.tally_shape).astype(np.int64, copy=False)

    def channel(self) -> Channel:
        """Of the bucket, given a function that sends value v to bucket v mod g."""
        p, other, g = self.bucket.p, self.bucket.q, self.buckets
        return [[p if y == v % g else other for y in range(g)] for v in range(self.domain.size)]

    def supports(self, reports: Reports, values: Codes) -> Bits:
        """The values that its function sends to its bucket."""
        found: Bits = np.equal(self.buckets_of(reports, values), reports.fields[1][:, None])
        return found

    def blanket(self) -> Blanket:
        """That of direct encoding over the buckets: two values may meet under none of the functions."""
        return self.bucket.blanket()


class CountMeanSketch(Sketch):
    """CMS: symmetric unary encoding of the value's bucket under one of K public functions.

    Args:
        domain: The domain, its size, or the texts of its values.
        epsilon: The privacy budget ε.
        functions: K.
        buckets: m; a report has m bits.
        salt: Which K functions; public, the same at clients and servers.
    """

    name: ClassVar[str] = "cms"

    def __init__(
        self, domain: DomainLike, epsilon: float, functions: int = 1024, buckets: int = 1024, salt: int = 0
    ) -> None:
        super().__init__(domain, epsilon, functions, buckets, salt)
        root = exp_below(Fraction(self.epsilon) / 2)
        self._kept = Dyadic.floor(root / (root + 1), bits_for(self.epsilon))
        self.p, flipped = self._kept.fraction, self._kept.complement.fraction
        self.q = flipped + (self.p - flipped) / self.buckets

    @property
    def exact_epsilon(self) -> float:
        """That of two flipped bits."""
        return log_above((self.p / (1 - self.p)) ** 2)

    @property
    def layout(self) -> tuple[Field, ...]:
        """A function's number and m bits."""
        return self._number, Field("uint8", row_bytes(self.buckets))

    def _perturb(self, values: ArrayLike, rng: Randomness) -> tuple[NDArray[Any], ...]:
        numbers, buckets = self._hashed(values, rng)
        rows = coin_rows(self._kept.complement, len(numbers), self.buckets, rng)
        set_bits(rows, buckets, coin_flips(self._kept, len(numbers), rng))
        return numbers, rows

    def _valid(self, reports: Reports) -> bool:
        return bool(np.all(reports.fields[0] < self.functions)) and clean(reports.fields[1], self.buckets)

    def tally(self, reports: Reports) -> Tally:
        """How often each bit is set in the reports of each function."""
        numbers, rows = reports.fields
        order = np.argsort(numbers, kind="stable")
        present, starts = np.unique(numbers[order], return_index=True)
        table = np.zeros(self.tally_shape, dtype=np.int64)
        for number, part in zip(present, np.split(order, starts[1:]), strict=True):
            table[number] = column_sums(rows[part], self.buckets)
        return table

    def supports(self, reports: Reports, values: Codes) -> Bits:
        """The values whose buckets' bits are set."""
        return bits_at(reports.fields[1], self.buckets_of(reports, values))

    def blanket(self) -> Blanket:
        """All bits flipped as zeros are, as in unary encoding: two values may meet under none of the functions."""
        return Blanket.independent((1 - self.p) / self.p, self.p / (1 - self.p))


class HadamardCountMeanSketch(Sketch):
    """HCMS: one coefficient, +1 or −1, of the Hadamard transform of the bucket's one-hot vector, flipped at random.

    Args:
        domain: The domain, its size, or the texts of its values.
        epsilon: The privacy budget ε.
        functions: K.
        buckets: m, a power of two.
        salt: Which K functions; public, the same at clients and servers.
    """

    name: ClassVar[str] = "hcms"

    def __init__(
        self, domain: DomainLike, epsilon: float, functions: int = 1024, buckets: int = 1024, salt: int = 0
    ) -> None:
        super().__init__(domain, epsilon, functions, buckets, salt)
        if buckets & (buckets - 1):
            raise ConfigurationError(f"the Hadamard sketch takes a power of two of buckets, not {buckets}")
        grown = exp_below(self.epsilon)
        self._kept = Dyadic.floor(grown / (grown + 1), PRECISE_BITS)
        self.p = self._kept.fraction
        # Another value's coefficient is the same one in the same bucket, and otherwise the same for half of them.
        self.q = Fraction(1, 2) + (self.p - Fraction(1, 2)) / buckets

    @property
    def exact_epsilon(self) -> float:
        """That of one flipped sign."""
        return log_above(self.p / (1 - self.p))

    @property
    def layout(self) -> tuple[Field, ...]:
        """A function's number, and twice a coefficient's number plus its sign."""
        return self._number, Field(np.min_scalar_type(2 * self.buckets - 1).name)

    def _perturb(self, values: ArrayLike, rng: Randomness) -> tuple[NDArray[Any], ...]:
        numbers, buckets = self._hashed(values, rng)
        coefficients = rng.integers(self.buckets, len(numbers)).astype(np.int64)
        negative = parity(coefficients & buckets) ^ ~coin_flips(self._kept, len(numbers), rng)
        return numbers, 2 * coefficients + negative

    def _valid(self, reports: Reports) -> bool:
        return bool(np.all(reports.fields[0] < self.functions) and np.all(reports.fields[1] < 2 * self.buckets))

    def tally(self, reports: Reports) -> Tally:
        """The sum of the signs of each coefficient of each function."""
        places = reports.fields[0].astype(np.int64) * (2 * self.buckets) + reports.fields[1]
        counts = np.bincount(places, minlength=2 * self.functions * self.buckets).reshape(*self.tally_shape, 2)
        return (counts[..., 0] - counts[..., 1]).astype(np.int64, copy=False)

    def _supports(self, tally: Tally) -> Tally:
        return walsh_hadamard(tally)

    def _of_all(self, gathered: Tally, n: int) -> Tally:
        # A report supports the buckets whose coefficient has its sign: supports and contradictions add up to n.
        return (gathered + n) // 2

    def channel(self) -> Channel:
        """Over coefficients and signs, given a function that sends value v to bucket v mod m."""
        share = Fraction(1, self.buckets)
        kept, flipped = share * self.p, share * (1 - self.p)
        places = np.arange(2 * self.buckets)
        rows = []
        for value in range(self.domain.size):
            right = parity(places // 2 & value % self.buckets) == (places & 1).astype(np.bool_)
            rows.append([kept if each else flipped for each in right])
        return rows

    def supports(self, reports: Reports, values: Codes) -> Bits:
        """The values whose buckets' coefficient has its sign."""
        coefficients, negative = np.divmod(reports.fields[1].astype(np.int64)[:, None], 2)
        found: Bits = np.equal(parity(coefficients & self.buckets_of(reports, values)), negative.astype(np.bool_))
        return found

    def blanket(self) -> Blanket:
        """A uniform sign; two values that meet under none of the functions agree on half of the coefficients."""
        return Blanket.independent(2 * (1 - self.p), 2 * self.p)
