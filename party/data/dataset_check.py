"""Looks at a dataset as a job would read it: its sizes, and signs that it is not what its owner means."""

from __future__ import annotations

import re
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from decimal import Decimal
from pathlib import Path
from typing import Final

import numpy as np
from numpy.typing import NDArray

from link.errors import ConfigurationError, InputDataError
from link.files.scratch import scratch_folder
from mining.data.arrow_arrays import lengths_of
from mining.data.hints import Hint, hints, other_format
from mining.data.rows import Rows
from mining.data.table_rows import TableRows
from mining.data.tables import Table
from mining.data.transactions import Transactions
from mining.hiding.sensitive import Thresholds
from mining.partitioned.cores import Cores
from mining.partitioned.encoding.expected import MEMORY_SHARE
from mining.partitioned.encoding.writing import unwritten
from mining.partitioned.in_process import InProcess
from mining.partitioned.processes import Processes
from mining.partitioned.sources import encoding_of
from mining.partitioned.stored import StoredRows
from mining.partitioned.tables.rows import PartitionedTable
from mining.partitioned.tables.stored import StoredTable
from mining.public_sizes import NOTHING, PublicSizes, least_measured, measured
from mining.thresholds import minimum_count
from party.config import DatasetSection
from party.data.block_folders import blocks_of
from party.data.engine import engine_of
from party.data.engine_costs import EngineCost, cluster_cost, engine_costs, unfit
from party.data.hidden_rules import HidingSection
from party.data.places import source_of
from party.data.sources import SCRATCH, read_dataset
from party.data.spark_blocks import SparkBlocks
from party.data.table_costs import cluster_table_cost, table_costs, unfit_table
from party.data.table_hints import table_hints
from party.policy.rules import PolicySection
from party.services.anonymization.check import check_releases
from party.services.queries.conditions import check_columns
from party.services.queries.dependencies import dependencies

RARE: Final = 10  # transactions; the min_count that `comine init` writes


@dataclass(frozen=True, slots=True)
class Profile:
    """Sizes of a dataset of transactions.

    Attributes:
        rows: Transactions.
        items: Distinct items.
        row_items: The fewest, the median and the most items of a transaction.
        empty_rows: Transactions without items.
        rare_items: Items in fewer than `RARE` transactions.
        longest_item: Bytes of the longest item in UTF-8.
    """

    rows: int
    items: int
    row_items: tuple[int, float, int]
    empty_rows: int
    rare_items: int
    longest_item: int

    @classmethod
    def of(cls, data: Rows) -> Profile:
        """The sizes of `data`."""
        counts = _rows_by_length(data)
        ends = np.cumsum(counts)
        middle = np.searchsorted(ends, [(data.n_rows - 1) // 2, data.n_rows // 2], side="right")
        held = np.flatnonzero(counts)
        return cls(
            rows=data.n_rows,
            items=data.n_items,
            row_items=(int(held[0]), float(middle.mean()), int(held[-1])) if data.n_rows else (0, 0.0, 0),
            empty_rows=int(counts[0]),
            rare_items=int(np.count_nonzero(data.item_counts() < RARE)),
            longest_item=max((len(item.encode()) for item in data.items), default=0),
        )

    @property
    def rare_share(self) -> float:
        """Share of the items that are rare."""
        return self.rare_items / self.items if self.items else 0.0


def _rows_by_length(data: Rows) -> NDArray[np.int64]:
    """How many rows have 0, 1, … items."""
    parts = list(data.parts(_lengths))
    counts = np.zeros(max(1, *(len(part) for part in parts)), np.int64)
    for part in parts:
        counts[: len(part)] += part
    return counts


def _lengths(rows: Transactions, _first: int) -> NDArray[np.int64]:
    return np.bincount(rows.lengths).astype(np.int64, copy=False)


@dataclass(frozen=True, slots=True)
class TableProfile:
    """Sizes of a table.

    Attributes:
        rows: Rows.
        ids: The columns that together name a row.
        columns: Number of the other columns.
        items: Distinct items `column=value`.
        empty_cells: Cells without a value, of rows times columns.
        rare_items: Items in fewer than `RARE` rows.
        longest_item: Bytes of the longest item in UTF-8.
    """

    rows: int
    ids: tuple[str, ...]
    columns: int
    items: int
    empty_cells: int
    rare_items: int
    longest_item: int

    @classmethod
    def of(cls, table: TableRows) -> TableProfile:
        """The sizes of `table`."""
        items = empty = rare = longest = 0
        for name in table.column_names:
            texts, counts = table.value_counts(name)
            items += len(texts)
            empty += table.n_rows - int(counts.sum())
            rare += int(np.count_nonzero(counts < RARE))
            if len(texts):
                longest = max(longest, len(f"{name}=".encode()) + int(lengths_of(texts).max()))
        return cls(table.n_rows, table.id_columns, len(table.column_names), items, empty, rare, longest)

    @property
    def rare_share(self) -> float:
        """Share of the items that are rare."""
        return self.rare_items / self.items if self.items else 0.0


@dataclass(frozen=True, slots=True)
class DatasetCheck:
    """What was found out about one dataset.

    Attributes:
        name: The dataset.
        format: Its format.
        profile: Its sizes; absent where it cannot be read.
        publishable: Of these what may be shown to others, coarsely.
        publishes: Whether its section says already what is shown.
        hints: Signs of mistakes.
        problem: Why it cannot be read or used.
        engine: Where jobs count its rows.
        costs: Of the engines that it may have.
    """

    name: str
    format: str
    profile: Profile | TableProfile | None = None
    publishable: PublicSizes = NOTHING
    publishes: bool = False
    hints: tuple[Hint, ...] = ()
    problem: str = ""
    engine: str = "memory"
    costs: tuple[EngineCost, ...] = field(default=(), compare=False)  # measured


def check_dataset(
    dataset: DatasetSection,
    policy: PolicySection | None = None,
    *,
    in_place_of_items: str | None = "…",
    memory_share: Decimal = MEMORY_SHARE,
    state: Path | None = None,
    kept: Path | None = None,
) -> DatasetCheck:
    """Reads a dataset as a job would, and looks at it.

    Args:
        dataset: With a source that is absolute, or relative to the current folder.
        policy: For jobs on it, where there is one already.
        in_place_of_items: What `problem` says instead of the name of a column that is an item; None: the name.
        memory_share: As of `[party]`.
        state: The node's state folder, whose disk has room for blocks, which are removed again; by default they are
            among temporary files.
        kept: The folder of the dataset's own blocks, which are looked at where they are those of its source now.
    """
    engine, withheld = engine_of(dataset, memory_share), () if policy is None else policy.withhold
    if engine == "spark":
        return _check_on_cluster(dataset, withheld, in_place_of_items)
    folder = state or Path(tempfile.gettempdir())
    if problem := (unfit_table if dataset.kind == "table" else unfit)(dataset, memory_share, folder):
        return DatasetCheck(dataset.name, dataset.format, problem=problem)
    if engine == "processes":
        return _check_blocks(dataset, withheld, in_place_of_items, state, kept)
    try:
        data = read_dataset(dataset, withheld)
        if isinstance(data, Table) and data.ids:
            data.row_ids()
        if isinstance(data, Table) and dataset.queries is not None:
            check_columns(dataset.queries, data)
        if dataset.anonymization is not None:
            check_releases(dataset, dataset.anonymization)
    except (InputDataError, ConfigurationError) as error:
        problem = _problem(dataset, error, in_place_of_items)
        return DatasetCheck(dataset.name, dataset.format, problem=problem + other_format(dataset))
    public, publishes = measured(data).coarse(), dataset.publish is not None
    if isinstance(data, Table):
        looked = table_hints(data)
        if dataset.queries is not None:
            looked += dependencies(dataset.queries, data)
        profile, costs = TableProfile.of(data), table_costs(dataset, data, folder)
        return DatasetCheck(dataset.name, dataset.format, profile, public, publishes, looked, costs=costs)
    found = hints(data, dataset)
    if policy is not None and dataset.hiding is not None:
        found += _found_below(data.n_rows, dataset.hiding, policy)
    costs = engine_costs(dataset, data, folder)
    return DatasetCheck(dataset.name, dataset.format, Profile.of(data), public, publishes, found, costs=costs)


def _problem(dataset: DatasetSection, error: ConfigurationError, in_place_of_items: str | None) -> str:
    problem = error.message.removesuffix(".")
    # The columns of these are items.
    are_items = dataset.kind == "transactions" and dataset.format in ("wide", "parquet")
    if are_items and in_place_of_items is not None:
        problem = re.sub(r'(column|named) ".*"', rf"\1 {in_place_of_items}", problem)
    return problem


def _check_blocks(
    dataset: DatasetSection,
    withheld: Sequence[str],
    in_place_of_items: str | None,
    state: Path | None,
    kept: Path | None,
) -> DatasetCheck:
    """Looks at the sizes of a dataset in the node's blocks, or else encodes it as a job would."""
    source = source_of(dataset)
    try:
        with _scratch(state) as folder:
            stored = None if kept is None else blocks_of(source, withheld, kept)
            stored = stored or encoding_of(source, withheld, folder / "blocks", Cores()).run()
            profile: Profile | TableProfile
            costs: tuple[EngineCost, ...] = ()
            if isinstance(stored, StoredTable):
                table = stored.rows(InProcess)
                profile, costs = TableProfile.of(table), table_costs(dataset, table, folder)
                if dataset.anonymization is not None:
                    check_releases(dataset, dataset.anonymization)
                rows = stored.item_rows(least_measured(profile.rows), Processes)
            else:
                rows = stored.rows(Processes)
            try:
                public = replace(measured(rows), items=stored.n_items).coarse()
                if isinstance(stored, StoredRows):
                    profile, costs = Profile.of(rows), engine_costs(dataset, rows, folder)
            finally:
                rows.close()
    except ConfigurationError as error:
        return DatasetCheck(dataset.name, dataset.format, problem=_problem(dataset, error, in_place_of_items))
    published = dataset.publish is not None
    return DatasetCheck(dataset.name, dataset.format, profile, public, published, engine="processes", costs=costs)


@contextmanager
def _scratch(state: Path | None) -> Iterator[Path]:
    with ExitStack() as end:
        if state is None:
            yield Path(end.enter_context(tempfile.TemporaryDirectory()))
            return
        try:
            folder = end.enter_context(scratch_folder(state, SCRATCH))
        except OSError as error:
            raise unwritten(state, error) from None
        yield folder


def _check_on_cluster(dataset: DatasetSection, withheld: Sequence[str], in_place_of_items: str | None) -> DatasetCheck:
    """Encodes a dataset on its cluster as a job would, and looks at its sizes; the cluster drops it afterwards."""
    blocks = SparkBlocks(dataset.cluster, source_of(dataset), withheld)
    profile: Profile | TableProfile
    try:
        rows = blocks.loading("check").run()
        if isinstance(rows, PartitionedTable):
            profile = TableProfile.of(rows)
            public, cost = PublicSizes(profile.rows, profile.items), cluster_table_cost(rows)
        else:
            profile, public = Profile.of(rows), measured(rows)
            cost = cluster_cost(rows)
    except ConfigurationError as error:
        return DatasetCheck(dataset.name, dataset.format, problem=_problem(dataset, error, in_place_of_items))
    finally:
        blocks.close()
    public = replace(public, level_ms=round(1000 * cost.seconds)).coarse()
    published = dataset.publish is not None
    return DatasetCheck(dataset.name, dataset.format, profile, public, published, engine="spark", costs=(cost,))


def _found_below(n_rows: int, hiding: HidingSection, policy: PolicySection) -> tuple[Hint, ...]:
    """Jobs that may ask for less than what rules are hidden from; in transactions of this party's own."""
    hidden = Thresholds(hiding.min_support, hiding.min_confidence).least_count(n_rows)
    asked = policy.min_count or 1
    if policy.min_count is None and policy.min_support is not None:
        asked = minimum_count(policy.min_support, n_rows)
    if asked >= hidden or not {"itemsets", "rules"} & set(policy.tasks):
        return ()
    sentence = f"jobs may ask for counts from {asked} on, and [dataset.hiding] hides rules from {hidden} on only"
    advice = "lower its min_support, or set a higher min_support or min_count in [dataset.policy]"
    return (Hint("hiding", f"{sentence}, so that a job could find them below; {advice}"),)
