"""The tables `[anonymize.model]` and `[anonymize.levels]`: what every class of a release must meet.

An entry says how strict it is beside another; the condition itself, its words and what a certificate claims of it are
in `anonymize.models`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal, Self

from pydantic import ConfigDict, Field, ModelWrapValidatorHandler, create_model, model_validator

import anonymize
from jobs.anonymization.model_entry import ColumnEntry, Entry, one_or_many, outside
from jobs.spec.values import ColumnName, Fraction, Section, plain_number
from link.errors import ConfigurationError

if TYPE_CHECKING:
    from anonymize.hierarchies.hierarchy import Hierarchy
    from anonymize.models import Model

Kind = Literal["numeric", "ordinal", "tree", "boolean", "date", "code"]
"""What the values of a column are."""

Whole = Annotated[int, Field(strict=True)]  # neither 5.0 nor "5" nor true


class DiversitySection(ColumnEntry):
    """l-diversity of a sensitive column.

    Attributes:
        kind: How diversity is measured.
        value: l, the least; whole but for `entropy`.
        column: Which; may be left out where only one column is sensitive.
        c: Of `recursive` diversity.
    """

    kind: Literal["distinct", "entropy", "recursive"] = "distinct"
    value: Fraction = Field(ge=1)
    column: ColumnName | None = None
    c: Fraction | None = Field(default=None, gt=0)

    @model_validator(mode="after")
    def _suits_its_kind(self) -> DiversitySection:
        if (self.kind == "recursive") != (self.c is not None):
            raise ValueError("c belongs to recursive l-diversity, which needs it")
        if self.kind != "entropy" and self.value != int(self.value):
            raise ValueError(f"{self.kind} l-diversity counts values: l is {self.value}, which is not whole")
        return self

    def condition(self, columns: tuple[str, ...], hierarchies: Mapping[str, Hierarchy]) -> Model:  # noqa: ARG002
        """Distinct, entropy or recursive l-diversity."""
        if self.kind == "entropy":
            return anonymize.EntropyDiversity(plain_number(self.value), columns[0])
        if self.c is not None:
            return anonymize.RecursiveDiversity(self.c, int(self.value), columns[0])
        return anonymize.DistinctDiversity(int(self.value), columns[0])

    def is_as_strict_as(self, least: Self) -> bool:
        """Of the same kind, l is at least as large; of recursive ones c is at most as large, too."""
        at_least = self.kind == least.kind and self.value >= least.value
        return at_least and (least.c is None or (self.c is not None and self.c <= least.c))


class ClosenessSection(ColumnEntry):
    """t-closeness of a sensitive column.

    Attributes:
        distance: Between distributions of a class and of the table.
        value: t, the largest distance.
        column: Which; may be left out where only one column is sensitive.
        ground: Of ordered values: what one step is, of ranks or of the numbers themselves.
    """

    distance: Literal["equal", "variational", "kl", "ordered", "hierarchical"] = "equal"
    value: Fraction = Field(ge=0)
    column: ColumnName | None = None
    ground: Literal["rank", "value"] = "rank"

    def condition(self, columns: tuple[str, ...], hierarchies: Mapping[str, Hierarchy]) -> Model:
        """t-closeness; its hierarchical distance takes the column's hierarchy."""
        (column,) = columns
        tree = hierarchies.get(column) if self.distance == "hierarchical" else None
        if self.distance == "hierarchical" and tree is None:
            raise ConfigurationError(
                f'[anonymize.model] t with distance = "hierarchical" needs a hierarchy of column "{column}"; add one '
                "under [anonymize.hierarchies]"
            )
        return anonymize.TCloseness(self.value, column, self.distance, self.ground, tree)

    def is_as_strict_as(self, least: Self) -> bool:
        """Distances of other kinds are not compared."""
        return (self.distance, self.ground) == (least.distance, least.ground) and self.value <= least.value


class SensitivitySection(Entry):
    """p distinct values of every listed sensitive column; of all of them by default.

    Attributes:
        value: p, the least number.
        columns: Which; all sensitive ones, where absent.
    """

    value: Whole = Field(ge=1)
    columns: tuple[ColumnName, ...] = ()

    @property
    def named(self) -> tuple[str, ...]:
        """Its columns."""
        return self.columns

    def columns_of(self, sensitive: tuple[str, ...]) -> tuple[str, ...]:
        """Those named, or all."""
        return self.columns or sensitive

    def condition(self, columns: tuple[str, ...], hierarchies: Mapping[str, Hierarchy]) -> Model:  # noqa: ARG002
        """p-sensitive k-anonymity."""
        return anonymize.PSensitive(self.value, columns)

    def is_as_strict_as(self, least: Self) -> bool:
        """The larger p."""
        return self.value >= least.value

    def by_column(self) -> list[Self]:
        """One for each."""
        return [self.model_copy(update={"columns": (name,)}) for name in self.columns]


class ShareSection(ColumnEntry):
    """(alpha, k): the largest share of a sensitive value in a class.

    Attributes:
        value: alpha, the largest.
        column: Which; may be left out where only one column is sensitive.
        values: The values that it holds for; all, where absent.
    """

    value: Fraction = Field(gt=0, le=1)
    column: ColumnName | None = None
    values: tuple[str, ...] | None = None

    def condition(self, columns: tuple[str, ...], hierarchies: Mapping[str, Hierarchy]) -> Model:  # noqa: ARG002
        """(alpha, k)-anonymity."""
        return anonymize.AlphaK(self.value, columns[0], self.values)

    def is_as_strict_as(self, least: Self) -> bool:
        """The smaller alpha, of all the other's values."""
        every = self.values is None or (least.values is not None and set(least.values) <= set(self.values))
        return every and self.value <= least.value


class LikenessSection(ColumnEntry):
    """beta-likeness of a sensitive column.

    Attributes:
        value: beta, by how much a value's share in a class may exceed its share in the table.
        column: Which; may be left out where only one column is sensitive.
        enhanced: Also bounds values that are frequent in the table: the limit is min(beta, -ln q).
    """

    value: Fraction = Field(gt=0)
    column: ColumnName | None = None
    enhanced: bool = False

    def condition(self, columns: tuple[str, ...], hierarchies: Mapping[str, Hierarchy]) -> Model:  # noqa: ARG002
        """beta-likeness."""
        return anonymize.BetaLikeness(self.value, columns[0], self.enhanced)

    def is_as_strict_as(self, least: Self) -> bool:
        """The smaller beta; enhanced is the stricter."""
        return self.value <= least.value and (self.enhanced or not least.enhanced)


class DisclosureSection(ColumnEntry):
    """delta-disclosure of a sensitive column.

    Attributes:
        value: delta, the largest logarithm of the ratio of shares.
        column: Which; may be left out where only one column is sensitive.
    """

    value: Fraction = Field(gt=0)
    column: ColumnName | None = None

    def condition(self, columns: tuple[str, ...], hierarchies: Mapping[str, Hierarchy]) -> Model:  # noqa: ARG002
        """delta-disclosure privacy."""
        return anonymize.DeltaDisclosure(self.value, columns[0])

    def is_as_strict_as(self, least: Self) -> bool:
        """The smaller delta."""
        return self.value <= least.value


_Diversity = Annotated[tuple[DiversitySection, ...], one_or_many(DiversitySection)]
_Closeness = Annotated[tuple[ClosenessSection, ...], one_or_many(ClosenessSection)]
_Sensitivity = Annotated[tuple[SensitivitySection, ...], one_or_many(SensitivitySection)]
_Share = Annotated[tuple[ShareSection, ...], one_or_many(ShareSection)]
_Likeness = Annotated[tuple[LikenessSection, ...], one_or_many(LikenessSection)]
_Disclosure = Annotated[tuple[DisclosureSection, ...], one_or_many(DisclosureSection)]


class _BuiltIn(Section):
    """The keys that comine has itself, and no others.

    Attributes:
        k: The least rows of a class.
        l: l-diversity.
        t: t-closeness.
        p: p-sensitivity.
        alpha: (alpha, k)-anonymity.
        h: Of how many levels of `[anonymize.levels]` each class has values.
        beta: beta-likeness.
        delta: delta-disclosure privacy.
    """

    k: Whole | None = Field(default=None, ge=1)
    l: _Diversity = ()  # noqa: E741 - the model's own name
    t: _Closeness = ()
    p: _Sensitivity = ()
    alpha: _Share = ()
    h: Whole | None = Field(default=None, alias="H", ge=1)
    beta: _Likeness = ()
    delta: _Disclosure = ()


_NUMBERS: Final = {"k": "k", "h": "H"}  # conditions that are no entries, and their keys
KEYS: Final = tuple(_NUMBERS.get(name, name) for name in _BuiltIn.model_fields)


class ModelSection(_BuiltIn):
    """The `[anonymize.model]` table: every condition that all classes meet.

    Each but k and H is a number or a table, or a list of tables where several sensitive columns have one each.
    """

    # Keys that other packages bring are extra fields; the published schema knows none.
    model_config = ConfigDict(extra="allow", json_schema_extra={"additionalProperties": False})

    @model_validator(mode="wrap")
    @classmethod
    def _with_outside(cls, given: Any, validated: ModelWrapValidatorHandler[Self]) -> Self:
        """Reads entries that other packages bring; a key that nobody brings is refused."""
        foreign = (
            [key for key in given if key not in {*KEYS, *_BuiltIn.model_fields}] if isinstance(given, dict) else []
        )
        if not foreign:
            return validated(given)
        brought = outside(foreign)
        fields: dict[str, Any] = {
            key: (Annotated[tuple[entry, ...], one_or_many(entry)], ())  # type: ignore[valid-type]
            for key, entry in brought.items()
        }
        read = create_model(cls.__name__, __base__=_BuiltIn, **fields).model_validate(given)
        return validated({**given, **{key: getattr(read, key) for key in brought}})

    @property
    def entries(self) -> dict[str, tuple[Entry, ...]]:
        """By key, conditions on the sensitive columns that they name; H, which is a number, is none."""
        own: dict[str, tuple[Entry, ...]] = {
            name: getattr(self, name) for name in _BuiltIn.model_fields if name not in _NUMBERS
        }
        return {key: found for key, found in (own | (self.model_extra or {})).items() if found}

    @property
    def beside_k(self) -> tuple[str, ...]:
        """The keys of all conditions but k."""
        return (*self.entries, *(() if self.h is None else ("H",)))


class LevelsSection(Section):
    """The `[anonymize.levels]` table: levels of sensitivity, low to high, and their weights.

    Attributes:
        values: By level, the values of the sensitive column.
        weights: One for each level, by which `maa-slie` weighs their entropy.
        column: Which; may be left out where only one column is sensitive.
    """

    values: tuple[tuple[str, ...], ...] = Field(min_length=1)
    weights: tuple[Fraction, ...] | None = None
    column: ColumnName | None = None
