"""What long rows lose where a job itself says to how many itemsets a row counts, by `contributions`."""

from __future__ import annotations

from typing import Final

import numpy as np

from jobs.kinds.noisy.parameters import distributed_mining
from jobs.spec.job import JobSpec
from mining.estimates import EstimatedItemsets
from mining.joint.distributed.budget import given_contributions, length_noise

_WIDE: Final = 2.0
"""Deviations that are so many times that of the noise are mostly what truncation may have lost."""


def cut_rows(spec: JobSpec, itemsets: EstimatedItemsets) -> list[str]:
    """On lengths of itemsets of which the job's own `contributions` may have lost more than noise hides.

    The deviation in the result grows with what may have been lost, and that of the noise is public: no further number
    of rows is asked for.
    """
    if spec.privacy.contributions is None:
        return []
    task, parties, found = distributed_mining(spec), len(spec.job.parties), list[str]()
    for sets, _, deviations in itemsets.levels:
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
