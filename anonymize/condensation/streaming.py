"""Condensation of a stream: records are added to moments and forgotten at once.

Source: Aggarwal and Yu, "A condensation approach to privacy preserving data mining", EDBT 2004, section 3; Aggarwal,
"Data Mining", 2015, section 20.3.1.4.

A record joins the group of the nearest mean. A group of 2k records is split in two of k along its longest axis, by its
moments alone (`moments.split`). So groups have k … 2k − 1 records from the k-th record on; after a split a count says
how many records a group represents, not that these very records were nearest to it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

import numpy as np
import pyarrow as pa
from numpy.typing import ArrayLike, NDArray

from anonymize.clustering.inputs import check_k
from anonymize.condensation.moments import Moments, split
from anonymize.condensation.synthesis import synthesise
from anonymize.release import Release
from crypto.primitives.randomness import Randomness
from link.errors import ConfigurationError, InputDataError

Floats = NDArray[np.float64]

_FORMAT: Final = "comine.condenser/1"


class Condenser:
    """Moments of a stream of records.

    Moments are of (x − origin) / unit. Both are chosen before the first record, so they must not be taken from the
    records: origins near the typical values keep digits, and units make distances in all columns comparable.

    Attributes:
        columns: Names of the d numbers of a record.
        k: Least number of records of a group, once there are k.
    """

    def __init__(
        self,
        columns: Sequence[str],
        k: int,
        *,
        origins: ArrayLike | None = None,
        units: ArrayLike | None = None,
    ) -> None:
        """A condenser without records.

        Args:
            columns: Names of the numbers of a record, at least one.
            k: Least number of records of a group.
            origins: Shape (d,); 0 unless given.
            units: Shape (d,), positive; 1 unless given.

        Raises:
            ConfigurationError: There are no columns, two have one name, k is below 1, or origins or units do not suit.
        """
        d = len(columns)
        if d == 0 or len(set(columns)) < d:
            raise ConfigurationError("A condenser needs one column at least, and each name once; correct `columns`.")
        check_k(k, max(k, 1))
        self.columns, self.k = tuple(columns), k
        self._origins = np.zeros(d) if origins is None else np.asarray(origins, np.float64)
        self._units = np.ones(d) if units is None else np.asarray(units, np.float64)
        for name, numbers in (("origins", self._origins), ("units", self._units)):
            if numbers.shape != (d,) or not np.isfinite(numbers).all():
                raise ConfigurationError(f"The {name} must be {d} finite numbers, one for each column.")
        if (self._units <= 0).any():
            raise ConfigurationError("The units must be above 0; give each column its typical deviation.")
        self._groups = 0
        self._counts, self._sums = np.empty(0, np.int64), np.empty((0, d))
        self._means, self._products = np.empty((0, d)), np.empty((0, d, d))

    @property
    def count(self) -> int:
        """Records added so far."""
        return int(self._counts[: self._groups].sum())

    @property
    def moments(self) -> Moments:
        """Of the groups, of (x − origin) / unit."""
        g = self._groups
        return Moments(self._counts[:g].copy(), self._sums[:g].copy(), self._products[:g].copy())

    def add(self, records: ArrayLike) -> None:
        """Adds a record, shape (d,), or several in their order, shape (n, d).

        Raises:
            InputDataError: A record has not d finite numbers; none of the given records is added then.
        """
        d = len(self.columns)
        given = np.atleast_2d(np.asarray(records, np.float64))
        if given.ndim != 2 or given.shape[1] != d:
            raise InputDataError(f"A record must have {d} numbers, one for each of {', '.join(self.columns)}.")
        wrong = np.argwhere(~np.isfinite(given))
        if len(wrong):
            row, column = wrong[0].tolist()
            raise InputDataError(f'Column "{self.columns[column]}" is no finite number in record {row}; leave it out.')
        for point in (given - self._origins) / self._units:
            self._add(point)

    def _add(self, point: Floats) -> None:
        if not self._groups:
            self._append(0, np.zeros_like(point), np.zeros((len(point), len(point))))
        means = self._means[: self._groups]
        nearest = int(np.square(means - point).sum(axis=1).argmin())
        self._counts[nearest] += 1
        self._sums[nearest] += point
        self._products[nearest] += np.outer(point, point)
        self._means[nearest] = self._sums[nearest] / self._counts[nearest]
        if self._counts[nearest] == 2 * self.k:
            one = slice(nearest, nearest + 1)
            halves = split(Moments(self._counts[one].copy(), self._sums[one], self._products[one]))
            self._put(nearest, int(halves.counts[0]), halves.sums[0], halves.products[0])
            self._append(int(halves.counts[1]), halves.sums[1], halves.products[1])

    def _append(self, count: int, sums: Floats, products: Floats) -> None:
        if self._groups == len(self._counts):  # space for as many again
            more = max(self._groups, 16)
            self._counts = np.append(self._counts, np.zeros(more, np.int64))
            for name in ("_sums", "_means", "_products"):
                held = getattr(self, name)
                setattr(self, name, np.concatenate((held, np.zeros((more, *held.shape[1:])))))
        self._groups += 1
        self._put(self._groups - 1, count, sums, products)

    def _put(self, group: int, count: int, sums: Floats, products: Floats) -> None:
        self._counts[group], self._sums[group], self._products[group] = count, sums, products
        self._means[group] = sums / max(count, 1)

    def release(self, rng: Randomness, factor: int = 1) -> Release:
        """Synthetic records that have the moments of the groups, in random order.

        Args:
            rng: Where they come from.
            factor: Synthetic records for each record.

        Raises:
            ConfigurationError: Fewer than k records have been added, or the factor is below 1.
        """
        if self.count < self.k:
            raise ConfigurationError(
                f"The condenser has {self.count} records, fewer than k = {self.k}; wait for more before a release."
            )
        if factor < 1:
            raise ConfigurationError(f"factor is {factor}, but each record needs a synthetic one; choose 1 or more.")
        moments = self.moments
        points, _ = synthesise(moments, factor, rng)
        numbers = points[rng.permutation(len(points))] * self._units + self._origins
        return Release(
            algorithm="condensation",
            table=pa.table(dict(zip(self.columns, numbers.T, strict=True))),
            rows=None,
            classes=None,
            suppressed=np.empty(0, np.int64),
            statistics={
                "groups": len(moments),
                "smallest": int(moments.counts.min()),
                "largest": int(moments.counts.max()),
            },
            details={
                "k": self.k,
                "factor": factor,
                "grouping": "stream",
                "columns": self.columns,
                "origins": self._origins,
                "units": self._units,
                "sizes": moments.counts,
                "sums": moments.sums,
                "products": moments.products,
            },
        )

    def state(self) -> dict[str, object]:
        """All that is kept, as numbers, texts and lists: `json.dumps` takes it, `from_state` gives it back exactly."""
        moments = self.moments
        return {
            "format": _FORMAT,
            "columns": list(self.columns),
            "k": self.k,
            "origins": self._origins.tolist(),
            "units": self._units.tolist(),
            "counts": moments.counts.tolist(),
            "sums": moments.sums.tolist(),
            "products": moments.products.tolist(),
        }

    @classmethod
    def from_state(cls, state: Mapping[str, Any]) -> Condenser:
        """The condenser whose `state` this is.

        Raises:
            InputDataError: It is no state of a condenser.
        """
        if state.get("format") != _FORMAT:
            raise InputDataError(f'This is no state of a condenser: its format is not "{_FORMAT}".')
        try:
            condenser = cls(state["columns"], state["k"], origins=state["origins"], units=state["units"])
            d = len(condenser.columns)
            counts = np.array(state["counts"], np.int64)
            sums = np.array(state["sums"], np.float64).reshape(len(counts), d)
            products = np.array(state["products"], np.float64).reshape(len(counts), d, d)
        except (KeyError, ValueError, TypeError) as error:
            raise InputDataError(f"The state of the condenser is damaged ({error}); use an earlier one.") from error
        for count, sum_, product in zip(counts.tolist(), sums, products, strict=True):
            condenser._append(count, sum_, product)
        return condenser
