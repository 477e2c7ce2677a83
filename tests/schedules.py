"""Schedules of faults, drawn by chance."""

from __future__ import annotations

from hypothesis import strategies as st

from link.transports.faulty import Schedule


def _probability(most: float) -> st.SearchStrategy[float]:
    return st.one_of(st.just(0.0), st.floats(0.01, most))


benign = st.builds(
    Schedule,
    seed=st.integers(0, 2**32),
    delay=_probability(0.3),
    delay_s=st.just(0.002),
    duplicate=_probability(0.5),
    reorder=_probability(0.5),
    cut=_probability(0.2),
    cut_s=st.just(0.002),
)
"""What the link repairs."""


def harmful(last: int) -> st.SearchStrategy[Schedule]:
    """What it does not repair; who crashes does so before more than `last` frames are sent."""
    return st.builds(
        Schedule,
        seed=st.integers(0, 2**32),
        drop=_probability(0.1),
        delay=_probability(0.2),
        delay_s=st.just(0.002),
        duplicate=_probability(0.3),
        reorder=_probability(0.3),
        cut_s=st.just(0.002),
        crash_at=st.one_of(st.none(), st.integers(0, last)),
    )
