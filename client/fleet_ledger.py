"""The ledgers of many clients at once, in whole numbers of the grid of budgets, so that sums are exact."""

from __future__ import annotations

import math
from collections import deque
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from ldp.streams.composition import GRID


class FleetLedger:
    """What each client has spent within a span that goes on: of steps, or of seconds.

    Args:
        clients: How many.
        span: At a position, what was spent at one that is lower by `span` or more does not count.
        epsilon: What each may spend within it.
    """

    def __init__(self, clients: int, span: float, epsilon: Fraction) -> None:
        self._span, self._most = span, math.floor(epsilon * GRID)
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
        within: NDArray[np.bool_] = self._spent[clients] <= self._most - _units(epsilon)
        return within

    def spend(self, clients: NDArray[np.int64], epsilon: Fraction) -> None:
        """Notes what clients that `allows` has allowed spend at its position."""
        amount = _units(epsilon)
        if amount and len(clients):
            self._spent[clients] += amount
            self._entries.append((self._latest, clients, amount))


def _units(epsilon: Fraction) -> int:
    return math.ceil(epsilon * GRID)
