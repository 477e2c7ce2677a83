"""Runs a quickstart: prepare, start, mine, show, stop; and starts the nodes of an earlier one again."""

from __future__ import annotations

import asyncio
import secrets
import shutil
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from shlex import quote
from typing import Any, Final

from comine.quickstart.sources import Source, of_files
from comine.quickstart.task import DATASET, Wanted, fitting_support
from coordinator.cli.terminal.console import note, write, write_table
from coordinator.cli.terminal.live import live_progress
from coordinator.demo.loopback import COORDINATOR, LoopbackFederation
from coordinator.interrupt import run_interruptibly, signals_interrupt
from coordinator.jobs.progress import Watcher
from coordinator.jobs.records.store import Store
from coordinator.jobs.runner import run_job
from coordinator.jobs.simulation.simulation_hints import count_hints
from jobs.federation import Federation
from jobs.loading import load_job
from jobs.report.tables import most_useful
from jobs.results.record import cautions
from jobs.results.result import Result
from jobs.spec.job import JobSpec
from link.errors import ConfigurationError, ResourceError
from mining.data.source_options import SourceOptions

_SHOWN: Final = 10
_NOTE: Final = "README.txt"
_NOTE_BEGINS: Final = "A federation of comine quickstart."
_NOTE_TEXT: Final = f"""\
{_NOTE_BEGINS} Each folder is one organisation's machine; another `comine quickstart` replaces all of this.

  authority/     issues certificates, which are throwaway ones: their keys were made here, for all parties
  coordinator/   the job, the federation file and the coordinator's key
  result/        what the job found: tables, result.json and report.html
  …/             a party's key, certificate, configuration and log
"""


def run(files: Sequence[str], folder: Path, wanted: Wanted, options: SourceOptions) -> None:
    """The whole quickstart: the result on standard output, all else on standard error; no process stays behind.

    Args:
        files: A file of transactions for each party; one for three; none: the demo's data.
        folder: Absent, empty, or one of an earlier quickstart, which is replaced once there is a result.
        wanted: What is to be found.
        options: As of `of_files`.

    Raises:
        ComineError: Something failed; nothing has been written.
    """
    _check(folder)
    with signals_interrupt(), _draft(folder) as draft:
        sources = of_files(files, draft, note, options)
        support = wanted.min_support or fitting_support([source.data for source in sources])
        if wanted.min_support is None:
            note(f"min_support = {support}, which suits these data; set it with --min-support")
        for hint in count_hints(support, sum(source.data.n_rows for source in sources)):
            note(f"hint: {hint}")
        federation = _prepare(draft, sources)
        job = draft / COORDINATOR / "job.toml"
        job.write_text(wanted.job(federation.parties, support), encoding="utf-8")
        spec = load_job(job)
        with live_progress(federation.parties) as watcher:
            result = run_interruptibly(_mine(federation, spec, watcher))
        result.save(draft / "result")
        (draft / _NOTE).write_text(_NOTE_TEXT, encoding="utf-8")
    _show(result)
    _go_on(folder)


def serve_again(folder: Path) -> None:
    """Starts the nodes of an earlier quickstart, and stops them when a signal comes.

    Raises:
        ConfigurationError: The folder holds no quickstart.
        PeerError: A node is not ready in time; the sentence says why.
    """
    if not _is_earlier(folder):
        raise ConfigurationError(f"{folder} holds no quickstart; make one with comine quickstart")
    file = folder / COORDINATOR / "federation.toml"
    federation = LoopbackFederation(folder.resolve(), tuple(Federation.load(file).addresses))
    with signals_interrupt():
        run_interruptibly(_serve(federation))


async def _serve(federation: LoopbackFederation) -> None:
    with federation.running():
        await federation.ready()
        for party, address in federation.addresses.items():
            note(f"{party} is ready at {address}")
        note("Ctrl-C stops them all")
        with suppress(asyncio.CancelledError):
            await asyncio.Event().wait()
        note("stopping")


async def _mine(federation: LoopbackFederation, spec: JobSpec, watcher: Watcher) -> Result:
    with federation.running():
        note(f"started {len(federation.parties)} nodes on this machine, which talk over mutual TLS")
        await federation.ready()
        store = Store.of(Federation.load(federation.file))
        return await run_job(spec, federation.identity(), federation.addresses, watcher, store=store)


def _prepare(folder: Path, sources: Sequence[Source]) -> LoopbackFederation:
    return LoopbackFederation.prepare(
        folder,
        DATASET,
        {source.name: source.path for source in sources},
        written={source.name: source.settings for source in sources},
        public={source.name: source.public for source in sources},
    )


def _is_earlier(folder: Path) -> bool:
    try:
        return (folder / _NOTE).read_text(encoding="utf-8").startswith(_NOTE_BEGINS)
    except (OSError, UnicodeDecodeError):
        return False


def _check(folder: Path) -> None:
    if folder.exists() and not _is_earlier(folder) and (not folder.is_dir() or any(folder.iterdir())):
        raise ConfigurationError(f"{folder} holds something other than an earlier quickstart; name another --folder")


@contextmanager
def _draft(folder: Path) -> Iterator[Path]:
    """A folder that takes the place of another once all has gone well, and is gone otherwise."""
    target = folder.resolve()
    draft = target.with_name(f".{target.name}.{secrets.token_hex(4)}")
    try:
        draft.mkdir(parents=True, mode=0o700)
    except OSError as error:
        raise _unwritable(folder, error) from None
    try:
        yield draft
        try:
            if target.exists():
                shutil.rmtree(target)
            draft.replace(target)
        except OSError as error:
            raise _unwritable(folder, error) from None
    finally:
        shutil.rmtree(draft, ignore_errors=True)


def _unwritable(folder: Path, error: OSError) -> ResourceError:
    return ResourceError(f"{folder} cannot be written ({error.strerror}); name another --folder")


def _show(result: Result) -> None:
    """The most useful rows: itemsets of several items by support, rules by lift."""
    itemsets, rules = (_rows(result, name) for name in ("itemsets", "rules"))
    several = [row for row in itemsets if row["length"] > 1]
    shown = several or itemsets
    what = "those of several items" if several else "all of a single item"
    _table(
        f"{len(itemsets):,} frequent itemsets in {result.n_rows:,} rows; {what}:",
        shown,
        {"itemset": _set, "count": "{:,}".format, "support": "{:.4f}".format},
    )
    if result.spec.job.task == "rules":
        columns = {"antecedent": _set, "consequent": _set, "confidence": "{:.3f}".format, "lift": "{:.2f}".format}
        found = "1 association rule" if len(rules) == 1 else f"{len(rules):,} association rules"
        _table(f"{found}; those of the highest lift:", rules, columns)
    for sentence in cautions(result):
        note(sentence)


def _go_on(folder: Path) -> None:
    at = quote(str(folder / COORDINATOR))
    place = "" if folder == Path("quickstart-out") else f" --folder {quote(str(folder))}"
    note(f"the result is in {folder / 'result'}: tables, result.json, and report.html, which also says who learnt what")
    note("to go on, in a terminal of its own and then in this one:")
    note(f"  comine quickstart --serve{place}")
    note(f"  comine job plan {at}/job.toml --federation {at}/federation.toml")
    note(f"  comine job run {at}/job.toml --federation {at}/federation.toml --out result")


def _table(title: str, rows: Sequence[dict[str, Any]], columns: Mapping[str, Callable[[Any], str]]) -> None:
    write(f"{title}\n")
    if rows:
        write_table(list(columns), [[shown(row[name]) for name, shown in columns.items()] for row in rows[:_SHOWN]])
    write("\n")


def _rows(result: Result, name: str) -> list[dict[str, Any]]:
    return most_useful(result.tables[name]).to_pylist() if name in result.tables else []


def _set(items: Iterable[str]) -> str:
    return ", ".join(items)
