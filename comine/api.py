"""The public Python API: simulate a job, or run it against a federation."""

from __future__ import annotations

import html
import os
import warnings
from collections.abc import Mapping, Sequence
from contextlib import suppress
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING

from comine.given import Given, data_of
from comine.handle import JobHandle
from comine.planned import Plan
from comine.progress import shown_progress
from coordinator.cli.terminal.live import notes
from coordinator.interrupt import run_interruptibly
from coordinator.jobs.background import start_driver
from coordinator.jobs.planner import plan_job
from coordinator.jobs.records.store import Store
from coordinator.jobs.retrying import RETRIES
from coordinator.jobs.runner import RUN_EXPIRES_S, run_job, submit_job
from coordinator.jobs.simulation.party_files import Engine, party_files
from coordinator.jobs.simulation.simulate import check_parties, simulate_job
from coordinator.jobs.simulation.simulation_hints import simulation_hints
from coordinator.member import load_federation
from jobs.federation import Federation as FederationFile
from jobs.kinds.models.document import MODEL_FILE, read_model
from jobs.kinds.models.model import Model
from jobs.kinds.registry import kind_of
from jobs.loading import job_of, load_job
from jobs.results.result import Result
from jobs.spec.job import JobSpec
from link.errors import ConfigurationError, InputDataError
from link.files.printable import why_not_read
from link.pki.identity import Identity
from link.relay.address import shown
from mining.data.source_options import SourceOptions

if TYPE_CHECKING:
    from comine.handle import JobHandle
    from comine.planned import Plan
    from coordinator.jobs.records.store import JobFolder


Job = str | os.PathLike[str] | Mapping[str, object] | JobSpec


class DataWarning(UserWarning):
    """Data of a simulation look as if they were misread, or its least support is hardly what is meant.

    Example:
        >>> import warnings
        >>> with warnings.catch_warnings():
        ...     warnings.simplefilter("ignore", comine.DataWarning)
        ...     result = comine.simulate(job, {"north": rows, "south": []})  # a party without rows, which is meant
    """


def simulate(
    job: Job,
    data: Mapping[str, Given],
    *,
    seed: int | None = None,
    format: str | None = None,  # noqa: A002 - the word of the configuration file
    separator: str | None = None,
    id: str | Sequence[str] | None = None,  # noqa: A002 - the word of the configuration file
    item: str = "item",
    query: str | None = None,
    encoding: str | None = None,
    sheet: str | None = None,
    password_env: str | None = None,
    engine: str = "auto",
    memory_share: float | str | Decimal | None = None,
    spark: str | None = None,
    progress: bool | None = False,
) -> Result:
    """Runs a job with all its parties in this process, with the very code of the nodes.

    Args:
        job: Path of a job file, or its contents as a mapping.
        data: By party, its transactions: the path of a file, or another source, such as `sqlite:///shop.db`; rows of
            items, which are text or whole numbers; encoded transactions; or a table of pandas, polars, pyarrow or
            another library that hands over Arrow's, with a row for each item, a column of lists, or a column of 0 and 1
            for each item, as mlxtend has them. For a job with partition = "vertical", or one that learns a model, its
            table: the path of a file, another source, or a table of these libraries.
        seed: Repeats all random draws; such a run keeps no secrets.
        format: Format of the files among `data`: basket by default, and csv for tables.
        separator: What separates items or cells in them, where the format leaves it open.
        id: The column of ids, "id" by default, or the columns of a composite id. Rows that a model is learnt from need
            none.
        item: The column of items, where transactions have a row for each item.
        query: What is read of databases, whose URLs are among `data`.
        encoding: Of text that is not in UTF-8.
        sheet: Of workbooks; the first by default.
        password_env: The environment variable that holds the password of the sources.
        engine: Where the rows of files are counted: "memory"; "processes", in blocks on the disk, for files that exceed
            the memory; "spark"; or "auto", in memory where all files together are expected to take at most the share.
            A script that has processes keeps its work behind `if __name__ == "__main__":`.
        memory_share: Of this process's memory; 0.25 by default.
        spark: The cluster of the engine "spark", as `sc://HOST:PORT`.
        progress: Whether to show how far each party is; None: in terminals and notebooks.

    Warns:
        DataWarning: The data or the least support are hardly what is meant.

    Raises:
        ComineError: The job, the data or the run is at fault; the message says what to do.

    Example:
        >>> job = {
        ...     "job": {"name": "weekly", "task": "itemsets", "parties": ["north", "south"], "dataset": "baskets"},
        ...     "itemsets": {"min_support": 0.5},
        ... }
        >>> north = [["bread", "milk"], ["bread"]]
        >>> south = pandas.DataFrame({"bread": [1, 0], "milk": [1, 1]})  # one-hot, as mlxtend has it
        >>> comine.simulate(job, {"north": north, "south": south}).itemsets()[["itemset", "count"]]
                 itemset  count
        0        [bread]      3
        1         [milk]      3
        2  [bread, milk]      2
    """
    spec = _specification(job)
    if not isinstance(data, Mapping):
        raise ConfigurationError(f"the data are a mapping from parties to theirs, not of type {type(data).__name__}")
    check_parties(spec, data)
    files = {name: os.fspath(given) for name, given in data.items() if isinstance(given, str | os.PathLike)}
    ids = [id] if isinstance(id, str) else list(kind_of(spec).default_ids(spec) if id is None else id)
    kind = kind_of(spec).data
    form = format or ("sql" if query is not None else "csv" if kind == "table" else "basket")
    counted, options = Engine.of(engine, memory_share, spark), SourceOptions(encoding, sheet, password_env)
    with party_files(spec, files, form, separator, ids, counted, item, query, options) as encoded:
        for name, given in data.items():
            if not isinstance(given, str | os.PathLike):
                encoded[name] = data_of(name, given, kind, ids, item)
        for sentence in simulation_hints(spec, encoded, files, form, separator, ids, item):
            warnings.warn(sentence, DataWarning, stacklevel=2)
        with shown_progress(spec.job.parties, progress) as watcher:
            return run_interruptibly(simulate_job(spec, encoded, seed=seed, watcher=watcher))


def load_model(path: str | os.PathLike[str]) -> Model:
    """The model of a `model.json`, or of the result folder that it is in.

    Raises:
        InputDataError: It cannot be read, or is no model of this version of comine.

    Example:
        >>> comine.simulate(learning, tables).save("result")
        >>> comine.load_model("result").n_rows
        12
    """
    file = Path(path)
    file = file / MODEL_FILE if os.path.isdir(file) else file  # which no name makes fail
    try:
        contents = file.read_bytes()
    except (OSError, ValueError) as error:
        raise InputDataError(f"the model {file} cannot be read: {why_not_read(error)}") from None
    try:
        return read_model(contents)
    except ValueError as error:
        raise InputDataError(f"{file} holds no model: {error}") from None


class Federation:
    """The parties of a federation file, and the coordinator's identity.

    Attributes:
        parties: Names of all parties.

    Example:
        >>> federation = comine.Federation.connect("federation.toml")
        >>> federation.parties
        ('north', 'south', 'east')
        >>> federation.plan("job.toml").job
        'weekly'
        >>> federation.run("job.toml", wait=60, progress=False).n_rows
        180
    """

    def __init__(self, path: Path, file: FederationFile, identity: Identity) -> None:
        self._path, self._file, self._identity = path, file, identity
        self.parties = tuple(file.addresses)

    @classmethod
    def connect(cls, path: str | os.PathLike[str]) -> Federation:
        """Reads a federation file and checks the coordinator's certificate; parties are called when a job runs.

        Raises:
            ConfigurationError: The file is wrong.
            IdentityError: The coordinator's certificate is not valid.
        """
        file, identity = load_federation(Path(path))
        return cls(Path(path), file, identity)

    def plan(self, job: Job) -> Plan:
        """What a job will cost each party and who will learn what; moves no data and proposes nothing.

        The plan is kept, so that the next result of the same job shows it beside what the job has cost.

        Args:
            job: Path of a job file, or its contents as a mapping.

        Raises:
            ComineError: A party cannot be reached, would refuse the job, or cannot read its data.
        """
        spec = _specification(job)
        addresses = self._file.select(spec.job.parties)
        contents = run_interruptibly(plan_job(spec, self._identity, addresses)).as_data()
        Store.of(self._file).save_plan(spec.digest, contents)
        return Plan.from_data(contents)

    def run(
        self, job: Job, *, wait: float = RUN_EXPIRES_S, progress: bool | None = None, retries: int = RETRIES
    ) -> Result:
        """Runs a job at the nodes of its parties.

        Args:
            job: Path of a job file, or its contents as a mapping.
            wait: Seconds for which people at the parties may think, where they have to approve it.
            progress: Whether to show how far each party is; by default in terminals and notebooks.
            retries: How often the job may go on by itself, within its deadline, after it has lost a party.

        Raises:
            ComineError: The job failed; the error is the one that began it.
        """
        spec = _specification(job)
        addresses = self._file.select(spec.job.parties)
        store = Store.of(self._file)
        with shown_progress(spec.job.parties, progress) as watcher:
            return run_interruptibly(
                run_job(
                    spec,
                    self._identity,
                    addresses,
                    watcher,
                    store=store,
                    expires_s=wait,
                    on_move=notes(),
                    retries=retries,
                )
            )

    def submit(self, job: Job, *, expires_s: float = 7 * 24 * 3600, retries: int = RETRIES) -> JobHandle:
        """Proposes a job and leaves it to a process in the background, which outlives this one.

        Args:
            job: Path of a job file, or its contents as a mapping.
            expires_s: Seconds within which the people at the parties must have approved it.
            retries: How often the job may go on by itself, within its deadline, after it has lost a party.

        Raises:
            ComineError: A party cannot be reached or refuses the job.
        """
        spec = _specification(job)
        addresses = self._file.select(spec.job.parties)
        store = Store.of(self._file)
        submitted = submit_job(spec, self._identity, addresses, store, expires_s=expires_s, retries=retries)
        folder = run_interruptibly(submitted)
        start_driver(folder, self._path)
        return JobHandle(folder, self._path, self._identity, addresses)

    def job(self, asked: str) -> JobHandle:
        """A job that was submitted or run before, by its id, the beginning of one, or its name (the latest).

        Raises:
            UsageError: There is none.
        """
        return self._handle(Store.of(self._file).find(asked))

    def jobs(self) -> list[JobHandle]:
        """All jobs that the coordinator keeps, newest first.

        Folders that cannot be read, and jobs with a party that the federation file does not name any more, are left
        out; `comine job list` shows them.
        """
        found = []
        for folder in Store.of(self._file).jobs():
            with suppress(ConfigurationError):
                found.append(self._handle(folder))
        return found

    def _handle(self, folder: JobFolder) -> JobHandle:
        return JobHandle(folder, self._path, self._identity, self._file.select(folder.record().spec.job.parties))

    def _repr_html_(self) -> str:
        rows = "".join(
            f"<tr><th>{html.escape(name)}</th><td><code>{html.escape(shown(address))}</code></td></tr>"
            for name, address in self._file.addresses.items()
        )
        return f"<b>{html.escape(self._file.federation.name)}</b><table>{rows}</table>"

    def __repr__(self) -> str:
        return f"Federation({self._file.federation.name!r}, parties={', '.join(self.parties)})"


def _specification(job: Job) -> JobSpec:
    if isinstance(job, JobSpec):
        return job
    if isinstance(job, Mapping):
        return job_of(dict(job), "the job", Path())
    if not isinstance(job, str | os.PathLike):
        raise ConfigurationError(
            f"a job is the path of a job file or its contents as a mapping, not of type {type(job).__name__}"
        )
    return load_job(Path(job))
