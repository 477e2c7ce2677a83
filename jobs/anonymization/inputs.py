"""What a configuration names: its table, its hierarchies and its requirements."""

from __future__ import annotations

import datetime
from collections.abc import Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa

from anonymize.certifying import Sources
from anonymize.columns import Column, Value
from anonymize.columns import Kind as ColumnKind
from anonymize.hierarchies import builders
from anonymize.hierarchies.files import from_csv, from_json
from anonymize.hierarchies.hierarchy import Hierarchy
from anonymize.models import KAnonymity, Model, Requirements, SensitiveLevels
from anonymize.reading import as_arrow, read_csv, read_parquet, read_sql
from anonymize.roles import Roles
from anonymize.tables import Table
from anonymize.uniqueness import check_insensitive, check_persons, warnings
from jobs.anonymization.hierarchy_spec import (
    BinsEntry,
    DatesEntry,
    FileEntry,
    FlatEntry,
    GroupingEntry,
    IntervalsEntry,
    OrderEntry,
    PrefixEntry,
)
from jobs.anonymization.model_entry import ColumnEntry
from jobs.anonymization.spec import AnonymizeSection, parameters, read_spec, sole_column
from jobs.spec.values import plain_number
from link.errors import ConfigurationError, InputDataError
from mining.data.copies import Wanted, local_file
from mining.data.schemes.registry import database_of, scheme_of
from mining.data.schemes.scheme import ArrowDatabase


@dataclass(frozen=True, eq=False)
class Inputs:
    """All that a run needs.

    Attributes:
        spec: The configuration.
        config: Its file; None where it came over the wire.
        table: The rows to anonymise.
        all_hierarchies: By column: of quasi-identifiers, and of sensitive columns that have one.
        levels: Of the sensitive column, without H if none is asked for; None where there are none.
        requirements: What every class must meet; None where nothing is claimed.
        source: The file of the rows; None where they are not in one of this machine.
        hierarchy_files: By column, the file of its hierarchy where it came from one.
    """

    spec: AnonymizeSection
    config: Path | None
    table: Table
    all_hierarchies: Mapping[str, Hierarchy]
    levels: SensitiveLevels | None
    requirements: Requirements | None
    source: Path | None
    hierarchy_files: Mapping[str, Path] = field(default_factory=dict)

    @property
    def hierarchies(self) -> dict[str, Hierarchy]:
        """Of quasi-identifiers, by column."""
        return {name: each for name, each in self.all_hierarchies.items() if name in self.spec.quasi_identifiers}

    @property
    def warnings(self) -> list[str]:
        """What columns that are released as they are may reveal, as sentences."""
        return warnings(self.table.data, self.spec.as_they_are, self.spec.sensitive, self.spec.least)


def load(config: Path) -> Inputs:
    """Reads a configuration, and everything that it names.

    Raises:
        ConfigurationError: A key is wrong, or contradicts the data.
        InputDataError: The data or a hierarchy cannot be used.
    """
    spec = read_spec(config)
    if spec.engine == "blocks":
        raise ConfigurationError(
            'engine = "blocks" is for comine anonymize run, which writes a folder; everything else needs the rows in '
            'memory: take engine = "memory"'
        )
    return inputs_of(spec, config, table_of(spec, read_source(spec, config.resolve().parent)))


def inputs_of(spec: AnonymizeSection, config: Path, table: Table) -> Inputs:
    """What a configuration names beside its rows, and these.

    Raises:
        ConfigurationError: As of `load`.
        InputDataError: A hierarchy cannot be used.
    """
    folder = config.resolve().parent
    given, files = hierarchies_of(spec, folder, table)
    return Inputs(
        spec,
        config,
        table,
        given,
        sensitive_levels(spec),
        requirements_of(spec, given),
        _hashed_file(spec, folder),
        {name: path for name, path in files.items() if name in spec.quasi_identifiers},
    )


def sources_of(inputs: Inputs) -> Sources:
    """What a certificate says of where a release came from."""
    spec = inputs.spec
    return Sources(
        inputs.source if spec.hash_input else None,
        inputs.hierarchy_files,
        None if spec.is_telling else inputs.config,
        parameters(spec),
    )


def described(spec: AnonymizeSection) -> tuple[Roles, dict[str, ColumnKind], dict[str, list[Value]]]:
    """The roles of all columns, the kinds that are given, and the orders of ordinal columns."""
    kinds = {name: column.kind for name, column in spec.columns.items()}
    orders: dict[str, list[Value]] = {
        name: [plain_number(each) if isinstance(each, Decimal) else each for each in column.order]
        for name, column in spec.columns.items()
        if column.kind == "ordinal"
    }
    return Roles(spec.identifiers, spec.quasi_identifiers, spec.sensitive, spec.insensitive), kinds, orders


def table_of(spec: AnonymizeSection, data: pa.Table) -> Table:
    """Rows with the roles and kinds of a configuration.

    Raises:
        ConfigurationError: A column has no role, a role or kind names an unknown one, or contradicts it; a person has
            several rows, or a column that is released as it is distinguishes most rows.
        InputDataError: There are no rows, cells are missing, or a cell is no value of its column's kind.
    """
    table = Table.of(data, *described(spec), spec.missing)
    check_persons(table.data, spec.identifiers, spec.allow_repeated)
    if table.data.num_rows >= spec.least:  # else every value is rare, and of what can be released it is asked again
        check_insensitive(table.data, spec.as_they_are, spec.allow_unique, spec.least)
    return table


def read_source(spec: AnonymizeSection, folder: Path) -> pa.Table:
    """The rows of a configuration's source; paths are relative to the configuration's folder.

    Raises:
        ConfigurationError: What reads it is not installed, or no password is where it is said to be.
        InputDataError: It cannot be read.
    """
    if spec.is_database:
        assert spec.query is not None
        url, database = spec.place(folder), database_of(spec.source)
        if isinstance(database, ArrowDatabase):
            with database.query(url, spec.query, spec.options(folder)) as batches:
                return as_arrow(batches.read_all())
        return read_sql(url, spec.query)
    with source_file(spec, folder) as path:
        return read_parquet(path) if spec.form == "parquet" else read_csv(path, spec.separator)


def source_file(spec: AnonymizeSection, folder: Path) -> AbstractContextManager[Path]:
    """One file in UTF-8 or Parquet with what the source holds, which is no database; a copy is gone afterwards.

    Raises:
        ConfigurationError: As of `read_source`.
        InputDataError: As of `read_source`.
        ResourceError: There is no room for a copy.
    """
    return local_file(spec.place(folder), spec.options(folder), Wanted(spec.form, spec.separator, has_header=True))


def _hashed_file(spec: AnonymizeSection, folder: Path) -> Path | None:
    """The file whose SHA-256 a certificate may name; None where the source is not one file of this machine."""
    path = folder / spec.source
    return path if scheme_of(spec.source) is None and path.is_file() else None


def read_rows(path: Path, separator: str) -> pa.Table:
    """The rows of a CSV or Parquet file, by its suffix.

    Raises:
        InputDataError: It cannot be read.
    """
    return read_parquet(path) if path.suffix in (".parquet", ".pq") else read_csv(path, separator)


def requirements_of(spec: AnonymizeSection, hierarchies: Mapping[str, Hierarchy]) -> Requirements | None:
    """The models of a configuration that classes or groups meet; None where it names none.

    The k of records as distributions is neither: it is an expectation over their noise.

    Raises:
        ConfigurationError: A parameter is wrong, or a model lacks its column, levels or hierarchy.
    """
    given = spec.model
    if spec.algorithm == "distributions":
        return None
    models: list[Model] = [] if given.k is None else [KAnonymity(given.k)]
    for key, entries in given.entries.items():
        for each in entries:
            columns = each.columns_of(spec.sensitive)
            if isinstance(each, ColumnEntry):
                columns = (sole_column(spec, each.column, key),)
            models.append(each.condition(columns, hierarchies))
    levels = sensitive_levels(spec)
    if levels is not None and given.h is not None:
        models.append(levels)
    return Requirements(tuple(models)) if models else None


def sensitive_levels(spec: AnonymizeSection) -> SensitiveLevels | None:
    """Levels of sensitivity with H, which is 1 where none is asked for.

    Raises:
        ConfigurationError: Levels, weights or H contradict each other.
    """
    levels = spec.levels
    if levels is None or (spec.model.h is None and spec.algorithm != "maa-slie"):
        return None
    weights = None if levels.weights is None else tuple(map(float, levels.weights))
    return SensitiveLevels(spec.model.h or 1, levels.values, sole_column(spec, levels.column, "H"), weights)


def hierarchies_of(spec: AnonymizeSection, folder: Path, table: Table) -> tuple[dict[str, Hierarchy], dict[str, Path]]:
    """Hierarchies by column, and the files of those that came from one.

    Raises:
        ConfigurationError: A rule does not suit its column, or the column's role.
        InputDataError: A file cannot be read, or a hierarchy lacks values of its column.
    """
    found, files = {}, {}
    for name, entry in spec.hierarchies.items():
        if name in (*table.roles.identifiers, *table.roles.insensitive):
            raise ConfigurationError(
                f'[anonymize.hierarchies] has one of column "{name}", which is neither a quasi-identifier nor '
                "sensitive; take it away"
            )
        if isinstance(entry, FileEntry):
            files[name] = folder / entry.file
            found[name] = from_file(files[name], entry, entry.separator or spec.separator, name)
        else:
            found[name] = _built(entry, table.column(name))
        found[name].align(table.column(name))  # so that values which it lacks are reported before any work is done
    return found, files


def from_file(path: Path, entry: FileEntry, separator: str, name: str) -> Hierarchy:
    """The hierarchy in a file, CSV or JSON.

    Raises:
        InputDataError: It cannot be read, or is wrong.
    """
    if path.suffix == ".json":
        return from_json(path, name=name, add_top=entry.add_top)
    return from_csv(path, separator, name=name, add_top=entry.add_top)


def _built(entry: Any, column: Column) -> Hierarchy:
    """A hierarchy by rule.

    Raises:
        ConfigurationError: The rule does not suit the column.
    """
    name = column.name
    match entry:
        case IntervalsEntry():
            if entry.range is None and column.kind != "numeric":
                raise ConfigurationError(
                    f'The hierarchy of column "{name}" is built of intervals, but its values are {column.kind}; '
                    "declare it numeric, or give another builder."
                )
            low, high = entry.range or (0, -1)
            numbers = [each for each in column.domain if isinstance(each, int | float)]
            leaves = range(low, high + 1) if entry.range else numbers
            return builders.intervals(
                leaves, list(map(plain_number, entry.widths)), plain_number(entry.origin), name=name
            )
        case BinsEntry():
            if column.kind != "numeric":
                raise ConfigurationError(
                    f'The hierarchy of column "{name}" is built of bins, but its values are {column.kind}; declare it '
                    "numeric, or give another builder."
                )
            return builders.bins(entry.bounds(), entry.groups, name=name)
        case OrderEntry():
            if not column.is_ordered:  # by code point, [apr, dec] would hold neither may nor june
                raise ConfigurationError(
                    f'The hierarchy of column "{name}" is built of runs in order, but its values are {column.kind}, '
                    "which have none; declare it ordinal with its order, numeric or date, or give another builder."
                )
            return builders.order(column.domain, entry.groups, name=name)
        case PrefixEntry():
            return builders.prefix(column.texts, entry.masked, name=name)
        case DatesEntry():
            days = [each for each in column.domain if isinstance(each, datetime.date)]
            if len(days) < column.size:
                raise ConfigurationError(
                    f'The hierarchy of column "{name}" is built of dates, but its values are {column.kind}; declare it '
                    "date."
                )
            return builders.dates(days, entry.levels, name=name)
        case GroupingEntry():
            return builders.grouping(column.domain, *(_inverted(each, name) for each in entry.groups), name=name)
        case FlatEntry():
            return builders.flat(column.domain, name=name)
    raise AssertionError(entry)


def _inverted(groups: Mapping[str, tuple[str, ...]], name: str) -> dict[str, str]:
    """From each member to its group.

    Raises:
        InputDataError: A member is in two groups.
    """
    found: dict[str, str] = {}
    for label, members in groups.items():
        for member in members:
            if member in found:
                raise InputDataError(
                    f'The hierarchy of column "{name}" puts "{member}" under "{found[member]}" and under "{label}"; '
                    "leave it in one."
                )
            found[member] = label
    return found
