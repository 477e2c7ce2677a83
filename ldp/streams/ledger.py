"""Exact ledgers of what was spent in the last w steps: of one user or service, and of many users at once.

w-event privacy bounds what all reports within any w consecutive steps reveal together: who sees the reports cannot
say much about what a user did within w steps, however long the stream is.
Source: Kellaris, Papadopoulos, Xiao and Papadias, "Differentially Private Event Sequences over Infinite Streams", VLDB
2014, theorem 3: it suffices that the budgets spent within every window add up to ε at most.
"""

from __future__ import annotations

import json
import math
from collections import deque
from fractions import Fraction
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from ldp.streams.composition import GRID, exact
from link.errors import ConfigurationError, InputDataError, PolicyDenied
from link.files.json_text import read_json

_MAGIC: Final = b"LDPW\x01"
_NO_LEDGER: Final = "these bytes are no ledger of this version; a user without its ledger waits for w steps"


class WindowLedger:
    """What was spent at which step, for as long as it counts; at most w amounts are kept.

    A ledger that is lost or rolled back lets its user spend again: keep what `to_bytes` gives before a report is sent.

    Args:
        w: The length of a window, in steps.
        epsilon: What may be spent in a window.

    Attributes:
        entries: Steps, ascending, and their amounts.

    Raises:
        ConfigurationError: The window has no step, or the budget is not above 0.
    """

    def __init__(self, w: int, epsilon: float | Fraction) -> None:
        self.w, self.epsilon = check_window(w), exact(epsilon)
        if not self.epsilon:
            raise ConfigurationError("a ledger of a budget of 0 would refuse everything; give it more")
        self.entries: deque[tuple[int, Fraction]] = deque()  # (step, amount), steps ascending

    def spent(self, step: int) -> Fraction:
        """What the w steps that end with this one have spent.

        Raises:
            InputDataError: The step is no whole number, or lies before the last at which something was spent.
        """
        first = self._checked(step) - self.w + 1
        return sum((amount for at, amount in self.entries if at >= first), Fraction(0))

    def left(self, step: int) -> Fraction:
        """What may still be spent at this step.

        Raises:
            InputDataError: As for `spent`.
        """
        return self.epsilon - self.spent(step)

    def spend(self, step: int, epsilon: float | Fraction) -> None:
        """Notes what is spent; several amounts at one step add up, and steps may be left out.

        Raises:
            PolicyDenied: A window would exceed its budget. Nothing is noted.
            InputDataError: As for `spent`.
            ConfigurationError: The amount is no finite number, or negative.
        """
        amount, left = exact(epsilon), self.left(step)
        if amount > left:
            raise PolicyDenied(
                f"the budget of {float(self.epsilon):g} for {self.w} steps does not allow {float(amount):g} at step "
                f"{step}, where {float(left):g} is left; wait until earlier reports leave the window"
            )
        while self.entries and self.entries[0][0] <= step - self.w:
            self.entries.popleft()
        if self.entries and self.entries[-1][0] == step:
            amount += self.entries.pop()[1]
        self.entries.append((step, amount))

    def to_bytes(self) -> bytes:
        """The ledger, to be kept."""
        spent = [[step, str(amount)] for step, amount in self.entries]
        return _MAGIC + json.dumps({"w": self.w, "epsilon": str(self.epsilon), "spent": spent}).encode()

    @classmethod
    def from_bytes(cls, data: bytes) -> WindowLedger:
        """A ledger that `to_bytes` wrote.

        Raises:
            InputDataError: It is cut, of another version, or breaks its own rules.
        """
        if data[: len(_MAGIC)] != _MAGIC:
            raise InputDataError(_NO_LEDGER)
        try:
            found = read_json(data[len(_MAGIC) :])
            ledger = cls(found["w"], Fraction(found["epsilon"]))
            for step, amount in found["spent"]:
                ledger.spend(step, Fraction(amount))
        except (ValueError, KeyError, TypeError, ArithmeticError, ConfigurationError, PolicyDenied):
            raise InputDataError(_NO_LEDGER) from None
        return ledger

    def _checked(self, step: int) -> int:
        if isinstance(step, bool) or not isinstance(step, int | np.integer):
            raise InputDataError(f"a step is a whole number, not {step!r}")
        if self.entries and step < self.entries[-1][0]:
            raise InputDataError(f"step {step} lies before step {self.entries[-1][0]}, and steps only go on")
        return int(step)


class UserLedgers:
    """The ledgers of many users, for simulations: exact, in whole numbers of the grid.

    Args:
        users: How many; they are numbered from 0.
        w: The length of a window, in steps.
        epsilon: What each may spend in a window.

    Raises:
        ConfigurationError: The window has no step, or the budget is not above 0.
    """

    def __init__(self, users: int, w: int, epsilon: float | Fraction) -> None:
        self.w = check_window(w)
        self._most = math.floor(exact(epsilon) * GRID)
        if self._most < 1:
            raise ConfigurationError("ledgers of a budget of 0 would refuse everything; give them more")
        self._spent = np.zeros(users, dtype=np.int64)
        self.entries: deque[tuple[int, NDArray[np.int64], int]] = deque()
        self._peak = 0

    def spend(self, step: int, users: NDArray[np.int64], epsilon: Fraction) -> None:
        """Notes that some users, none of them twice, spend an amount; steps must not go back.

        Raises:
            PolicyDenied: Some user's window would exceed its budget. Nothing is noted.
        """
        while self.entries and self.entries[0][0] <= step - self.w:
            _, left, amount = self.entries.popleft()
            self._spent[left] -= amount
        amount = math.ceil(exact(epsilon) * GRID)
        if not users.size:
            return
        peak = int(self._spent[users].max()) + amount
        if peak > self._most:
            raise PolicyDenied(
                f"a user would spend {peak / GRID:g} within {self.w} steps, and the budget is {self._most / GRID:g}"
            )
        self._spent[users] += amount
        self.entries.append((step, users, amount))
        self._peak = max(self._peak, peak)

    @property
    def peak(self) -> Fraction:
        """The most that any user has spent in any window so far."""
        return Fraction(self._peak, GRID)


def check_window(w: Any) -> int:
    """The length of a window.

    Raises:
        ConfigurationError: It is no whole number, or below 1.
    """
    if isinstance(w, bool) or not isinstance(w, int | np.integer) or w < 1:
        raise ConfigurationError(f"a window has a whole number of steps, 1 or more, not {w!r}")
    return int(w)
