"""Records of numbers and categories: means and frequencies from the same reports.

Source: Wang, Xiao, Yang et al., "Collecting and Analyzing Multidimensional Data with Local Differential Privacy",
ICDE 2019, section IV-C: k attributes are drawn; a number is reported by PM or HM and a category by OUE, each with ε/k.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from crypto.primitives.randomness import Randomness
from ldp.domain import Domain
from ldp.estimate import Estimate
from ldp.frequency_oracle import FrequencyOracle
from ldp.mechanism import Mechanism, Tally
from ldp.numeric.attribute_sampling import AttributeSampling
from ldp.numeric.mean import MeanEstimate, NumericMechanism
from ldp.numeric.names import numeric
from ldp.registry import oracle
from ldp.reports import Reports
from link.errors import ConfigurationError, InputDataError


@dataclass(frozen=True, slots=True)
class Numeric:
    """An attribute whose mean is estimated.

    Attributes:
        name: Of the attribute.
        low: The range's lower end; not to be computed from the data.
        high: Its upper end.
        clip: Whether numbers outside are moved to the nearer end, instead of being refused.
    """

    name: str
    low: float
    high: float
    clip: bool = False


@dataclass(frozen=True, slots=True)
class Categorical:
    """An attribute whose values' frequencies are estimated.

    Attributes:
        name: Of the attribute.
        values: Their texts, or how many there are if they are numbers from 0 on.
    """

    name: str
    values: int | Sequence[str]


Attribute: TypeAlias = Numeric | Categorical


@dataclass(frozen=True, slots=True, eq=False)
class RecordsEstimate:
    """What is estimated of each attribute.

    Attributes:
        n: How many users have reported.
        means: The numeric attributes' means; each one's `n` says how many users reported it.
        frequencies: The categorical attributes' counts, out of all n users.
    """

    n: int
    means: dict[str, MeanEstimate]
    frequencies: dict[str, Estimate]


class MixedRecords(AttributeSampling[RecordsEstimate]):
    """Draws k attributes of a record and reports each with ε/k, by a mechanism of its kind.

    Args:
        schema: The attributes, in the records' order.
        epsilon: The privacy budget ε of a whole report.
        mechanism: For numbers: `hm`, `pm`, `duchi` or `laplace`.
        frequency: The oracle for categories, one of `ldp.registry.ORACLES`.

    Raises:
        ConfigurationError: There is no attribute, two have the same name, or a range or domain is wrong.
    """

    name: ClassVar[str] = "mixed-records"

    def __init__(
        self, schema: Sequence[Attribute], epsilon: float, mechanism: str = "hm", frequency: str = "oue"
    ) -> None:
        self.schema = tuple(
            Categorical(each.name, tuple(each.values))
            if isinstance(each, Categorical) and not isinstance(each.values, int | np.integer)
            else each
            for each in schema
        )
        self.mechanism, self.frequency = mechanism, frequency
        self.names = [each.name for each in self.schema]
        if len(set(self.names)) < len(self.names):
            raise ConfigurationError("two attributes of the schema have the same name; rename one")
        super().__init__(epsilon, len(self.schema))
        self._join([self._component(each) for each in self.schema], self.names)

    def _component(self, attribute: Attribute) -> Mechanism[Any]:
        if isinstance(attribute, Numeric):
            return numeric(self.mechanism, self.share, attribute.low, attribute.high, attribute.clip)
        return oracle(self.frequency, Domain.of(attribute.values), self.share)

    def privatise(self, values: ArrayLike | Mapping[str, ArrayLike], rng: Randomness | None = None) -> Reports:
        """Perturbs each record on its own.

        Args:
            values: Records, shape (n, d), or each attribute's values, shape (n,), by its name.
            rng: The source of randomness; by default the operating system's. Seeded ones are for simulations.

        Raises:
            InputDataError: A value is outside its attribute's range or domain, or an attribute is missing.
        """
        return super().privatise(self._records(values) if isinstance(values, Mapping) else values, rng)

    def _records(self, columns: Mapping[str, ArrayLike]) -> NDArray[np.object_]:
        missing = [name for name in self.names if name not in columns]
        if missing:
            raise InputDataError(f"the records lack the attribute '{missing[0]}', which the schema has")
        arrays = [np.asarray(columns[name]) for name in self.names]
        if any(each.ndim != 1 or len(each) != len(arrays[0]) for each in arrays):
            raise InputDataError("the attributes' values must be lists of the same length")
        records = np.empty((len(arrays[0]), len(arrays)), dtype=object)
        for place, each in enumerate(arrays):
            records[:, place] = each
        return records

    def _columns(self, values: ArrayLike) -> list[NDArray[Any]]:
        records = np.asarray(values, dtype=object)
        if records.size == 0:
            records = records.reshape(0, self.d)
        if records.ndim != 2 or records.shape[1] != self.d:
            raise InputDataError(f"records must have the {self.d} attributes {', '.join(self.names)}, in this order")
        columns = []
        for each, component, column in zip(self.schema, self.components, records.T, strict=True):
            try:
                columns.append(_checked(component, column))
            except InputDataError as error:
                raise InputDataError(f"attribute '{each.name}': {error.message}") from None
        return columns

    def estimate(self, tally: Tally, n: int) -> RecordsEstimate:
        """Means and counts, of those who reported an attribute, as a uniform sample of all n."""
        means, frequencies = {}, {}
        for each, component, (part, reported) in zip(self.names, self.components, self._parts(tally, n), strict=True):
            if isinstance(component, NumericMechanism):
                means[each] = component.estimate_of(part, reported, n)
            else:
                frequencies[each] = _of_all(component.estimate(part, reported), n)
        return RecordsEstimate(n, means, frequencies)


def _checked(component: Mechanism[Any], column: NDArray[Any]) -> NDArray[Any]:
    """An attribute's values in the form in which its mechanism takes some of them.

    All are looked at, also those that are not drawn: whether a record is refused must not depend on chance.
    """
    if isinstance(component, NumericMechanism):
        return component.interval.inside(column)
    assert isinstance(component, FrequencyOracle)
    if component.domain.labels is not None:
        component.domain.codes(column)
        return column
    try:
        return component.domain.codes(np.array(column.tolist()))
    except ValueError:
        raise InputDataError("a category is no whole number") from None


def _of_all(estimate: Estimate, n: int) -> Estimate:
    """Counts of n users from those of a uniform sample; sampling adds the finite population's f(1 − f)(1/m − 1/n)."""
    rate = n / estimate.n
    frequencies = np.clip(estimate.frequencies, 0, 1)
    sampling = frequencies * (1 - frequencies) * (rate - 1) * n
    return Estimate(estimate.domain, n, estimate.counts * rate, estimate.variances * rate**2 + sampling)
