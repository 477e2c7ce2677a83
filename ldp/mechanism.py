"""What every mechanism is: a client's half that perturbs, and a server's half whose tallies add up."""

from __future__ import annotations

import hashlib
import inspect
import json
from abc import ABC, abstractmethod
from collections.abc import Sized
from fractions import Fraction
from functools import cached_property
from typing import Any, ClassVar, Final, Generic, Self, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from crypto.primitives.randomness import Randomness
from ldp.blanket import Blanket
from ldp.budget import check_epsilon
from ldp.domain import Domain
from ldp.parameters import Checked
from ldp.reports import FINGERPRINT_BYTES, Field, Reports
from link.errors import ConfigurationError, InputDataError, ResourceError

_MOST_BYTES: Final = 1 << 32

Tally = NDArray[np.int64]
Channel = list[list[Fraction]]
"""Row x, column y: the exact probability that input x yields output y."""

E = TypeVar("E")


class Mechanism(Checked, ABC, Generic[E]):
    """A mechanism with its parameters; it holds no data.

    Parameters are the constructor's, readable as attributes of the same names (`get_params`).

    Attributes:
        name: As commands name it.
        epsilon: The privacy budget ε that was asked for.

    Example:
        >>> mechanism = oracle("oue", 4, epsilon=1.0)
        >>> mechanism.name, mechanism.with_params(epsilon=2.0).epsilon
        ('oue', 2.0)
    """

    name: ClassVar[str]

    def __init__(self, epsilon: float) -> None:
        self.epsilon = check_epsilon(epsilon)

    # -- the client's half --------------------------------------------------------------------------------------------
    @property
    @abstractmethod
    def exact_epsilon(self) -> float:
        """The ε that a report really spends: at most `epsilon`; where the channel is tight, less by rounding only."""

    @property
    @abstractmethod
    def layout(self) -> tuple[Field, ...]:
        """The parts of a report."""

    def privatise(self, values: ArrayLike, rng: Randomness | None = None) -> Reports:
        """Perturbs each value on its own.

        Args:
            values: Shape (n,), or (n, attributes) where a mechanism takes records.
            rng: The source of randomness; by default the operating system's. Seeded ones are for simulations.

        Returns:
            n reports, in the order of the values.

        Raises:
            InputDataError: A value is outside the domain.
            ConfigurationError: The source of randomness is none of this project's.
            ResourceError: The reports would take more than 4 GiB at once.
        """
        if rng is not None and not isinstance(rng, Randomness):
            raise ConfigurationError(
                f"reports are drawn from a crypto.primitives.randomness.Randomness, not from a {type(rng).__name__}; "
                "leave it out, or in simulations take Randomness.from_seed"
            )
        number = len(values) if isinstance(values, Sized) else 0
        if number * self.report_bytes > _MOST_BYTES:
            raise ResourceError(
                f"{number:,} reports of {self.report_bytes:,} bytes do not fit {_MOST_BYTES >> 30} GiB; privatise and "
                "aggregate them in batches, or take a mechanism with shorter reports"
            )
        fields = self._perturb(values, Randomness.from_os() if rng is None else rng)
        typed = [np.asarray(field, part.dtype) for field, part in zip(fields, self.layout, strict=True)]
        return Reports(self.fingerprint, tuple(typed))

    @abstractmethod
    def _perturb(self, values: ArrayLike, rng: Randomness) -> tuple[NDArray[Any], ...]:
        """The fields of one report for each value."""

    def channel(self) -> Channel:
        """All exact probabilities, by enumeration; for small domains, to certify the mechanism.

        Raises:
            NotImplementedError: Outputs cannot be enumerated.
        """
        raise NotImplementedError(f"the outputs of {self.name} are not enumerated")

    def outcomes(self, reports: Reports) -> NDArray[np.int64]:
        """Which column of `channel` each report is, shape (n,).

        Raises:
            NotImplementedError: Outputs cannot be enumerated.
        """
        raise NotImplementedError(f"the outputs of {self.name} are not enumerated")

    def blanket(self) -> Blanket | None:
        """What amplification by shuffling is computed from: exactly for this mechanism, or what bounds it from above.

        Returns:
            None where it is not known; what holds for any mechanism of `exact_epsilon` then has to do.
        """
        return None

    # -- the server's half --------------------------------------------------------------------------------------------
    @property
    @abstractmethod
    def tally_shape(self) -> tuple[int, ...]:
        """The shape of the sums that are kept of reports."""

    @abstractmethod
    def tally(self, reports: Reports) -> Tally:
        """What reports add to the sums."""

    @abstractmethod
    def estimate(self, tally: Tally, n: int) -> E:
        """Estimates from the sums over n reports.

        Raises:
            InputDataError: There is no report.
        """

    def read(self, data: bytes) -> Reports:
        """A batch of reports from bytes that anybody may have sent.

        Raises:
            InputDataError: They are malformed, or of another mechanism.
        """
        reports = Reports.from_bytes(data, self.fingerprint, self.layout)
        if not self._valid(reports):
            raise InputDataError(f"a report holds values that {self.name} never sends")
        return reports

    def _valid(self, reports: Reports) -> bool:  # noqa: ARG002 (most oracles send nothing that can be wrong)
        """Whether all values of the fields are ones that honest clients can send."""
        return True

    # -- what it is ---------------------------------------------------------------------------------------------------
    @property
    def report_bytes(self) -> int:
        """Bytes of one report on the wire."""
        return sum(field.nbytes for field in self.layout)

    def get_params(self, deep: bool = True) -> dict[str, object]:  # noqa: ARG002 (scikit-learn passes it)
        """The constructor's parameters by name, as scikit-learn asks for them."""
        return {name: getattr(self, name) for name in inspect.signature(type(self)).parameters}

    def with_params(self, **changes: object) -> Self:
        """The same mechanism with some other parameters."""
        parameters: dict[str, Any] = {**self.get_params(), **changes}
        return type(self)(**parameters)

    @property
    def mapping(self) -> int:
        """The version of what its reports mean: above 1 where earlier software versions read them otherwise."""
        return 1

    @cached_property
    def fingerprint(self) -> bytes:
        """16 bytes that name the mechanism with all its parameters, and what its reports mean."""
        text = json.dumps(plain(self), default=plain, sort_keys=True)
        return hashlib.sha256(text.encode()).digest()[:FINGERPRINT_BYTES]

    def __repr__(self) -> str:
        return f"{type(self).__name__}({', '.join(f'{key}={value!r}' for key, value in self.get_params().items())})"


def plain(value: object) -> object:
    """What JSON can say of a parameter."""
    if isinstance(value, Domain):
        return [value.size, value.labels]
    if isinstance(value, Mechanism):
        # The first mapping goes unsaid, so that mechanisms that never changed keep their fingerprints.
        return [value.name, value.get_params(), *([value.mapping] if value.mapping > 1 else [])]
    if isinstance(value, np.ndarray):
        return value.tolist()
    return str(value)


def some(n: int) -> None:
    """Refuses to estimate from nothing.

    Raises:
        InputDataError: n is 0.
    """
    if n < 1:
        raise InputDataError("there is no report to estimate from; add reports first")
