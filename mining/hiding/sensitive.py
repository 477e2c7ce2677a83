"""What is to be hidden: rules and itemsets, and what else counts as one of them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from fractions import Fraction
from typing import Literal, cast, get_args

import numpy as np
from numpy.typing import NDArray

from link.errors import ConfigurationError, InputDataError
from mining.data.transactions import Transactions
from mining.itemsets import Itemsets
from mining.thresholds import minimum_count

Scope = Literal["rule", "supersets"]
Items = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class SensitiveRule:
    """A rule that nobody shall find; with an empty consequent, an itemset that nobody shall find frequent.

    Attributes:
        antecedent: X of X → Y.
        consequent: Y.

    Example:
        >>> comine.SensitiveRule(("bread",), ("milk",))
        SensitiveRule(antecedent=('bread',), consequent=('milk',))
    """

    antecedent: tuple[str, ...]
    consequent: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        items = (*self.antecedent, *self.consequent)
        if not self.antecedent or not all(items):
            raise ConfigurationError(
                "a sensitive rule names at least one item on its left side, and on its right one if it has an arrow"
            )
        for item in items:
            if items.count(item) > 1:
                raise ConfigurationError(f"the sensitive rule {self} names the item '{item}' twice")

    def __str__(self) -> str:
        left = ", ".join(self.antecedent)
        return f"{left} -> {', '.join(self.consequent)}" if self.consequent else left

    @classmethod
    def parse(cls, text: str, separator: str = ",") -> SensitiveRule:
        """A rule from text such as `bread, milk -> beer`; without an arrow an itemset.

        Raises:
            ConfigurationError: A side is empty, or an item stands twice.
        """
        left, arrow, right = text.partition("->")
        sides = [
            tuple(item.strip() for item in side.split(separator)) for side in ((left, right) if arrow else (left,))
        ]
        return cls(*sides)


def checked_scope(scope: str) -> Scope:
    """The scope of that name.

    Raises:
        ConfigurationError: There is none.
    """
    if scope not in get_args(Scope):
        raise ConfigurationError(f'there is no scope "{scope}"; there are rule and supersets')
    return cast(Scope, scope)


@dataclass(frozen=True, slots=True)
class Thresholds:
    """From where on somebody finds an itemset or a rule.

    Attributes:
        min_support: As in a job: a fraction of the rows, or a count.
        min_confidence: Of rules.

    Example:
        >>> comine.Thresholds(Decimal("0.2"), Decimal("0.5")).least_count(50)
        10
    """

    min_support: int | Decimal
    min_confidence: Decimal

    @classmethod
    def parse(cls, min_support: str, min_confidence: str) -> Thresholds:
        """From text: a whole number is a count, a decimal a fraction of the rows.

        Raises:
            ConfigurationError: One is neither, or out of range.
        """
        try:
            support = int(min_support) if min_support.isdecimal() else Decimal(min_support)
            confidence = Decimal(min_confidence)
        except InvalidOperation:
            raise ConfigurationError(
                f"min_support '{min_support}' and min_confidence '{min_confidence}' must be numbers such as 0.01"
            ) from None
        if isinstance(support, Decimal) and not (support.is_finite() and 0 < support <= 1):
            raise ConfigurationError(f"min_support is {min_support}; give a fraction above 0, at most 1, or a count")
        if not (confidence.is_finite() and 0 <= confidence <= 1):
            raise ConfigurationError(f"min_confidence is {min_confidence}; it must be from 0 to 1")
        return cls(support, confidence)

    def least_count(self, n_rows: int) -> int:
        """C = ⌈min_support · n⌉ for the rows that are released, which may be fewer than there were, or than a count."""
        return self.min_support if isinstance(self.min_support, int) else minimum_count(self.min_support, n_rows)

    def reaches(self, both: int, antecedent: int) -> bool:
        """Whether a rule has the confidence, exactly."""
        confidence = Fraction(self.min_confidence)
        return both * confidence.denominator >= confidence.numerator * antecedent


@dataclass(frozen=True, slots=True)
class Hidden:
    """A sensitive rule by the item numbers of some transactions, ascending on each side."""

    antecedent: Items
    consequent: Items

    @property
    def whole(self) -> Items:
        """All its items."""
        return tuple(sorted((*self.antecedent, *self.consequent)))


def numbered(rules: Iterable[SensitiveRule], data: Transactions) -> list[Hidden]:
    """The rules by item numbers, each once.

    Raises:
        InputDataError: A rule names an item that is in no transaction.
    """
    number = {item: index for index, item in enumerate(data.items)}
    found: dict[Hidden, None] = {}
    for rule in rules:
        for item in (*rule.antecedent, *rule.consequent):
            if item not in number:
                raise InputDataError(
                    f"the sensitive rule {rule} names the item '{item}', which is in no transaction; "
                    "check its spelling, or leave the rule out"
                )
        sides = (tuple(sorted(number[item] for item in side)) for side in (rule.antecedent, rule.consequent))
        found[Hidden(*sides)] = None
    return list(found)


def wholes(rules: Sequence[Hidden]) -> list[Items]:
    """The itemsets behind the rules that need support to be found, longest first, each once and none with another.

    What contains a sensitive itemset is rarer than it, so only the smallest ones have to be made infrequent.
    """
    distinct = {rule.whole for rule in rules}
    least = [each for each in distinct if not any(set(other) < set(each) for other in distinct)]
    return sorted(least, key=lambda each: (-len(each), each))


def holds_any(family: NDArray[np.int32], sensitive: Iterable[Items]) -> NDArray[np.bool_]:
    """Which itemsets contain a sensitive one.

    Args:
        family: Shape (m, k).
        sensitive: Itemsets.

    Returns:
        Shape (m,).
    """
    found = np.zeros(len(family), bool)
    for items in sensitive:
        if len(items) <= family.shape[1]:
            found |= np.all([(family == item).any(axis=1) for item in items], axis=0)
    return found


def without(itemsets: Itemsets, sensitive: Sequence[Items]) -> Itemsets:
    """F': those itemsets that contain no sensitive one; all that may be expected to be found still."""
    return itemsets.filter([~holds_any(sets, sensitive) for sets, _ in itemsets.levels])
