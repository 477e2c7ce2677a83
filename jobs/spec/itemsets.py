"""The `[itemsets]` and `[rules]` tables of a job: what is frequent, how it is found, and which rules hold."""

from __future__ import annotations

from decimal import Decimal
from itertools import pairwise
from typing import Annotated, Final, Literal

from pydantic import AfterValidator, Field, field_validator, model_validator

from jobs.spec.values import ColumnName, Cuts, Fraction, Section, Support, as_share, one_of
from mining.joint.parameters import Disclose, Prefer
from mining.joint.vertical.engines.names import AUTO, OWN_NAMES, engine_names
from mining.rules.measure_names import DEFAULT_MEASURES, MEASURE_NAMES

MOST_STARS: Final = 10  # with many in each of many patterns, a node would be busy for seconds before it reads a row


def _few_stars(pattern: str) -> str:
    if pattern.count("*") > MOST_STARS:
        raise ValueError(f"a pattern has at most {MOST_STARS} asterisks")
    return pattern


def engine_name(value: str) -> str:
    """The name of an engine that is on this machine; others than our own are looked for where it is none of these."""
    return value if value in OWN_NAMES else one_of(engine_names(), value)


def _engine(value: str) -> str:
    return value if value in (AUTO, *OWN_NAMES) else one_of((AUTO, *engine_names()), value)


Pattern = Annotated[str, Field(min_length=1, max_length=200), AfterValidator(_few_stars)]  # of `fnmatch.fnmatchcase`
Parts = Annotated[int, Field(ge=2, le=1000)]


class ItemsetsSection(Section):
    """The `[itemsets]` table.

    Attributes:
        min_support: A fraction of all transactions in (0, 1], or a count of at least 1. Inclusive.
        top_k: Only the k most frequent; in place of min_support, or beside it.
        max_length: The most items of an itemset.
        disclose: Whose sums are opened beside which itemsets are frequent: those of all `candidates`, the `supports` of
            the frequent ones, or none (`frequent`).
        strategy: `level-wise`, `one-shot`, or whichever `auto` expects to suit `prefer`.
        prefer: What `auto` values: `disclosure` says as little as possible, `speed` takes what is quickest, `balanced`
            the least disclosure that costs little.
        thin: Level-wise, also where that follows `one-shot`: each level's candidates are first thinned to those that
            are locally frequent somewhere.
        universe: How level 1 gets its items: `hidden` (positions of all items, of which only frequent items' are
            named; `hidden-all` is the same), `frequent-items` (union of the names of the locally frequent ones),
            `all-items` (union of all), or the path of a public catalogue, one item a line. `auto` takes `hidden` where
            disclosure is preferred, else `frequent-items`.
        catalogue: The items of a public catalogue, once it has been read.
        union: One-shot: whether the union carries locally `maximal` itemsets or `all` locally frequent ones.
        lambda_: Mixes the proportional local threshold with the even one, in [0, 1).
        max_candidates: The most candidates of one level.
        exclude: Patterns of items that every party removes from its rows beforehand: `*` any text, `?` any character,
            `[…]` one of some; case matters. The rows themselves stay, empty or not.
        engine: Vertical: how supports of itemsets that span parties are computed: `paillier`, `ot`, `replicated`, an
            engine of another distribution, or `auto`.
        cuts: Vertical: by column, ascending numbers at which the column's numbers are cut into intervals.
        quantiles: Vertical: by column, into how many intervals of about as many rows its numbers are put. Its owner
            finds out where, and discloses it with the names of items.
    """

    min_support_: Support | None = Field(default=None, alias="min_support")
    top_k: int | None = Field(default=None, ge=1, le=10_000)
    max_length: int | None = Field(default=None, ge=1)
    disclose: Disclose = "supports"
    strategy: Literal["auto", "level-wise", "one-shot"] = "auto"
    prefer: Prefer = "balanced"
    thin: bool = False
    universe: str = "auto"
    catalogue: tuple[str, ...] | None = None
    union: Literal["maximal", "all"] = "maximal"
    lambda_: Fraction = Field(default=Decimal("0.8"), alias="lambda")
    max_candidates: int = Field(default=5_000_000, ge=1, le=200_000_000)
    exclude: tuple[Pattern, ...] = Field(default=(), max_length=1000)
    engine: Annotated[str, AfterValidator(_engine)] = Field(default=AUTO, examples=[AUTO, *OWN_NAMES])
    cuts: dict[ColumnName, Cuts] = Field(default_factory=dict, max_length=1000)
    quantiles: dict[ColumnName, Parts] = Field(default_factory=dict, max_length=1000)

    @property
    def min_support(self) -> int | Decimal:
        """The least support; every job has one but those whose records are perturbed, which may ask for the top k."""
        if self.min_support_ is None:
            raise ValueError("this job asks for the k most frequent itemsets, whatever their support")
        return self.min_support_

    @field_validator("exclude")
    @classmethod
    def _once(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        for pattern in value:
            if value.count(pattern) > 1:
                raise ValueError(f"the pattern '{pattern}' is listed twice")
        return value

    @field_validator("catalogue")
    @classmethod
    def _catalogued(cls, value: tuple[str, ...] | None) -> tuple[str, ...] | None:
        if value is not None and (not value or any(a >= b for a, b in pairwise(value))):
            raise ValueError("a catalogue names items once each, in ascending order, and at least one")
        return value

    @field_validator("lambda_")
    @classmethod
    def _mixes(cls, value: Decimal) -> Decimal:
        if not (value.is_finite() and 0 <= value < 1):
            raise ValueError(f"{value} must be at least 0 and below 1")
        return value

    @field_validator("cuts")
    @classmethod
    def _ascending(cls, value: dict[str, tuple[Decimal, ...]]) -> dict[str, tuple[Decimal, ...]]:
        for column, cuts in value.items():
            if any(a >= b for a, b in pairwise(cuts)):
                raise ValueError(f"the cuts of '{column}' must be numbers in ascending order, such as [18, 40, 65]")
        return value

    @model_validator(mode="after")
    def _one_way(self) -> ItemsetsSection:
        if self.min_support_ is None and self.top_k is None:
            raise ValueError("needs min_support, a fraction such as 0.01 or a count such as 5; or top_k")
        for column in (*self.cuts, *self.quantiles):
            if "=" in column:
                raise ValueError(f"no column of a table may be called '{column}', with an equals sign")
        for column in self.quantiles:
            if column in self.cuts:
                raise ValueError(f"'{column}' is in cuts and in quantiles; choose one")
        return self


class RulesSection(Section):
    """The `[rules]` table, with task = "rules".

    Attributes:
        min_confidence: The least confidence, in [0, 1]. Inclusive.
        consequent: `single`: only rules with one item there.
        measures: What is stated of each rule, by name.
    """

    min_confidence: Fraction
    consequent: Literal["any", "single"] = "any"
    measures: tuple[str, ...] = DEFAULT_MEASURES

    @field_validator("measures")
    @classmethod
    def _known(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        for name in value:
            if name not in MEASURE_NAMES:
                raise ValueError(f"there is no measure '{name}'; there are {', '.join(MEASURE_NAMES)}")
            if value.count(name) > 1:
                raise ValueError(f"the measure '{name}' is named twice")
        return value

    @field_validator("min_confidence")
    @classmethod
    def _share(cls, value: Decimal) -> Decimal:
        if not (value.is_finite() and 0 <= value <= 1):
            raise ValueError(f"{value} must be between 0 and 1{as_share(value)}")
        return value
