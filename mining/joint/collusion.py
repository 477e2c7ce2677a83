"""What colluders learn from sums that are opened, and what noise keeps from them, in words."""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal
from math import ceil, exp
from typing import Final

NOBODY_ELSE: Final = "nothing more: there is nobody to put data together with"
"""The worst case of two parties."""


def collusion(parties: Sequence[str]) -> str:
    """Which parties may work together and learn no more from sums that are opened, in words."""
    if len(parties) == 2:
        return "none: with two parties a sum reveals to each the other's value"
    colluders = "any one party" if len(parties) == 3 else f"any {len(parties) - 2} colluders"
    return f"the opened sums withstand {colluders}, who learn no more than the sum over the others"


def worst(parties: Sequence[str], what: str) -> str:
    """The worst that parties could find out from sums that are opened, in plain words.

    Args:
        parties: All of the job.
        what: The sums are over all parties.
    """
    match len(parties):
        case 2:
            return f"each party alone knows the other's {what}"
        case 3:
            return f"any two parties together know the third's {what}"
        case _:
            return f"all parties but one together know its {what}"


def odds(whom: str, epsilon: Decimal | float, delta: Decimal | float = 0, *, other: str = "without it") -> str:
    """What a record's ε and δ promise, in plain words.

    Args:
        whom: Those towards whom they hold, and what these look at.
        epsilon: ε.
        delta: δ.
        other: With what the record is compared.
    """
    chance = f", but for a chance of {float(delta):g}" if delta else ""
    times, many = exp(float(epsilon)), 100
    often = f"{ceil(times):,}" if times >= many else f"{ceil(10 * times) / 10:g}"  # no less than it is
    return f"to {whom} nothing is over {often} times as likely with a record as {other}{chance}"
