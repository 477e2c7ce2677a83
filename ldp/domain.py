"""The values that reports speak of: numbers 0 … d − 1, or texts that are mapped to them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import cached_property
from typing import Final, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ldp.parameters import checked
from link.errors import ConfigurationError, InputDataError

LARGEST_DOMAIN: Final = 1 << 24

Codes: TypeAlias = NDArray[np.int64]
"""Shape (n,): numbers of values, 0 … d − 1."""


@checked
class Domain:
    """d values in a public order.

    Args:
        size: d, at least 2.
        labels: The values' texts, in their order; without them a value is its number.

    Raises:
        ConfigurationError: Fewer than two values, more than 2^24, or a label twice.

    Example:
        >>> Domain.of(["bread", "milk", "tea"]).codes(["milk", "bread"])
        array([1, 0])
    """

    def __init__(self, size: int, labels: Sequence[str] | None = None) -> None:
        if not 2 <= size <= LARGEST_DOMAIN:
            raise ConfigurationError(f"a domain has between 2 and {LARGEST_DOMAIN:,} values, not {size:,}")
        self.size = size
        self.labels = None if labels is None else tuple(labels)
        if self.labels is not None and len(self._codes) != size:
            raise ConfigurationError("a value is named twice in the domain; name each of its values once")

    @classmethod
    def of(cls, values: DomainLike) -> Domain:
        """A domain from its size, or from its values' texts."""
        if isinstance(values, Domain):
            return values
        if isinstance(values, int | np.integer):
            return cls(values)
        if not isinstance(values, Iterable):
            raise ConfigurationError(f"a domain is a number of values, or their texts, not {values!r}")
        labels = [str(value) for value in values]
        return cls(len(labels), labels)

    def codes(self, values: ArrayLike) -> Codes:
        """The numbers of values, shape (n,).

        Args:
            values: Numbers 0 … d − 1, or texts where the domain has labels.

        Raises:
            InputDataError: There is another value among them.
        """
        if self.labels is not None:
            return self._codes_of_texts(values)
        array = np.asarray(values)
        if array.ndim != 1 or (array.size and array.dtype.kind not in "iu"):
            raise InputDataError(f"values must be a list of whole numbers from 0 to {self.size - 1}")
        if array.size and not 0 <= array.min() <= array.max() < self.size:
            wrong = int(array[(array < 0) | (array >= self.size)][0])
            raise InputDataError(f"the value {wrong} is not in the domain, which has the values 0 to {self.size - 1}")
        return array.astype(np.int64)

    def names(self) -> list[str]:
        """The texts of all values, in their order."""
        return list(self.labels) if self.labels is not None else [str(value) for value in range(self.size)]

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Domain) and (self.size, self.labels) == (other.size, other.labels)

    def __hash__(self) -> int:
        return hash((self.size, self.labels))

    def __repr__(self) -> str:
        return f"Domain({self.size})" if self.labels is None else f"Domain({self.size}, labels={self.labels[:3]}…)"

    @cached_property
    def _codes(self) -> dict[str, int]:
        return {label: code for code, label in enumerate(self.labels or ())}

    def _codes_of_texts(self, values: ArrayLike) -> Codes:
        texts = [str(value) for value in np.asarray(values, dtype=object).ravel()]
        try:
            return np.fromiter(map(self._codes.__getitem__, texts), np.int64, len(texts))
        except KeyError as error:
            raise InputDataError(f"the value {error.args[0]!r} is not in the domain; add it or leave it out") from None


DomainLike: TypeAlias = Domain | int | Sequence[str]
