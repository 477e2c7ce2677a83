"""Memoisation over a sliding window: an answer is kept and used again; a new value costs ε∞, and waits if need be.

A user whose value rarely changes spends next to nothing this way, where methods of continual release spend in every
window. The guarantee is another one, though, and weaker: within any w steps, answers to new values spend `epsilon` at
most, so reports hide *which* values a user had. *When* they changed they hide only as far as the mechanism perturbs
kept answers once more (see `ldp.longitudinal.memoised`). Where that must be hidden, take `ldp.streams.methods`.
"""

from __future__ import annotations

import json
import struct
from fractions import Fraction
from typing import Any, Final

import numpy as np

from crypto.primitives.randomness import Randomness
from ldp.longitudinal.memoised import Memo, MemoisedMechanism
from ldp.reports import Reports
from ldp.streams.ledger import WindowLedger
from link.errors import ConfigurationError, InputDataError, PolicyDenied
from link.files.json_text import read_json

_MAGIC: Final = b"LDPS\x01"
_HEADER: Final = struct.Struct("<5sQQ")
_NO_MEMO: Final = "these bytes are no sliding memo of this version; a user without its memo starts anew"


class SlidingMemo:
    """One user who reports at many steps.

    Answers are kept for ever: a value that comes back costs nothing, however late. A value that is new while the
    window's budget is spent is not reported: the one that was reported last is, once more.

    Keep what `to_bytes` gives before a report is sent. It names the values, so it is as secret as they are.

    Args:
        memo: The user's kept answers.
        ledger: What answers to new values may spend within a window.

    Attributes:
        reported: The value that the last report was about; None before the first.

    Raises:
        ConfigurationError: The budget of a window does not pay for a single answer.
    """

    def __init__(self, memo: Memo, ledger: WindowLedger) -> None:
        self.memo, self.ledger = memo, ledger
        self._price = Fraction(memo.mechanism.exact_permanent_epsilon)
        if self._price > ledger.epsilon:
            raise ConfigurationError(
                f"an answer costs {float(self._price):g}, and a window has {float(ledger.epsilon):g}; give it more, or "
                "take a mechanism that spends less"
            )
        self.reported: str | int | float | None = None

    @classmethod
    def drawn(
        cls, mechanism: MemoisedMechanism[Any], w: int, epsilon: float | Fraction, rng: Randomness | None = None
    ) -> SlidingMemo:
        """The memo of a new user, with windows of w steps and `epsilon` for each."""
        return cls(Memo.drawn(mechanism, rng), WindowLedger(w, epsilon))

    @property
    def spent(self) -> float:
        """What all reports so far, and all later ones of the same values, spend at most: ε∞ for each value."""
        return self.memo.spent

    def report(
        self, step: int, value: str | int | float, rng: Randomness | None = None, *, anew: bool = True
    ) -> Reports:
        """The report of a step: about the value, or about the last one while the budget does not allow a new answer.

        Args:
            step: Its number.
            value: The user's.
            rng: The source of randomness.
            anew: Whether anything but the window's budget allows a new answer.

        Raises:
            InputDataError: The value is outside the domain, or the step lies before the last new answer.
            PolicyDenied: No new answer is allowed, and there is no last one.
        """
        left = self.ledger.left(step)
        if not self._is_kept(value):
            if not anew or left < self._price:
                if self.reported is None:  # never for want of the window's budget, which pays for one answer
                    raise PolicyDenied("a user who has answered nothing yet needs budget for a first answer")
                return self.memo.report(self.reported, rng)
            self.ledger.spend(step, self._price)
        self.reported = value.item() if isinstance(value, np.generic) else value
        return self.memo.report(value, rng)

    def _is_kept(self, value: str | int | float) -> bool:
        memo = self.memo
        return int(memo.mechanism.keys([value], memo._trait)[0]) in memo._answers

    def to_bytes(self) -> bytes:
        """The memo with its ledger, to be kept by the user."""
        ledger, reported = self.ledger.to_bytes(), json.dumps(self.reported).encode()
        return _HEADER.pack(_MAGIC, len(ledger), len(reported)) + ledger + reported + self.memo.to_bytes()

    @classmethod
    def from_bytes(cls, data: bytes, mechanism: MemoisedMechanism[Any]) -> SlidingMemo:
        """A memo that `to_bytes` wrote.

        Raises:
            InputDataError: It is cut, of another version, or of another mechanism.
        """
        if len(data) < _HEADER.size or data[: len(_MAGIC)] != _MAGIC:
            raise InputDataError(_NO_MEMO)
        _, ledger, reported = _HEADER.unpack_from(data)
        first, second = _HEADER.size + ledger, _HEADER.size + ledger + reported
        found = cls(Memo.from_bytes(data[second:], mechanism), WindowLedger.from_bytes(data[_HEADER.size : first]))
        try:
            found.reported = read_json(data[first:second])
        except ValueError:
            raise InputDataError(_NO_MEMO) from None
        if (found.reported is None) != (len(found.memo) == 0):
            raise InputDataError(_NO_MEMO)
        return found
