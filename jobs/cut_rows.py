"""What long rows lose where the job itself says to how much a row counts: by `contributions`, or by its search."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from jobs.kinds.noisy.parameters import distributed_mining, is_noisy
from mining.joint.hybrid.parameters import SET_LENGTH

if TYPE_CHECKING:
    from jobs.findings import Result

_WIDE: Final = 2.0
"""Deviations that are so many times that of the noise are mostly what truncation may have lost."""


def cut_rows(result: Result) -> list[str]:
    """Sentences on estimates that long rows may have made too low."""
    if result.estimated is None:
        return []
    if result.strategy in ("privset", "wheel"):
        return [
            f"{result.strategy} cuts rows to {SET_LENGTH} items: where many are longer, supports are too low by more "
            "than their intervals cover; take svim then"
        ]
    return _by_contributions(result)


def _by_contributions(result: Result) -> list[str]:
    """On lengths of itemsets of which the job's own `contributions` may have lost more than noise hides.

    The deviation that is told grows with what may have been lost, and that of the noise is public: no further number
    of rows is asked for.
    """
    if result.estimated is None or not is_noisy(result.spec) or result.spec.privacy.contributions is None:
        return []
    from mining.joint.distributed.budget import given_contributions, length_noise

    task, parties, found = distributed_mining(result.spec), len(result.spec.job.parties), list[str]()
    for sets, _, deviations in result.estimated.itemsets.levels:
        length = sets.shape[1]
        most = given_contributions(task, length)
        assert most is not None  # the job says it
        wide = float(np.median(deviations)) / length_noise(task, parties, length, most).sigma
        if wide >= _WIDE:
            found.append(
                f"[privacy] contributions lets a row count to {most:,} itemsets of {length}, and many rows hold more: "
                f"half of their intervals are more than {wide:.1f} times as wide as noise alone makes them, and "
                "supports may be too low by that; raise it, or leave it out"
            )
    return found
