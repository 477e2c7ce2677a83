"""How many candidates users' sets contain: reports, and what padding to a length cuts off.

Sizes are reported in classes, exact up to 4 and then in steps of half an octave, so that the noise of few classes adds
up.

A set with s > L candidates counts with L/s to each. So padding to L takes off any one frequency at most

    b = Σ_{s > L} σ(s)·(1 − L/s)

and off all of them together Σ σ(s)·(s − L). How this is divided among candidates, sizes do not show: those that go with
large sets lose most of it. So b is what a frequency may be too low by, and intervals are widened by it. Of σ, which is
noisy, an upper confidence limit of b is taken.

A length is chosen (`ldp.sets.svim`) by b, and by the share of its members that a set reports,

    κ = Σ_s σ(s)·min(s, L) / Σ_s σ(s)·s

for what is found of a frequency is κ of it on average, while its noise is what it is.

For the estimates themselves the loss is taken to be in proportion: they are multiplied by 1 + u, with

    u = Σ_{s > L} σ(s)·(s − L) / Σ_x θ(x)

and so grow by b at most. Negative σ must stay, or be taken away from the others as Norm-Sub does: cut at 0, noise alone
adds up to a large u. What stays is noisy still, often more than u itself. So there are three treatments:

    shrunken   raw shares; their u times 1 − 4/z² where it is z > 2 standard deviations, else 0
    raw        raw shares: u has no bias, and much noise
    norm-sub   Norm-Sub: less noise, and a u that is too large

Source: Wang, Li and Jha, "Locally Differentially Private Frequent Itemset Mining", S&P 2018, section 4; the first
treatment, after James and Stein (1961), classes and the bound are ours.
"""

from __future__ import annotations

import math
from itertools import pairwise
from typing import Any, ClassVar, Final

import numpy as np
from numpy.typing import NDArray

from crypto.primitives.randomness import Randomness
from ldp.bias_aware import ONE_SIDED
from ldp.blanket import Blanket
from ldp.domain import DomainLike
from ldp.estimate import Estimate
from ldp.frequency_oracle import Floats, PureOracle
from ldp.mechanism import Channel, Tally
from ldp.oracles.direct_encoding import DirectEncoding
from ldp.oracles.local_hashing import OptimisedLocalHashing
from ldp.reports import Field, Reports
from ldp.sets.itemset_candidates import Candidates
from ldp.sets.padding import SetMechanism, direct_is_better
from link.errors import ConfigurationError

TREATMENTS: Final = ("shrunken", "raw", "norm-sub")

_SIGNIFICANT: Final = 2.0  # standard deviations


class SetSizes(SetMechanism):
    """Estimates how many users' sets contain 0, 1, 2 … of the candidates.

    A size is a value out of c + 1, or one of fewer classes, reported by direct encoding or by local hashing, whichever
    has less variance.

    Args:
        domain: The items: a domain, its size, or their texts.
        epsilon: The privacy budget ε.
        candidates: Itemsets that are counted; without them, all single items.
        ends: The largest size of each class, ascending from 0 to c; without them, each size is a class.

    Attributes:
        single: How a size is reported.

    Raises:
        ConfigurationError: The classes do not ascend from 0 to c.
    """

    name: ClassVar[str] = "set-sizes"

    single: PureOracle

    def __init__(
        self,
        domain: DomainLike,
        epsilon: float,
        candidates: Candidates | None = None,
        ends: tuple[int, ...] | None = None,
    ) -> None:
        super().__init__(domain, epsilon, candidates)
        self.ends = None if ends is None else tuple(ends)
        classes = tuple(range(self.width + 1)) if self.ends is None else self.ends
        whole = all(isinstance(end, int) and not isinstance(end, bool) for end in classes)
        if not whole or classes[:1] != (0,) or classes[-1] != self.width or _falls(classes):
            raise ConfigurationError(f"classes of sizes ascend from 0 to the number of candidates, {self.width:,} here")
        kind = DirectEncoding if direct_is_better(len(classes) - 1, 1, epsilon) else OptimisedLocalHashing
        self.single = kind(len(classes), epsilon)

    @property
    def exact_epsilon(self) -> float:
        """That of the oracle."""
        return self.single.exact_epsilon

    @property
    def layout(self) -> tuple[Field, ...]:
        """That of the oracle."""
        return self.single.layout

    def _perturb(self, values: Any, rng: Randomness) -> tuple[NDArray[Any], ...]:
        return self.single.privatise(self._classes(self.held(values).sizes), rng).fields

    def _classes(self, sizes: NDArray[np.int64]) -> NDArray[np.int64]:
        return sizes if self.ends is None else np.searchsorted(self.ends, sizes)

    def _valid(self, reports: Reports) -> bool:
        return self.single._valid(reports)

    @property
    def tally_shape(self) -> tuple[int, ...]:
        """One count a class."""
        return self.single.tally_shape

    def tally(self, reports: Reports) -> Tally:
        """How many reports support each class."""
        return self.single.tally(reports)

    def estimate(self, tally: Tally, n: int) -> Estimate:
        """How many sets are in each class of sizes, from 0 to c; raw, with variances."""
        return self.single.estimate(tally, n)

    def blanket(self) -> Blanket:
        """That of the oracle."""
        return self.single.blanket()

    def channel(self) -> Channel:
        """From every set of `all_sets` to the oracle's outputs."""
        rows = self.single.channel()
        return [rows[each] for each in self._classes(self.held(self.all_sets()).sizes).tolist()]

    def outcomes(self, reports: Reports) -> NDArray[np.int64]:
        """The oracle's."""
        return self.single.outcomes(reports)


def _falls(ends: tuple[int, ...]) -> bool:
    return any(low >= high for low, high in pairwise(ends))


def check_treatment(treatment: str) -> str:
    """The treatment, if there is one of that name.

    Raises:
        ConfigurationError: There is none.
    """
    if treatment not in TREATMENTS:
        raise ConfigurationError(f"estimated sizes are taken as one of {', '.join(TREATMENTS)}, not as '{treatment}'")
    return treatment


def size_classes(most: int) -> tuple[int, ...]:
    """The largest size of each class: 0, 1, 2, 3, 4, 6, 8, 12, 16, 24 … up to a number of candidates."""
    ends, step = [0, 1, 2, 3], 4
    while ends[-1] < most:
        ends += [step, step + step // 2]
        step *= 2
    return (*(end for end in ends if end < most), most)


def lost_bound(sizes: Estimate, ends: tuple[int, ...], length: int) -> float:
    """The most that a frequency may be too low by where sets are padded to a length: b, but for one time in twenty.

    Args:
        sizes: Of a `SetSizes`.
        ends: Its classes.
        length: L, the end of a class.

    Returns:
        From 0, where no set is longer, to 1 − L/c.
    """
    lost, noise = _lost(sizes, ends, length)
    return min(max(lost + ONE_SIDED * noise, 0.0), 1 - length / ends[-1])


def lost_square(sizes: Estimate, ends: tuple[int, ...], length: int) -> float:
    """About b², arguments as of `lost_bound`: what is not known of b counts with its variance."""
    lost, noise = _lost(sizes, ends, length)
    return max(lost, 0.0) ** 2 + noise**2


def kept_share(sizes: Estimate, ends: tuple[int, ...], length: int) -> float:
    """κ: how much of their members sets report that are padded to a length, of sizes after Norm-Sub.

    Args:
        sizes: Of a `SetSizes`.
        ends: Its classes, of which the middle is taken for all sizes.
        length: L.

    Returns:
        Above 0, and 1 where no set is longer.
    """
    middles, shares = _middles(ends), _projected(sizes)
    members = float(middles @ shares)
    return float(np.minimum(middles, length) @ shares) / members if members > 0 else 1.0


def _middles(ends: tuple[int, ...]) -> Floats:
    middles: Floats = (np.array(ends, np.float64) + np.array([-1, *ends[:-1]]) + 1) / 2
    return middles


def _lost(sizes: Estimate, ends: tuple[int, ...], length: int) -> tuple[float, float]:
    """The estimate of b, and its standard deviation; of a class, the largest size is taken for all."""
    at = ends.index(length) + 1
    weights = 1 - length / np.array(ends[at:], np.float64)
    noise = math.sqrt(float(weights**2 @ sizes.frequency_variances[at:]))
    return float(weights @ sizes.frequencies[at:]), noise


def lost_share(sizes: Estimate, ends: tuple[int, ...], length: int, total: float, treatment: str) -> float:
    """u: the members that sets beyond the length lose, by those that were found.

    Args:
        sizes: Of a `SetSizes`.
        ends: Its classes, of which the middle is taken for all sizes.
        length: L, the end of a class.
        total: Σ θ(x), the sum of the estimated frequencies.
        treatment: One of `TREATMENTS`.

    Returns:
        0 where noise makes either of them no positive number: nothing is known of what was lost.
    """
    at = ends.index(length) + 1
    shares = _projected(sizes) if treatment == "norm-sub" else sizes.frequencies
    beyond = _middles(ends)[at:] - length
    lost = float(beyond @ shares[at:])
    if lost <= 0 or total <= 0:
        return 0.0
    if treatment == "shrunken":
        noise = float(beyond**2 @ sizes.frequency_variances[at:])
        lost *= max(0.0, 1 - _SIGNIFICANT**2 * noise / lost**2)
    return lost / total


def _projected(sizes: Estimate) -> Floats:
    from ldp.consistency import norm_sub  # with all of scipy: clients, which need `SetSizes` only, do without

    return norm_sub(sizes.frequencies)
