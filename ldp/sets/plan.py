"""Mining users' sets in phases: who answers in which, what is announced before each, and what is found at the end.

A plan is public, and a pure function: from the estimates of the phases so far follows the mechanism of the next, which
is all that a server announces, and in the end what was found. So several servers that add up the same reports agree.
"""

from __future__ import annotations

import struct
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import lcm
from typing import ClassVar, Final, cast

import numpy as np
from numpy.typing import NDArray

from crypto.primitives.randomness import Randomness
from ldp.aggregator import Aggregator
from ldp.bias_aware import selection_factor
from ldp.budget import check_epsilon
from ldp.documents import document, mechanism_of
from ldp.domain import Domain, DomainLike
from ldp.estimate import Estimate
from ldp.frequency_oracle import Floats
from ldp.mechanism import Mechanism
from ldp.parameters import Checked
from ldp.reports import Reports
from ldp.sets.baskets import Baskets, Sets
from ldp.sets.itemset_candidates import Candidates, Itemset
from ldp.sets.padding import SetMechanism
from ldp.sets.set_oracle import SetOracle
from link.errors import ConfigurationError, InputDataError

_MAGIC: Final = b"LDPT\x01"
_HEADER: Final = struct.Struct("<5sB")  # magic, how many phases are over
_SIZE: Final = struct.Struct("<Q")


SetReporter = SetMechanism | SetOracle
"""By what users report in a phase."""


@dataclass(frozen=True, slots=True)
class Phase:
    """What some users are asked.

    Attributes:
        number: From 0 on.
        share: The expected share of users who answer.
        mechanism: By which they report.
    """

    number: int
    share: Fraction
    mechanism: SetReporter

    @property
    def reported(self) -> Mechanism[Estimate]:
        """The mechanism, as what adds reports up takes it: estimates of sizes besides are not asked for."""
        return cast("Mechanism[Estimate]", self.mechanism)

    @property
    def announcement(self) -> bytes:
        """The mechanism as a document, with candidates and lengths: all that users must know; public."""
        return document(self.mechanism)


@dataclass(frozen=True, slots=True)
class FoundItemset:
    """An item or an itemset that was found.

    Attributes:
        items: Their numbers, ascending.
        names: Their texts.
        frequency: The estimated share of users whose sets contain all of them; raw, so it may be negative.
        deviation: The standard deviation of that estimate, over reports and over who was asked, raised so that the
            interval of ±1.96 of it covers, with 95 %, what may be lost and what choosing adds.
    """

    items: Itemset
    names: tuple[str, ...]
    frequency: float
    deviation: float


@dataclass(frozen=True, slots=True, eq=False)
class Supports:
    """Estimated frequencies of several itemsets.

    Attributes:
        domain: The items.
        itemsets: The k itemsets, single items among them.
        frequencies: Shape (k,): estimated shares of the users whose sets contain them.
        covariances: Shape (k, k): of `frequencies`; variances are raised where an estimate may be biased, or was chosen
            from many, so that ±1.96 of their roots is an interval of 95 %.
    """

    domain: Domain
    itemsets: Candidates
    frequencies: Floats
    covariances: Floats

    def top(self, k: int, among: int = 0) -> Supports:
        """The k with the highest frequencies, the highest first; of equal ones the first.

        Covariances grow by what their choice calls for, see `ldp.bias_aware`.

        Args:
            k: How many, if there are as many.
            among: How many estimates were compared, if more than there are here.
        """
        order = np.argsort(-self.frequencies, kind="stable")[:k]
        grown = selection_factor(len(order), max(among, len(self.itemsets))) ** 2
        return Supports(
            self.domain,
            tuple(self.itemsets[at] for at in order.tolist()),
            self.frequencies[order],
            self.covariances[np.ix_(order, order)] * grown,
        )

    def found(self) -> list[FoundItemset]:
        """Itemset by itemset."""
        names = self.domain.names()
        deviations = np.sqrt(np.diagonal(self.covariances))
        return [
            FoundItemset(items, tuple(names[item] for item in items), frequency, deviation)
            for items, frequency, deviation in zip(
                self.itemsets, self.frequencies.tolist(), deviations.tolist(), strict=True
            )
        ]


class MiningPlan(Checked, ABC):
    """The public plan of a search for the k most frequent items or itemsets.

    Args:
        domain: The items: a domain, its size, or their texts.
        epsilon: The privacy budget ε of a user for the whole search.
        k: How many are sought.
        by_phase: What a report may spend by phase, ε at most, where not all phases may spend the same.

    Attributes:
        shares: The expected share of users in each phase.
        phase_epsilon: What a report may spend at most: ε where users answer in one phase, as disjoint groups compose
            in parallel.

    Raises:
        ConfigurationError: A parameter is out of range.
    """

    divides_users: ClassVar[bool] = True
    """Whether a user answers in one phase; else all answer in all, and ε is divided."""

    shares: tuple[Fraction, ...]
    phase_epsilon: float

    def __init__(self, domain: DomainLike, epsilon: float, k: int, by_phase: Sequence[float] = ()) -> None:
        self.domain, self.epsilon, self.k = Domain.of(domain), check_epsilon(epsilon), k
        self.phase_epsilon, self._by_phase = self.epsilon, tuple(map(check_epsilon, by_phase))
        if max(self._by_phase, default=self.epsilon) > self.epsilon:
            raise ConfigurationError(f"no phase may spend more than epsilon = {self.epsilon:g}")
        if not self.least_sought <= k <= self.most_sought:
            raise ConfigurationError(f"k lies between {self.least_sought} and {self.most_sought:,} here, not at {k}")

    @property
    def least_sought(self) -> int:
        """The least k."""
        return 1

    @property
    def most_sought(self) -> int:
        """The largest k: all items."""
        return self.domain.size

    def epsilon_of(self, number: int) -> float:
        """What a report of a phase may spend."""
        return self._by_phase[number] if self._by_phase else self.phase_epsilon

    @abstractmethod
    def phase(self, estimates: Sequence[Estimate]) -> Phase:
        """The phase that follows.

        Args:
            estimates: Of the phases before it.
        """

    @abstractmethod
    def supports(self, estimates: Sequence[Estimate]) -> Supports:
        """What was found.

        Args:
            estimates: Of all phases.

        Returns:
            At most k itemsets, the most frequent first.
        """

    def assign(self, n: int, rng: Randomness | None = None) -> NDArray[np.int64]:
        """A random phase for each of n users, whatever their sets are; shape (n,).

        A client draws its own, before it knows what is asked in it, and answers in that phase alone.

        Raises:
            ConfigurationError: All users answer in all phases.
        """
        if not self.divides_users:
            raise ConfigurationError("in this plan every user answers in all phases; nobody is assigned to one")
        rng = Randomness.from_os() if rng is None else rng
        parts = lcm(*(share.denominator for share in self.shares))
        ends = np.cumsum([int(share * parts) for share in self.shares])
        return np.searchsorted(ends, rng.integers(parts, n).astype(np.int64), side="right")

    def announced(self, announcement: bytes) -> SetReporter:
        """What a client reports with, from what a server announced.

        Raises:
            InputDataError: It is no mechanism for sets of these items, or would spend more than planned.
        """
        found = mechanism_of(announcement, self.domain)
        if (
            not isinstance(found, SetMechanism | SetOracle)
            or found.domain != self.domain
            or found.epsilon > self.phase_epsilon
        ):
            raise InputDataError("what was announced is no phase of this plan; nothing is reported")
        return found

    def find(self, sets: Sets, rng: Randomness | None = None) -> list[FoundItemset]:
        """The whole search in one place, for simulations.

        Args:
            sets: The users' sets.
            rng: The source of randomness.

        Returns:
            At most k, the most frequent first.

        Raises:
            InputDataError: An item is not in the domain, or nobody answers in a phase.
        """
        rng = Randomness.from_os() if rng is None else rng
        baskets, server = Baskets.of(sets, self.domain), MiningServer(self)
        groups = self.assign(len(baskets), rng) if self.divides_users else None
        while not server.finished:
            asked = baskets if groups is None else baskets[groups == server.phase.number]
            server.add(server.phase.mechanism.privatise(asked, rng))
            server.advance()
        return server.found()


class MiningServer:
    """The server of a search: it announces a phase, adds up its reports, and goes on.

    Servers of the same phase merge by `Aggregator.merge` of their `reports`.

    Args:
        plan: What is sought.

    Attributes:
        plan: What is sought.
        phase: What is asked now; what was asked last, when the search is over.
        reports: The reports of that phase.
        finished: Whether all phases are over.
    """

    def __init__(self, plan: MiningPlan) -> None:
        self.plan, self.finished = plan, False
        self._ended: list[Aggregator[Estimate]] = []
        self._begin()

    def add(self, reports: Reports) -> None:
        """Adds reports of this phase.

        Raises:
            InputDataError: They are of another phase, or the search is over.
        """
        if self.finished:
            raise InputDataError("the search for frequent sets is over; no report can be added")
        self.reports.add(reports)

    def advance(self) -> None:
        """Ends the phase and begins the next.

        Raises:
            InputDataError: The phase has no report, or the search is over.
        """
        if self.finished:
            raise InputDataError("the search for frequent sets is over; there is no further phase")
        self.reports.estimate()
        self._ended.append(self.reports)
        self.finished = len(self._ended) == len(self.plan.shares)
        if not self.finished:
            self._begin()

    def supports(self) -> Supports:
        """What was found, with covariances.

        Raises:
            InputDataError: Phases are outstanding.
        """
        if not self.finished:
            raise InputDataError(
                f"the search has had {len(self._ended)} of its {len(self.plan.shares)} phases; go on with it"
            )
        return self.plan.supports(self._estimates())

    def found(self) -> list[FoundItemset]:
        """At most k itemsets, the most frequent first.

        Raises:
            InputDataError: Phases are outstanding.
        """
        return self.supports().found()

    def to_bytes(self) -> bytes:
        """The state, to be kept or sent."""
        states = [each.to_bytes() for each in (*self._ended, *([] if self.finished else [self.reports]))]
        header = _HEADER.pack(_MAGIC, len(self._ended))
        return b"".join([header, *(_SIZE.pack(len(state)) + state for state in states)])

    @classmethod
    def from_bytes(cls, data: bytes, plan: MiningPlan) -> MiningServer:
        """A state that `to_bytes` wrote.

        Raises:
            InputDataError: It is cut, of another version, or of another plan.
        """
        wrong = InputDataError("these bytes are no state of this search and version; begin it again")
        if len(data) < _HEADER.size or data[: len(_MAGIC)] != _MAGIC:
            raise wrong
        _, ended = _HEADER.unpack_from(data)
        states, at = [], _HEADER.size
        while at + _SIZE.size <= len(data):
            start, (size,) = at + _SIZE.size, _SIZE.unpack_from(data, at)
            states.append(data[start : start + size])
            at = start + size
        if at != len(data) or ended > len(plan.shares) or len(states) != min(ended + 1, len(plan.shares)):
            raise wrong
        server = cls(plan)
        for number, state in enumerate(states):
            server.reports = Aggregator.from_bytes(state, server.phase.reported)
            if number < ended:
                server.advance()
        return server

    def _estimates(self) -> list[Estimate]:
        return [each.estimate() for each in self._ended]

    def _begin(self) -> None:
        self.phase = self.plan.phase(self._estimates())
        self.reports: Aggregator[Estimate] = Aggregator(self.phase.reported)
