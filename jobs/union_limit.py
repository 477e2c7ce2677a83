"""How large the alignments by union of a job may be: every two of n parties match their lists, so n² times.

That is so of rows, and of the items of a hidden universe. A list holds as many places as the size class of the job's
bound. Where a job says no bound, its few parties learn how long lists are when it runs; of many parties a bound is
asked for, so that all know beforehand.
"""

from __future__ import annotations

from typing import Final

from crypto.protocols.union.size_classes import LISTS
from jobs.kinds.registry import kind_of
from jobs.spec.job import JobSpec

MOST_PLACES: Final = 1 << 22  # in the lists of all parties
MOST_UNBOUNDED: Final = 16  # parties


def too_large_unions(spec: JobSpec) -> str | None:
    """Why a job's unions would cost too much, or nobody knows how much, and what to change; None where they do not."""
    given = kind_of(spec).unions(spec)
    if not (given.taken and given.squared) or (given.bound is None and len(spec.job.parties) <= MOST_UNBOUNDED):
        return None
    if given.bound is not None and _places(spec, given.bound) <= MOST_PLACES:
        return None
    or_else = f"take {given.otherwise}"
    if given.bound is None:
        return (
            f"a union of more than {MOST_UNBOUNDED} parties needs {given.key}: each works on the lists of all, so that "
            f"its work grows with the square of their number; set a bound, or {or_else}"
        )
    return (
        f"{given.key} = {given.bound}: the lists of {len(spec.job.parties)} parties, with what fills them up, would "
        f"have more than {MOST_PLACES} places; lower the bound, or {or_else}"
    )


def _places(spec: JobSpec, bound: int) -> int:
    """Of the lists of all parties."""
    return len(spec.job.parties) * LISTS.rounded(bound)
