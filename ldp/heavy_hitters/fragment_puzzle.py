"""The sequence fragment puzzle (SFP): heavy hitters among bit strings in one round, put together from fragments.

A user draws one of P positions and reports two things, each perturbed on its own:

    the value's fragment at this position together with a tag, a public hash of the whole value    with ε·share
    the whole value                                                                                with ε·(1 − share)

A server takes the most frequent pairs of tag and fragment at each position, joins fragments of one tag to whole values,
and drops those whose own tag is another. What is left is ranked by the reports of whole values.
Source: Apple Differential Privacy Team, "Learning with Privacy at Scale", 2017, section "Sequence Fragment Puzzle".
There, count mean sketches carry both reports. Here the fragments, whose domain is small, go by Hadamard response: a
Hadamard sketch without collisions. Whole values go by a Hadamard count mean sketch of a public 24-bit print.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterator
from fractions import Fraction
from typing import Any, ClassVar, Final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from crypto.primitives.randomness import Randomness
from ldp.aggregator import Aggregator
from ldp.blanket import Blanket
from ldp.domain import LARGEST_DOMAIN
from ldp.heavy_hitters.bit_strings import Strings, fragments, word_count, words_of
from ldp.heavy_hitters.found import HeavyHitter
from ldp.heavy_hitters.vector_hashing import VectorHashFamily
from ldp.mechanism import Mechanism, Tally, some
from ldp.oracles.hadamard_response import HadamardResponse
from ldp.oracles.sketches import HadamardCountMeanSketch
from ldp.reports import Field, Reports
from link.errors import ConfigurationError, InputDataError

_PUBLIC: Final = "the public functions of the sequence fragment puzzle"
_PRINTS: Final = LARGEST_DOMAIN
_MOST_TABLE_BITS: Final = 20  # of a tag and a fragment: the server keeps such a table for each position
_MOST_PARTIALS: Final = 1 << 12  # unfinished values of one tag; the least frequent ones go first

Partial = tuple[float, int]
"""The least frequency of the fragments so far, and the prefix that they make."""


class SequenceFragmentPuzzle(Mechanism[list[HeavyHitter]]):
    """SFP: the k most frequent values, as far as they can be put together.

    Args:
        strings: How values are written: `Texts` or `Integers`.
        epsilon: The privacy budget ε of a user, over both parts of its report.
        k: How many values are sought.
        fragment_bits: Bits of a fragment; they divide those of a string.
        tag_bits: Bits of the tag. More keep fragments of different values better apart.
        share: The part of ε that the fragment takes; it has fewer users and more values than the whole.
        keep: How many pairs of tag and fragment are taken at each position; by default 4k, or two for each
            tag if that is more; only those with positive estimates are.
        functions: Of the sketch of whole values.
        buckets: Of the sketch of whole values, a power of two.
        salt: Which public functions give tags, prints and the sketch; the same at clients and servers.

    Raises:
        ConfigurationError: A parameter is wrong.
    """

    name: ClassVar[str] = "sfp"

    def __init__(
        self,
        strings: Strings,
        epsilon: float,
        k: int,
        fragment_bits: int = 8,
        tag_bits: int = 8,
        share: float = 0.7,
        keep: int | None = None,
        functions: int = 1024,
        buckets: int = 1024,
        salt: int = 0,
    ) -> None:
        super().__init__(epsilon)
        if k < 1 or (keep is not None and keep < k):
            raise ConfigurationError("at least one value must be sought, and as many fragments be kept as values")
        if fragment_bits < 1 or strings.bits % fragment_bits:
            raise ConfigurationError(f"fragments of {fragment_bits} bits do not divide strings of {strings.bits}")
        if not 1 <= tag_bits <= _MOST_TABLE_BITS - fragment_bits:
            raise ConfigurationError(f"a tag and a fragment have at most {_MOST_TABLE_BITS} bits, at least one each")
        if not 0 < share < 1:
            raise ConfigurationError(f"the fragment's share of epsilon lies between 0 and 1, not at {share}")
        self.strings, self.k, self.fragment_bits, self.tag_bits = strings, k, fragment_bits, tag_bits
        self.share, self.functions, self.buckets, self.salt = share, functions, buckets, salt
        self.keep = keep
        self.positions = strings.bits // fragment_bits
        first = self.epsilon * share
        self.fragment = HadamardResponse(1 << fragment_bits + tag_bits, first)
        self.whole = HadamardCountMeanSketch(_PRINTS, _rest(self.epsilon, first), functions, buckets, salt)
        rng = Randomness.from_seed(salt).derive(_PUBLIC)
        self._tags = VectorHashFamily(word_count(strings.bits), 1 << tag_bits)
        self._prints = VectorHashFamily(word_count(strings.bits), _PRINTS)
        self._tag_seed, self._print_seed = self._tags.draw(1, rng), self._prints.draw(1, rng)

    @property
    def mapping(self) -> int:
        """That of its fragments' oracle."""
        return self.fragment.mapping

    @property
    def exact_epsilon(self) -> float:
        """The sum of both parts: another value may change either."""
        return self.fragment.exact_epsilon + self.whole.exact_epsilon

    @property
    def layout(self) -> tuple[Field, ...]:
        """A position, a fragment's report and a whole value's."""
        return Field(np.min_scalar_type(self.positions - 1).name), *self.fragment.layout, *self.whole.layout

    def _perturb(self, values: ArrayLike, rng: Randomness) -> tuple[NDArray[Any], ...]:
        words = self.strings.encode(values)
        positions = rng.integers(self.positions, len(words)).astype(np.int64)
        codes = self._tags.buckets(self._tag_seed, words) << self.fragment_bits
        for position in range(self.positions):
            here = positions == position
            codes[here] |= fragments(words[here], position * self.fragment_bits, self.fragment_bits)
        shown = self.fragment.privatise(codes, rng).fields
        return positions, *shown, *self.whole.privatise(self._prints.buckets(self._print_seed, words), rng).fields

    def blanket(self) -> Blanket:
        """Both parts', of values that differ in either."""
        return Blanket.joint([self.fragment.blanket(), self.whole.blanket()])

    def _valid(self, reports: Reports) -> bool:
        fragment, whole = self._parts(reports)
        return (
            bool(np.all(reports.fields[0] < self.positions))
            and self.fragment._valid(fragment)
            and self.whole._valid(whole)
        )

    def _parts(self, reports: Reports) -> tuple[Reports, Reports]:
        split = 1 + len(self.fragment.layout)
        return (
            Reports(self.fragment.fingerprint, reports.fields[1:split]),
            Reports(self.whole.fingerprint, reports.fields[split:]),
        )

    # A tally is three tables in a row: users of each position, fragments' tallies of each position, whole values'.
    @property
    def _shapes(self) -> tuple[tuple[int, ...], ...]:
        return (self.positions,), (self.positions, *self.fragment.tally_shape), self.whole.tally_shape

    @property
    def tally_shape(self) -> tuple[int, ...]:
        """All sums in one row."""
        return (sum(map(math.prod, self._shapes)),)

    def tally(self, reports: Reports) -> Tally:
        """The number of users and the fragments' tally of each position, and the whole values' tally."""
        positions = reports.fields[0]
        fragment, whole = self._parts(reports)
        users = np.bincount(positions, minlength=self.positions)
        tables = [self.fragment.tally(fragment[positions == position]) for position in range(self.positions)]
        return np.concatenate([users, *map(np.ravel, tables), self.whole.tally(whole).ravel()])

    def estimate(self, tally: Tally, n: int) -> list[HeavyHitter]:
        """Puts fragments together, and ranks what fits by the estimates of whole values.

        Returns:
            At most k values, the highest estimate first, of equal ones the lower string; only positive estimates.

        Raises:
            InputDataError: There is no report, or none of some position.
        """
        some(n)
        ends = np.cumsum([math.prod(shape) for shape in self._shapes])
        users, tables, whole = (
            part.reshape(shape) for part, shape in zip(np.split(tally, ends[:-1]), self._shapes, strict=True)
        )
        values = sorted(self._assembled([self._frequent(*each) for each in zip(tables, users.tolist(), strict=True)]))
        if not values:
            return []
        codes = self._prints.buckets(self._print_seed, words_of(values, self.strings.bits))
        counts = self.whole.unbiased_of(codes, whole, n)
        best = np.argsort(-counts, kind="stable")[: self.k]
        best = best[counts[best] > 0]
        deviations = np.sqrt(self.whole.variance(np.minimum(counts[best], n), n))
        return [
            HeavyHitter(self.strings.decode(values[place]), float(counts[place]) / n, float(deviation) / n)
            for place, deviation in zip(best, deviations, strict=True)
        ]

    def find(self, values: ArrayLike, rng: Randomness | None = None) -> list[HeavyHitter]:
        """The whole search in one place, for simulations; see `privatise` and `estimate`."""
        return Aggregator(self).add(self.privatise(values, rng)).estimate()

    def _frequent(self, table: Tally, users: int) -> dict[int, list[Partial]]:
        """The most frequent fragments of a position by their tags, each with its frequency."""
        if users == 0:
            raise InputDataError("a position has no report of its fragment yet; add reports of more users")
        shares = self.fragment.unbiased(table, users) / users
        keep = max(4 * self.k, 2 << self.tag_bits) if self.keep is None else self.keep
        most = np.argsort(-shares, kind="stable")[:keep]
        most = most[shares[most] > 0]
        found: dict[int, list[Partial]] = defaultdict(list)
        for code in most.tolist():
            tag, fragment = divmod(code, 1 << self.fragment_bits)
            found[tag].append((float(shares[code]), fragment))
        return found

    def _assembled(self, frequent: list[dict[int, list[Partial]]]) -> Iterator[int]:
        """All strings, as numbers, whose fragments are frequent with one tag, and whose tag it is."""
        for tag in set.intersection(*map(set, frequent)):
            partials: list[Partial] = [(math.inf, 0)]
            for position, pieces in enumerate(frequent, start=1):
                joined = (
                    (min(least, share), prefix << self.fragment_bits | fragment)
                    for least, prefix in partials
                    for share, fragment in pieces[tag]
                )
                length = position * self.fragment_bits
                partials = [each for each in joined if self.strings.plausible(each[1], length)]
                partials = sorted(partials, key=lambda each: (-each[0], each[1]))[:_MOST_PARTIALS]
            strings = [string for _, string in partials]
            yield from self._tagged(strings, tag)

    def _tagged(self, strings: list[int], tag: int) -> list[int]:
        """Those of the strings that have the tag."""
        tags = self._tags.buckets(self._tag_seed, words_of(strings, self.strings.bits))
        return [string for string, found in zip(strings, tags.tolist(), strict=True) if found == tag]


def _rest(epsilon: float, first: float) -> float:
    """What is left of ε, rounded so that both parts together do not exceed it."""
    rest = epsilon - first
    return math.nextafter(rest, 0) if Fraction(first) + Fraction(rest) > Fraction(epsilon) else rest
