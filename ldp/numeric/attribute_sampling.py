"""Records of several attributes: every user reports a few that chance chooses, each with a share of the budget.

Dividing ε among all d attributes gives each a variance that grows like d² or faster; reporting k drawn ones with ε/k
makes it grow like d, and the best k is about ε/2.5.

The paper takes d/k times a report, and 0 for those who did not report an attribute, and averages over all users. Here
the mean is taken over those who reported it: they are a uniform sample of the users, so it is as unbiased, and the
spread that the factor d/k gives to the values themselves falls away.

Source: Wang, Xiao, Yang et al., "Collecting and Analyzing Multidimensional Data with Local Differential Privacy",
ICDE 2019, section IV, algorithm 4.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Iterator, Sequence
from fractions import Fraction
from functools import cached_property
from itertools import accumulate, pairwise
from typing import Any, Final, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from crypto.primitives.randomness import Randomness
from ldp.arithmetic.subsets import subset_lists
from ldp.blanket import Blanket
from ldp.budget import check_epsilon
from ldp.mechanism import Mechanism, Tally, some
from ldp.reports import Field, Reports
from link.errors import ConfigurationError, InputDataError

E = TypeVar("E")

MOST_ATTRIBUTES: Final = 1 << 14

_BEST_SHARE: Final = 2.5


class AttributeSampling(Mechanism[E]):
    """Draws k of d attributes and reports each by a mechanism of its own with ε/k.

    A report lists the attributes' numbers, which do not depend on the values, and each one's report in as many bytes as
    the longest takes.

    Args:
        epsilon: The privacy budget ε of a whole report.
        d: How many attributes a record has.

    Attributes:
        k: How many of them a report holds: max(1, min(d, ⌊ε/2.5⌋)).
        share: The budget of each, at most ε/k.
        components: The d attributes' mechanisms.
    """

    components: tuple[Mechanism[Any], ...]

    def __init__(self, epsilon: float, d: int) -> None:
        super().__init__(epsilon)
        self.d = check_attributes(d)
        self.k = max(1, min(d, math.floor(self.epsilon / _BEST_SHARE)))
        share = self.epsilon / self.k
        if Fraction(share) * self.k > Fraction(self.epsilon):
            share = math.nextafter(share, 0)
        self.share = check_epsilon(share)

    def _join(self, components: Sequence[Mechanism[Any]], names: Sequence[object]) -> None:
        self.components = tuple(components)
        self._names = [str(name) for name in names]
        self._payload = max(each.report_bytes for each in components)
        sizes = [1 + math.prod(each.tally_shape) for each in components]
        self._starts = [0, *accumulate(sizes)]

    @abstractmethod
    def _columns(self, values: ArrayLike) -> Sequence[NDArray[Any]]:
        """The d attributes' values, each of shape (n,)."""

    @cached_property
    def exact_epsilon(self) -> float:
        """What the k most expensive attributes cost together."""
        return math.fsum(sorted(each.exact_epsilon for each in self.components)[-self.k :])

    @property
    def layout(self) -> tuple[Field, ...]:
        """The numbers of k attributes, rising, and k reports."""
        return (Field("uint16", self.k), Field("uint8", self.k * self._payload))

    def _perturb(self, values: ArrayLike, rng: Randomness) -> tuple[NDArray[Any], ...]:
        columns = self._columns(values)
        n = len(columns[0])
        chosen = np.sort(subset_lists(self.k, n, self.d, rng), axis=1)
        payloads = np.zeros((n * self.k, self._payload), dtype=np.uint8)
        for component, column, places in zip(self.components, columns, self._by_attribute(chosen), strict=True):
            rows = _as_bytes(component.privatise(column[places // self.k], rng))
            payloads[places, : rows.shape[1]] = rows
        return chosen, payloads.reshape(n, self.k * self._payload)

    def blanket(self) -> Blanket | None:
        """That of k drawn attributes' reports, for records that differ in all of them."""
        parts = [each.blanket() for each in self.components]
        known = [each for each in parts if each is not None]
        return Blanket.sampled(known, self.k) if len(known) == len(parts) else None

    def _by_attribute(self, chosen: NDArray[Any]) -> list[NDArray[np.int64]]:
        """Where, in the list of all k·n single reports, each attribute's are."""
        order = np.argsort(chosen.ravel(), kind="stable")
        counts = np.bincount(chosen.ravel(), minlength=self.d)
        return np.split(order, np.cumsum(counts)[:-1])

    def _single(self, reports: Reports) -> Iterator[tuple[Mechanism[Any], Reports]]:
        """Each attribute's mechanism and the reports made by it."""
        payloads = reports.fields[1].reshape(-1, self._payload)
        for component, places in zip(self.components, self._by_attribute(reports.fields[0]), strict=True):
            yield component, _from_bytes(payloads[places], component)

    def _valid(self, reports: Reports) -> bool:
        chosen, payloads = reports.fields
        if np.any(chosen >= self.d) or np.any(chosen[:, 1:] <= chosen[:, :-1]):
            return False
        used = np.array([each.report_bytes for each in self.components])[chosen.astype(np.int64)]
        padding = payloads.reshape(*chosen.shape, self._payload) * (np.arange(self._payload) >= used[:, :, None])
        return not padding.any() and all(component._valid(single) for component, single in self._single(reports))

    @property
    def tally_shape(self) -> tuple[int, ...]:
        """For each attribute the number of users who reported it, and its mechanism's sums."""
        return (self._starts[-1],)

    def tally(self, reports: Reports) -> Tally:
        """The attributes' tallies, one behind the other."""
        parts = [
            np.concatenate([[len(single)], component.tally(single).ravel()])
            for component, single in self._single(reports)
        ]
        return np.concatenate(parts).astype(np.int64, copy=False)

    def _parts(self, tally: Tally, n: int) -> Iterator[tuple[Tally, int]]:
        """Each attribute's sums and how many reported it.

        Raises:
            InputDataError: There is no report, or none about some attribute.
        """
        some(n)
        for (start, end), component, name in zip(pairwise(self._starts), self.components, self._names, strict=True):
            reported = int(tally[start])
            if not reported:
                raise InputDataError(
                    f"no report holds attribute '{name}', as each holds {self.k} out of {self.d}; add more"
                )
            yield tally[start + 1 : end].reshape(component.tally_shape), reported


def check_attributes(d: int) -> int:
    """The number of attributes, if it is one that reports can name.

    Raises:
        ConfigurationError: It is below 1 or above 16,384.
    """
    if not 1 <= d <= MOST_ATTRIBUTES:
        raise ConfigurationError(f"a record has between 1 and {MOST_ATTRIBUTES:,} attributes, not {d:,}")
    return d


def _as_bytes(reports: Reports) -> NDArray[np.uint8]:
    """One row of bytes a report, field after field, little-endian."""
    n = len(reports)
    columns = []
    for field in reports.fields:
        little = np.ascontiguousarray(field, dtype=field.dtype.newbyteorder("<"))
        columns.append(little.view(np.uint8).reshape(n, -1) if n else np.zeros((0, 0), np.uint8))
    return np.concatenate(columns, axis=1)


def _from_bytes(rows: NDArray[np.uint8], mechanism: Mechanism[Any]) -> Reports:
    """The reports that `_as_bytes` wrote, perhaps followed by padding."""
    fields, start = [], 0
    for part in mechanism.layout:
        raw = np.ascontiguousarray(rows[:, start : start + part.nbytes])
        little = raw.view(np.dtype(part.dtype).newbyteorder("<")).reshape(part.shape(len(rows)))
        fields.append(little.astype(part.dtype, copy=False))
        start += part.nbytes
    return Reports(mechanism.fingerprint, tuple(fields))
