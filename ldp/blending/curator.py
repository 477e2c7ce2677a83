"""What the trusted curator of the users who opted in publishes: a head list, and noisy frequencies of its records.

Each opted-in user gives one record, and is in one of two groups that chance makes; their records are replaced by others
in neighbouring data, since how many opted in is public. Then two counts change by one, so that noise with the ratio
e^(ε/2) from one number to the next costs ε.

    first group    counts of the records that occur, with noise; those of at least τ are published. A record that one
                   user alone has is published with the probability δ' = Pr[noise ≥ τ − 1] ≤ δ: whether it is there is
                   revealed with that probability only, and the count of any other record costs ε/2: (ε, δ').
    second group   counts of all records of the head list, with noise: (ε, 0).

So an opted-in user spends (ε, δ'). Noise is two-sided geometric on whole numbers, whose guarantee holds exactly; the
paper's Laplace noise in floating point has none (Mironov, CCS 2012).

Source: Avent et al., "BLENDER", USENIX Security 2017, on the opt-in group, with one record a user; Korolova,
Kenthapadi, Mishra and Ntoulas, "Releasing Search Queries and Clicks Privately", WWW 2009, on thresholds.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Final

import numpy as np

from crypto.primitives.randomness import Randomness
from ldp.blending.head_list import OTHER, HeadList, Record
from ldp.budget import check_epsilon, exp_below, log_above
from ldp.frequency_oracle import Floats
from ldp.numeric.geometric import FineGeometric
from link.errors import ConfigurationError, InputDataError

_LARGEST_DELTA: Final = 0.01


@dataclass(frozen=True, slots=True, eq=False)
class Frequencies:
    """Unbiased estimates of frequencies in a population, and of their variances, users' choice included.

    Attributes:
        frequencies: Shape (k,).
        variances: Shape (k,).
    """

    frequencies: Floats
    variances: Floats


class Curator:
    """The curator's two steps.

    Args:
        epsilon: ε of each opted-in user.
        delta: δ of each opted-in user of the first group.

    Raises:
        ConfigurationError: ε or δ is out of range.
    """

    def __init__(self, epsilon: float, delta: float) -> None:
        self.epsilon = check_epsilon(epsilon)
        if not 0 < delta <= _LARGEST_DELTA:
            raise ConfigurationError(f"delta lies above 0, and at {_LARGEST_DELTA} at most, not at {delta}")
        self.delta = delta
        self.noise = FineGeometric(1, exp_below(Fraction(self.epsilon) / 2))

    @property
    def exact_epsilon(self) -> float:
        """Of two counts that change by one."""
        return log_above(self.noise.worst_ratio**2)

    @cached_property
    def threshold(self) -> int:
        """τ, the least noisy count of a record that is published."""
        reach = max(1, math.floor(-2 * math.log(self.delta) / self.epsilon) - 2)
        while reach > 1 and self.noise.tail(reach) <= self.delta:
            reach //= 2
        while self.noise.tail(reach) > self.delta:
            reach += 1
        return reach + 1

    @property
    def exact_delta(self) -> float:
        """δ', the probability that a record of one user is published."""
        nearest = float(self.noise.tail(self.threshold - 1))
        return math.nextafter(nearest, math.inf)

    def head_list(self, records: Sequence[Record], rng: Randomness, *, most: int | None = None) -> HeadList:
        """The records that the first group's noisy counts show to be frequent.

        Args:
            records: One of each user of the group.
            rng: The source of randomness.
            most: How many records are wanted; of more, those with the largest noisy counts are published.

        Returns:
            The queries by their most frequent record, the most frequent first, and so the URLs of each.

        Raises:
            ConfigurationError: No record is frequent enough.
        """
        counts = Counter(record for record in records if OTHER not in record)
        noisy = np.fromiter(counts.values(), np.int64, len(counts)) + self.noise.draw(len(counts), rng)
        # The order of the list must reveal no more than the counts do: equal ones are in the order of their texts.
        published = sorted(
            (-int(count), record) for count, record in zip(noisy, counts, strict=True) if count >= self.threshold
        )
        urls: dict[str, list[str]] = {}
        for _, (query, url) in published[:most]:
            urls.setdefault(query, []).append(url)
        return HeadList(urls)

    def counts(self, records: Sequence[Record], head: HeadList, rng: Randomness) -> Floats:
        """The second group's noisy counts of all records of the head list, those of all others included.

        Args:
            records: One of each user of the group.
            head: The head list.
            rng: The source of randomness.

        Returns:
            Shape (d,).

        Raises:
            InputDataError: There are less than two records.
        """
        if len(records) < 2:
            raise InputDataError("frequencies and their errors need at least two users who opted in, in each group")
        exact = np.bincount(head.codes(records), minlength=len(head.records))
        return np.asarray(exact + self.noise.draw(len(exact), rng), dtype=np.float64)

    def frequencies(self, counts: Floats, n: int, summed: Floats | float = 1) -> Frequencies:
        """Frequencies from noisy counts.

        Args:
            counts: Noisy counts, or sums of them.
            n: How many users' records were counted.
            summed: How many noisy counts each is the sum of.
        """
        return noisy_frequencies(counts, n, float(self.noise.variance) * np.asarray(summed))


def noisy_frequencies(counts: Floats, n: int, noise: Floats | float) -> Frequencies:
    """Frequencies in a population from noisy counts over n of its users.

    With the noise's variance v a frequency f̂ has the variance f(1 − f)/n + v/n². Since f̂(1 − f̂) has the mean
    f(1 − f)(1 − 1/n) − v/n², that is without bias (f̂(1 − f̂) + v/n²)/(n − 1) + v/n².

    Args:
        counts: Noisy counts.
        n: How many users' records were counted, at least 2.
        noise: v, the variance of the noise in each count.
    """
    found = counts / n
    added = noise / n**2
    return Frequencies(found, np.maximum((found * (1 - found) + added) / (n - 1), 0) + added)
