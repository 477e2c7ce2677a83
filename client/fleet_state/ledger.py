"""The ledgers of many clients at once, in whole numbers of a unit, so that sums are exact."""

from __future__ import annotations

import math
from collections import deque
from fractions import Fraction
from typing import Final

import numpy as np
from numpy.typing import NDArray

from ldp.streams.composition import GRID

_OF_STEPS: Final = Fraction(1, GRID)
_PARTS: Final = math.lcm(*range(1, 42)) << 4  # near 2^62, the most that sums in 64 bits leave room for


def unit_of(epsilon: Fraction) -> Fraction:
    """The unit of a budget that any number up to 41 of equal reports may use up to the last."""
    return epsilon / _PARTS if epsilon else _OF_STEPS


class FleetLedger:
    """What each client has spent within a span that goes on: of steps, or of seconds.

    Args:
        clients: How many.
        span: At a position, what was spent at one that is lower by `span` or more does not count.
        epsilon: What each may spend within it.
        unit: Amounts are whole numbers of it; of each, what is spent is rounded up. By default that of
            continual release, whose amounts are such numbers.
    """

    def __init__(self, clients: int, span: float, epsilon: Fraction, unit: Fraction = _OF_STEPS) -> None:
        self._span, self._unit, self._most = span, unit, math.floor(epsilon / unit)
        self._spent = np.zeros(clients, dtype=np.int64)
        self._entries: deque[tuple[float, NDArray[np.int64], int]] = deque()
        self._latest = -math.inf

    def allows(self, position: float, clients: NDArray[np.int64], epsilon: Fraction) -> NDArray[np.bool_]:
        """Which of some clients may spend an amount, shape of `clients`; none, where the position goes back.

        Args:
            position: A step, or a time.
            clients: Numbers of clients, none twice.
            epsilon: The amount.
        """
        if position < self._latest:
            return np.zeros(len(clients), dtype=np.bool_)
        self._latest = position
        while self._entries and self._entries[0][0] <= position - self._span:
            _, gone, amount = self._entries.popleft()
            self._spent[gone] -= amount
        amount = self._units(epsilon)
        if amount > self._most:
            return np.zeros(len(clients), dtype=np.bool_)
        within: NDArray[np.bool_] = self._spent[clients] <= self._most - amount
        return within

    def spend(self, clients: NDArray[np.int64], epsilon: Fraction) -> None:
        """Notes what clients that `allows` has allowed spend at its position."""
        amount = self._units(epsilon)
        if amount and len(clients):
            self._spent[clients] += amount
            self._entries.append((self._latest, clients, amount))

    def recall(self, position: float, clients: NDArray[np.int64], epsilon: Fraction) -> None:
        """Notes what clients have spent earlier; positions must not go back."""
        self._latest = max(self._latest, position)
        self.spend(clients, epsilon)

    def _units(self, epsilon: Fraction) -> int:
        return math.ceil(epsilon / self._unit)
