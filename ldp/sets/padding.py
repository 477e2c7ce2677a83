"""Padding and sampling (PSFO): one item of a user's set is drawn and reported by a frequency oracle.

A set v of less than l candidates is padded with l − |v| dummies to size l. One of its max(l, |v|) members is drawn,
uniformly, and reported; estimates are multiplied by l. Direct encoding gains from the draw: with

    ε' = ln(l·(e^ε − 1) + 1)

an output y is at most 1 + (e^ε' − 1)/l = e^ε times likelier from a set that has y than from one that has not. That
holds only if no member of any set is drawn with more than 1/l: **the l dummies must differ from each other**. With one
dummy for all, the empty set reports it with probability 1, and ε' is what is really spent: 2.06 instead of 1 for l = 4.
Local hashing gains nothing, as all items of a set may share a bucket; it takes ε.

With direct encoding over c candidates and l dummies a count's variance is n·(l·(e^ε − 1) + c + l − 1)/(e^ε − 1)², with
local hashing n·4·l²·e^ε/(e^ε − 1)²; the first is smaller iff c < l·(4·l − 1)·e^ε + 1.

Source: Wang, Li and Jha, "Locally Differentially Private Frequent Itemset Mining", S&P 2018, sections 3 and 4. Their
published code has one dummy, and does not multiply by l.
"""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import combinations
from typing import Any, ClassVar, Final, cast

import numpy as np
from numpy.typing import ArrayLike, NDArray

from crypto.primitives.randomness import Randomness
from ldp.blanket import Blanket
from ldp.budget import LARGEST_EPSILON, exp_below, log_above
from ldp.domain import Codes, Domain, DomainLike
from ldp.estimate import Estimate
from ldp.frequency_oracle import Floats, PureOracle
from ldp.mechanism import Channel, Mechanism, Tally, some
from ldp.oracles.direct_encoding import DirectEncoding
from ldp.oracles.local_hashing import OptimisedLocalHashing
from ldp.reports import Field, Reports
from ldp.sets.baskets import Baskets, Sets
from ldp.sets.itemset_candidates import Candidates, check_candidates, contained
from link.errors import ConfigurationError

ADAPTIVE: Final = ("auto", "grr", "olh")

_LARGEST_LENGTH: Final = 1 << 16
_LARGEST_ENUMERATED: Final = 8


class SetMechanism(Mechanism[Estimate]):
    """A mechanism that looks at which candidates a user's set contains, and at nothing else.

    Args:
        domain: The items: a domain, its size, or their texts.
        epsilon: The privacy budget ε.
        candidates: Itemsets of which frequencies are wanted; without them, all single items.

    Attributes:
        domain: The items.
        candidates: As given.

    Raises:
        ConfigurationError: Candidates are no two different itemsets or more in ascending order.
    """

    def __init__(self, domain: DomainLike, epsilon: float, candidates: Candidates | None = None) -> None:
        super().__init__(epsilon)
        self.domain = Domain.of(domain)
        self.candidates = None if candidates is None else check_candidates(candidates, self.domain)

    @property
    def width(self) -> int:
        """How many candidates there are."""
        return self.domain.size if self.candidates is None else len(self.candidates)

    def privatise(self, values: ArrayLike | Sets, rng: Randomness | None = None) -> Reports:
        """Reports what each user's set contains.

        Args:
            values: The users' sets, as `Baskets` or as lists of items; an item that is named twice counts once.
            rng: The source of randomness; by default the operating system's. Seeded ones are for simulations.

        Raises:
            InputDataError: An item is not in the domain.
        """
        return super().privatise(cast("ArrayLike", values), rng)  # sets are ragged, which no array is

    def held(self, sets: Sets) -> Baskets:
        """The candidates that each set contains, by their numbers.

        Raises:
            InputDataError: An item is not in the domain.
        """
        baskets = Baskets.of(sets, self.domain)
        return baskets if self.candidates is None else contained(baskets, self.candidates)

    def all_sets(self) -> list[list[int]]:
        """Every set of items, the smaller ones first: the rows of `channel`.

        Raises:
            NotImplementedError: There are more than 2^8.
        """
        d = self.domain.size
        if d > _LARGEST_ENUMERATED:
            raise NotImplementedError(f"the sets of {d} items are not enumerated")
        return [list(each) for size in range(d + 1) for each in combinations(range(d), size)]


class PaddingAndSampling(SetMechanism):
    """PSFO: estimates how many users' sets contain each candidate.

    Without bias for sets that contain at most l candidates; a larger one counts l/|v| for each. What is no candidate is
    left out of a set before it is padded.

    Args:
        domain: The items: a domain, its size, or their texts.
        epsilon: The privacy budget ε.
        length: l, to which sets are padded.
        candidates: Itemsets of which frequencies are wanted; without them, all single items.
        oracle: "grr", direct encoding with the larger ε'; "olh", local hashing; "auto", the one with less variance.

    Attributes:
        single: How what was drawn is reported: candidates first, dummies last.

    Raises:
        ConfigurationError: A parameter is out of range.
    """

    name: ClassVar[str] = "padding-and-sampling"

    single: PureOracle

    def __init__(
        self,
        domain: DomainLike,
        epsilon: float,
        length: int,
        candidates: Candidates | None = None,
        oracle: str = "auto",
    ) -> None:
        super().__init__(domain, epsilon, candidates)
        if isinstance(length, bool) or not 1 <= length <= _LARGEST_LENGTH:
            raise ConfigurationError(f"sets are padded to between 1 and {_LARGEST_LENGTH:,} items, not to {length}")
        if oracle not in ADAPTIVE:
            raise ConfigurationError(f"drawn items are reported by {', '.join(ADAPTIVE)}, not by '{oracle}'")
        self.length, self.oracle = length, oracle
        if oracle == "grr" or (oracle == "auto" and direct_is_better(self.width, length, epsilon)):
            self.single = DirectEncoding(self.width + length, amplified(epsilon, length))
        else:  # a dummy hides among the values of its bucket, so that one is enough
            self.single = OptimisedLocalHashing(self.width + 1, epsilon)

    @property
    def dummies(self) -> int:
        """How many different dummies there are."""
        return self.single.domain.size - self.width

    @property
    def exact_epsilon(self) -> float:
        """ln(1 + (p/q − 1)/l) for direct encoding; that of a bucket for local hashing."""
        if isinstance(self.single, DirectEncoding):
            return log_above(1 + (self.single.p / self.single.q - 1) / self.length)
        return self.single.exact_epsilon

    @property
    def layout(self) -> tuple[Field, ...]:
        """That of the oracle."""
        return self.single.layout

    def _perturb(self, values: Any, rng: Randomness) -> tuple[NDArray[Any], ...]:
        return self.single.privatise(self.draw(values, rng), rng).fields

    def draw(self, sets: Sets, rng: Randomness) -> Codes:
        """Pads and samples: for each set the number of a candidate, or of a dummy, from `width` on; shape (n,).

        Raises:
            InputDataError: An item is not in the domain.
        """
        held = self.held(sets)
        sizes = held.sizes
        members = np.maximum(sizes, self.length)
        drawn = np.empty(len(sizes), dtype=np.int64)
        for number in np.unique(members).tolist():
            users = np.flatnonzero(members == number)
            drawn[users] = rng.integers(number, len(users))
        real = drawn < sizes
        found: Codes = self.width + np.minimum(drawn - sizes, self.dummies - 1)
        found[real] = held.codes[held.offsets[:-1][real] + drawn[real]]
        return found

    def _valid(self, reports: Reports) -> bool:
        return self.single._valid(reports)

    @property
    def tally_shape(self) -> tuple[int, ...]:
        """One count a candidate."""
        return (self.width,)

    def tally(self, reports: Reports) -> Tally:
        """How many reports support each candidate."""
        return self.single.tally(reports)[: self.width]

    def unbiased(self, tally: Tally, n: int) -> Floats:
        """l·(C_v − n·q)/(p − q), shape (c,)."""
        supports: Floats = tally.astype(np.float64)
        return self.length * (supports - n * float(self.single.q)) / float(self.single.p - self.single.q)

    def variance(self, counts: Floats, n: int) -> Floats:
        """The exact variances over draws and noise if `counts` users' sets, of l candidates at most, contain each.

        (l/(p − q))²·(c_v·r(1 − r) + (n − c_v)·q(1 − q)) with r = q + (p − q)/l, that of a report that supports v.

        Args:
            counts: Shape (c,): true counts of the candidates.
            n: How many users.
        """
        p, q = self.single.p, self.single.q
        held, scale = q + (p - q) / self.length, (self.length / (p - q)) ** 2
        true = np.asarray(counts, dtype=np.float64)
        return true * float(scale * held * (1 - held)) + (n - true) * float(scale * q * (1 - q))

    def covariance(self, frequencies: Floats, n: int) -> Floats:
        """Covariances of candidates' frequencies, over draws, noise and who was asked, shape (c, c).

        n users who are drawn from a large population report independently. Of direct encoding, a report supports one
        candidate only, so that two have −E[r_v]·E[r_w]·(l/(p − q))²/n; of local hashing, functions are pairwise
        independent, and −f_v·f_w/n is left. The diagonal adds f(1 − f)/n to the mechanism's variance.

        Args:
            frequencies: Shape (c,): shares of users whose sets, of l candidates at most, contain each candidate.
            n: How many users.
        """
        shares = np.asarray(frequencies, dtype=np.float64)
        spread = shares
        if isinstance(self.single, DirectEncoding):
            spread = shares + self.length * float(self.single.q / (self.single.p - self.single.q))
        found = -np.outer(spread, spread) / n
        np.fill_diagonal(found, self.variance(shares * n, n) / n**2 + shares * (1 - shares) / n)
        return found

    def estimate(self, tally: Tally, n: int) -> Estimate:
        """How many sets contain each candidate; raw, with variances."""
        some(n)
        counts = self.unbiased(tally, n)
        return Estimate(Domain(self.width), n, counts, self.variance(np.clip(counts, 0, n), n))

    def blanket(self) -> Blanket:
        """What bounds amplification by shuffling.

        Of direct encoding: uniform, where a set makes l outputs likelier, each by one l-th of what its oracle does.
        Of local hashing: the oracle's, as a set is no worse than the members that are drawn from it.
        """
        if not isinstance(self.single, DirectEncoding):
            return self.single.blanket()
        size, p, q = self.single.domain.size, self.single.p, self.single.q
        return Blanket.between(size * q, size * (q + (p - q) / self.length))

    def channel(self) -> Channel:
        """From every set of `all_sets` to the oracle's outputs."""
        rows = self.single.channel()
        held = self.held(self.all_sets())
        found = []
        for start, stop in zip(held.offsets[:-1].tolist(), held.offsets[1:].tolist(), strict=True):
            members = held.codes[start:stop].tolist()
            padded = [*members, *(self.width + min(at, self.dummies - 1) for at in range(self.length - len(members)))]
            columns = zip(*(rows[each] for each in padded), strict=True)
            found.append([sum(column, Fraction(0)) / len(padded) for column in columns])
        return found

    def outcomes(self, reports: Reports) -> NDArray[np.int64]:
        """The oracle's."""
        return self.single.outcomes(reports)


def amplified(epsilon: float, length: int) -> float:
    """The largest ε' that direct encoding can take for one of l members: at most ln(l·(e^ε − 1) + 1), and 16."""
    most = length * (exp_below(epsilon) - 1) + 1
    found = min(log_above(most), LARGEST_EPSILON)
    while exp_below(found) > most:
        found = math.nextafter(found, 0)
    return found


def direct_is_better(candidates: int, length: int, epsilon: float) -> bool:
    """Whether direct encoding has less variance than local hashing: c < l·(4·l − 1)·e^ε + 1."""
    return candidates < length * (4 * length - 1) * math.exp(epsilon) + 1
