"""`comine job resume`: another attempt of a job that was lost on the way."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from coordinator.cli.jobs.jobs_kept import JobId
from coordinator.cli.options import HERE, AsJson, FederationFile


def resume(
    job: JobId,
    federation: FederationFile = HERE,
    out: Annotated[Path | None, typer.Option("--out", help="Folder for the result.")] = None,
    as_json: AsJson = False,
) -> None:
    """Go on with a job that lost a party, was cancelled or met its deadline, from the last level that is known."""
    from coordinator.cli.terminal.live import live_progress, notes
    from coordinator.cli.terminal.present import present
    from coordinator.interrupt import run_interruptibly
    from coordinator.jobs.records.kept import kept
    from coordinator.jobs.runner import resume_job
    from jobs.results.destination import check_result_folder

    folder, identity, addresses = kept(federation, job)
    if out is not None:
        check_result_folder(out)
    with live_progress(tuple(addresses)) as watcher:
        result = run_interruptibly(resume_job(folder, identity, addresses, watcher, on_move=notes()))
    present(result, out, as_json=as_json)
