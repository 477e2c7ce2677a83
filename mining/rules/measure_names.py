"""The names of the measures of a rule, for those who check a job without computing anything."""

from __future__ import annotations

from typing import Final

MEASURE_NAMES: Final = (
    "confidence",
    "lift",
    "leverage",
    "conviction",
    "coverage",
    "jaccard",
    "kulczynski",
    "cosine",
    "imbalance_ratio",
    "all_confidence",
    "max_confidence",
    "added_value",
    "certainty",
    "zhang",
)
DEFAULT_MEASURES: Final = MEASURE_NAMES[:4]
