"""What the tests of the privacy models share: single classes, tables of a sensitive column, random histograms."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

import numpy as np
from hypothesis import strategies as st

from anonymize.grouping import Histograms
from anonymize.hierarchies.hierarchy import Hierarchy
from anonymize.models import Model
from anonymize.roles import Roles
from anonymize.tables import Table

M = TypeVar("M", bound=Model)

VALUES = 6
COUNTS = st.lists(st.lists(st.integers(0, 6), min_size=VALUES, max_size=VALUES), min_size=2, max_size=5).filter(
    lambda rows: all(map(any, rows))
)
"""Histograms of at least two classes, none empty, over six values."""

TREE = Hierarchy.of(
    "s", [(str(value), "low" if value < 2 else "high" if value < 5 else "top", "*") for value in range(VALUES)]
)


def histograms(rows: Sequence[Sequence[int]]) -> Histograms:
    """Classes of column "s" by the counts of its values."""
    counts = np.array(rows, np.int64)
    return Histograms(counts.sum(axis=1), {"s": counts})


def table_of(totals: Sequence[int]) -> Table:
    """A table whose numeric sensitive column "s" holds the value i `totals[i]` times."""
    values = np.repeat(np.arange(len(totals)), totals)
    return Table.of({"q": [0] * len(values), "s": values}, Roles(quasi_identifiers=("q",), sensitive=("s",)))


def fitted(model: M, rows: Sequence[Sequence[int]]) -> tuple[M, Histograms]:
    """A model fitted to the table that classes make up, and the classes over the values that the table has."""
    counts = np.array(rows, np.int64)
    totals = counts.sum(axis=0)
    return model.fitted(table_of(totals)), histograms(counts[:, totals > 0])


def met(model: Model, rows: Sequence[Sequence[int]]) -> list[bool]:
    """Which classes meet a model that is fitted to the table that they make up."""
    ready, classes = fitted(model, rows)
    return ready.satisfied(classes).tolist()
