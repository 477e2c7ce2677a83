"""The configuration of `comine anonymize`: a frozen model of the file's one table, `[anonymize]`."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path
from typing import Any, Final, Literal, get_args

from pydantic import Field, field_validator, model_validator

from jobs.anonymization.hierarchy_spec import HierarchyEntry
from jobs.anonymization.model_spec import Kind, LevelsSection, ModelSection, Whole
from jobs.spec.toml import read_toml, validate
from jobs.spec.values import ColumnName, Fraction, Section
from link.errors import ConfigurationError
from mining.data.fitting_options import misfit
from mining.data.schemes.registry import scheme_of, unread
from mining.data.schemes.scheme import DatabaseScheme
from mining.data.source_options import SourceOptions

Algorithm = Literal[
    "samarati",
    "incognito",
    "optimal",
    "datafly",
    "local-recoding",
    "mondrian",
    "mdav",
    "maa-slie",
    "gpkc",
    "condensation",
    "distributions",
    "ppir",
]
OF_SOURCE: Final = frozenset(
    {"source", "format", "query", "separator", "encoding", "sheet", "password_env", "password_file"}
)
"""Keys that say where rows are and how they are written."""

Loss = Literal["gcp", "prec", "entropy", "dm"]

FULL_DOMAIN: Final = ("samarati", "incognito", "optimal", "datafly", "local-recoding")
CLUSTERING: Final = ("mdav", "maa-slie", "gpkc")
WITHOUT_CLASSES: Final = ("condensation", "distributions", "ppir")
RANDOM: Final = ("maa-slie", "gpkc", *WITHOUT_CLASSES)
"""Algorithms that draw."""

_OWN_TABLES: Final = ("mondrian", "mdav", "maa_slie", "gpkc", "condensation", "distributions", "ppir")


class ColumnSection(Section):
    """An entry of `[anonymize.columns]`: the kind of a column's values, and of ordinal ones their order.

    Attributes:
        kind: What its values are.
        order: Of ordinal values: all of them, lowest first.
    """

    kind: Kind
    order: tuple[str | int | Decimal, ...] = ()

    @model_validator(mode="after")
    def _ordered(self) -> ColumnSection:
        if (self.kind == "ordinal") != bool(self.order):
            raise ValueError('kind = "ordinal" and order belong together: list the values, lowest first')
        return self


class MondrianSection(Section):
    """The `[anonymize.mondrian]` table."""

    mode: Literal["strict", "relaxed", "hierarchical"] = "strict"
    release: Literal["ranges", "centres"] = "ranges"


class MdavSection(Section):
    """The `[anonymize.mdav]` table."""

    scaling: Literal["deviation", "range", "none"] = "deviation"


class MaaSlieSection(Section):
    """The `[anonymize.maa-slie]` table."""

    psi_weights: tuple[Fraction, Fraction] = (Decimal("0.5"), Decimal("0.5"))
    term: Literal["reciprocal", "bounded"] = "reciprocal"
    leftover: Literal["psi", "infoloss"] = "psi"
    base: Fraction = Field(default=Decimal(2), gt=1)


class GpkcSection(Section):
    """The `[anonymize.gpkc]` table."""

    loss: Literal["centroid", "generalisation"] = "centroid"


class CondensationSection(Section):
    """The `[anonymize.condensation]` table."""

    factor: Whole = Field(default=1, ge=1)
    by: tuple[ColumnName, ...] = ()
    grouping: Literal["random", "mdav"] = "random"
    scaling: Literal["deviation", "range", "none"] = "deviation"


class DistributionsSection(Section):
    """The `[anonymize.distributions]` table."""

    scaling: Literal["deviation", "range", "none"] = "deviation"


class PpirSection(Section):
    """The `[anonymize.ppir]` table."""

    ranges: dict[ColumnName, Fraction]
    alpha_min: Fraction = Field(default=Decimal(0), ge=0, le=1)
    alpha_max: Fraction = Field(default=Decimal(1), ge=0, le=1)
    ch_max: Fraction = Field(default=Decimal(1), ge=0)
    tries: Whole = Field(default=100, ge=1)
    beta: Literal["projection", "symmetric"] = "projection"
    exhausted: Literal["best", "suppress"] = "best"
    scales: dict[ColumnName, Fraction] = Field(default={})
    influences: dict[ColumnName, Fraction] = Field(default={})
    weights: dict[ColumnName, Fraction] = Field(default={})


class AnonymizeSection(Section):
    """The `[anonymize]` table.

    Attributes:
        source: A CSV or Parquet file, a pattern of several, a workbook, or a URL of a store or a database.
        format: How rows are written there; by default as the source's name says.
        query: What is asked of the database.
        encoding: Of text that is not in UTF-8.
        sheet: Of a workbook; the first by default.
        password_env: The environment variable that holds the password of the source.
        password_file: The file whose first line is that password, open to its owner alone.
        separator: Of the cells of CSV files, those of hierarchies too.
        identifiers: Columns that are left out, and so on: every column has one role.
        quasi_identifiers: Columns that are generalised.
        sensitive: Columns that models look at.
        insensitive: Columns that are released as they are.
        allow_repeated: Identifiers whose values different persons share, such as family names: of any other a value
            that has several rows is refused, since k would count rows.
        allow_unique: Insensitive columns that may distinguish most rows, since nobody can know a person's value.
        missing: What becomes of rows that lack values.
        algorithm: By its name.
        max_suppression: Share of the rows that may be suppressed, as an exact decimal.
        suppressed: What becomes of suppressed rows.
        suppression: Of whole rows, or of single cells.
        loss: What a search minimises.
        row_order: Of the published rows: sorted by what they show, their order reveals nothing about the input's;
            in that of the input, a row's place may reveal what its cells hide.
        hash_input: Whether the certificate names the SHA-256 of the source, by which a guess of it can be confirmed.
        seed: Repeats all random draws; for tests, since anybody who knows it can repeat them too.
        engine: Whether the rows are read into memory, or in blocks; `auto` reads a file in blocks if the algorithm is
            one of full-domain recoding and its rows might not fit memory. The release is the same.
    """

    source: str = Field(min_length=1)
    format: Literal["csv", "parquet", "sql"] | None = None
    query: str | None = None
    encoding: str | None = Field(default=None, min_length=1)
    sheet: str | None = Field(default=None, min_length=1)
    password_env: str | None = Field(default=None, min_length=1)
    password_file: str | None = Field(default=None, min_length=1)
    separator: str = Field(default=",", min_length=1, max_length=1)
    identifiers: tuple[ColumnName, ...] = ()
    quasi_identifiers: tuple[ColumnName, ...] = ()
    sensitive: tuple[ColumnName, ...] = ()
    insensitive: tuple[ColumnName, ...] = ()
    allow_repeated: tuple[ColumnName, ...] = ()
    allow_unique: tuple[ColumnName, ...] = ()
    missing: Literal["error", "value", "drop"] = "error"
    algorithm: Algorithm = "optimal"
    max_suppression: Fraction = Field(default=Decimal(0), ge=0, le=1)
    suppressed: Literal["drop", "blank", "keep"] = "drop"
    suppression: Literal["row", "cell"] = "row"
    loss: Loss = "gcp"
    row_order: Literal["sorted", "input"] = "sorted"
    hash_input: bool = True
    seed: Whole | None = None
    engine: Literal["auto", "memory", "blocks"] = "auto"
    model: ModelSection = ModelSection()
    columns: dict[ColumnName, ColumnSection] = Field(default={})
    hierarchies: dict[ColumnName, HierarchyEntry] = Field(default={})
    levels: LevelsSection | None = None
    mondrian: MondrianSection = MondrianSection()
    mdav: MdavSection = MdavSection()
    maa_slie: MaaSlieSection = Field(default=MaaSlieSection(), alias="maa-slie")
    gpkc: GpkcSection = GpkcSection()
    condensation: CondensationSection = CondensationSection()
    distributions: DistributionsSection = DistributionsSection()
    ppir: PpirSection | None = None

    @field_validator("algorithm", mode="before")
    @classmethod
    def _known(cls, value: object) -> object:
        if isinstance(value, str) and value not in get_args(Algorithm):
            raise ValueError(f"'{value}' is none of {', '.join(get_args(Algorithm))}")
        return value

    @model_validator(mode="after")
    def _allowed_columns(self) -> AnonymizeSection:
        for key, role in (("allow_repeated", "identifiers"), ("allow_unique", "insensitive")):
            for name in getattr(self, key):
                if name not in getattr(self, role):
                    raise ValueError(f"{key} names '{name}', which is not among {role}; leave it out")
        return self

    @model_validator(mode="after")
    def _tables_of_the_algorithm(self) -> AnonymizeSection:
        own = self.algorithm.replace("-", "_")
        for name in _OWN_TABLES:
            if name in self.model_fields_set and name != own:
                table = name.replace("_", "-")
                raise ValueError(f'[anonymize.{table}] belongs to algorithm = "{table}", not to "{self.algorithm}"')
        if self.algorithm == "ppir" and self.ppir is None:
            raise ValueError('algorithm = "ppir" needs [anonymize.ppir] ranges, one for each quasi-identifier')
        return self

    @model_validator(mode="after")
    def _model_of_the_algorithm(self) -> AnonymizeSection:
        given = self.model
        named = given.beside_k
        if self.algorithm == "ppir" and (named or given.k is not None):
            raise ValueError(
                'algorithm = "ppir" forms no classes and meets no model; take [anonymize.model] away, or another '
                "algorithm"
            )
        if self.algorithm in WITHOUT_CLASSES and named:
            raise ValueError(
                f'algorithm = "{self.algorithm}" forms no classes, so {named[0]} says nothing of its release; leave k '
                "alone in [anonymize.model]"
            )
        if self.algorithm in (*CLUSTERING, "condensation", "distributions") and given.k is None:
            raise ValueError(f'algorithm = "{self.algorithm}" needs k in [anonymize.model]')
        if given.k is None and not named and self.algorithm != "ppir":
            raise ValueError("[anonymize.model] is missing: name at least one model, such as k = 5")
        if (given.h is not None or self.algorithm == "maa-slie") and self.levels is None:
            what = "H" if given.h is not None else 'algorithm = "maa-slie"'
            raise ValueError(f"{what} needs [anonymize.levels] values: the sensitive values of each level, low to high")
        return self

    @model_validator(mode="after")
    def _database(self) -> AnonymizeSection:
        if self.is_database != (self.query is not None):
            raise ValueError("a query belongs to a source that is a database URL, and such a source needs one")
        if fault := unread(self.source):
            raise ValueError(f"the source {fault}")
        if fault := misfit(
            self.source,
            self.form,
            encoding=self.encoding,
            sheet=self.sheet,
            has_password_env=self.password_env is not None,
            has_password_file=self.password_file is not None,
        ):
            raise ValueError(fault)
        return self

    @property
    def least(self) -> int:
        """How many rows must have a value that is released as it is, so that it identifies none of them."""
        return max(2, self.model.k or 2)

    @property
    def as_they_are(self) -> tuple[str, ...]:
        """Insensitive columns that are released; synthetic records have none."""
        return () if self.algorithm == "condensation" else self.insensitive

    @property
    def is_telling(self) -> bool:
        """Whether the file holds what nobody outside may know: a seed, or what is asked of a database.

        The SHA-256 of such a file would confirm a guess of it, since all else that the file holds is published.
        """
        return self.seed is not None or self.is_database

    @property
    def is_database(self) -> bool:
        """Whether the source is a database."""
        return self.format == "sql" or isinstance(scheme_of(self.source), DatabaseScheme)

    @property
    def form(self) -> Literal["csv", "parquet", "sql"]:
        """How rows are written in the source: as `format` says, else as its name does."""
        if self.is_database:
            return "sql"
        parquet = self.source.partition("?")[0].endswith((".parquet", ".pq"))
        return self.format or ("parquet" if parquet else "csv")

    def options(self, folder: Path) -> SourceOptions:
        """What reading the source needs beside its place and format; `folder` is that of the configuration."""
        kept = None if self.password_file is None else folder / self.password_file
        return SourceOptions(self.encoding, self.sheet, self.password_env, kept)

    def place(self, folder: Path) -> str:
        """The source with a relative path taken from the folder of the configuration."""
        scheme = scheme_of(self.source)
        return str(folder / self.source) if scheme is None else scheme.beside(self.source, folder)


class AnonymizationSpec(Section):
    """The whole of a configuration file."""

    anonymize: AnonymizeSection


def read_spec(path: Path) -> AnonymizeSection:
    """The configuration in a file.

    Raises:
        ConfigurationError: It cannot be read, or a key is missing, unknown or wrong; the sentence names the key.
    """
    return validate(AnonymizationSpec, read_toml(path), str(path)).anonymize


def parameters(spec: AnonymizeSection) -> dict[str, Any]:
    """What a certificate says of a configuration, as JSON values.

    Neither where the data came from, since a URL may hold a password, nor the seed, with which random draws could be
    repeated and so undone; nor values of columns that only the configuration lists.
    """
    shown = spec.model_dump(
        mode="json",
        by_alias=True,
        exclude_unset=True,
        exclude={*OF_SOURCE, "seed", "engine", "hierarchies", "columns", "levels"},
    )
    shown |= {"seeded": spec.seed is not None, "row_order": spec.row_order}
    return shown


def sole_column(spec: AnonymizeSection, given: str | None, what: str) -> str:
    """The sensitive column that a model names, or the only one.

    Raises:
        ConfigurationError: None is named, and there is not exactly one.
    """
    if given is not None:
        return given
    if len(spec.sensitive) != 1:
        columns = ", ".join(spec.sensitive) or "none"
        raise ConfigurationError(
            f"[anonymize.model] {what} needs the name of its sensitive column, since there is not exactly one "
            f"(sensitive are {columns}); add column"
        )
    return spec.sensitive[0]
