"""What methods of continual release share: a state machine that says whom to ask, and what to publish.

A service runs a step so:

    phase = method.plan(users)
    while phase is not None:
        phase = method.observe(estimate from the reports of those who are asked, or None if nobody answered)
    publish(method.release)

Nothing here is random and nothing is sent: what a method decides follows from estimates, which are private already.
"""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import Any, ClassVar, Final, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from ldp.budget import LEAST_EPSILON, check_epsilon
from ldp.domain import Domain, DomainLike
from ldp.estimate import Estimate
from ldp.frequency_oracle import FrequencyOracle
from ldp.parameters import Checked
from ldp.registry import oracle as oracle_of
from ldp.streams.composition import rounded_down
from ldp.streams.dissimilarity import drawn_variances
from ldp.streams.ledger import WindowLedger, check_window
from link.errors import ConfigurationError, InputDataError

Floats = NDArray[np.float64]
Kind: TypeAlias = Literal["dissimilarity", "publication"]

MAGIC: Final = b"LDPV\x01"

_KINDS: Final[tuple[Kind, ...]] = ("dissimilarity", "publication")


@dataclass(frozen=True, slots=True)
class Phase:
    """Reports that a step needs.

    Attributes:
        kind: What they are for: how far the stream has moved, or a fresh release.
        epsilon: ε of a report; exactly a float.
        share: The share of all users who are to report.
        chance: The probability with which a user reports who has not done so in the last w − 1 steps nor before in this
            one; then about `share` of all do. 1 where all users report.
    """

    kind: Kind
    epsilon: Fraction
    share: Fraction
    chance: Fraction


@dataclass(frozen=True, slots=True, eq=False)
class Release:
    """What is published at a step.

    Attributes:
        step: Its number, from 0.
        frequencies: Shape (d,): unbiased estimates if `fresh`; otherwise those of step `published` once more.
        variances: Shape (d,): of the frequencies when they were fresh, over reports and the draw of users. How far the
            stream has moved since comes on top. Infinite while nothing has been published.
        published: The step at which they were fresh; None for zeros, before anything is published.
        reports: From how many reports they were estimated; 0 before anything is published.
    """

    step: int
    frequencies: Floats
    variances: Floats
    published: int | None
    reports: int = 0

    @property
    def fresh(self) -> bool:
        """Whether they were estimated at this step."""
        return self.published == self.step


class StreamMethod(Checked, ABC):
    """A method that releases frequencies at every step and spends at most ε of any user in any w consecutive steps.

    What a method divides among steps, the budget or the users, it notes in ledgers, which refuse to exceed it.

    Args:
        domain: The domain, its size, or the texts of its values.
        epsilon: ε of a user within any w consecutive steps.
        w: The length of a window, in steps.
        oracle: A frequency oracle of `ldp.registry`; "auto" chooses one for each budget.

    Attributes:
        spent: What phases have taken.
        frequencies: Those published last.

    Raises:
        ConfigurationError: A parameter is out of range, or the window is so long that a step's budget is below 0.001.
    """

    name: ClassVar[str]

    def __init__(self, domain: DomainLike, epsilon: float, w: int, oracle: str = "auto") -> None:
        self.domain, self.epsilon, self.w = Domain.of(domain), check_epsilon(epsilon), check_window(w)
        self.oracle = oracle
        self.mechanism(self.phase_epsilon(self._unit))  # refuses unknown oracles and budgets that are too small
        self.spent = WindowLedger(self.w, self._total)
        self._step, self._users = -1, 0
        self._pending: Phase | None = None
        self._published: int | None = None
        self._reports = 0
        self.frequencies = np.zeros(self.domain.size)
        self._variances = np.full(self.domain.size, np.inf)

    # -- a step -------------------------------------------------------------------------------------------------------
    def plan(self, users: int) -> Phase | None:
        """Begins the next step.

        Args:
            users: How many users there are now, whether they may be asked or not.

        Returns:
            The first reports that are needed; None if the step asks nobody.

        Raises:
            InputDataError: The step before awaits an estimate, or the number of users is none.
        """
        if self._pending is not None:
            raise InputDataError(f"step {self._step} awaits its estimate for {self._pending.kind}; observe it first")
        if isinstance(users, bool) or not isinstance(users, int | np.integer) or users < 0:
            raise InputDataError(f"a number of users is a whole number, 0 or more, not {users!r}")
        self._step, self._users = self._step + 1, int(users)
        return self._begin() if self._users else None

    def observe(self, estimate: Estimate | None) -> Phase | None:
        """Takes the estimate from the reports of the last phase.

        Args:
            estimate: None if there was no report.

        Returns:
            The further reports that the step needs; None if it is done.

        Raises:
            InputDataError: The step awaits no estimate, or it is one of another domain.
        """
        phase = self._pending
        if phase is None:
            raise InputDataError("no step awaits an estimate; plan the next one")
        if estimate is not None and estimate.domain != self.domain:
            raise InputDataError("the estimate is one of another domain than the stream's")
        self._pending = None
        if estimate is None:
            return None
        if phase.kind == "dissimilarity":
            return self._decide(estimate, self.mechanism(phase.epsilon))
        self._publish(estimate)
        return None

    @property
    def release(self) -> Release:
        """What is published at the present step.

        Raises:
            InputDataError: No step has begun, or the step is not done.
        """
        if self._step < 0 or self._pending is not None:
            raise InputDataError("a release is there when its step is done; plan it, and observe what it asks for")
        return Release(self._step, self.frequencies, self._variances, self._published, self._reports)

    def mechanism(self, epsilon: Fraction) -> FrequencyOracle:
        """What makes the reports of a phase with this ε."""
        return _mechanism(self.oracle, self.domain, float(epsilon))

    # -- how budget or users are divided ------------------------------------------------------------------------------
    @property
    @abstractmethod
    def _total(self) -> Fraction:
        """What may be divided among the steps of a window."""

    @property
    @abstractmethod
    def _unit(self) -> Fraction:
        """The least amount that the method divides by, and at which it asks first."""

    @abstractmethod
    def phase_epsilon(self, amount: Fraction) -> Fraction:
        """ε of the reports that an amount buys."""

    @abstractmethod
    def phase_share(self, amount: Fraction) -> Fraction:
        """The share of the users that an amount buys."""

    # -- what a method decides ----------------------------------------------------------------------------------------
    @abstractmethod
    def _begin(self) -> Phase | None:
        """The first phase of a step."""

    def _decide(self, estimate: Estimate, oracle: FrequencyOracle) -> Phase | None:  # noqa: ARG002
        """The phase that publishes, if an estimate shows that the stream has moved; most methods never ask for one."""
        return None

    def _ask(self, kind: Kind, amount: Fraction) -> Phase:
        """Spends an amount; it is spent even if nobody should answer."""
        share = self.phase_share(amount)
        chance = share if share == 1 else share / self.spent.left(self._step)
        self.spent.spend(self._step, amount)
        self._pending = Phase(kind, self.phase_epsilon(amount), share, chance)
        return self._pending

    def _publish(self, estimate: Estimate) -> None:
        self._published, self._reports, self.frequencies = self._step, estimate.n, estimate.frequencies
        self._variances = estimate.frequency_variances + drawn_variances(estimate, self._users)

    # -- bytes --------------------------------------------------------------------------------------------------------
    def to_bytes(self) -> bytes:
        """The method with its parameters and its state, also in the middle of a step; for `methods.restored`."""
        names = None if self.domain.labels is None else list(self.domain.labels)
        return (
            MAGIC
            + json.dumps(
                {
                    "method": self.name,
                    "parameters": [self.domain.size if names is None else names, self.epsilon, self.w, self.oracle],
                    "state": self._state(),
                }
            ).encode()
        )

    def _state(self) -> dict[str, Any]:
        pending, published = self._pending, self._published
        return {
            "step": self._step,
            "users": self._users,
            "spent": self.spent.to_bytes().decode(),
            "pending": None if pending is None else [pending.kind, *map(str, _amounts(pending))],
            "published": published,
            "reports": self._reports,
            "frequencies": None if published is None else self.frequencies.tolist(),
            "variances": None if published is None else self._variances.tolist(),
        }

    def _restore(self, state: dict[str, Any]) -> None:
        self._step, self._users = int(state["step"]), int(state["users"])
        self._published = None if state["published"] is None else int(state["published"])
        self._reports = int(state.get("reports", 0))  # which earlier versions did not note
        self.spent = WindowLedger.from_bytes(state["spent"].encode())
        if (self.spent.w, self.spent.epsilon) != (self.w, self._total):
            raise InputDataError("the ledger is one of another window or budget")
        if state["pending"] is not None:
            kind, *amounts = state["pending"]
            self._pending = Phase(_KINDS[_KINDS.index(kind)], *map(Fraction, amounts))
        if self._published is not None:
            self.frequencies, self._variances = (
                np.array(state[part], dtype=np.float64) for part in ("frequencies", "variances")
            )
            if not self.frequencies.shape == self._variances.shape == (self.domain.size,):
                raise InputDataError("the last release has another number of values")

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.domain!r}, epsilon={self.epsilon:g}, w={self.w}, oracle={self.oracle!r})"


class BudgetDivision(StreamMethod):
    """All users report in every phase; ε is divided among the phases of a window."""

    @property
    def _total(self) -> Fraction:
        return Fraction(self.epsilon)

    def _part(self, parts: int) -> Fraction:
        part = rounded_down(self._total / parts)
        if part < LEAST_EPSILON:
            raise ConfigurationError(
                f"epsilon {self.epsilon:g} in {parts} parts leaves less than {LEAST_EPSILON:g} for each; take a "
                "shorter window, or a method that divides the users instead: lpu, lpd or lpa"
            )
        return part

    def phase_epsilon(self, amount: Fraction) -> Fraction:
        """As of every method."""
        return amount

    def phase_share(self, amount: Fraction) -> Fraction:  # noqa: ARG002
        """As of every method."""
        return Fraction(1)


class PopulationDivision(StreamMethod):
    """Each user reports once in a window at most, and spends all of ε; the users are divided among the phases."""

    @property
    def _total(self) -> Fraction:
        return Fraction(1)

    def _part(self, parts: int) -> Fraction:
        return Fraction(1, parts)

    def phase_epsilon(self, amount: Fraction) -> Fraction:  # noqa: ARG002
        """As of every method."""
        return rounded_down(Fraction(self.epsilon))

    def phase_share(self, amount: Fraction) -> Fraction:
        """As of every method."""
        return amount


def _amounts(phase: Phase) -> tuple[Fraction, Fraction, Fraction]:
    return phase.epsilon, phase.share, phase.chance


@lru_cache(maxsize=64)
def _mechanism(name: str, domain: Domain, epsilon: float) -> FrequencyOracle:
    return oracle_of(name, domain, epsilon)
