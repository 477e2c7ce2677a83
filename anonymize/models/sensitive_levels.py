"""H levels of sensitivity, the third condition of (H, p, k)-anonymity (Shi, Zhang and Dong 2024, definition 7)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from anonymize.certificate import LevelsClaim
from anonymize.columns import Column, listed
from anonymize.grouping import Histograms
from anonymize.models.model import Claim, Protection, SingleColumnModel
from anonymize.models.rationals import whole
from anonymize.tables import Table
from link.errors import ConfigurationError


@dataclass(frozen=True)
class SensitiveLevels(SingleColumnModel):
    """Every class has values of at least h levels of sensitivity, so that not all of it is as grave.

    With `KAnonymity(k)` and `PSensitive(p, column)` this is (H, p, k)-anonymity.

    Attributes:
        h: At least 1, at most the number of levels.
        levels: The sensitive values of each level as text, least sensitive first; every value is in one level.
        column: The sensitive column.
        weights: Of each level, for the entropy of levels; not looked at here.
        level_codes: The level of each value of the domain; set by `fitted`.
    """

    h: int
    levels: tuple[tuple[str, ...], ...]
    column: str
    weights: tuple[float, ...] | None = None
    level_codes: tuple[int, ...] | None = field(default=None, repr=False, compare=False, kw_only=True)
    name: ClassVar[str] = "H sensitive levels"
    protection: ClassVar[Protection] = Protection(
        "Each class has values of {column} of at least {h} levels of sensitivity.",
        "The levels are a judgement; within one, values may agree.",
    )
    monotone_with_suppression: ClassVar[bool] = True

    def __post_init__(self) -> None:
        whole(self.h, "H")
        given: Sequence[Sequence[str]] = self.levels
        object.__setattr__(self, "levels", tuple(map(tuple, given)))
        if self.weights is not None:
            object.__setattr__(self, "weights", tuple(self.weights))
            if len(self.weights) != len(self.levels):
                raise ConfigurationError(
                    f"{len(self.weights)} weights are given for {len(self.levels)} sensitive levels; give one each."
                )
            if min(self.weights) < 0:
                raise ConfigurationError(
                    f"A level of sensitivity has the weight {min(self.weights)}, which is below 0."
                )
        values = [value for level in self.levels for value in level]
        twice = [value for value in values if values.count(value) > 1]
        if twice:
            raise ConfigurationError(f'The value "{twice[0]}" is in two levels of sensitivity; leave it in one.')
        if self.h > len(self.levels):
            raise ConfigurationError(f"H is {self.h}, but there are {len(self.levels)} levels of sensitivity only.")

    @property
    def least_size(self) -> int:
        """As many records as levels."""
        return self.h

    def codes(self, column: Column) -> NDArray[np.int32]:
        """Shape (m,): the level, from 0, of each value of the column's domain.

        Raises:
            ConfigurationError: A value is in no level.
        """
        level_of = {value: number for number, level in enumerate(self.levels) for value in level}
        without = [text for text in column.texts if text not in level_of]
        if without:
            raise ConfigurationError(
                f'Values of column "{column.name}" are in no level of sensitivity: {listed(without)}; add them to one.'
            )
        return np.array([level_of[text] for text in column.texts], np.int32)

    def fitted(self, table: Table) -> Self:
        """The model with the level of each value of the table.

        Raises:
            ConfigurationError: The column is not there or not sensitive, or a value is in no level.
        """
        codes = self.codes(table.sensitive_column(self.column))
        return replace(self, level_codes=tuple(codes.tolist()))

    def claim(self, table: Table | None) -> Claim:  # noqa: ARG002 - nothing of the table is claimed
        """The key of a certificate's `model`, and the entry there."""
        levels = [list(level) for level in self.levels]
        weights = None if self.weights is None else list(self.weights)
        return "H", LevelsClaim(value=self.h, column=self.column, levels=levels, weights=weights)

    def satisfied(self, classes: Histograms) -> NDArray[np.bool_]:
        """Shape (c,): which classes have values of enough levels."""
        if self.level_codes is None:
            raise ConfigurationError("Levels of sensitivity must be fitted to a table first.")
        held = classes.sensitive[self.column] > 0
        codes = np.array(self.level_codes)
        levels = sum(held[:, codes == level].any(axis=1).astype(np.int64) for level in range(len(self.levels)))
        return np.asarray(levels >= self.h, bool)

    def infeasible(self, table: Table, suppressible: int) -> str | None:  # noqa: ARG002 - certain whatever is left out
        """Certain where the whole table has values of fewer than h levels."""
        column = table.sensitive_column(self.column)
        present = len(np.unique(self.codes(column)[column.counts > 0]))
        if present >= self.h:
            return None
        return f'H = {self.h} cannot be met: column "{self.column}" has values of {present} levels of sensitivity only.'
