"""All the models that a release must meet, as one condition."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise
from typing import Final, Self

import numpy as np
from numpy.typing import NDArray

from anonymize.columns import Column
from anonymize.grouping import Histograms
from anonymize.models.model import Model
from anonymize.tables import Table
from link.errors import ConfigurationError

MOST_CELLS: Final = 50_000_000  # of a histogram that is held at once


@dataclass(frozen=True)
class Requirements:
    """What every class of a release must meet: all of the models.

    Attributes:
        models: At least one. Several sensitive columns have a model each.
    """

    models: tuple[Model, ...]

    def __post_init__(self) -> None:
        object.__setattr__(self, "models", tuple(self.models))
        if not self.models:
            raise ConfigurationError("No privacy model is given; k-anonymity is the least.")

    @cached_property
    def k(self) -> int:
        """The least size of a class that follows from the models: k, l, p, H or 1 / α, whichever is largest."""
        return max(model.least_size for model in self.models)

    @property
    def monotone(self) -> bool:
        """Whether any union of satisfying classes satisfies."""
        return all(model.monotone for model in self.models)

    @property
    def monotone_with_suppression(self) -> bool:
        """Whether any union of a satisfying class with anything satisfies."""
        return all(model.monotone_with_suppression for model in self.models)

    @cached_property
    def columns(self) -> tuple[str, ...]:
        """The sensitive columns that are looked at, each once."""
        return tuple(dict.fromkeys(name for model in self.models for name in model.columns))

    def fitted(self, table: Table) -> Self:
        """The requirements with what the models must know of the input table.

        Raises:
            ConfigurationError: A column of a model is not there or not sensitive, or does not suit it.
            InputDataError: A hierarchy lacks a value.
        """
        return replace(self, models=tuple(model.fitted(table) for model in self.models))

    def satisfied(self, classes: Histograms) -> NDArray[np.bool_]:
        """Shape (c,): which classes meet all models."""
        return np.asarray(np.logical_and.reduce([model.satisfied(classes) for model in self.models]), bool)

    def check(
        self,
        labels: NDArray[np.int64],
        classes: int,
        columns: Sequence[Column] = (),
        weights: NDArray[np.int64] | None = None,
    ) -> NDArray[np.bool_]:
        """Which classes of rows meet all models, with histograms of a bounded size at a time.

        Args:
            labels: Shape (n,), the class of each row.
            classes: How many there are.
            columns: The sensitive columns that are looked at, at least `self.columns`, with the same n rows.
            weights: Shape (n,), how many records a row represents; 1 if not given.

        Returns:
            Shape (classes,).
        """
        used = [column for column in columns if column.name in self.columns]
        step = max(MOST_CELLS // max(sum(column.size for column in used), 1), 1)
        if classes <= step:
            return self.satisfied(Histograms.of(labels, classes, used, weights))
        met = np.empty(classes, bool)
        order = np.argsort(labels, kind="stable")
        edges = np.searchsorted(labels[order], np.arange(0, classes + step, step))
        for first, (begin, end) in zip(range(0, classes, step), pairwise(edges), strict=False):
            rows = order[begin:end]
            some = [replace(column, codes=column.codes[rows]) for column in used]
            here = min(step, classes - first)
            part = Histograms.of(labels[rows] - first, here, some, None if weights is None else weights[rows])
            met[first : first + here] = self.satisfied(part)
        return met

    def infeasible(self, table: Table, suppressible: int) -> str | None:
        """Why no release can meet the models, as a sentence; None where that is not certain.

        Args:
            table: The input.
            suppressible: How many records may be left out at most.
        """
        reasons = (model.infeasible(table, suppressible) for model in self.models)
        return next((reason for reason in reasons if reason), None)
