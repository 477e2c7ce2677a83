"""The `[anonymize]` table of a job: how rows of several parties are anonymised as one table."""

from __future__ import annotations

from decimal import Decimal
from typing import Annotated, Final, Literal

from pydantic import Field, WithJsonSchema, model_validator

from jobs.anonymization.model_spec import Kind, LevelsSection, ModelSection
from jobs.spec.values import ColumnName, Fraction, Section

DEFAULT_BYTES: Final = 64
INSIDER_K: Final = 2

Label = str
HierarchyRows = Annotated[
    tuple[tuple[Label, ...], ...],
    WithJsonSchema(
        {
            "anyOf": [
                {"type": "array", "items": {"type": "array", "items": {"type": "string"}}},
                {"type": "string"},
                {"type": "object"},
            ]
        },
        mode="validation",
    ),
]
"""Rows, one for each leaf; in a file also a path, or a table that names a path or a builder."""


class JointColumnSection(Section):
    """An entry of `[anonymize.columns]`, equal at all parties.

    Attributes:
        kind: What the values of the column are; by default those of a tree.
        values: Of a column that is published as it is, all that may occur, in order; "" where cells may be empty.
        most_bytes: The longest cell of a column that is published as it is and whose values are not named.
    """

    kind: Kind = "tree"
    values: tuple[str, ...] | None = Field(default=None, min_length=1, max_length=100_000)
    most_bytes: int = Field(default=DEFAULT_BYTES, ge=1, le=4096)

    @model_validator(mode="after")
    def _distinct(self) -> JointColumnSection:
        if self.values is not None and len(set(self.values)) < len(self.values):
            raise ValueError("values names a value twice")
        return self


class JointAnonymizeSection(Section):
    """The `[anonymize]` table of a job file.

    Attributes:
        quasi_identifiers: Columns that are generalised.
        sensitive: Columns that models look at, published as they are.
        insensitive: Columns that are published as they are. Whatever else a party's table has stays there.
        allow_unique: Insensitive columns that may distinguish most rows, since nobody can know a person's value.
        algorithm: How the node is chosen, or `mondrian`, which cuts regions.
        max_suppression: Share of all rows that may be left out, as an exact decimal.
        insider_k: Without its own rows a party is left with none of a class, or with so many: `INSIDER_K` by default
            where parties hold rows; where they hold columns it means nothing.
        insiders: The same without the rows of up to so many parties that put theirs together.
        origin: `hidden`: nobody sees whose row is whose. `shown`: a column shows it, which needs a
            `k_site` of at least 2.
        k_site: No party has fewer rows in a class, but it may have none.
        disclose: `verdicts`: all parties learn of each node that is looked at whether it satisfies. `node`: of the
            chosen node alone, for which all nodes within `node_cells` are examined.
        node_cells: With `disclose = "node"`, the most possible classes of a node that is examined; 10,000 by default.
        keys: `none`: nodes with too many possible classes are left out. `union`: all learn which classes of such a node
            occur, where it may be better than the best, and it is examined over these; every party's policy must allow
            it.
        model: Every condition that all classes meet.
        levels: Of sensitivity, for H.
        columns: What cells mean.
        hierarchies: Of each quasi-identifier, and of a sensitive column for t-closeness over a tree, one row for each
            leaf, level 0 first; in a file the path of such a table in CSV, which is read in when the job is.
    """

    quasi_identifiers: tuple[ColumnName, ...] = Field(min_length=1, max_length=64)
    sensitive: tuple[ColumnName, ...] = ()
    insensitive: tuple[ColumnName, ...] = ()
    allow_unique: tuple[ColumnName, ...] = ()
    algorithm: Literal["optimal", "samarati", "mondrian"] = "optimal"
    max_suppression: Fraction = Field(default=Decimal(0), ge=0, le=1)
    insider_k: int | None = Field(default=None, ge=1, le=10_000)
    origin: Literal["hidden", "shown"] = "hidden"
    k_site: int | None = Field(default=None, ge=1, le=10_000)
    insiders: int = Field(default=1, ge=1, le=63)
    disclose: Literal["verdicts", "node"] = "verdicts"
    node_cells: int | None = Field(default=None, ge=1, le=1 << 20)
    keys: Literal["none", "union"] = "none"
    model: ModelSection
    levels: LevelsSection | None = None
    columns: dict[ColumnName, JointColumnSection] = Field(default_factory=dict)
    hierarchies: dict[ColumnName, HierarchyRows] = Field(default_factory=dict)

    @model_validator(mode="after")
    def _consistent(self) -> JointAnonymizeSection:
        named = (*self.quasi_identifiers, *self.sensitive, *self.insensitive)
        for name in named:
            if named.count(name) > 1:
                raise ValueError(f"the column '{name}' is named twice; a column has one role")
            if name == "origin" and self.origin == "shown":
                raise ValueError('origin = "shown" adds a column "origin", and the job names one; rename it')
        for name in self.allow_unique:
            if name not in self.insensitive:
                raise ValueError(f"allow_unique names '{name}', which is not among insensitive; leave it out")
        for name in self.columns:
            if name not in named:
                raise ValueError(f"[anonymize.columns] describes '{name}', which the job does not take; leave it out")
            if name in self.quasi_identifiers and self.columns[name].values is not None:
                raise ValueError(f"[anonymize.columns] {name}: the values of a quasi-identifier are its leaves")
        for name in self.quasi_identifiers:
            if name not in self.hierarchies:
                raise ValueError(f"[anonymize.hierarchies] lacks one of the quasi-identifier '{name}'; all need one")
        for name in self.hierarchies:
            if name not in (*self.quasi_identifiers, *self.sensitive):
                raise ValueError(
                    f"[anonymize.hierarchies] has one of '{name}', which is neither a quasi-identifier nor sensitive"
                )
        if (self.origin == "shown") and self.k_site is None:
            raise ValueError(
                'origin = "shown" reveals whose a row is, so that k in the union protects nobody; give k_site, the '
                "rows of one party that a class needs"
            )
        if self.origin == "shown" and self.k_site == 1:
            raise ValueError(
                'k_site = 1 sets no rule, and origin = "shown" reveals whose a row is; give a k_site of at least 2'
            )
        if self.algorithm == "mondrian" and self.max_suppression:
            raise ValueError('algorithm = "mondrian" leaves no row out; leave max_suppression out')
        if self.insiders > 1 and self.insider_k == 1:
            raise ValueError("insider_k = 1 sets no rule, so insiders means nothing; leave one of them out")
        if self.disclose == "node" and self.algorithm != "optimal":
            raise ValueError(
                'disclose = "node" needs algorithm = "optimal": "samarati" goes by verdicts, and "mondrian" cuts '
                "regions; leave disclose out"
            )
        if self.node_cells is not None and self.disclose != "node":
            raise ValueError('node_cells means nothing without disclose = "node"; leave it out')
        if self.keys == "union" and (self.algorithm != "optimal" or self.disclose == "node"):
            raise ValueError(
                'keys = "union" reveals which classes of large nodes occur; it needs algorithm = "optimal" and '
                'disclose = "verdicts", so leave it out'
            )
        if self.model.k is None:
            raise ValueError("[anonymize.model] k is missing; every class needs a least size")
        return self
