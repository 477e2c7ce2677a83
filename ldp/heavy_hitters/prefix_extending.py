"""The prefix extending method (PEM): heavy hitters among bit strings, found by ever longer prefixes.

Each user reports once, with all of ε, in one of g rounds: a prefix of its value, by local hashing. A server keeps the C
most frequent prefixes of a round, extends each by all continuations, and estimates those in the next round; the last
round's prefixes are whole values.

    s_i = s_0 + ⌈i·(m − s_0) / g⌉ bits are reported in round i = 1 … g, with s_0 = ⌈log2 k⌉ and strings of m bits.

Few rounds mean many users in each, so less noise, and many candidates: a server takes n·C·2^((m − s_0)/g) steps.
Source: Wang, Li and Jha, "Locally Differentially Private Heavy Hitter Identification", IEEE TDSC 18(2), 2021.
"""

from __future__ import annotations

import struct
from functools import cached_property
from itertools import pairwise
from typing import Any, ClassVar, Final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from crypto.primitives.randomness import Randomness
from ldp.aggregator import Aggregator
from ldp.arithmetic.sampling import Bits
from ldp.bias_aware import selection_factor
from ldp.budget import check_epsilon
from ldp.domain import LARGEST_DOMAIN, Codes, Domain
from ldp.estimate import Estimate
from ldp.heavy_hitters.bit_strings import Strings, Words, prefixes, word_count, words_of
from ldp.heavy_hitters.found import HeavyHitter
from ldp.heavy_hitters.vector_hashing import VectorHashFamily
from ldp.mechanism import Tally
from ldp.oracles.local_hashing import LocalHashing, best_buckets
from ldp.parameters import checked
from ldp.reports import Field, Reports
from link.errors import ConfigurationError, InputDataError

_MAGIC: Final = b"LDPP\x01"
_HEADER: Final = struct.Struct("<5sHIH")  # magic, round, how many prefixes were kept, bytes of each

_MOST_BUCKETS: Final = 1 << 16  # beyond, the 2^-32 by which buckets differ would count; ε > 11 loses nothing visible
_FEW_CANDIDATES: Final = 14  # the power of two of candidates to which rounds are cut by default


class PrefixHashing(LocalHashing):
    """One round: local hashing of prefixes, estimated for the continuations of the prefixes that were kept.

    A user's prefix need not be a candidate: its report then supports each of them with q, as any other value would.

    Args:
        strings: How values are written.
        epsilon: The privacy budget ε.
        start: Bits of the prefixes that were kept.
        stop: Bits of the prefixes that are reported.
        kept: Those that were kept, as numbers, ascending; candidate j·2^(stop − start) + e continues the j-th by e.
    """

    name: ClassVar[str] = "prefix-hashing"

    def __init__(self, strings: Strings, epsilon: float, start: int, stop: int, kept: tuple[int, ...]) -> None:
        if not 0 <= start < stop <= strings.bits:
            raise ConfigurationError(f"prefixes grow from 0 to {strings.bits} bits, not from {start} to {stop}")
        if not kept or list(kept) != sorted(set(kept)) or not 0 <= kept[0] <= kept[-1] < 1 << start:
            raise ConfigurationError(f"kept prefixes must be different numbers of {start} bits in ascending order")
        candidates = Domain(len(kept) << stop - start)
        super().__init__(candidates, epsilon, min(best_buckets(epsilon), _MOST_BUCKETS))
        self.strings, self.start, self.stop, self.kept = strings, start, stop, tuple(kept)
        self._functions = VectorHashFamily(word_count(stop), self.g)

    @property
    def layout(self) -> tuple[Field, ...]:
        """A function and a bucket."""
        return (Field("uint64", self._functions.words + 1), *self._bucket.layout)

    def _perturb(self, values: ArrayLike, rng: Randomness) -> tuple[NDArray[Any], ...]:
        shown = prefixes(self.strings.encode(values), self.stop)
        seeds = self._functions.draw(len(shown), rng)
        return seeds, self._bucket.privatise(self._functions.buckets(seeds, shown), rng).fields[0]

    def tally(self, reports: Reports) -> Tally:
        """How many reports support each candidate."""
        seeds, buckets = reports.fields
        return self._functions.supporters(seeds, buckets, self._candidates)

    def supports(self, reports: Reports, values: Codes) -> Bits:
        """The candidates that its function sends to its bucket."""
        seeds, buckets = reports.fields
        hashed = [self._functions.buckets(seeds, self._candidates[[value]]) for value in values]
        found: Bits = np.equal(np.stack(hashed, axis=1), buckets[:, None])
        return found

    def prefix(self, candidate: int) -> int:
        """The string of a candidate, as a number of `stop` bits."""
        width = self.stop - self.start
        return self.kept[candidate >> width] << width | candidate & (1 << width) - 1

    @cached_property
    def _candidates(self) -> Words:
        return words_of(map(self.prefix, range(self.domain.size)), self.stop)

    def best(self, estimate: Estimate, most: int) -> list[int]:
        """The candidates with the highest estimates, of those that may begin a value; of equal ones the lower string.

        Args:
            estimate: Of this round.
            most: How many at most.

        Returns:
            Their numbers, the highest estimate first.
        """
        found: list[int] = []
        for candidate in np.argsort(-estimate.counts, kind="stable").tolist():
            if len(found) == most:
                break
            if self.strings.plausible(self.prefix(candidate), self.stop):
                found.append(candidate)
        return found

    def found(self, estimate: Estimate, most: int) -> list[tuple[int, float, float]]:
        """The same with what is reported of them: the string as a number of `stop` bits, its share, and the deviation.

        The round's users are a sample of all. Deviations grow by what selecting the largest of all candidates calls
        for, see `ldp.bias_aware`: most candidates are rare, and noise lifts some of them among those selected.
        """
        best, shares = self.best(estimate, most), estimate.frequencies
        sampled = np.clip(shares, 0, 1) * (1 - np.clip(shares, 0, 1)) / estimate.n
        deviations = np.sqrt(estimate.frequency_variances + sampled) * selection_factor(len(best), self.domain.size)
        return [(self.prefix(each), float(shares[each]), float(deviations[each])) for each in best]


@checked
class PrefixExtending:
    """PEM: the public plan of a search for the k most frequent values.

    Args:
        strings: How values are written: `Texts` or `Integers`.
        epsilon: The privacy budget ε of a user, who reports once.
        k: How many values are sought.
        groups: g, the rounds; by default so many that a round has about 2^14 candidates at most.
        keep: C, how many prefixes go on to the next round; by default k, rounded up to a power of two.

    Raises:
        ConfigurationError: A parameter is wrong, or rounds would have more than 2^24 candidates.
    """

    def __init__(
        self, strings: Strings, epsilon: float, k: int, groups: int | None = None, keep: int | None = None
    ) -> None:
        self.strings, self.epsilon, self.k = strings, check_epsilon(epsilon), k
        first = (k - 1).bit_length()
        grown = strings.bits - first
        if k < 1 or grown < 1:
            raise ConfigurationError(
                f"among {strings.bits} bits, k lies between 1 and 2^{strings.bits - 1}, not at {k}"
            )
        self.keep = 1 << first if keep is None else keep
        if self.keep < k:
            raise ConfigurationError(f"fewer prefixes than values sought cannot be kept: {self.keep} for {k}")
        if groups is None:
            groups = -(-grown // max(1, _FEW_CANDIDATES - (self.keep - 1).bit_length()))
        if not 1 <= groups <= grown:
            raise ConfigurationError(f"{grown} bits are found in between 1 and {grown} rounds, not in {groups}")
        self.groups = groups
        self.lengths = tuple(first + -(-(i * grown) // groups) for i in range(1, groups + 1))
        widest = max((stop - start for start, stop in pairwise(self.lengths)), default=0)
        if max(1 << self.lengths[0], self.keep << widest) > LARGEST_DOMAIN:
            raise ConfigurationError("a round would have more than 2^24 candidates; take more rounds, or keep fewer")

    def assign(self, n: int, rng: Randomness | None = None) -> NDArray[np.int64]:
        """A uniform round, from 0 on, for each of n users, whatever their values are; shape (n,).

        A client draws its own, and reports in that round alone.
        """
        return (Randomness.from_os() if rng is None else rng).integers(self.groups, n).astype(np.int64)

    def oracle(self, which: int, kept: tuple[int, ...] = (0,)) -> PrefixHashing:
        """The mechanism of a round, which clients make for themselves from what the server announces.

        Args:
            which: The round, from 0 on.
            kept: The prefixes that went on to it, as numbers, ascending; to the first round, the empty one.

        Raises:
            ConfigurationError: There is no such round, or the prefixes are none of its.
        """
        if not 0 <= which < self.groups:
            raise ConfigurationError(f"the search has {self.groups} rounds, from 0 on, and no round {which}")
        start = self.lengths[which - 1] if which else 0
        return PrefixHashing(self.strings, self.epsilon, start, self.lengths[which], kept)

    def find(self, values: ArrayLike, rng: Randomness | None = None) -> list[HeavyHitter]:
        """The whole search in one place, for simulations.

        Args:
            values: Shape (n,): one value of each user.
            rng: The source of randomness.

        Returns:
            At most k values, the most frequent first.

        Raises:
            InputDataError: A value cannot be written, or a round has no user.
        """
        rng = Randomness.from_os() if rng is None else rng
        array = np.asarray(values)
        rounds, server = self.assign(len(array), rng), PrefixServer(self)
        while not server.finished:
            server.add(server.oracle.privatise(array[rounds == server.round], rng))
            server.advance()
        return server.found()


class PrefixServer:
    """The server of a search: in each round it announces an oracle, adds up its reports, and goes on.

    It announces the number of the round and the C prefixes that were kept, `oracle.kept`; both are public.
    Servers of the same round merge by `Aggregator.merge` of their `reports`.

    Args:
        plan: What is sought.

    Attributes:
        plan: What is sought.
        round: Which round it is, from 0 on; the number of rounds when the search is over.
        oracle: The mechanism by which the round's users report.
        reports: The reports of the round; of the last one, when the search is over.
    """

    def __init__(self, plan: PrefixExtending) -> None:
        self.plan, self.round = plan, 0
        self._begin((0,))

    @property
    def finished(self) -> bool:
        """Whether all rounds are over."""
        return self.round == self.plan.groups

    def add(self, reports: Reports) -> None:
        """Adds reports of this round.

        Raises:
            InputDataError: They are of another round, or the search is over.
        """
        if self.finished:
            raise InputDataError("the search for heavy hitters is over; no report can be added")
        self.reports.add(reports)

    def advance(self) -> None:
        """Ends the round: keeps its best prefixes and begins the next.

        Raises:
            InputDataError: The round has no report, or the search is over.
        """
        if self.finished:
            raise InputDataError("the search for heavy hitters is over; there is no further round")
        estimate, oracle = self.reports.estimate(), self.oracle
        self.round += 1
        if not self.finished:
            self._begin(tuple(sorted(map(oracle.prefix, oracle.best(estimate, self.plan.keep)))))

    def found(self) -> list[HeavyHitter]:
        """The k values with the highest estimates of the last round, the highest first.

        The deviations are of shares among all users, raised since the highest are selected; see `PrefixHashing.found`.

        Raises:
            InputDataError: Rounds are outstanding.
        """
        if not self.finished:
            raise InputDataError(f"the search has had {self.round} of its {self.plan.groups} rounds; go on with it")
        found = self.oracle.found(self.reports.estimate(), self.plan.k)
        return [HeavyHitter(self.plan.strings.decode(value), share, deviation) for value, share, deviation in found]

    def to_bytes(self) -> bytes:
        """The state, to be kept or sent."""
        kept, size = self.oracle.kept, -(-self.plan.strings.bits // 8)
        header = _HEADER.pack(_MAGIC, self.round, len(kept), size)
        return b"".join([header, *(prefix.to_bytes(size, "big") for prefix in kept), self.reports.to_bytes()])

    @classmethod
    def from_bytes(cls, data: bytes, plan: PrefixExtending) -> PrefixServer:
        """A state that `to_bytes` wrote.

        Raises:
            InputDataError: It is cut, of another version, or of another plan.
        """
        wrong = InputDataError("these bytes are no state of this search and version; begin it again")
        if len(data) < _HEADER.size or data[: len(_MAGIC)] != _MAGIC:
            raise wrong
        server = cls(plan)
        _, server.round, kept, size = _HEADER.unpack_from(data)
        end = _HEADER.size + kept * size
        if server.round > plan.groups or size != -(-plan.strings.bits // 8) or end > len(data) or kept > plan.keep:
            raise wrong
        numbers = (int.from_bytes(data[at : at + size], "big") for at in range(_HEADER.size, end, size))
        try:
            server._begin(tuple(numbers))
        except ConfigurationError:
            raise wrong from None
        server.reports = Aggregator.from_bytes(data[end:], server.oracle)
        return server

    def _begin(self, kept: tuple[int, ...]) -> None:
        """Opens the round, or the last one if the search is over, without reports."""
        self.oracle = self.plan.oracle(min(self.round, self.plan.groups - 1), kept)
        self.reports: Aggregator[Estimate] = Aggregator(self.oracle)
