"""What colluders learn from sums that are opened, in words."""

from __future__ import annotations

from collections.abc import Sequence


def collusion(parties: Sequence[str]) -> str:
    """Which parties may work together and learn no more from sums that are opened, in words."""
    if len(parties) == 2:
        return "none: with two parties a sum reveals to each the other's value"
    colluders = "any one party" if len(parties) == 3 else f"any {len(parties) - 2} colluders"
    return f"the opened sums withstand {colluders}, who learn no more than the sum over the others"
