"""A clock that stands still until a test moves it."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass
class Clock:
    """Says what time it is, in seconds.

    Attributes:
        now: What it says; tests set it.
    """

    now: float = 0.0

    def __call__(self) -> float:
        return self.now
