"""Finds fake users by what their reports have in common.

Genuine reports support sets of values together by chance only; fake ones that promote the same targets do so always.
There are two ways to find them:

    detect                 several targets: a set of z values that too many reports support together is abnormal, and
                           the reports that support it are taken for fake
    thin                   one known target: reports that support it are dropped with the probability that they are fake

Both need reports one by one, from before they are added up, and neither sees fake users who keep to the protocol.
Source: Cao, Jia and Gong, USENIX Security 2021, section 5.2 (itemsets); Huang, Ouyang, Meng, Jia and Li, "LDPGuard:
Defenses against Data Poisoning Attacks to Local Differential Privacy Protocols", IEEE TKDE 2024 (one target).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from functools import cache, singledispatch
from typing import Final

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import stats
from scipy.special import betainc, rel_entr

from crypto.primitives.randomness import Randomness
from ldp.arithmetic.dyadic import PRECISE_BITS, Dyadic
from ldp.arithmetic.sampling import Bits, coin_flips
from ldp.domain import Codes
from ldp.frequency_oracle import PureOracle
from ldp.heavy_hitters.prefix_extending import PrefixHashing
from ldp.mechanism import some
from ldp.oracles.local_hashing import LocalHashing
from ldp.oracles.subset_selection import SubsetSelection
from ldp.oracles.unary_encoding import UnaryEncoding
from ldp.reports import Reports
from link.errors import ConfigurationError

Users = NDArray[np.uint64]
"""Sets of reports, a bit each: shape (…, ⌈n / 64⌉)."""

Null = Callable[[tuple[int, ...], float], tuple[float, float]]
"""From an itemset and an error: how often a genuine report supports it at most, and what is left of the error."""

_BATCH: Final = 1 << 16  # reports whose supports are worked out together
_GENUINE: Final = 1 << 16  # reports that are simulated to see which ones genuine users send
_FUNCTIONS: Final = 1 << 16  # hash functions that are drawn to see how often they send a set to one bucket


@dataclass(frozen=True, slots=True)
class AbnormalItemset:
    """Values that too many reports support together.

    Attributes:
        values: Their numbers, rising.
        count: How many reports support all of them.
        threshold: The count from which that is abnormal.
    """

    values: tuple[int, ...]
    count: int
    threshold: int


@dataclass(frozen=True, slots=True, eq=False)
class Detection:
    """What was found.

    Attributes:
        itemsets: Abnormal itemsets, the least likely one first. Parts and extensions of one are named only if they are
            abnormal without the reports that support an earlier one.
        fake: Shape (n,): which reports support one of them; of hashed ones, which are likelier fake.
    """

    itemsets: tuple[AbnormalItemset, ...]
    fake: Bits


def detect(
    oracle: PureOracle,
    reports: Reports,
    eta: float = 0.01,
    largest: int = 10,
    watched: int = 128,
    width: int = 32,
    loss: float = 0.01,
    rng: Randomness | None = None,
) -> Detection:
    """Finds abnormal itemsets of supported values, and the reports that support them.

    An itemset of z values is abnormal if genuine users alone would support it that often with probability η / C(d, z)
    at most, even if each of them had one of its values. So with probability 1 − η, for each z, no itemset is abnormal
    without an attack, whichever are looked at. The search looks at the values with most supports, and goes on with the
    itemsets that exceed most what independent values would have; it may miss some, but raises no more false alarms.

    The least likely itemset is taken first. Others must be abnormal without the reports that support one taken before,
    or, for hashed reports, of which each supports other targets, be neither part nor extension of one.

    Dropping the reports that are found also drops the genuine ones among them. Estimates of the targets are then too
    low, by less the larger the itemsets are. Hashed fakes support many small itemsets, of which genuine reports support
    some too; so there the itemsets only show what fakes support, and the reports are dropped that are likelier from a
    fake by so much that a share `loss` of the genuine ones goes with them.

    Args:
        oracle: The oracle; its reports must support several values.
        reports: The reports, one by one.
        eta: η, the probability of a false alarm, for each size of itemsets.
        largest: The largest size of an itemset.
        watched: How many values, those with most supports, are looked at.
        width: How many itemsets of each size the search goes on with.
        loss: The share of genuine reports that may be dropped, where something is abnormal among hashed reports.
        rng: The source of randomness; only local hashing needs it.

    Raises:
        ConfigurationError: A parameter is wrong, or reports of this oracle support one value only.
        InputDataError: There is no report.
    """
    if not 0 < eta < 1:
        raise ConfigurationError(f"eta lies between 0 and 1, not at {eta:g}")
    if min(largest, watched) < 2 or width < 1:
        raise ConfigurationError("itemsets have two values or more, and the search needs a width of one or more")
    if not 0 < loss < 1:
        raise ConfigurationError(f"the share of genuine reports that may be lost lies between 0 and 1, not at {loss:g}")
    some(len(reports))
    rng = Randomness.from_os() if rng is None else rng
    null = null_law(oracle, rng)
    values = np.sort(np.argsort(-oracle.tally(reports), kind="stable")[:watched])
    users, n = _users(oracle, reports, values), len(reports)
    abnormal = []
    for places, together in _search(users, n, min(largest, len(values)), width):
        itemset, count = tuple(values[list(places)].tolist()), int(np.bitwise_count(together).sum())
        rate, error = null(itemset, float(Fraction(eta) / math.comb(oracle.domain.size, len(itemset))))
        threshold = abnormal_count(n, rate, error)
        if count >= threshold:
            abnormal.append((_surprise(count / n, rate), AbnormalItemset(itemset, count, threshold), together))
    abnormal.sort(key=lambda each: (-each[0], each[1].values))
    hashed = isinstance(oracle, LocalHashing)
    kept, fake = _taken([each[1:] for each in abnormal], parts=hashed)
    if not kept:
        return Detection(kept, np.zeros(n, dtype=np.bool_))
    flags = np.unpackbits(fake.view(np.uint8), count=n, bitorder="little").astype(np.bool_)
    return Detection(kept, _likelier(oracle, reports, values, flags, loss, rng) if hashed else flags)


def _likelier(
    oracle: PureOracle, reports: Reports, values: Codes, suspected: Bits, loss: float, rng: Randomness
) -> Bits:
    """The reports that are likelier fake than genuine, by so much that a share `loss` of genuine ones is among them.

    The likelihoods are those of independent values (naive Bayes): among fakes as among those that are suspected, and
    among genuine reports as among as many simulated ones, of users who have the values that estimates name. These also
    show which scores genuine reports have, whatever the values' dependence is. Fakes make estimates of their targets
    too high, and so the bar too high rather than too low.
    """
    shares = np.cumsum(np.clip(oracle.unbiased(oracle.tally(reports), len(reports)), 0, None))
    drawn = np.searchsorted(shares, rng.uint64(_GENUINE) / 2.0**64 * shares[-1], side="right")
    held = np.minimum(drawn, oracle.domain.size - 1)
    genuine = oracle.supports(oracle.with_params(domain=oracle.domain.size).privatise(held, rng), values)
    own, other = (
        np.clip(each.mean(axis=0), 1 / _GENUINE, 1 - 1 / _GENUINE)
        for each in (oracle.supports(reports[suspected], values), genuine)
    )
    ones, zeros = np.log(own / other), np.log((1 - own) / (1 - other))

    def scores(supporting: Bits) -> NDArray[np.float64]:
        found: NDArray[np.float64] = supporting @ (ones - zeros) + zeros.sum()
        return found

    bar = np.quantile(scores(genuine), 1 - loss, method="higher")
    starts = range(0, len(reports), _BATCH)
    found: Bits = np.concatenate([scores(oracle.supports(reports[s : s + _BATCH], values)) > bar for s in starts])
    return found


def _taken(abnormal: list[tuple[AbnormalItemset, Users]], *, parts: bool) -> tuple[tuple[AbnormalItemset, ...], Users]:
    """The itemsets that are taken, and the reports that support them.

    Args:
        abnormal: Abnormal itemsets, the least likely one first.
        parts: Whether a fake report supports a part of the targets only, each report another one.
    """
    kept, fake = list[AbnormalItemset](), np.zeros(1, dtype=np.uint64)
    for itemset, together in abnormal:
        left = int(np.bitwise_count(together & ~fake).sum())
        if left >= itemset.threshold or (parts and not any(_comparable(itemset.values, k.values) for k in kept)):
            kept.append(itemset)
            fake = fake | together
    return tuple(kept), fake


def _comparable(one: tuple[int, ...], other: tuple[int, ...]) -> bool:
    return set(one) <= set(other) or set(other) <= set(one)


def _surprise(share: float, rate: float) -> float:
    """How unlikely a share of reports is where it ought to be `rate`: the Kullback–Leibler divergence."""
    return float(rel_entr(share, rate) + rel_entr(1 - share, 1 - rate))


def abnormal_count(n: int, rate: float, error: float) -> int:
    """The least count that n reports reach with at most the given probability, each supporting an itemset at a rate.

    Args:
        n: How many reports.
        rate: The probability that a genuine report supports the itemset.
        error: The probability of a false alarm.
    """
    low, high = 0, n + 1
    while high - low > 1:
        middle = (low + high) // 2
        # The incomplete beta function has the binomial tail to full precision, however small it is.
        if betainc(middle, n - middle + 1, rate) <= error:
            high = middle
        else:
            low = middle
    return high


def _users(oracle: PureOracle, reports: Reports, values: Codes) -> Users:
    """For each value, which reports support it."""
    n = len(reports)
    packed = np.zeros((len(values), -(-n // 64) * 8), dtype=np.uint8)
    for start in range(0, n, _BATCH):
        found = np.packbits(oracle.supports(reports[start : start + _BATCH], values), axis=0, bitorder="little").T
        packed[:, start // 8 : start // 8 + found.shape[1]] = found
    return packed.view(np.uint64)


def _search(users: Users, n: int, largest: int, width: int) -> list[tuple[tuple[int, ...], Users]]:
    """Itemsets of 2 … `largest` values, and the reports that support each: `width` of each size."""
    counts = np.bitwise_count(users).sum(axis=1, dtype=np.int64)
    beam: list[tuple[tuple[int, ...], Users]] = [((value,), users[value]) for value in range(len(users))]
    found = []
    for _ in range(2, largest + 1):
        excess: dict[tuple[int, ...], float] = {}
        for itemset, together in beam:
            size = float(np.bitwise_count(together).sum())
            joined = np.bitwise_count(users & together).sum(axis=1, dtype=np.int64) - size * counts / n
            for value in np.argsort(-joined, kind="stable")[: width + len(itemset)]:
                if value not in itemset:
                    excess[tuple(sorted((*itemset, int(value))))] = float(joined[value])
        best = sorted(excess, key=lambda itemset: (-excess[itemset], itemset))[:width]
        beam = [(itemset, np.bitwise_and.reduce(users[list(itemset)], axis=0)) for itemset in best]
        found += beam
    return found


# -- what genuine reports support by chance ---------------------------------------------------------------------------
@singledispatch
def null_law(oracle: PureOracle, rng: Randomness) -> Null:  # noqa: ARG001
    """The largest probability that a genuine report supports an itemset, whatever its user's value is."""
    raise ConfigurationError(
        f"reports of {oracle.name} do not support several values each; detect works on unary, hashed and subset reports"
    )


@null_law.register
def _(oracle: UnaryEncoding, rng: Randomness) -> Null:  # noqa: ARG001
    return lambda itemset, error: (float(oracle.p * oracle.q ** (len(itemset) - 1)), error)


@null_law.register
def _(oracle: SubsetSelection, rng: Randomness) -> Null:  # noqa: ARG001
    d, k, p = oracle.domain.size, oracle.k, oracle.p

    def all_of(members: int, wanted: int) -> Fraction:
        """The probability that a uniform subset of the d − 1 other values has all wanted ones."""
        return math.prod((Fraction(max(members - i, 0), d - 1 - i) for i in range(wanted)), start=Fraction(1))

    def rate(itemset: tuple[int, ...], error: float) -> tuple[float, float]:
        z = len(itemset)
        holder = p * all_of(k - 1, z - 1)
        other = p * all_of(k - 1, z) + (1 - p) * all_of(k, z) if z < d else Fraction(0)
        return float(max(holder, other)), error

    return rate


@null_law.register
def _(oracle: PrefixHashing, rng: Randomness) -> Null:  # noqa: ARG001
    raise ConfigurationError(
        f"the functions of {oracle.name} hash more strings than its candidates; detect takes others"
    )


@null_law.register
def _(oracle: LocalHashing, rng: Randomness) -> Null:
    # Functions are pairwise independent only: they send regular sets, as three values at equal distances, to one bucket
    # more often than chance. A report supports a set if they do, and the report names that bucket: p of them at most.
    family = oracle.family
    functions = family.draw(_FUNCTIONS, rng)

    @cache
    def buckets(value: int) -> NDArray[np.int64]:
        return family.buckets(functions, np.array(value))

    def rate(itemset: tuple[int, ...], error: float) -> tuple[float, float]:
        """With half of the error for the probability, which is measured, and half left."""
        first = buckets(itemset[0])
        together = np.logical_and.reduce([buckets(value) == first for value in itemset[1:]])
        hits = int(together.sum())
        most = float(stats.beta.isf(error / 2, hits + 1, _FUNCTIONS - hits)) if hits < _FUNCTIONS else 1.0
        return float(oracle.p) * most, error / 2

    return rate


# -- one target -------------------------------------------------------------------------------------------------------
def fake_probability(oracle: PureOracle, beta: float, share: float) -> float:
    """The probability that a report which supports the only target is fake: β / (β + (1 − β)·(f·p + (1 − f)·q)).

    Fake users support their target always, genuine ones with probability p or q.

    Args:
        oracle: The oracle.
        beta: β, the share of fake users among all.
        share: f, the target's frequency among genuine users, as the server believes.

    Raises:
        ConfigurationError: One of them is no share.
    """
    if not (0 <= beta < 1 and 0 <= share <= 1):
        raise ConfigurationError(f"shares lie between 0 and 1; beta is {beta:g} and the target's share {share:g}")
    genuine = share * float(oracle.p) + (1 - share) * float(oracle.q)
    return beta / (beta + (1 - beta) * genuine)


def thin(
    oracle: PureOracle, reports: Reports, target: ArrayLike, beta: float, share: float, rng: Randomness | None = None
) -> Reports:
    """The reports without those that support the target and a coin with `fake_probability` takes for fake.

    As many genuine reports that support the target are expected to be left as there were, with fakes among them.

    Args:
        oracle: The oracle.
        reports: The reports, one by one.
        target: The attacker's only target, a value of the domain.
        beta: β, the share of fake users among all.
        share: f, the target's frequency among genuine users, as the server believes.
        rng: The source of randomness.

    Raises:
        ConfigurationError: A share is wrong.
        InputDataError: The target is not in the domain.
    """
    codes = oracle.domain.codes(np.asarray(target)[None])
    probability = Dyadic.floor(Fraction(fake_probability(oracle, beta, share)), PRECISE_BITS)
    taken = coin_flips(probability, len(reports), Randomness.from_os() if rng is None else rng)
    return reports[~(taken & oracle.supports(reports, codes)[:, 0])]
