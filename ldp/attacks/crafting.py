"""What fake users can send, family by family: any report, and the reports that support most targets.

Hashed reports support as many targets as their function sends to one bucket; users of sketches choose among the public
functions. A Hadamard matrix has a column of ones: its number, or coefficient, supports every value at once.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import singledispatch
from typing import Any, Final, NoReturn

import numpy as np
from numpy.typing import NDArray

from crypto.primitives.randomness import Randomness
from ldp.arithmetic.dyadic import Dyadic
from ldp.arithmetic.hashing import HashFamily, Seeds
from ldp.arithmetic.packed import Rows, coin_rows, row_bytes
from ldp.arithmetic.subsets import subset_lists, subset_rows
from ldp.domain import Codes
from ldp.frequency_oracle import FrequencyOracle
from ldp.heavy_hitters.prefix_extending import PrefixHashing
from ldp.oracles.direct_encoding import DirectEncoding
from ldp.oracles.hadamard_response import HadamardResponse
from ldp.oracles.local_hashing import LocalHashing
from ldp.oracles.sketches import CountMeanSketch, FastLocalHashing, HadamardCountMeanSketch
from ldp.oracles.subset_selection import SubsetSelection
from ldp.oracles.unary_encoding import UnaryEncoding
from link.errors import ConfigurationError

Fields = tuple[NDArray[Any], ...]

_CELLS: Final = 1 << 24  # places that are looked at together, so that memory stays bounded
_HALF: Final = Dyadic(1, 1)


@dataclass(frozen=True, slots=True)
class Effort:
    """How hard fake users try to support all targets, and not to be seen.

    Attributes:
        tries: Hash functions that each one looks at, to take the one that sends most targets to one bucket.
        padded: Whether a report of bits gets as many ones as a genuine one has on average.
    """

    tries: int
    padded: bool

    def __post_init__(self) -> None:
        if self.tries < 1:
            raise ConfigurationError(f"a fake user looks at one hash function at least, not {self.tries}")


@singledispatch
def uniform(oracle: FrequencyOracle, m: int, rng: Randomness) -> Fields:  # noqa: ARG001
    """Fields of m reports, uniform over all that clients can send."""
    raise _unknown(oracle)


@singledispatch
def uniform_support(oracle: FrequencyOracle) -> float:
    """The probability that a uniform report supports a value."""
    raise _unknown(oracle)


@singledispatch
def maximal(
    oracle: FrequencyOracle,
    targets: Codes,  # noqa: ARG001
    m: int,  # noqa: ARG001
    rng: Randomness,  # noqa: ARG001
    effort: Effort,  # noqa: ARG001
) -> Fields:
    """Fields of m reports that support as many targets as can be."""
    raise _unknown(oracle)


@singledispatch
def largest_support(oracle: FrequencyOracle) -> int:
    """How many values one report can support."""
    raise _unknown(oracle)


def _unknown(oracle: FrequencyOracle) -> ConfigurationError:
    return ConfigurationError(
        f"no attack on {oracle.name} is known here; take direct, unary, hashed, subset, Hadamard or sketch reports"
    )


def _refused(oracle: FrequencyOracle, *_: object) -> NoReturn:
    raise _unknown(oracle)


# A round of a search hashes prefixes of strings, of which its candidates are a few, by functions of its own.
for _rule in (uniform, uniform_support, maximal, largest_support):
    _rule.register(PrefixHashing, _refused)


# -- direct encoding --------------------------------------------------------------------------------------------------
@uniform.register
def _(oracle: DirectEncoding, m: int, rng: Randomness) -> Fields:
    return (rng.integers(oracle.domain.size, m),)


@uniform_support.register
def _(oracle: DirectEncoding) -> float:
    return 1 / oracle.domain.size


@maximal.register
def _(
    oracle: DirectEncoding,  # noqa: ARG001
    targets: Codes,
    m: int,
    rng: Randomness,
    effort: Effort,  # noqa: ARG001
) -> Fields:
    return (targets[rng.integers(len(targets), m).astype(np.int64)],)


@largest_support.register
def _(oracle: DirectEncoding) -> int:  # noqa: ARG001
    return 1


# -- unary encodings --------------------------------------------------------------------------------------------------
@uniform.register
def _(oracle: UnaryEncoding, m: int, rng: Randomness) -> Fields:
    return (coin_rows(_HALF, m, oracle.domain.size, rng),)


@uniform_support.register(UnaryEncoding)
@uniform_support.register(CountMeanSketch)
@uniform_support.register(HadamardCountMeanSketch)
def _(oracle: FrequencyOracle) -> float:  # noqa: ARG001
    return 0.5


@maximal.register
def _(
    oracle: UnaryEncoding,
    targets: Codes,
    m: int,
    rng: Randomness,
    effort: Effort,
) -> Fields:
    d, r = oracle.domain.size, len(targets)
    extra = max(math.floor(oracle.p + (d - 1) * oracle.q) - r, 0) if effort.padded else 0
    return (_rows_with(targets, _others(d, targets), extra, m, d, rng),)


@largest_support.register(UnaryEncoding)
@largest_support.register(LocalHashing)
@largest_support.register(FastLocalHashing)
@largest_support.register(CountMeanSketch)
@largest_support.register(HadamardCountMeanSketch)
@largest_support.register(HadamardResponse)
def _(oracle: FrequencyOracle) -> int:
    return oracle.domain.size


def _others(d: int, targets: Codes) -> Codes:
    return np.setdiff1d(np.arange(d), targets)


def _rows_with(fixed: Codes, choice: Codes, size: int, m: int, d: int, rng: Randomness) -> Rows:
    """M rows of d bits, each with all `fixed` values and a uniform subset of `choice` with `size` members."""
    rows = np.empty((m, row_bytes(d)), dtype=np.uint8)
    step = max(1, _CELLS // d)
    for start in range(0, m, step):
        part = np.zeros((min(step, m - start), d), dtype=np.uint8)
        part[:, fixed] = 1
        if size:
            drawn = subset_rows(size, len(part), len(choice), rng)
            part[:, choice] = np.unpackbits(drawn, axis=1, count=len(choice), bitorder="little")
        rows[start : start + step] = np.packbits(part, axis=1, bitorder="little")
    return rows


# -- local hashing ----------------------------------------------------------------------------------------------------
@uniform.register
def _(oracle: LocalHashing, m: int, rng: Randomness) -> Fields:
    return oracle.family.draw(m, rng), rng.integers(oracle.g, m)


@uniform_support.register
def _(oracle: LocalHashing) -> float:
    return 1 / oracle.g


@maximal.register
def _(
    oracle: LocalHashing,
    targets: Codes,
    m: int,
    rng: Randomness,
    effort: Effort,
) -> Fields:
    def draw(size: int) -> tuple[Seeds, Seeds]:
        seeds = oracle.family.draw(size, rng)
        return seeds, seeds

    return _fullest(oracle.family, draw, targets, m, effort.tries)


@uniform.register
def _(oracle: FastLocalHashing, m: int, rng: Randomness) -> Fields:
    return rng.integers(oracle.functions, m), rng.integers(oracle.buckets, m)


@uniform_support.register
def _(oracle: FastLocalHashing) -> float:
    return 1 / oracle.buckets


@maximal.register
def _(
    oracle: FastLocalHashing,
    targets: Codes,
    m: int,
    rng: Randomness,
    effort: Effort,
) -> Fields:
    def draw(size: int) -> tuple[NDArray[np.int64], Seeds]:
        numbers = rng.integers(oracle.functions, size).astype(np.int64)
        return numbers, oracle.seeds[numbers]

    return _fullest(oracle.family, draw, targets, m, effort.tries)


def _fullest(
    family: HashFamily, draw: Callable[[int], tuple[NDArray[Any], Seeds]], targets: Codes, m: int, tries: int
) -> Fields:
    """For each of m fakes, of `tries` functions the one that sends most targets to one bucket, and that bucket."""
    found = []
    step = max(1, _CELLS // (tries * max(family.g, len(targets))))
    for start in range(0, m, step):
        size = min(step, m - start)
        names, seeds = draw(size * tries)
        functions = np.arange(len(seeds))
        hits = np.zeros((len(seeds), family.g), dtype=np.uint16)
        for target in targets:
            hits[functions, family.buckets(seeds, target)] += 1
        fullest = hits.max(axis=1).reshape(size, tries).argmax(axis=1) + np.arange(size) * tries
        found.append((names[fullest], hits[fullest].argmax(axis=1)))
    return np.concatenate([names for names, _ in found]), np.concatenate([buckets for _, buckets in found])


# -- subset selection -------------------------------------------------------------------------------------------------
@uniform.register
def _(oracle: SubsetSelection, m: int, rng: Randomness) -> Fields:
    return (_subsets_with(oracle, np.arange(0), np.arange(oracle.domain.size), m, rng),)


@uniform_support.register
def _(oracle: SubsetSelection) -> float:
    return oracle.k / oracle.domain.size


@maximal.register
def _(
    oracle: SubsetSelection,
    targets: Codes,
    m: int,
    rng: Randomness,
    effort: Effort,  # noqa: ARG001
) -> Fields:
    if len(targets) >= oracle.k:
        return (_subsets_with(oracle, targets[:0], targets, m, rng),)
    return (_subsets_with(oracle, targets, _others(oracle.domain.size, targets), m, rng),)


@largest_support.register
def _(oracle: SubsetSelection) -> int:
    return oracle.k


def _subsets_with(oracle: SubsetSelection, fixed: Codes, choice: Codes, m: int, rng: Randomness) -> NDArray[Any]:
    """Sets of k values with all `fixed` ones and otherwise uniform ones of `choice`, as the oracle sends them."""
    size = oracle.k - len(fixed)
    if not oracle.listed:
        return _rows_with(fixed, choice, size, m, oracle.domain.size, rng)
    drawn = choice[subset_lists(size, m, len(choice), rng)]
    return np.sort(np.concatenate([np.broadcast_to(fixed, (m, len(fixed))), drawn], axis=1), axis=1)


# -- Hadamard response ------------------------------------------------------------------------------------------------
@uniform.register
def _(oracle: HadamardResponse, m: int, rng: Randomness) -> Fields:
    return (rng.integers(oracle.numbers, m),)


@uniform_support.register
def _(oracle: HadamardResponse) -> float:
    return float(oracle.share)


@maximal.register
def _(
    oracle: HadamardResponse,
    targets: Codes,
    m: int,
    rng: Randomness,
    effort: Effort,  # noqa: ARG001
) -> Fields:
    # A block's first number is in the half block of all its values; of the blocks, one with most targets.
    starts, counts = np.unique(oracle.starts(targets), return_counts=True)
    best = starts[counts == counts.max()]
    return (best[rng.integers(len(best), m).astype(np.int64)],)


# -- sketches ---------------------------------------------------------------------------------------------------------
@uniform.register
def _(oracle: CountMeanSketch, m: int, rng: Randomness) -> Fields:
    return rng.integers(oracle.functions, m), coin_rows(_HALF, m, oracle.buckets, rng)


@maximal.register
def _(
    oracle: CountMeanSketch,
    targets: Codes,
    m: int,
    rng: Randomness,
    effort: Effort,
) -> Fields:
    numbers = rng.integers(oracle.functions, m).astype(np.int64)
    ones = math.floor(oracle.p + (oracle.buckets - 1) * (1 - oracle.p)) if effort.padded else 0
    rows = np.empty((m, row_bytes(oracle.buckets)), dtype=np.uint8)
    step = max(1, _CELLS // 8 // oracle.buckets)
    for start in range(0, m, step):
        part = slice(start, start + step)
        places = oracle.family.buckets(oracle.seeds[numbers[part], None, :], targets)
        # Every bit has a random rank, those of the targets the lowest one; a row gets its bits of least rank.
        ranks = rng.uint64(len(places) * oracle.buckets).reshape(len(places), -1) >> np.uint64(1)
        np.put_along_axis(ranks, places, 0, axis=1)
        bits = ranks == 0
        if ones > len(targets):
            np.put_along_axis(bits, np.argpartition(ranks, ones, axis=1)[:, :ones], True, axis=1)
        rows[part] = np.packbits(bits, axis=1, bitorder="little")
    return numbers, rows


@uniform.register
def _(oracle: HadamardCountMeanSketch, m: int, rng: Randomness) -> Fields:
    return rng.integers(oracle.functions, m), rng.integers(2 * oracle.buckets, m)


@maximal.register
def _(
    oracle: HadamardCountMeanSketch,
    targets: Codes,  # noqa: ARG001
    m: int,
    rng: Randomness,
    effort: Effort,  # noqa: ARG001
) -> Fields:
    # The first coefficient is +1 whatever the bucket is.
    return rng.integers(oracle.functions, m), np.zeros(m, dtype=np.int64)
