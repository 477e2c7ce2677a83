"""How the budget (ε, δ) of a run is dealt out, and the noise that follows: pure, from public parameters alone.

Each release is a vector of sums to which a record adds 1 in at most M places. Gaussian noise of variance σ² in each has
ρ = M/(2σ²), and ρ adds up over releases: the number of rows, the choice of items where there is no public catalogue,
and of each length the numbers of rows by size (`row_sizes`) and the itemsets. Of n parties t may collude, so each adds
a variance of σ²/(n − t).

Without a catalogue δ is halved: one half is the probability that a party names an item that one record alone has.

M may be decided while a job runs, by what has been opened. A release of share s keeps its part of the budget whatever M
is: Gaussian noise by its ρ; Skellam noise by its Rényi divergence, at most a·ρ + (2a + 5)·ρ²/M with ρ as above, which
is taken for M = 1.

Sources: Canonne, Kamath and Steinke, "The Discrete Gaussian for Differential Privacy", NeurIPS 2020; Kairouz, Liu and
Steinke, "The Distributed Discrete Gaussian Mechanism for Federated Learning with Secure Aggregation", ICML 2021;
Agarwal, Kairouz and Liu, "The Skellam Mechanism for Differentially Private Federated Learning", NeurIPS 2021; Gopi et
al., "Differentially Private Set Union", ICML 2020, for the choice of items.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import cache
from typing import Final

import numpy as np
from numpy.typing import NDArray

from crypto.primitives.randomness import Randomness
from ldp.accounting.central_noise import partition_threshold, sigma_for
from ldp.accounting.concentrated import rdp_epsilon, skellam_rdp, zcdp_rho
from ldp.accounting.discrete_gaussian import DiscreteGaussian
from ldp.accounting.rounding import float_below
from ldp.accounting.skellam import Skellam
from ldp.accounting.solving import crossing
from link.errors import ConfigurationError
from mining.joint.distributed.parameters import DistributedMining, NoiseLaw
from mining.joint.distributed.row_sizes import MOST_CLASSES
from mining.joint.spent import Spent

ROWS_SHARE: Final = Fraction(1, 100)
SELECTION_SHARE: Final = Fraction(1, 5)
SELECTION_MOST: Final = 15
"""To how many items a record counts at most where a party chooses those that it names, unless it counts to fewer."""

LENGTH_WEIGHTS: Final = (Fraction(25), Fraction(40), Fraction(25), Fraction(10))
"""Of itemsets of 1, 2, 3 and 4 items; longer ones share the fourth: each has half of the one before, the last as much
as that."""

SIZES_SHARE: Final = Fraction(1, 50)
"""Of the share of each length, what its numbers of rows by size take."""

_GRID: Final = 1 << 16


@dataclass(frozen=True, slots=True)
class SumNoise:
    """The noise of one vector of sums.

    Attributes:
        law: Its law.
        variance: The parameter of what each party adds to each sum: of the discrete Gaussian s², of Skellam μ.
        parties: How many parties add noise.
    """

    law: NoiseLaw
    variance: Fraction
    parties: int

    @property
    def sigma(self) -> float:
        """Standard deviation of all noise in a sum, in six digits, which are the same on every machine."""
        return float(f"{math.sqrt(self.variance * self.parties):.6g}")

    def share(self, size: int, random: Randomness) -> NDArray[np.int64]:
        """One party's noise for so many sums."""
        sampler = DiscreteGaussian(self.variance) if self.law == "discrete-gaussian" else Skellam(self.variance)
        return sampler.draw(size, random)


@dataclass(frozen=True, slots=True)
class Selection:
    """By which items a party names, where no catalogue is public.

    Attributes:
        most: To how many items a record counts at most.
        variance: The parameter s² of the discrete Gaussian that the party adds to its own counts.
        threshold: From which noisy count on an item is named.
    """

    most: int
    variance: Fraction
    threshold: int


def rows_noise(task: DistributedMining, parties: int) -> SumNoise:
    """The noise in the number of rows."""
    return _noise(task, parties, ROWS_SHARE, 1)


def length_noise(task: DistributedMining, parties: int, length: int, most: int) -> SumNoise:
    """The noise in the supports of itemsets of one length.

    Args:
        task: The public parameters.
        parties: n, how many parties add noise.
        length: Items of each itemset, from 1 to the task's `max_length`.
        most: M, to how many of them a record counts at most.
    """
    return _noise(task, parties, shares(task)[length - 1] * (1 - SIZES_SHARE), most)


def drawn_contributions(task: DistributedMining, parties: int, length: int) -> float:
    """The largest M for which the noise in the supports of one length can be drawn; arguments as of `length_noise`."""
    if task.noise != "skellam":
        return math.inf
    return Skellam.largest / float(length_noise(task, parties, length, 1).variance)


def sizes_noise(task: DistributedMining, parties: int, length: int) -> SumNoise:
    """The noise in numbers of rows by how many candidates of a length they hold; arguments as of `length_noise`.

    Of longer candidates there are two such histograms, by all of them and by likely ones; of items there is one.
    """
    return _noise(task, parties, shares(task)[length - 1] * SIZES_SHARE, 1 if length == 1 else 2)


def given_contributions(task: DistributedMining, length: int) -> int | None:
    """M of a length, where the job says it."""
    given = task.contributions
    return None if given is None else given[min(length, len(given)) - 1]


def selection(task: DistributedMining, parties: int) -> Selection | None:
    """How a party chooses the items that it names; None with a public catalogue.

    Args:
        task: The public parameters.
        parties: n; each chooses by itself, and its own noise is all that hides its records.
    """
    if task.catalogue is not None:
        return None
    most = min(SELECTION_MOST, task.contributions[0]) if task.contributions else SELECTION_MOST
    epsilon, delta = _budget(task)
    if task.noise == "skellam":
        variance = _on_grid(most * _unit_variance(task, parties) / SELECTION_SHARE)
    else:
        share = float_below(SELECTION_SHARE)
        variance = sigma_for(epsilon, delta, (share,), (most,), dimensions=dimensions(task))[0].parameter
    # One more than for continuous noise, which the discrete reaches no more often.
    threshold = 1 + partition_threshold(math.sqrt(variance), most, delta)
    return Selection(most, variance, math.ceil(threshold))


def shares(task: DistributedMining) -> tuple[Fraction, ...]:
    """The parts of the budget of itemsets of 1, 2, … items, up to the longest."""
    longest, usual = task.max_length, len(LENGTH_WEIGHTS)
    weights = list(LENGTH_WEIGHTS[:longest])
    if longest > usual:
        weights += [weights[-1] / 2**step for step in range(1, longest - usual + 1)]
        weights[usual - 1 :] = [weight / 2 for weight in weights[usual - 1 :]]
        weights[-1] *= 2
    left = 1 - ROWS_SHARE - (SELECTION_SHARE if task.catalogue is None else 0)
    return tuple(left * weight / sum(weights) for weight in weights)


def spent(task: DistributedMining, parties: int) -> Spent:
    """What a run costs each record: all that the job allows, which noise is made for, however early it ends.

    Raises:
        ConfigurationError: The budget does not fit the noise.
    """
    rows_noise(task, parties)  # refuses what cannot be
    bound = "concentrated privacy of discrete Gaussian sums"
    if task.noise == "skellam":
        bound = "Rényi privacy of Skellam sums"
    return Spent("distributed", None, float(task.epsilon), float(task.delta), None, bound)


def _noise(task: DistributedMining, parties: int, share: Fraction, most: int) -> SumNoise:
    if task.noise == "skellam":
        variance = most * _unit_variance(task, parties) / share
        return SumNoise(task.noise, _on_grid(variance / (parties - task.colluding)), parties)
    epsilon, delta = _budget(task)
    part = float_below(share)
    (level,) = sigma_for(epsilon, delta, (part,), (most,), parties, task.colluding, dimensions(task))
    return SumNoise(task.noise, level.parameter, parties)


def _budget(task: DistributedMining) -> tuple[float, float]:
    """ε, and δ of the noise; as much of δ again goes to the choice of items."""
    delta = Fraction(task.delta) / (1 if task.catalogue is not None else 2)
    return float_below(Fraction(task.epsilon)), float_below(delta)


def dimensions(task: DistributedMining) -> int:
    """The most sums of one release."""
    return max(task.max_candidates, len(task.catalogue or ()), 2 * MOST_CLASSES)


def _unit_variance(task: DistributedMining, parties: int) -> Fraction:
    """Skellam: the variance that the whole budget would ask for with M = 1; a release of share s needs M/s times that.

    The tables from which the noise is drawn are not quite exact, which is taken off δ.

    Raises:
        ConfigurationError: That is most of δ.
    """
    epsilon, delta = _budget(task)
    drawn = (task.max_length * (dimensions(task) + 2 * MOST_CLASSES) + 1) * parties
    inexact = drawn * (1 + math.exp(epsilon)) * Skellam.total_variation
    if inexact > delta / 2:
        raise ConfigurationError(
            f'noise = "skellam" needs a delta above {4 * inexact:.1g} for this epsilon; raise delta, lower epsilon, or '
            'use "discrete-gaussian"'
        )
    selected = SELECTION_SHARE if task.catalogue is None else Fraction(0)
    parts = [part for share in shares(task) for part in (share * SIZES_SHARE, share * (1 - SIZES_SHARE))]
    return _variance_for(epsilon, delta - inexact, (ROWS_SHARE, *parts), selected)


@cache
def _variance_for(epsilon: float, delta: float, parts: tuple[Fraction, ...], selected: Fraction) -> Fraction:
    """The least variance v with which Skellam sums of v/s, M = 1, and a Gaussian choice of items have (ε, δ).

    Raises:
        ConfigurationError: No variance that can be drawn is enough.
    """
    known = [float(part) for part in parts]

    def excess(variance: float) -> float:
        def curve(order: int) -> float:
            of_sums = sum(skellam_rdp(order, variance / part, 1, 1) for part in known)
            return of_sums + order * float(selected) / (2 * variance)

        return rdp_epsilon(curve, delta) / epsilon - 1

    least = 1 / (2 * zcdp_rho(epsilon, delta))
    most = 64.0 * max(least, 1.0)
    while excess(most) > 0:
        most *= 64
        if most > Skellam.largest:
            raise ConfigurationError(
                'noise = "skellam" cannot be as large as this epsilon asks for; raise epsilon, or use '
                '"discrete-gaussian"'
            )
    return Fraction(crossing(excess, least / 2, most, least))


def _on_grid(variance: Fraction) -> Fraction:
    return Fraction(math.ceil(variance * _GRID), _GRID)
