"""`comine job …`: joint jobs against the nodes of a federation; each command loads what it needs when it runs."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from coordinator.cli.jobs import jobs_kept
from coordinator.cli.jobs.compare_runs import compare_runs
from coordinator.cli.jobs.job_new import new
from coordinator.cli.jobs.plan import plan
from coordinator.cli.jobs.resume import resume
from coordinator.cli.options import HERE, AsJson, FederationFile

if TYPE_CHECKING:
    from coordinator.jobs.records.store import Store
    from jobs.spec.job import JobSpec
    from link.pki.identity import Identity

app = typer.Typer(help="Joint jobs.", no_args_is_help=True)

JobFile = Annotated[Path, typer.Argument(metavar="JOB", help="The job file.")]
Out = Annotated[Path | None, typer.Option("--out", help="Folder for the result.")]
Retries = Annotated[
    int,
    typer.Option("--retries", min=0, max=4, help="How often the job may go on by itself after it has lost a party."),
]
Predict = Annotated[bool, typer.Option("--plan", help="Plan the job first, so that its report compares.")]


@app.callback()
def job() -> None:
    """Joint jobs."""


app.command()(new)
app.command()(plan)


@app.command()
def run(
    job_toml: JobFile,
    federation: FederationFile = HERE,
    out: Out = None,
    expires: Annotated[str, typer.Option("--expires", help="For how long people at the parties may think.")] = "10m",
    retries: Retries = 3,
    predict: Predict = False,
    as_json: AsJson = False,
) -> None:
    """Run a job at its parties and fetch the result."""
    from coordinator.cli.terminal.duration import duration
    from coordinator.cli.terminal.live import live_progress, notes
    from coordinator.interrupt import run_interruptibly
    from coordinator.jobs.runner import run_job

    expires_s = duration(expires, "--expires")
    spec, identity, addresses, store = _prepared(job_toml, federation, out, predict=predict)
    planned = store.load_plan(spec.digest) or {}
    with live_progress(spec.job.parties, planned.get("seconds")) as watcher:
        result = run_interruptibly(
            run_job(
                spec, identity, addresses, watcher, store=store, expires_s=expires_s, on_move=notes(), retries=retries
            )
        )
    from coordinator.cli.terminal.present import present

    present(result, out, as_json=as_json)


@app.command()
def submit(
    job_toml: JobFile,
    federation: FederationFile = HERE,
    out: Out = None,
    expires: Annotated[str, typer.Option("--expires", help="For how long people at the parties may think.")] = "7d",
    retries: Retries = 3,
    predict: Predict = False,
    as_json: AsJson = False,
) -> None:
    """Propose a job, print its id, and leave it to the background."""
    from coordinator.cli.terminal.console import note, write, write_json
    from coordinator.cli.terminal.duration import duration
    from coordinator.cli.terminal.live import waiting_for
    from coordinator.interrupt import run_interruptibly
    from coordinator.jobs.background import start_driver
    from coordinator.jobs.runner import submit_job

    expires_s = duration(expires, "--expires")
    spec, identity, addresses, store = _prepared(job_toml, federation, out, predict=predict)
    place = None if out is None else out.absolute()
    submitted = submit_job(spec, identity, addresses, store, expires_s=expires_s, out=place, retries=retries)
    folder = run_interruptibly(submitted)
    record = folder.record()
    start_driver(folder, federation)
    if as_json:
        from coordinator.jobs.status import as_data, describe

        write_json(as_data(describe(record, driven=True, answers={})))
    else:
        write(f"{folder.id}\n")
    waiting = waiting_for(record.job)
    note(f"submitted{f'; {waiting}' if waiting else ''}; watch it with: comine job watch {folder.id[:12]}")


def _prepared(
    job_toml: Path, federation: Path, out: Path | None, *, predict: bool
) -> tuple[JobSpec, Identity, Mapping[str, str], Store]:
    """The job, the coordinator, the parties' addresses and the store of jobs; with a plan of the job, if wanted."""
    from coordinator.cli.terminal.console import note
    from coordinator.interrupt import run_interruptibly
    from coordinator.jobs.records.store import Store
    from coordinator.member import load_federation
    from jobs.loading import load_job
    from jobs.results.destination import check_result_folder

    spec = load_job(job_toml)
    known, identity = load_federation(federation)
    addresses = known.select(spec.job.parties)
    if out is not None:
        check_result_folder(out)
    store = Store.of(known)
    if predict:
        from coordinator.jobs.planner import plan_job

        found = run_interruptibly(plan_job(spec, identity, addresses))
        store.save_plan(spec.digest, found.as_data())
        if found.warning is not None:
            note(found.warning)
    return spec, identity, addresses, store


app.command()(resume)
app.command("compare")(compare_runs)
jobs_kept.add_commands(app)
