"""What a device may reveal at most: the limits that its owner sets, whatever a service asks for."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from typing import Final

from link.errors import ConfigurationError, InputDataError
from link.files.json_text import read_json

DAY_S: Final = 86_400
LEAST_DAYS: Final = Fraction(1, DAY_S)
KEPT_DAYS: Final = 400
"""So long a device remembers what it has spent; no budget can be for longer."""

_MOST_DIGITS: Final = 400  # before or after the point; floats have 308 before it

Number = int | float | str | Fraction
"""A number; text such as "0.1" is taken exactly, as is the float that is nearest to it."""


@dataclass(frozen=True, slots=True, init=False)
class Budget:
    """The limits of one device, over all collections together.

    What a report adds to all that the device has revealed is charged when it is drawn, and never given back: ε for a
    report with fresh noise, ε∞ for an answer that is kept for ever, once, and nothing for a report that repeats a kept
    answer.

    Args:
        epsilon: What may be charged within any `days` days.
        days: The length of that span, at most 400.
        max_epsilon: What one report may be charged at most.
        mechanisms: The only mechanisms by which the device reports; all, where absent.

    Raises:
        ConfigurationError: A number is out of its range.
    """

    epsilon: Fraction
    days: Fraction
    max_epsilon: Fraction
    mechanisms: frozenset[str] | None

    def __init__(
        self,
        epsilon: Number = 8,
        days: Number = 30,
        max_epsilon: Number | None = None,
        mechanisms: Iterable[str] | None = None,
    ) -> None:
        total, span = _number(epsilon, "epsilon"), _number(days, "days")
        if not LEAST_DAYS <= span <= KEPT_DAYS:
            raise ConfigurationError(f"a budget is for a second to {KEPT_DAYS} days, not for {float(span):g} days")
        most = total if max_epsilon is None else _number(max_epsilon, "max_epsilon")
        names = None if mechanisms is None else frozenset(mechanisms)
        for name, value in (("epsilon", total), ("days", span), ("max_epsilon", most), ("mechanisms", names)):
            object.__setattr__(self, name, value)

    @property
    def span_s(self) -> float:
        """The span in seconds, rounded up."""
        seconds = float(self.days * DAY_S)
        return seconds if Fraction(seconds) >= self.days * DAY_S else math.nextafter(seconds, math.inf)

    def refusal(self, mechanism: str, charge: Fraction, spent: Fraction) -> str | None:
        """Why a report must not be made; None if it may.

        Args:
            mechanism: By which.
            charge: What it adds.
            spent: What was charged within the span so far.
        """
        if self.mechanisms is not None and mechanism not in self.mechanisms:
            return f"this device does not report by {mechanism}; its owner would have to accept that mechanism"
        if charge > self.max_epsilon:
            return (
                f"a report would spend {float(charge):g}, and this device gives at most {float(self.max_epsilon):g} "
                "in one report"
            )
        if spent + charge > self.epsilon:
            return (
                f"a report would spend {float(charge):g}, and of this device's {float(self.epsilon):g} in "
                f"{float(self.days):g} days {float(self.epsilon - spent):g} is left; wait until earlier ones are past"
            )
        return None

    def to_bytes(self) -> bytes:
        """The limits, to be kept."""
        names = None if self.mechanisms is None else sorted(self.mechanisms)
        return json.dumps([str(self.epsilon), str(self.days), str(self.max_epsilon), names]).encode()

    @classmethod
    def from_bytes(cls, data: bytes) -> Budget:
        """The limits that `to_bytes` wrote.

        Raises:
            InputDataError: They are damaged.
        """
        try:
            epsilon, days, most, names = read_json(data)
            return cls(epsilon, days, most, names)
        except (ValueError, TypeError, ConfigurationError):
            raise InputDataError("the budget in the client's folder is damaged; restore the folder") from None


def exact(written: str) -> Fraction:
    """A number as it is written.

    Raises:
        ValueError: It is none, or has more digits than any that is meant; of `1e999999999` they would fill the memory.
        ArithmeticError: It is none.
    """
    if "/" not in written and abs(Decimal(written).adjusted()) > _MOST_DIGITS:
        raise ValueError("a number of so many digits")
    return Fraction(written)


def _number(value: Number, name: str) -> Fraction:
    try:
        number = exact(value) if isinstance(value, str) else Fraction(value)
    except (ValueError, TypeError, ArithmeticError):
        raise ConfigurationError(f"a budget's {name} is a finite number, not {value!r}") from None
    if isinstance(value, bool) or number < 0:
        raise ConfigurationError(f"a budget's {name} is a number that is not below 0, not {value!r}")
    return number
