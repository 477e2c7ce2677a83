"""What results are compared by: tables whose rows have names of their own, lists of texts, and figures beside these."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import pyarrow as pa

NUMBERS: Final = "numbers"
"""The table of what a finding has that is a single number each."""


def numbers(values: Mapping[str, float]) -> dict[str, pa.Table]:
    """The table of single numbers.

    Args:
        values: By name; a name means the same in all results of jobs that ask for the same.
    """
    named = pa.array([[name] for name in values], pa.list_(pa.string()))
    return {NUMBERS: pa.table({"number": named, "value": pa.array(map(float, values.values()), pa.float64())})}
