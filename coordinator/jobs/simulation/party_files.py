"""The files of a simulation's parties: read into memory, or into blocks that processes or a Spark cluster count."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from pathlib import Path
from typing import Final, TypeVar

from coordinator.jobs.simulation.simulation_hints import Read
from jobs.data import Data
from jobs.kinds.data import check_takes_blocks
from jobs.kinds.registry import kind_of
from jobs.spec.job import JobSpec
from link.errors import ConfigurationError, InputDataError
from link.runtime.memory_limit import memory_limit
from mining.data.hints import other_format
from mining.data.loading import check_options, check_table_options, load_table, load_transactions
from mining.data.schemes.registry import scheme_of
from mining.data.source_options import PLAIN, SourceOptions
from mining.partitioned.cores import Cores
from mining.partitioned.encoding.expected import MEMORY_SHARE
from mining.partitioned.encoding.source import TableSource, TransactionSource
from mining.partitioned.expected_source import expected_source
from mining.partitioned.rows import PartitionedRows
from mining.partitioned.sources import AnySource, Stored, by_processes, encoding_of
from mining.partitioned.spark.cluster import Cluster
from mining.partitioned.spark.sources import encoding_on
from mining.partitioned.tables.rows import PartitionedTable

ENGINES: Final = ("auto", "memory", "processes", "spark")
TAG: Final = "comine-simulate"  # of work on a cluster, before a party's name

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Engine:
    """Where the rows of files are counted.

    Attributes:
        name: `memory`; `processes`, in blocks on the disk; `spark`; or `auto`: in memory where all files together are
            expected to take at most the share.
        memory_share: Of this process's memory.
        spark: With `spark`: the cluster, as `sc://HOST:PORT`.
    """

    name: str = "auto"
    memory_share: Decimal = MEMORY_SHARE
    spark: str | None = None

    @classmethod
    def of(cls, name: str, memory_share: float | str | Decimal | None, spark: str | None) -> Engine:
        """What is asked for in words.

        Raises:
            ConfigurationError: The share is no number.
        """
        if memory_share is None:
            return cls(name, spark=spark)
        try:
            return cls(name, Decimal(str(memory_share)), spark)
        except InvalidOperation:
            raise _wrong_share(memory_share) from None

    def check(self, data_format: str) -> None:
        """Refuses what no files of this format can be counted by.

        Raises:
            ConfigurationError: It is.
        """
        if self.name not in ENGINES:
            raise ConfigurationError(f"there is no engine '{self.name}'; there are {', '.join(ENGINES)}")
        if not (self.memory_share.is_finite() and 0 < self.memory_share <= 1):
            raise _wrong_share(self.memory_share)
        if (self.name == "spark") != (self.spark is not None):
            raise ConfigurationError(
                'engine = "spark" and a cluster need each other: name it by spark = "sc://HOST:PORT"'
            )
        if self.name == "spark" and data_format != "parquet":
            raise ConfigurationError(
                'engine = "spark" reads files in format = "parquet", which all workers find at the same path'
            )


def _wrong_share(given: object) -> ConfigurationError:
    return ConfigurationError(f"the memory share {given} is no number above 0 and at most 1")


def load_files(
    spec: JobSpec,
    sources: Mapping[str, str | Path],
    data_format: str,
    separator: str | None,
    ids: Sequence[str],
    item: str = "item",
    query: str | None = None,
    options: SourceOptions = PLAIN,
) -> dict[str, Data]:
    """The data of each party in memory.

    Args:
        spec: The job, which says of what kind data are.
        sources: By party a file, or another source as of `mining.data.loading`.
        data_format: One of `mining.data.loading.FORMATS` or `TABLE_FORMATS`, the same for all.
        separator: What separates items or cells, where the format leaves it open.
        ids: The column that numbers transactions, or the columns that together name a row of a table.
        item: The column of items, in the long form.
        query: With format "sql": what is read of each database.
        options: What else reading the sources needs.

    Raises:
        ConfigurationError: The format is unknown or of another kind, or the separator or ids do not fit it.
        InputDataError: A file cannot be read, or is not in that format.
    """
    kind = kind_of(spec).data
    _check_ids(spec, ids)

    def load(party: str) -> Data:
        if kind == "table":
            return load_table(
                sources[party], data_format, separator=separator, query=query, id_columns=ids, options=options
            )
        try:
            return load_transactions(
                sources[party],
                data_format,
                separator=separator,
                query=query,
                id_column=ids[0],
                item_column=item,
                options=options,
            )
        except InputDataError as error:
            other = other_format(Read(str(sources[party]), data_format, separator, ids[0], item))
            raise InputDataError(f"{error.message.removesuffix('.')}{other}") from None

    return _for_each(sources, load)


@contextmanager
def party_files(
    spec: JobSpec,
    sources: Mapping[str, str | Path],
    data_format: str,
    separator: str | None,
    ids: Sequence[str],
    engine: Engine,
    item: str = "item",
    query: str | None = None,
    options: SourceOptions = PLAIN,
) -> Iterator[dict[str, Data]]:
    """The data of each party, where an engine counts them; what they take on the disk is gone afterwards.

    Args:
        spec: As of `load_files`.
        sources: As there; on a cluster also patterns of paths.
        data_format: As there.
        separator: As there.
        ids: As there.
        engine: Where rows are counted.
        item: As of `load_files`.
        query: As there.
        options: As there.

    Raises:
        ConfigurationError: As there; or the job cannot be counted by that engine.
        InputDataError: As there.
        ResourceError: There is no room for blocks, or the cluster is lost.
    """
    engine.check(data_format)
    _check_ids(spec, ids)
    is_table = kind_of(spec).data == "table"
    (check_table_options if is_table else check_options)(data_format, separator, query)
    places: dict[str, AnySource] = {
        party: TableSource(_place(source), data_format, separator, query, tuple(ids), options)
        if is_table
        else TransactionSource(_place(source), data_format, separator, query, ids[0], item, options)
        for party, source in sources.items()
    }
    name, in_blocks = engine.name, kind_of(spec).takes_blocks(spec)
    if name == "auto":
        expected = sum(map(expected_source, places.values())) if in_blocks else 0
        name = "processes" if expected > engine.memory_share * memory_limit() else "memory"
    if name == "memory":
        yield load_files(spec, sources, data_format, separator, ids, item, query, options)
        return
    for party in sources:
        check_takes_blocks(spec, party)
    if name == "processes":
        with tempfile.TemporaryDirectory(prefix="comine-") as folder:
            yield dict(_in_blocks(places, Path(folder)))
        return
    cluster = Cluster(engine.spark or "")
    try:
        yield {party: _on_cluster(cluster, place, party) for party, place in places.items()}
    finally:
        cluster.close()


def _place(source: str | Path) -> str:
    """A source, wherever it is read from here."""
    place = str(source)
    scheme = scheme_of(place)
    return str(Path.cwd() / place) if scheme is None else scheme.beside(place, Path.cwd())


def _check_ids(spec: JobSpec, ids: Sequence[str]) -> None:
    if kind_of(spec).data == "transactions" and len(ids) > 1:
        raise ConfigurationError('several columns of ids are for partition = "vertical"; transactions have one')


def _in_blocks(places: Mapping[str, AnySource], folder: Path) -> dict[str, Data]:
    cores = Cores()  # of all parties together
    encodings = {party: encoding_of(place, (), folder / party, cores) for party, place in places.items()}

    def end() -> None:
        for encoding in encodings.values():
            encoding.close()

    stored: dict[str, Stored] = _for_each(places, lambda party: encodings[party].run(), end)
    return {party: by_processes(each, cores) for party, each in stored.items()}


def _on_cluster(cluster: Cluster, place: AnySource, party: str) -> PartitionedRows | PartitionedTable:
    tag = f"{TAG}-{party}"
    with _told(party):
        return encoding_on(cluster, place, (), tag).run().rows(tag)


def _for_each(parties: Iterable[str], load: Callable[[str], T], end: Callable[[], None] = lambda: None) -> dict[str, T]:
    """What is loaded for each party, all at once.

    Args:
        parties: Their names.
        load: Loads the data of one.
        end: Called where one fails, or Ctrl-C came, so that nobody waits for the others.
    """

    def told(party: str) -> T:
        with _told(party):
            return load(party)

    with ThreadPoolExecutor() as pool:
        loading = {party: pool.submit(told, party) for party in parties}
        try:
            return {party: each.result() for party, each in loading.items()}
        except BaseException:
            end()
            raise


@contextmanager
def _told(party: str) -> Iterator[None]:
    """Names the party whose data are wrong."""
    try:
        yield
    except InputDataError as error:
        raise InputDataError(f"the data of {party}: {error.message}", party=party) from None
