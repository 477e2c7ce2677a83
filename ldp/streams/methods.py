"""The seven methods of LDP-IDS: uniform, sampling, distribution and absorption, of the budget or of the users.

Source: Ren, Shi, Yu, Yang, Zhao and Xu, "LDP-IDS: Local Differential Privacy for Infinite Data Streams", SIGMOD 2022:
sections 5.2 (LBU, LSP), 5.3 (LBD), 5.4 (LBA) and 6 (LPU, LPD, LPA); distribution and absorption stem from Kellaris et
al., VLDB 2014. Steps count from 0 here, from 1 in the papers. Where LBA and LPA have to skip a step, because they spent
its part before, nobody is asked how far the stream has moved: the answer would not be used.
"""

from __future__ import annotations

from abc import abstractmethod
from fractions import Fraction
from typing import Any, ClassVar, Final

from ldp.budget import LEAST_EPSILON
from ldp.domain import DomainLike
from ldp.estimate import Estimate
from ldp.frequency_oracle import FrequencyOracle
from ldp.streams.composition import rounded_down
from ldp.streams.dissimilarity import concentration, dissimilarity, drawing_variance, mean_variance
from ldp.streams.ledger import WindowLedger
from ldp.streams.method import MAGIC, BudgetDivision, Phase, PopulationDivision, StreamMethod
from link.errors import ConfigurationError, InputDataError, PolicyDenied
from link.files.json_text import read_json

_NO_STATE: Final = "these bytes are no state of a method of this version"


# -- strategies -------------------------------------------------------------------------------------------------------
class _Uniform(StreamMethod):
    """A fresh release at every step, from a w-th of what there is to divide."""

    @property
    def _unit(self) -> Fraction:
        return self._part(self.w)

    @abstractmethod
    def _part(self, parts: int) -> Fraction:
        """What there is to divide, in equal parts."""

    def _begin(self) -> Phase | None:
        return self._ask("publication", self._unit)


class _Adaptive(StreamMethod):
    """Half of what there is shows, at every step, whether the stream has moved; the other half buys releases.

    A step publishes if the last release is farther off than a fresh one would be.
    """

    @property
    def _unit(self) -> Fraction:
        return self._part(2 * self.w)

    @abstractmethod
    def _part(self, parts: int) -> Fraction:
        """What there is to divide, in equal parts."""

    @abstractmethod
    def candidate(self) -> Fraction:
        """What a fresh release at this step could spend."""

    def _begin(self) -> Phase | None:
        return self._ask("dissimilarity", self._unit)

    def _decide(self, estimate: Estimate, oracle: FrequencyOracle) -> Phase | None:
        amount = self.candidate()
        epsilon, n = self.phase_epsilon(amount), int(self.phase_share(amount) * self._users)
        if epsilon < LEAST_EPSILON or n < 1:
            return None
        concentrated = concentration(estimate, mean_variance(oracle, estimate.n), self._users)
        concentrated = min(max(concentrated, 1 / self.domain.size), 1.0)
        error = mean_variance(self.mechanism(epsilon), n)
        error += drawing_variance(concentrated, n, self._users, self.domain.size)
        if dissimilarity(estimate, self.frequencies, oracle, self._users) <= error:
            return None
        return self._ask("publication", self._bought(amount))

    @abstractmethod
    def _bought(self, amount: Fraction) -> Fraction:
        """Notes that the candidate amount is spent now, and returns it."""


class _Distribution(_Adaptive):
    """A release spends half of what the releases of the last w − 1 steps have left: early ones get most."""

    def __init__(self, domain: DomainLike, epsilon: float, w: int, oracle: str = "auto") -> None:
        super().__init__(domain, epsilon, w, oracle)
        self._releases = WindowLedger(w, self._total / 2)

    def candidate(self) -> Fraction:
        """As of every method."""
        return rounded_down(self._releases.left(self._step) / 2)

    def _bought(self, amount: Fraction) -> Fraction:
        self._releases.spend(self._step, amount)
        return amount

    def _state(self) -> dict[str, Any]:
        return {**super()._state(), "releases": self._releases.to_bytes().decode()}

    def _restore(self, state: dict[str, Any]) -> None:
        super()._restore(state)
        self._releases = WindowLedger.from_bytes(state["releases"].encode())
        if (self._releases.w, self._releases.epsilon) != (self.w, self._total / 2):
            raise InputDataError("the ledger of releases is one of another window or budget")


class _Absorption(_Adaptive):
    """A release absorbs the parts of the steps that were skipped before it; as many after it spend nothing."""

    def __init__(self, domain: DomainLike, epsilon: float, w: int, oracle: str = "auto") -> None:
        super().__init__(domain, epsilon, w, oracle)
        self._next = 0  # the first step whose part is not spent: l + t_N + 1 in the paper

    def _begin(self) -> Phase | None:
        return None if self._step < self._next else super()._begin()

    def candidate(self) -> Fraction:
        """As of every method."""
        return self._unit * self._absorbed

    def _bought(self, amount: Fraction) -> Fraction:
        self._next = self._step + self._absorbed
        return amount

    @property
    def _absorbed(self) -> int:
        """t_A in the paper: the steps whose parts are free, this one included, w at most."""
        return min(self._step - self._next + 1, self.w)

    def _state(self) -> dict[str, Any]:
        return {**super()._state(), "next": self._next}

    def _restore(self, state: dict[str, Any]) -> None:
        super()._restore(state)
        self._next = int(state["next"])


# -- methods ----------------------------------------------------------------------------------------------------------
class Sampling(BudgetDivision):
    """LSP: all users spend all of ε at one step, and the w − 1 steps after it repeat its release."""

    name: ClassVar[str] = "lsp"

    @property
    def _unit(self) -> Fraction:
        return self._part(1)

    def _begin(self) -> Phase | None:
        return None if self.spent.left(self._step) < self._unit else self._ask("publication", self._unit)


class BudgetUniform(BudgetDivision, _Uniform):
    """LBU: all users report with ε/w at every step."""

    name: ClassVar[str] = "lbu"


class BudgetDistribution(BudgetDivision, _Distribution):
    """LBD: ε/(2w) at every step to see whether it moves; a release gets half of what is left of ε/2."""

    name: ClassVar[str] = "lbd"


class BudgetAbsorption(BudgetDivision, _Absorption):
    """LBA: ε/(2w) at every step to see whether it moves; a release gets ε/(2w) for each step that it absorbs."""

    name: ClassVar[str] = "lba"


class PopulationUniform(PopulationDivision, _Uniform):
    """LPU: a w-th of the users reports with ε at every step."""

    name: ClassVar[str] = "lpu"


class PopulationDistribution(PopulationDivision, _Distribution):
    """LPD: N/(2w) users at every step to see whether it moves; a release gets half of what is left of N/2 users."""

    name: ClassVar[str] = "lpd"


class PopulationAbsorption(PopulationDivision, _Absorption):
    """LPA: N/(2w) users at every step to see whether it moves; a release gets N/(2w) for each step that it absorbs."""

    name: ClassVar[str] = "lpa"


_METHODS: Final = (
    *(BudgetUniform, Sampling, BudgetDistribution, BudgetAbsorption),
    *(PopulationUniform, PopulationDistribution, PopulationAbsorption),
)
_BY_NAME: Final[dict[str, type[StreamMethod]]] = {kind.name: kind for kind in _METHODS}

METHODS: Final = tuple(_BY_NAME)


def stream_method(name: str, domain: DomainLike, epsilon: float, w: int, oracle: str = "auto") -> StreamMethod:
    """The method of a name, before its first step.

    Args:
        name: One of `METHODS`.
        domain: The domain, its size, or the texts of its values.
        epsilon: ε of a user within any w consecutive steps.
        w: The length of a window, in steps.
        oracle: A frequency oracle of `ldp.registry`; "auto" chooses one for each budget.

    Raises:
        ConfigurationError: There is none of that name, or a parameter is wrong.
    """
    if name not in _BY_NAME:
        raise ConfigurationError(f"there is no method '{name}' for streams; take one of {', '.join(METHODS)}")
    return _BY_NAME[name](domain, epsilon, w, oracle)


def restored(data: bytes) -> StreamMethod:
    """A method in the state that its `to_bytes` wrote.

    Raises:
        InputDataError: It is cut, of another version, or breaks its own rules.
    """
    if data[: len(MAGIC)] != MAGIC:
        raise InputDataError(_NO_STATE)
    try:
        found = read_json(data[len(MAGIC) :])
        method = stream_method(found["method"], *found["parameters"])
        method._restore(found["state"])
    except (ValueError, KeyError, TypeError, AttributeError, ArithmeticError, ConfigurationError, PolicyDenied):
        raise InputDataError(_NO_STATE) from None
    return method
