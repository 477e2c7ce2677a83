"""What may be asked of a dataset: the table `[dataset.queries]` of `party.toml`."""

from __future__ import annotations

from typing import Annotated, Final, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import AfterValidator, Field, model_validator

from anonymize.auditing.column import QueryClass
from anonymize.auditing.counts import OverlapControl
from jobs.federation import Name
from jobs.spec.toml import TomlTable
from link.errors import ConfigurationError, PolicyDenied
from party.policy.policy_input import listed
from party.services.queries.language import CLASS_OF, Function

RECORDS: Final = "*"  # counted by count(*)
LARGEST: Final = 1 << 31


def _once(values: tuple[str, ...]) -> tuple[str, ...]:
    if len(set(values)) < len(values):
        raise ValueError("names something twice")
    return values


def _classes(values: tuple[QueryClass, ...]) -> tuple[QueryClass, ...]:
    if not values:
        raise ValueError("names nothing; leave the column out")
    if "count" in values and len(values) > 1:
        raise ValueError('names "count", for a column of zeros and ones, beside classes for columns of numbers')
    return values


Columns = Annotated[tuple[str, ...], AfterValidator(_once)]
Classes = Annotated[tuple[QueryClass, ...], AfterValidator(_once), AfterValidator(_classes)]


class QueriesSection(TomlTable):
    """The `[dataset.queries]` table; without it nothing may be asked of the dataset.

    Attributes:
        coordinators: Who may ask; all of the federation's coordinators, where absent.
        public: Columns that conditions may name. Everybody is taken to know them, row by row.
        columns: Columns that may be aggregated, and how: any of `sum` (and average), `max` and `min`, of which the
            first that is answered stays the only one; or `count`, of a column of zeros and ones.
        records: Whether records may be counted: `count(*)`.
        min_size: Records that a query must be about at least; a count of records also leaves out as many.
        max_overlap: Records that two counts of a column may share; counts need it.
        overlap_for: `all`: sums, maxima and minima may share no more either, which protects them from attackers who
            know values beforehand.
        known: With `max_overlap`, how many values an attacker is taken to know.
        max_queries: How many queries are answered in all; any number, where absent.
        max_disk: Bytes that answered queries may take in the node's database; then nothing more is answered.
    """

    coordinators: tuple[Name, ...] | None = None
    public: Columns
    columns: dict[str, Classes] = Field(default_factory=dict)
    records: bool = False
    min_size: int = Field(ge=2, le=LARGEST)
    max_overlap: int | None = Field(default=None, ge=0, le=LARGEST)
    overlap_for: Literal["counts", "all"] = "counts"
    known: int = Field(default=0, ge=0, le=LARGEST)
    max_queries: int | None = Field(default=None, ge=1)
    max_disk: int = Field(default=10 << 30, ge=1 << 20)

    @model_validator(mode="after")
    def _consistent(self) -> QueriesSection:
        if not self.columns and not self.records:
            raise ValueError("nothing may be asked: name columns, or set records = true")
        if both := [name for name in self.columns if name in self.public]:
            raise ValueError(
                f"the column '{both[0]}' is public, so that everybody knows it, and to be protected in answers"
            )
        if self.max_overlap is None:
            counted = [name for name, classes in self.columns.items() if classes == ("count",)]
            if counted or self.records:
                what = f"the column '{counted[0]}'" if counted else "records"
                raise ValueError(
                    f"{what} may be counted: set max_overlap, without which two large counts reveal a value"
                )
            if self.known or self.overlap_for == "all":
                raise ValueError("known and overlap_for mean nothing without max_overlap")
        else:
            try:
                OverlapControl(1, self.min_size, self.max_overlap, self.known)
            except ConfigurationError as error:
                raise ValueError(error.message) from None
        return self

    def counts(self, column: str) -> bool:
        """Whether a column is counted only: one of zeros and ones, or `*`."""
        return column == RECORDS or self.columns[column] == ("count",)

    def control(self, column: str, of: NDArray[np.int64]) -> OverlapControl | None:
        """What bounds the overlap of queries about a column, of which each record is somebody's."""
        if self.max_overlap is None or not (self.counts(column) or self.overlap_for == "all"):
            return None
        return OverlapControl(len(of), self.min_size, self.max_overlap, self.known, of)


def audited_twice(first: QueriesSection, second: QueriesSection) -> str | None:
    """A column of one source that both of its datasets reveal, each with auditors of its own; `*`: its records."""
    for one, other in ((first, second), (second, first)):
        for name in one.columns:
            if name in other.columns or name in other.public:
                return name
    return RECORDS if first.records and second.records else None


def may_ask(policy: QueriesSection, coordinator: str) -> bool:
    """Whether a coordinator may ask anything."""
    return policy.coordinators is None or coordinator in policy.coordinators


def check_query(
    policy: QueriesSection, function: Function, column: str, named: tuple[str, ...], coordinator: str, me: str
) -> None:
    """Refuses a query that the policy does not allow, whatever was answered before.

    Args:
        policy: Of the dataset.
        function: What is asked for.
        column: Of which column; `*` for records.
        named: Columns in the condition.
        coordinator: Who asks.
        me: This party.

    Raises:
        PolicyDenied: The sentence names the rule, and what would be allowed.
    """
    refusal = _refusal(policy, function, column, named, coordinator)
    if refusal is not None:
        raise PolicyDenied(f"the policy of {me} {refusal}", party=me)


def _refusal(
    policy: QueriesSection, function: Function, column: str, named: tuple[str, ...], coordinator: str
) -> str | None:
    if not may_ask(policy, coordinator):
        return f"lets {listed(policy.coordinators or ())} ask this dataset, and not '{coordinator}' (rule coordinators)"
    if column == RECORDS:
        if not policy.records:
            return "does not let records be counted (rule records)"
    elif column not in policy.columns:
        return f"lets only {listed(tuple(policy.columns))} be aggregated, not '{column}' (rule columns)"
    elif CLASS_OF[function] not in policy.columns[column]:
        allowed = listed(policy.columns[column])
        return f"answers {allowed} of '{column}', not {function} (rule columns)"
    for name in named:
        if name not in policy.public:
            return f"lets conditions name only {listed(policy.public)}, not '{name}' (rule public)"
    return None
