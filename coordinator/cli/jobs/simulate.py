"""`comine simulate`: a job with all its parties in one process."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Annotated, Final

import typer

from coordinator.cli.options import AsJson
from coordinator.cli.terminal.completion import parties_of_job, words

_SETTING: Final = re.compile(
    r"\b(format|separator|encoding|id|item) = (?=\")"
)  # of a [[dataset]], which here is an option


def simulate(
    job_toml: Annotated[Path, typer.Argument(metavar="JOB", help="The job file.")],
    party: Annotated[
        list[str],
        typer.Option(
            "--party",
            metavar="NAME=FILE",
            help="The data of a party, a file or a URL; once for each.",
            autocompletion=parties_of_job,
        ),
    ],
    out: Annotated[Path | None, typer.Option("--out", help="Folder for the result.")] = None,
    data_format: Annotated[
        str | None,
        typer.Option(
            "--format",
            help="basket (default), csv, long, wide, parquet or sql; of tables, csv (default), parquet or sql.",
            autocompletion=words("basket", "csv", "long", "wide", "parquet", "sql"),
        ),
    ] = None,
    separator: Annotated[
        str | None,
        typer.Option("--separator", help="What separates items, or cells; blanks in basket files by default."),
    ] = None,
    ids: Annotated[
        list[str] | None,
        typer.Option("--id", metavar="COLUMN", help="Column of ids, id by default; once for each of a composite id."),
    ] = None,
    item: Annotated[str, typer.Option("--item", metavar="COLUMN", help="Column of items.", show_default=True)] = "item",
    query: Annotated[str | None, typer.Option("--query", metavar="SELECT", help="What is read of databases.")] = None,
    encoding: Annotated[str | None, typer.Option("--encoding", help="Of text that is not in UTF-8.")] = None,
    sheet: Annotated[str | None, typer.Option("--sheet", help="Of workbooks; the first by default.")] = None,
    password_env: Annotated[
        str | None,
        typer.Option("--password-env", metavar="NAME", help="Variable that holds the password of the sources."),
    ] = None,
    engine: Annotated[
        str,
        typer.Option(
            "--engine",
            help="Where rows are counted: auto, memory, processes or spark.",
            show_default=True,
            autocompletion=words("auto", "memory", "processes", "spark"),
        ),
    ] = "auto",
    memory_share: Annotated[
        str | None,
        typer.Option(
            "--memory-share",
            metavar="SHARE",
            help="Of the memory, what all files together may take in it by auto; 0.25 by default.",
        ),
    ] = None,
    spark: Annotated[
        str | None, typer.Option("--spark", metavar="URL", help="The cluster of the engine spark, as sc://HOST:PORT.")
    ] = None,
    seed: Annotated[
        int | None, typer.Option("--seed", help="Repeat all random draws; such a run keeps no secrets.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Run a job with all its parties in this process, with the very code of the nodes."""
    from coordinator.cli.terminal.console import note
    from coordinator.cli.terminal.live import live_progress
    from coordinator.interrupt import run_interruptibly
    from coordinator.jobs.simulation.party_files import Engine, party_files
    from coordinator.jobs.simulation.simulate import check_parties, simulate_job
    from coordinator.jobs.simulation.simulation_hints import simulation_hints
    from jobs.kinds.registry import kind_of
    from jobs.loading import load_job
    from jobs.results.destination import check_result_folder
    from mining.data.source_options import SourceOptions

    counted = Engine.of(engine, memory_share, spark)
    spec = load_job(job_toml)
    sources = sources_of(party)
    check_parties(spec, sources)
    if out is not None:
        check_result_folder(out)
    kind = kind_of(spec).data
    if data_format is None:
        data_format = "sql" if query is not None else "csv" if kind == "table" else "basket"
    ids = list(kind_of(spec).default_ids(spec)) if ids is None else ids
    options = SourceOptions(encoding, sheet, password_env)
    with (
        party_files(spec, sources, data_format, separator, ids, counted, item, query, options) as data,
        live_progress(spec.job.parties) as watcher,
    ):
        for sentence in simulation_hints(spec, data, sources, data_format, separator, ids, item):
            note("hint: " + _SETTING.sub(r"--\1 ", sentence))
        result = run_interruptibly(simulate_job(spec, data, seed=seed, watcher=watcher))
    from coordinator.cli.terminal.present import present

    present(result, out, as_json=as_json)


def sources_of(given: list[str]) -> dict[str, str]:
    """The source of each party.

    Raises:
        UsageError: One is not of the form NAME=FILE, or a party has two.
    """
    from link.errors import UsageError

    sources: dict[str, str] = {}
    for pair in given:
        name, equals, file = pair.partition("=")
        if not (name and equals and file):
            raise UsageError(f"--party {pair}: the form is NAME=FILE")
        if name in sources:
            raise UsageError(f"--party names '{name}' twice")
        sources[name] = file
    return sources
