"""The tables of a job that learns a model: `[naive_bayes]`, `[decision_tree]` or `[k_means]`, and `[columns]`."""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal
from itertools import pairwise
from typing import Annotated, Final, Literal

from pydantic import Field, model_validator

from jobs.spec.values import ColumnName, Cuts, Fraction, Section

MODEL_TABLES: Final[Mapping[str, str]] = {  # by task its table
    "naive-bayes": "naive_bayes",
    "decision-tree": "decision_tree",
    "k-means": "k_means",
}
DEFAULT_STEPS: Final = 1000
MAX_CLUSTERS: Final = 1 << 12
_MAX_ATTRIBUTES: Final = 1000

Value = Annotated[str, Field(max_length=1000)]
Attributes = Annotated[tuple[ColumnName, ...], Field(min_length=1, max_length=_MAX_ATTRIBUTES)]


class ColumnSection(Section):
    """An entry of `[columns]`: what the cells of a column of the model mean, equal at all parties.

    Attributes:
        values: Its texts, all that may occur; the empty text among them where cells may be empty.
        cuts: Ascending numbers at which its numbers are cut into intervals.
        low: The least number that may occur, where its numbers are computed with.
        high: The greatest.
        steps: Equal steps from `low` to `high`, to the nearest of which a number is rounded; 1000 by default.
    """

    values: tuple[Value, ...] | None = Field(default=None, min_length=1, max_length=100_000)
    cuts: Cuts | None = None
    low: Fraction | None = None
    high: Fraction | None = None
    steps: int | None = Field(default=None, ge=1, lt=1 << 31)

    @model_validator(mode="after")
    def _one_way(self) -> ColumnSection:
        bounds = self.bounds is not None
        ways = (self.values is not None) + (self.cuts is not None) + (self.low is not None or self.high is not None)
        if ways != 1 or (self.low is None) is not (self.high is None):
            raise ValueError('needs either values = ["no", "yes"], or cuts = [30, 50], or low = 0 and high = 100')
        if self.steps is not None and not bounds:
            raise ValueError("steps are those between low and high")
        if self.values is not None and len(set(self.values)) < len(self.values):
            raise ValueError("values names a value twice")
        if self.cuts is not None and any(a >= b for a, b in pairwise(self.cuts)):
            raise ValueError("cuts must be numbers in ascending order, such as [18, 40, 65]")
        if self.low is not None and self.high is not None and not self.low < self.high:
            raise ValueError("low must be below high")
        return self

    @property
    def bounds(self) -> tuple[Decimal, Decimal] | None:
        """`low` and `high`."""
        return None if self.low is None or self.high is None else (self.low, self.high)


class ClassifierSection(Section):
    """What tables of classifiers have in common.

    Attributes:
        target: The column whose value is to be predicted: the class.
        attributes: The columns from which it is predicted.
    """

    target: ColumnName
    attributes: Attributes


class NaiveBayesSection(ClassifierSection):
    """The `[naive_bayes]` table.

    Attributes:
        smoothing: Added to the count of every value.
        variance_smoothing: This share of the largest variance of a column of numbers is added to every variance.
    """

    smoothing: Fraction = Field(default=Decimal(1), ge=0)
    variance_smoothing: Fraction = Field(default=Decimal("1e-9"), ge=0)


class DecisionTreeSection(ClassifierSection):
    """The `[decision_tree]` table.

    Attributes:
        criterion: Chooses splits: `id3` by information gain, `c45` by gain ratio.
        min_rows: At least two branches of a split have so many rows or more; nodes with fewer than twice as many are
            not looked at.
        max_depth: The most splits on the way to a leaf.
        max_nodes: The most nodes that are looked at.
    """

    criterion: Literal["id3", "c45"] = "c45"
    min_rows: int = Field(default=2, ge=1)
    max_depth: int | None = Field(default=None, ge=0)
    max_nodes: int = Field(default=10_000, ge=1, le=1_000_000)


class KMeansSection(Section):
    """The `[k_means]` table.

    Attributes:
        attributes: The columns of numbers that are the coordinates.
        k: How many clusters.
        start: k rows of a number for each attribute: the first centroids. Drawn between the bounds where there is none.
        seed: Of the draw; public.
        max_iterations: The most updates.
        fraction_bits: Binary digits of a centroid's coordinate behind the step.
    """

    attributes: Attributes
    k: int = Field(ge=1, le=MAX_CLUSTERS)
    start: tuple[tuple[Fraction, ...], ...] | None = None
    seed: int = Field(default=0, ge=0, lt=1 << 63)
    max_iterations: int = Field(default=100, ge=1, le=10_000)
    fraction_bits: int = Field(default=8, ge=0, le=20)

    @model_validator(mode="after")
    def _start_fits(self) -> KMeansSection:
        if self.start is not None and len(self.start) != self.k:
            raise ValueError(f"start has {len(self.start)} rows, and k is {self.k}; give one row for each cluster")
        if self.start is not None and self.seed:
            raise ValueError("seed draws the first centroids, and start names them; choose one")
        return self


ModelSection = NaiveBayesSection | DecisionTreeSection | KMeansSection


def check_columns(name: str, section: ModelSection, columns: Mapping[str, ColumnSection]) -> None:
    """Refuses columns that are not described as the model takes them.

    Args:
        name: Of the section in the job file.
        section: The model's.
        columns: `[columns]`.

    Raises:
        ValueError: A column is named twice, not described or not as the model takes it, or described in vain.
    """
    target = (section.target,) if isinstance(section, ClassifierSection) else ()
    named = (*target, *section.attributes)
    for column in named:
        if named.count(column) > 1:
            raise ValueError(f"[{name}] names the column '{column}' twice; a model takes each column once")
        if column not in columns:
            raise ValueError(
                f"[{name}] names the column '{column}', of which [columns] says nothing; give its values, its cuts, or "
                "low and high"
            )
        if "=" in column:
            raise ValueError(f"no column of a table may be called '{column}', with an equals sign")
    for column in columns:
        if column not in named:
            raise ValueError(f"[columns] describes '{column}', which the model does not take; leave it out")
    if target and columns[target[0]].values is None:
        raise ValueError(f"[columns] {target[0]}: the class needs values, all that may occur")
    for column in section.attributes:
        if isinstance(section, DecisionTreeSection) and columns[column].bounds is not None:
            raise ValueError(f"[columns] {column}: a tree divides numbers at public cuts; give cuts, not low and high")
        if isinstance(section, KMeansSection) and columns[column].bounds is None:
            raise ValueError(f"[columns] {column}: k-means computes with numbers; give low and high")
