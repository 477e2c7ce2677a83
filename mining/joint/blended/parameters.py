"""The public parameters of blended mining."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    pass

HEAD: Final = 2
"""So many times as many items as are wanted are estimated: those that a half of the trusting records shows to be the
most frequent hold nearly all of the most frequent of all."""

MAX_NAMED: Final = 1_000_000
"""The most items that a trusted party names."""


@dataclass(frozen=True, slots=True)
class Blending:
    """What all parties agree on before a run.

    Attributes:
        epsilon: ε of every record: of one at a trusted party towards all others together, with δ; of any other towards
            everybody who sees what its party sends.
        delta: δ of records at trusted parties.
        k: How many of the most frequent items are wanted.
        opted_in: The parties whose people trust them to count; at least one, and not all.
        analyst: The party that puts estimates together.
        learners: The parties that get the result.
        catalogue: The public items, where there is a catalogue: no others are named.
        min_support: Only items whose estimated support reaches it are in the result.
    """

    epsilon: Decimal
    delta: Decimal
    k: int
    opted_in: tuple[str, ...]
    analyst: str
    learners: tuple[str, ...]
    catalogue: tuple[str, ...] | None = None
    min_support: int | Decimal | None = None

    @property
    def head(self) -> int:
        """The most items of the head list."""
        return HEAD * self.k
