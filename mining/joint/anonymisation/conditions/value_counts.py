"""Shares of how many rows of each class have each sensitive value, and what tests on them have in common."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Final, Protocol

import numpy as np

from crypto.primitives.shares.additive import AdditiveShare
from crypto.primitives.shares.xor import XorShare
from crypto.protocols.comparison.comparison import width_for
from crypto.protocols.comparison.two_party import TwoParty
from link.errors import ConfigurationError, shareable
from link.session import Session

_LARGEST: Final = 1 << 61


@dataclass(frozen=True, eq=False)
class ValueCounts:
    """Shares of n_cs, rows of class c with the value s.

    Attributes:
        shared: Value by value the counts of all classes, modulo 2^64, shape (values · classes,).
        classes: How many there are.
    """

    shared: AdditiveShare
    classes: int

    @property
    def values(self) -> int:
        """How many values there are."""
        return self.shared.size // self.classes

    def of(self, *values: int) -> AdditiveShare:
        """The share of the rows with one of some values, by class."""
        chosen = self.shared.values.reshape(-1, self.classes)[list(values)]
        return AdditiveShare(chosen.sum(axis=0, dtype=self.shared.word), self.shared.holder, self.shared.holders)

    @cached_property
    def sizes(self) -> AdditiveShare:
        """The share of N_c, the rows of each class."""
        return summed(self.shared, self.classes)


class ClassTest(Protocol):
    """A condition on the sensitive values of a class; what it says of an empty class means nothing."""

    async def bits(self, session: Session, parties: TwoParty, counts: ValueCounts) -> XorShare:
        """Shares of which classes meet it; both holders call this.

        Args:
            session: A lane of its own.
            parties: This party's half of the agreement with the other.
            counts: Of the classes, at least one.
        """
        ...


def summed(shared: AdditiveShare, classes: int) -> AdditiveShare:
    """The share of the sums of parts that follow one another, one number for each class."""
    total = shared.values.reshape(-1, classes).sum(axis=0, dtype=shared.word)
    return AdditiveShare(total, shared.holder, shared.holders)


def parted(shared: AdditiveShare, classes: int) -> list[AdditiveShare]:
    """The parts that follow one another, one number for each class."""
    return [shared[start : start + classes] for start in range(0, shared.size, classes)]


def parted_bits(bits: XorShare, classes: int) -> list[XorShare]:
    """The same of bits."""
    return [bits[np.arange(start, start + classes)] for start in range(0, bits.number, classes)]


def constant_bits(parties: TwoParty, classes: int, *, met: bool) -> XorShare:
    """The share of a public bit for each class."""
    zeros = XorShare(np.zeros((1, -(-classes // 8)), np.uint8), classes, parties.me, parties.holders)
    return ~zeros if met else zeros


def exact_width(largest: int) -> int:
    """Bits of a comparison of numbers of −largest … largest with 0.

    Raises:
        ConfigurationError: They do not fit a word.
    """
    if largest >= _LARGEST:
        raise shareable(
            ConfigurationError(
                "there are too many rows for exact tests with parameters or values of so many digits; write these with "
                "fewer"
            )
        )
    return width_for(largest)
