"""`comine job …`: joint jobs against the nodes of a federation."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

app = typer.Typer(help="Joint jobs.", no_args_is_help=True)


@app.callback()
def job() -> None:
    """Joint jobs."""


@app.command()
def run(
    job_toml: Annotated[Path, typer.Argument(metavar="JOB", help="The job file.")],
    federation: Annotated[Path, typer.Option("--federation", help="The federation file.")],
    out: Annotated[Path | None, typer.Option("--out", help="Folder for the result.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Run a job at its parties and fetch the result."""
    from coordinator.cli.live import live_progress
    from coordinator.interrupt import run_interruptibly
    from coordinator.member import load_federation
    from coordinator.runner import run_job
    from jobs.spec import JobSpec
    from jobs.target import check_result_folder

    spec = JobSpec.load(job_toml)
    known, _, identity = load_federation(federation)
    addresses = known.select(spec.job.parties)
    if out is not None:
        check_result_folder(out)
    with live_progress(spec.job.parties) as watcher:
        result = run_interruptibly(run_job(spec, identity, addresses, watcher))
    from coordinator.cli.present import present

    present(result, out, as_json=as_json)
