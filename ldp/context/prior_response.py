"""Randomised responses that know the prior of values, and are private under LIP (see `ldp.context.lip`).

    PriorMatchedResponse   with probability θ, a fresh value from the prior instead of the user's own; any domain
    OptimalResponse        the response that most often reports the user's own value, by a linear program; small domains

Source: Jiang, Li and Tandon, "Context-Aware Local Information Privacy", IEEE Transactions on Information Forensics and
Security 16, 2021, of which θ is corrected for rare values here.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Sequence
from fractions import Fraction
from functools import cached_property
from typing import Any, ClassVar, Final

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.optimize import linprog
from scipy.sparse import block_array, eye_array, kron

from crypto.primitives.randomness import Randomness
from ldp.arithmetic.dyadic import PRECISE_BITS, Dyadic
from ldp.arithmetic.sampling import Bits, coin_flips
from ldp.blanket import Blanket
from ldp.budget import exp_below, log_above
from ldp.context.lip import PRIOR_WORDS, checked_prior, information_epsilon, satisfies_information_privacy
from ldp.domain import Codes, DomainLike
from ldp.frequency_oracle import Floats
from ldp.mechanism import Channel, Tally
from ldp.numbered_reports import NumberedReports
from ldp.reports import Reports
from link.errors import ConfigurationError, InternalError

_LARGEST_ENUMERATED: Final = 64
_WORST_CONDITION: Final = 1e6  # of a channel whose inverse is taken; beyond, estimates would be all noise


class PriorResponse(NumberedReports):
    """A value for a value, with probabilities that depend on the prior.

    `epsilon` is the LIP budget. `exact_epsilon` is what a report spends of plain LDP, up to twice as much, since audits
    and accountants go by that; `exact_information_epsilon` is what it spends of LIP.

    Args:
        domain: The domain, its size, or the texts of its values.
        epsilon: The LIP budget ε.
        prior: The probability of each value, in the order of the domain; each above 0.
    """

    def __init__(self, domain: DomainLike, epsilon: float, prior: Sequence[float]) -> None:
        super().__init__(domain, epsilon)
        self._prior = checked_prior(prior, self.domain.size)
        self.prior = tuple(float(each) for each in prior)

    @property
    @abstractmethod
    def exact_information_epsilon(self) -> float:
        """The ε of LIP that a report really spends: at most `epsilon`."""

    def supports(self, reports: Reports, values: Codes) -> Bits:
        """The value that it names."""
        found: Bits = np.equal(reports.fields[0][:, None], values)
        return found


class PriorMatchedResponse(PriorResponse):
    """Keeps the value with probability 1 − θ, and otherwise reports a value drawn from the prior.

    Reports are then distributed as the prior. θ = max(e^−ε, (1 − e^ε·P)/(1 − P)) for the rarest value's P: the common
    choice of θ = e^−ε alone breaks the guarantee where P < 1/(e^ε + 1).
    """

    name: ClassVar[str] = "lip-matched"

    def __init__(self, domain: DomainLike, epsilon: float, prior: Sequence[float]) -> None:
        super().__init__(domain, epsilon, prior)
        grown, least = exp_below(self.epsilon), min(self._prior)
        self._redrawn = Dyadic.ceil(max(1 / grown, (1 - grown * least) / (1 - least)), PRECISE_BITS)
        self.theta = self._redrawn.fraction
        if self.theta == 1:
            raise ConfigurationError("the rarest value's prior is too small for any information to pass; merge values")

    @property
    def exact_epsilon(self) -> float:
        """Of plain LDP: the rarest value reported by one who has it, against another user."""
        return log_above((1 - self.theta) / (self.theta * min(self._prior)) + 1)

    @property
    def exact_information_epsilon(self) -> float:
        """The larger of what the rarest value and a value that is not the user's own reveal."""
        least = min(self._prior)
        return log_above(max(1 / self.theta, (1 - self.theta) / least + self.theta))

    def _perturb(self, values: ArrayLike, rng: Randomness) -> tuple[NDArray[Any], ...]:
        codes = self.domain.codes(values)
        drawn = np.searchsorted(self._bounds, rng.uint64(len(codes)), side="right")
        return (np.where(coin_flips(self._redrawn, len(codes), rng), drawn, codes),)

    def unbiased(self, tally: Tally, n: int) -> Floats:
        """(C_v − n·θ·P_v) / (1 − θ)."""
        theta = float(self.theta)
        result: Floats = (tally - n * theta * self._shares) / float(1 - self.theta)
        return result

    def variance(self, counts: Floats, n: int) -> Floats:
        """That of C_v, over (1 − θ)²."""
        others = float(self.theta) * self._shares
        own = others + float(1 - self.theta)
        spread = counts * own * (1 - own) + (n - counts) * others * (1 - others)
        return np.asarray(spread / float(1 - self.theta) ** 2, dtype=np.float64)

    def channel(self) -> Channel:
        """θ·P_y, and 1 − θ more on the diagonal."""
        d = self.domain.size
        if d > _LARGEST_ENUMERATED:
            raise NotImplementedError(f"a channel with {d} outputs is not enumerated")
        return [
            [self.theta * p + (1 - self.theta if x == y else 0) for y, p in enumerate(self._prior)] for x in range(d)
        ]

    def blanket(self) -> Blanket:
        """The prior, with weight θ."""
        return Blanket.between(self.theta, (1 - self.theta) / min(self._prior) + self.theta)

    @cached_property
    def _shares(self) -> Floats:
        return np.array([float(each) for each in self._prior])

    @cached_property
    def _bounds(self) -> NDArray[np.uint64]:
        return _bounds([int(each * PRIOR_WORDS) for each in self._prior])


class OptimalResponse(PriorResponse):
    """The LIP response that reports a random user's own value most often, for at most 64 values.

    A linear program over all channels Q: the most Σ_x P_x·Q[x, x] under e^−ε·M_y ≤ Q[x, y] ≤ e^ε·M_y with the marginal
    M_y = Σ_z P_z·Q[z, y]. It is the best guess of single values. Where values are rare, below about 1/(e^2ε + 1), it
    does best never to report them, and frequencies cannot be estimated: such a prior is refused. For frequencies of
    more than a few values `information_private` has smaller errors.
    """

    name: ClassVar[str] = "lip-optimal"

    def __init__(self, domain: DomainLike, epsilon: float, prior: Sequence[float]) -> None:
        super().__init__(domain, epsilon, prior)
        if self.domain.size > _LARGEST_ENUMERATED:
            raise ConfigurationError(
                f"the optimal response is found for at most {_LARGEST_ENUMERATED} values; take PriorMatchedResponse"
            )
        ideal = best_response(np.array([float(each) for each in self._prior]), self.epsilon)
        self._words = _exact(ideal, self._prior, self.epsilon)
        self._matrix = np.array([[float(Fraction(each, PRIOR_WORDS)) for each in row] for row in self._words])
        if np.linalg.cond(self._matrix) > _WORST_CONDITION:
            raise ConfigurationError(
                "the optimal response leaves out values that are rare under this prior, so their frequency cannot be "
                "estimated; take PriorMatchedResponse or information_private"
            )

    @property
    def exact_epsilon(self) -> float:
        """Of plain LDP: the worst ratio of two rows."""
        return log_above(max(Fraction(max(column), min(column)) for column in zip(*self._words, strict=True)))

    @property
    def exact_information_epsilon(self) -> float:
        """By enumeration."""
        return information_epsilon(self.channel(), self._prior)

    @property
    def accuracy(self) -> float:
        """The probability that a random user's report is the own value."""
        return float(sum(p * row[x] for x, (p, row) in enumerate(zip(self._prior, self.channel(), strict=True))))

    def _perturb(self, values: ArrayLike, rng: Randomness) -> tuple[NDArray[Any], ...]:
        codes = self.domain.codes(values)
        words, drawn = rng.uint64(len(codes)), np.empty(len(codes), dtype=np.int64)
        for value, row in enumerate(self._words):
            users = np.flatnonzero(codes == value)
            drawn[users] = np.searchsorted(_bounds(row), words[users], side="right")
        return (drawn,)

    def unbiased(self, tally: Tally, n: int) -> Floats:  # noqa: ARG002 (the rows of a channel add up to 1)
        """Qᵀ⁻¹·C."""
        result: Floats = self._inverse @ tally
        return result

    def variance(self, counts: Floats, n: int) -> Floats:  # noqa: ARG002
        """Σ_x c_x·(Σ_y Q[x, y]·W[v, y]² − [x = v]) with W = Qᵀ⁻¹."""
        squares = self._matrix @ np.square(self._inverse).T
        return np.asarray(counts @ squares - counts, dtype=np.float64)

    def channel(self) -> Channel:
        """The channel that the program found."""
        return [[Fraction(each, PRIOR_WORDS) for each in row] for row in self._words]

    def blanket(self) -> Blanket:
        """Each output with its least probability."""
        columns = list(zip(*self._words, strict=True))
        weight = Fraction(sum(min(column) for column in columns), PRIOR_WORDS)
        return Blanket.between(weight, max(Fraction(max(column), min(column)) for column in columns) * weight)

    @cached_property
    def _inverse(self) -> Floats:
        return np.asarray(np.linalg.inv(self._matrix.T), dtype=np.float64)


def best_response(prior: Floats, epsilon: float) -> Floats:
    """The channel of `OptimalResponse` as real numbers, shape (k, k), up to the precision of the linear program."""
    k, grown = len(prior), math.exp(epsilon)
    # Variables: Q row by row, then the k marginals.
    marginals = kron(np.ones((k, 1)), eye_array(k))
    limits = block_array([[eye_array(k * k), -grown * marginals], [-eye_array(k * k), marginals / grown]])
    rows = kron(eye_array(k), np.ones((1, k)))
    sums = block_array([[rows, None], [kron(prior[None, :], eye_array(k)), -eye_array(k)]])
    found = linprog(
        np.concatenate([-np.diag(prior).ravel(), np.zeros(k)]),
        A_ub=limits.tocsr(),
        b_ub=np.zeros(2 * k * k),
        A_eq=sums.tocsr(),
        b_eq=np.concatenate([np.ones(k), np.zeros(k)]),
        bounds=(0, 1),
        method="highs",
        options={"primal_feasibility_tolerance": 1e-10, "dual_feasibility_tolerance": 1e-10},
    )
    if found.x is None:
        raise InternalError(f"the linear program of the optimal response failed: {found.message}")
    return np.asarray(found.x[: k * k].reshape(k, k), dtype=np.float64)


def _exact(ideal: Floats, prior: tuple[Fraction, ...], epsilon: float) -> list[list[int]]:
    """Rows of whole numbers of words, 2^64 each, next to an ideal channel and ε-LIP in exact arithmetic.

    What the program's precision and rounding miss is made up for by a small share of the marginal in every row: it
    leaves the marginal as it is, and draws all ratios to it towards 1.
    """
    clean = np.clip(ideal, 0, None)
    clean /= clean.sum(axis=1, keepdims=True)
    marginal = np.array([float(each) for each in prior]) @ clean
    share = 2.0**-50
    while share < 1:
        rows = [[int(each) for each in row] for row in ((1 - share) * clean + share * marginal) * float(PRIOR_WORDS)]
        for row in rows:
            row[int(np.argmax(row))] += PRIOR_WORDS - sum(row)
        channel = [[Fraction(each, PRIOR_WORDS) for each in row] for row in rows]
        if satisfies_information_privacy(channel, prior, epsilon):
            return rows
        share *= 2
    raise InternalError("no channel was found that is private in exact arithmetic")


def _bounds(words: Sequence[int]) -> NDArray[np.uint64]:
    """The first word of each value but the first one's."""
    totals, total = [], 0
    for each in words[:-1]:
        total += each
        totals.append(total)
    return np.array(totals, dtype=np.uint64)
