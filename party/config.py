"""`party.toml`: who the node is, what data it serves, and what its policy allows."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, Final, Literal
from urllib.parse import urlsplit

from pydantic import BeforeValidator, Field, model_validator

from console.settings import ConsoleSection
from crypto.protocols.alignment.list_limits import LEAST_LIST_MEMORY, LIST_MEMORY
from jobs.data import DataKind
from jobs.federation import Credentials, Federation
from jobs.kinds.packages import TASKS
from jobs.metrics_section import MetricsSection
from jobs.spec.toml import TomlTable, read_toml, validate
from jobs.spec.values import DataName, Duration, Fraction
from link.errors import ConfigurationError
from link.relay.address import RelayAddress
from mining.data.fitting_options import misfit
from mining.data.schemes.registry import database_forms, scheme_of, unread
from mining.data.schemes.scheme import DatabaseScheme
from mining.data.source_options import SourceOptions
from mining.joint.hybrid.spool_limits import LEAST_REPORT_MEMORY, REPORT_MEMORY
from mining.partitioned.encoding.expected import MEMORY_SHARE
from mining.public_sizes import NOTHING, PublicSizes
from party.data.hidden_rules import HidingSection
from party.node_file import NodeSection
from party.policy.privacy_budget import DatasetBudget
from party.policy.publish import PublishSection
from party.policy.rules import PolicySection, Rules
from party.services.anonymization.policy import AnonymizationRules
from party.services.frequency.policy import FrequencySection
from party.services.notices.settings import NotifySection
from party.services.queries.policy import QueriesSection
from party.services.shuffler.policy import ShufflerSection
from party.state.journals import JOURNAL_BYTES

AUDIT_LOG: Final = "audit.log"  # in the state folder
RESULTS: Final = "results"  # as well: a folder for each job whose result this party receives
AUDIT_KEY: Final = "audit.key"
LEAST_JOB_MEMORY: Final = 16 << 20
_WITHOUT_JOBS: Final = frozenset({"frequency", "shuffler"})  # tables of services to clients
SPARK_URL: Final = "sc://"


def _id_columns(value: object) -> object:
    """One column, the several that together name a row, or none."""
    names = [value] if isinstance(value, str) else value
    if not isinstance(names, list | tuple) or not all(isinstance(name, str) and name for name in names):
        raise ValueError('must be the name of a column, or a list of such names as in ["shop", "receipt"]')
    if len(set(names)) < len(names):
        raise ValueError("names a column twice")
    return tuple(names)


class PartySection(NodeSection):
    """The `[party]` table.

    Attributes:
        max_running: Jobs that may run at once.
        memory: Bytes that the jobs which run at once are expected to take together, by what `[dataset.publish]` says;
            others wait for their turn. Nothing limits them, where absent.
        keep_jobs: For which the node keeps what it knows of a job that has ended.
        memory_share: Of the memory that the node may use, what a dataset with `engine = "auto"` may take in it.
        report_memory: Bytes that sealed reports of others may take in each job in which the node shuffles them; what
            exceeds it is on the disk.
        alignment_memory: Bytes that lists of ids may take while rows are aligned, in each job; what exceeds it is on
            the disk.
        journal_bytes: Bytes that the results of a job's steps may take, which are kept for another attempt; what
            exceeds it is not kept, and such an attempt takes these steps anew.
    """

    max_running: int = Field(default=4, ge=1, le=64)
    memory: int | None = Field(default=None, ge=LEAST_JOB_MEMORY)
    keep_jobs: Duration = "365d"
    memory_share: Fraction = Field(default=MEMORY_SHARE, gt=0, le=1)
    report_memory: int = Field(default=REPORT_MEMORY, ge=LEAST_REPORT_MEMORY)
    alignment_memory: int = Field(default=LIST_MEMORY, ge=LEAST_LIST_MEMORY)
    journal_bytes: int = Field(default=JOURNAL_BYTES, ge=0)


class DatasetSection(TomlTable):
    """A `[[dataset]]` table.

    Attributes:
        name: By which jobs ask for the data.
        kind: `transactions`: sets of items. `table`: rows with ids and columns, for jobs in which parties hold columns
            of the same rows.
        source: Path of a file, or the URL of a database.
        format: How transactions are written in the source; a table is in `csv`, `parquet` or `sql`.
        separator: Between the items of a `basket` line (blanks by default) or the columns of a `csv`.
        query: With `format = "sql"`: what is read.
        id: Column that numbers transactions, with one item a row; of a table, the columns that together name a row,
            or none where jobs learn models from rows of its own and none aligns them.
        item: Column of the items, with one item a row.
        encoding: Of text that is not in UTF-8.
        sheet: Of a workbook; the first by default.
        password_env: The environment variable that holds the password of the source.
        password_file: The file whose first line is that password, open to its owner alone.
        engine: Where rows are counted: `memory`, in the node; `processes`, in blocks on its disk by processes; `spark`,
            on a cluster; `auto`, in memory as long as they fit, else by processes.
        spark: With `engine = "spark"` and a file: the cluster, as `sc://HOST:PORT`. A query has it as its source.
        publish: What everybody who may plan a job on it may know of its size; nothing, where absent.
        policy: Rules that hold for this dataset in place of those of `[policy]` with the same keys.
        privacy: What jobs may cost its records in all; without it nothing limits that.
        hiding: Rules that are hidden in what its rows contribute to jobs.
        queries: What coordinators may ask of it by audited queries; nothing, where absent.
        anonymization: What releases of it may leave; none, where absent.
    """

    name: DataName
    kind: DataKind
    source: str = Field(min_length=1)
    format: Literal["basket", "long", "wide", "csv", "parquet", "sql"]
    separator: str | None = Field(default=None, min_length=1)
    query: str | None = Field(default=None, min_length=1)
    id: Annotated[tuple[str, ...], BeforeValidator(_id_columns)] = ("id",)
    item: str = Field(default="item", min_length=1)
    encoding: str | None = Field(default=None, min_length=1)
    sheet: str | None = Field(default=None, min_length=1)
    password_env: str | None = Field(default=None, min_length=1)
    password_file: Path | None = None
    engine: Literal["auto", "memory", "processes", "spark"] = "auto"
    spark: str | None = None
    publish: PublishSection | None = None
    policy: Rules | None = None
    privacy: DatasetBudget | None = None
    hiding: HidingSection | None = None
    queries: QueriesSection | None = None
    anonymization: AnonymizationRules | None = None

    @model_validator(mode="after")
    def _consistent(self) -> DatasetSection:
        if not self.source.startswith(SPARK_URL) and (fault := unread(self.source)):
            raise ValueError(f"the source {fault}")
        if self.format == "sql" and (self.query is None or not self.is_database):
            raise ValueError(f'format = "sql" needs a query, and as source a URL {database_forms()}')
        if self.format != "sql" and self.query is not None:
            raise ValueError('a query needs format = "sql"')
        if self.is_database and self.format != "sql":
            raise ValueError('the URL of a database needs format = "sql" and a query')
        self._check_options()
        if self.separator is not None and self.format in ("parquet", "sql"):
            raise ValueError(f'a separator means nothing with format = "{self.format}"')
        if self.separator is not None and self.format != "basket" and len(self.separator) != 1:
            raise ValueError(f'separator must be one character with format = "{self.format}"')
        if self.queries is not None and self.kind != "table":
            raise ValueError('[dataset.queries] needs kind = "table"')
        if self.anonymization is not None and self.kind != "table":
            raise ValueError('[dataset.anonymization] needs kind = "table"')
        if (self.engine == "spark") != (self.spark is not None or self.source.startswith(SPARK_URL)):
            raise ValueError(
                'engine = "spark" and a cluster need each other: write spark = "sc://HOST:PORT" beside a source that '
                'is a file, or format = "sql" and source = "sc://HOST:PORT" for a query'
            )
        if self.engine == "spark":
            self._check_spark()
        elif self.publish is not None and self.publish.level_s is not None:
            raise ValueError(
                '[dataset.publish] level_s needs engine = "spark": elsewhere plans go by the speed of the node itself'
            )
        if self.engine == "spark" and self.anonymization is not None:
            raise ValueError(
                'engine = "spark" and [dataset.anonymization] exclude each other: releases are written of files or '
                "databases that the node reads"
            )
        if self.engine in ("processes", "spark") and (self.queries is not None or self.hiding is not None):
            section, why = ("queries", "look at") if self.hiding is None else ("hiding", "changes")
            raise ValueError(
                f'engine = "{self.engine}" and [dataset.{section}] exclude each other: {section} {why} rows in memory'
            )
        if self.kind == "table":
            if self.hiding is not None:
                raise ValueError('[dataset.hiding] needs kind = "transactions"; rules are hidden in sets of items')
            if self.format not in ("csv", "parquet", "sql"):
                raise ValueError(f'kind = "table" is read from csv, parquet or sql, not from format = "{self.format}"')
            if self.item != "item":
                raise ValueError('item means nothing with kind = "table", whose items are column=value')
        elif len(self.id) != 1:
            named = "several columns of ids need" if self.id else "id = [] needs"
            raise ValueError(f'{named} kind = "table"; transactions have one column of ids')
        return self

    def _check_options(self) -> None:
        if fault := misfit(
            self.source,
            self.format,
            encoding=self.encoding,
            sheet=self.sheet,
            has_password_env=self.password_env is not None,
            has_password_file=self.password_file is not None,
        ):
            raise ValueError(fault)
        if self.engine == "spark" and not (self.encoding is None and scheme_of(self.source) is None):
            raise ValueError('engine = "spark" reads files that all workers find at the same path')

    def _check_spark(self) -> None:
        if not self.cluster.startswith(SPARK_URL) or not urlsplit(self.cluster).hostname:
            raise ValueError('the cluster of engine = "spark" is written as "sc://HOST:PORT"')
        if self.format != ("sql" if self.spark is None else "parquet"):
            raise ValueError(
                'engine = "spark" reads files in format = "parquet", which all workers find at the same path, or '
                'queries of the cluster, with format = "sql" and its URL as source'
            )

    @property
    def cluster(self) -> str:
        """The URL of the Spark cluster that counts the rows."""
        return self.source if self.spark is None else self.spark

    @property
    def public_sizes(self) -> PublicSizes:
        """What its owner publishes of its size."""
        return NOTHING if self.publish is None else self.publish.sizes

    @property
    def id_column(self) -> str:
        """The column that numbers transactions."""
        return self.id[0]

    @property
    def is_database(self) -> bool:
        """Whether the source is a database, whose rows may be others at every query."""
        return self.source.startswith(SPARK_URL) or isinstance(scheme_of(self.source), DatabaseScheme)

    @property
    def options(self) -> SourceOptions:
        """What reading the source needs beside its place and format."""
        return SourceOptions(self.encoding, self.sheet, self.password_env, self.password_file)

    def beside(self, folder: Path) -> DatasetSection:
        """The same with relative paths taken from `folder`."""
        changes: dict[str, Any] = {}
        if self.anonymization is not None:
            changes["anonymization"] = self.anonymization.beside(folder)
        scheme = scheme_of(self.source)
        if scheme is not None:
            changes["source"] = scheme.beside(self.source, folder)
        elif not self.source.startswith(SPARK_URL):
            changes["source"] = str(folder / self.source)
        if self.password_file is not None:
            changes["password_file"] = folder / self.password_file
        return self.model_copy(update=changes)


class PartyConfig(TomlTable):
    """The whole of `party.toml`; without any `[[dataset]]` the node takes part in no jobs, and serves clients alone."""

    party: PartySection
    tls: Credentials
    dataset: tuple[DatasetSection, ...]
    policy: PolicySection
    frequency: FrequencySection | None = None
    shuffler: ShufflerSection | None = None
    notify: NotifySection | None = None
    metrics: MetricsSection | None = None
    console: ConsoleSection | None = None

    @model_validator(mode="before")
    @classmethod
    def _may_have_no_jobs(cls, value: object) -> object:
        """A node that serves clients alone needs neither data nor a policy for jobs; it knows no dataset to allow."""
        if isinstance(value, dict) and not value.get("dataset") and not _WITHOUT_JOBS.isdisjoint(value):
            return {"dataset": (), "policy": {"approve": "manual", "tasks": TASKS}, **value}
        return value

    @model_validator(mode="after")
    def _known_datasets(self) -> PartyConfig:
        names = [dataset.name for dataset in self.dataset]
        if not names and self.frequency is None and self.shuffler is None:
            raise ValueError("there is no [[dataset]] table, so no job could ever run")
        for name in names:
            if names.count(name) > 1:
                raise ValueError(f"the dataset '{name}' is listed twice")
        for name in self.policy.datasets or ():
            if name not in names:
                raise ValueError(f"[policy] datasets names '{name}', but no [[dataset]] has that name")
        for dataset in names:
            policy = self.policy_of(dataset)
            if policy.release == "manual" and self.datasets[dataset].anonymization is not None:
                raise ValueError(
                    f"releases of '{dataset}' by [dataset.anonymization] leave at once, and the policy for it has "
                    'release = "manual"; leave one of them out, or write release = "auto" under its [dataset.policy]'
                )
            if policy.max_jobs_period is not None and policy.max_jobs is None:
                raise ValueError(
                    f"max_jobs_period limits nothing for the dataset '{dataset}'; write max_jobs beside it"
                )
            for rule in policy.approval:
                for name in rule.datasets or ():
                    if name not in names:
                        raise ValueError(
                            f"[[policy.approval]] datasets names '{name}', but no [[dataset]] has that name"
                        )
        return self

    @classmethod
    def load(cls, path: Path) -> PartyConfig:
        """Reads a node's file; relative paths in it are taken from its folder.

        Raises:
            ConfigurationError: The file is missing, or something in it is missing, unknown or wrong.
        """
        config, file = validate(cls, read_toml(path), str(path)), path.absolute()
        folder = file.parent
        places = {"state_dir": folder / config.party.state_dir, "federation": folder / config.party.federation}
        changes: dict[str, Any] = {
            "party": config.party.model_copy(update=places),
            "tls": config.tls.beside(file),
            "dataset": tuple(dataset.beside(folder) for dataset in config.dataset),
            "notify": None if config.notify is None else config.notify.beside(folder),
            "console": None if config.console is None else config.console.beside(folder),
        }
        return config.model_copy(update=changes)

    @property
    def datasets(self) -> dict[str, DatasetSection]:
        """Datasets by name."""
        return {dataset.name: dataset for dataset in self.dataset}

    def policy_of(self, dataset: str) -> PolicySection:
        """The policy for jobs on a dataset: `[policy]`, and what the dataset's own table writes in its place."""
        found = self.datasets.get(dataset)
        return self.policy.under(found.policy if found else None)

    def totals_of(self, dataset: str) -> DatasetBudget | None:
        """What all jobs on a dataset together may cost its records; None where nothing limits it."""
        found = self.datasets.get(dataset)
        return found.privacy if found else None

    @property
    def withheld(self) -> dict[str, tuple[str, ...]]:
        """By dataset, the patterns of items that leave its rows before anything else is done with them."""
        return {name: self.policy_of(name).withhold for name in self.datasets}

    def check_federation(self, federation: Federation) -> None:
        """Checks that this party and the peers of its policy are in the federation.

        Raises:
            ConfigurationError: One is not; the sentence says where to add it.
        """
        policies = (self.policy, *(dataset.policy for dataset in self.dataset if dataset.policy))
        peers = (name for policy in policies for name in policy.peers or ())
        asked = (name for policy in policies for rule in policy.approval for name in rule.parties or ())
        for name in (self.party.name, *peers, *asked):
            if name not in federation.addresses:
                raise ConfigurationError(
                    f"the party '{name}' is not in {self.party.federation}; add a [[party]] table for it there"
                )
        if self.party.listen is None and RelayAddress.parse(federation.addresses[self.party.name]) is None:
            raise ConfigurationError(
                f"[party] needs listen, since {self.party.federation} has an address of {self.party.name}; write where "
                "the node listens, or leave the address out there for the relay to connect it"
            )
