"""The names that a job may give are those of the measures that exist."""

from __future__ import annotations

from mining.rules.measure_names import MEASURE_NAMES
from mining.rules.measures import MEASURES


def test_names_and_measures_agree() -> None:
    assert tuple(MEASURES) == MEASURE_NAMES
