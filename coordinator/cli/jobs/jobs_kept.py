"""`comine job watch|status|list|cancel|result|report`: jobs that the coordinator keeps."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from coordinator.cli.options import HERE, AsJson, FederationFile
from coordinator.cli.terminal.completion import job_names

if TYPE_CHECKING:
    from coordinator.jobs.records.store import JobFolder, Record
    from jobs.documents.job_status import JobDocument, PartyStatus
    from jobs.results.result import Result

JobId = Annotated[
    str,
    typer.Argument(
        metavar="ID",
        help="The job's id, the first 4 or more digits of it, or its name (the latest).",
        autocompletion=job_names,
    ),
]


def add_commands(app: typer.Typer) -> None:
    """Adds the commands to `comine job`."""
    for command in (watch, status, list_, cancel, result, report):
        app.command(command.__name__.rstrip("_"))(command)
    app.command(hidden=True)(drive)


def watch(job: JobId, federation: FederationFile = HERE, as_json: AsJson = False) -> None:
    """Watch a job to its end; Ctrl-C leaves it alone. The exit code is the job's own."""
    import asyncio

    from coordinator.cli.terminal.console import note, write_json
    from coordinator.cli.terminal.live import live_progress, notes
    from coordinator.interrupt import run_interruptibly
    from coordinator.jobs.lifecycle import ended
    from coordinator.jobs.progress import unwatched
    from coordinator.jobs.records.kept import kept
    from coordinator.jobs.watching import show_progress, wait_for_end
    from link.errors import JobCancelled, ResourceError

    folder, identity, addresses = kept(federation, job)
    planned = folder.record().plan or {}
    with live_progress(tuple(addresses), planned.get("seconds")) as watcher:

        async def watching() -> Record:
            showing = None
            if watcher is not unwatched:
                showing = asyncio.ensure_future(show_progress(folder.record(), identity, addresses, watcher))
            try:
                return await wait_for_end(folder, federation, on_move=notes())
            finally:
                if showing is not None:
                    showing.cancel()
                    await asyncio.gather(showing, return_exceptions=True)

        try:
            record = run_interruptibly(watching())
        except JobCancelled:
            note(f"detached; the job goes on, come back with: comine job watch {folder.id[:12]}")
            return
    if as_json:
        from coordinator.jobs.status import as_data, describe

        write_json(as_data(describe(record, driven=False, answers={})))
    if record.job.problem is not None:
        raise ended(record.job)
    if record.out_problem:
        raise ResourceError(
            f"{record.out_problem}; write it elsewhere with: comine job result {folder.id[:12]} --out DIR"
        )
    where = f"; its result is in {record.out}" if record.out is not None else ""
    note(f"the job has succeeded{where or f'; show its result with: comine job result {folder.id[:12]}'}")


def status(job: JobId, federation: FederationFile = HERE, as_json: AsJson = False) -> None:
    """Show how a job stands, and each of its parties."""
    from coordinator.cli.terminal.console import write_json
    from coordinator.interrupt import run_interruptibly
    from coordinator.jobs.records.kept import kept
    from coordinator.jobs.status import as_data, job_status

    folder, identity, addresses = kept(federation, job)
    _take_up([folder], federation)
    document = run_interruptibly(job_status(folder, identity, addresses))
    if as_json:
        write_json(as_data(document))
    else:
        show(document)


def list_(federation: FederationFile = HERE, as_json: AsJson = False) -> None:
    """List the coordinator's jobs, newest first."""
    from coordinator.cli.terminal.console import note, write_json, write_table
    from coordinator.interrupt import run_interruptibly
    from coordinator.jobs.records.store import Store
    from coordinator.jobs.status import as_data, listed
    from coordinator.member import read_federation
    from link.files.printable import one_line

    store = Store.of(read_federation(federation))
    _take_up(store.jobs(), federation)
    found = run_interruptibly(listed(store, federation))
    for path in found.unreadable:
        note(f"{path} cannot be read as a job; move it away")
    if as_json:
        write_json(as_data(found))
        return
    rows = [
        [
            line.job_id[:12],
            line.created[:16].replace("T", " "),
            one_line(line.name),
            line.task,
            line.state,
            line.error.code if line.error is not None else ", ".join(line.turns.values() or line.waits_for),
        ]
        for line in found.jobs
    ]
    write_table(["id", "created", "name", "task", "state", "waits for, or error"], rows)


def cancel(
    job: JobId,
    federation: FederationFile = HERE,
    reason: Annotated[str, typer.Option("--reason", help="Sent to the parties.")] = "",
    as_json: AsJson = False,
) -> None:
    """End a job at all its parties, whatever it is doing."""
    from coordinator.cli.terminal.console import note, write_json
    from coordinator.interrupt import run_interruptibly
    from coordinator.jobs.lifecycle import State
    from coordinator.jobs.records.kept import kept
    from coordinator.jobs.runner import cancel_job
    from link.errors import PeerError
    from link.files.printable import enumeration

    folder, identity, addresses = kept(federation, job)
    ended, untold = run_interruptibly(cancel_job(folder, identity, addresses, reason))
    if as_json:
        from coordinator.jobs.status import as_data, describe

        write_json(as_data(describe(folder.record(), driven=False, answers={})))
    if untold:
        raise PeerError(
            f"the job is cancelled, but {enumeration(untold)} could not be told; what may run there ends without its "
            "peers, or by its deadline"
        )
    note(
        "the job is cancelled at all parties" if ended.state is State.CANCELLED else f"the job had {_end(ended.state)}"
    )


def result(
    job: JobId,
    federation: FederationFile = HERE,
    out: Annotated[Path | None, typer.Option("--out", help="Folder for the result.")] = None,
    as_json: AsJson = False,
) -> None:
    """Show the result of a job that has succeeded, or write it into a folder."""
    from coordinator.cli.terminal.console import note
    from coordinator.cli.terminal.present import present
    from jobs.results.destination import check_result_folder

    if out is not None:
        check_result_folder(out)
    found, _ = _result(federation, job)
    present(found, out, as_json=as_json)
    if out is not None and found.signer is None:
        note("nobody has signed manifest.json, since the federation file names no certificate that is good today")


def report(
    job: JobId,
    federation: FederationFile = HERE,
    out: Annotated[Path | None, typer.Option("--out", metavar="FILE", help="Where to; beside the job's files.")] = None,
    csv: Annotated[
        Path | None, typer.Option("--csv", metavar="DIR", help="Also write its tables as people open them.")
    ] = None,
) -> None:
    """Write the report of a job and print where it is."""
    from coordinator.cli.terminal.console import write
    from coordinator.jobs.records.store import write_whole
    from jobs.report.page import report as page
    from jobs.results.tables import readable, write_csv
    from link.errors import ResourceError

    found, folder = _result(federation, job)
    file = (folder.path / "report.html" if out is None else out).absolute()
    try:
        write_whole(file, page(found).encode())
    except ResourceError as error:
        if out is None:
            raise
        raise ResourceError(f"{file} cannot be written; name another --out file") from error
    write(f"{file}\n")
    if csv is None:
        return
    for name, table in found.tables.items():
        file = (csv / f"{name}.readable.csv").absolute()
        try:
            file.parent.mkdir(parents=True, exist_ok=True)
            write_csv(file, readable(table))
        except OSError as error:
            raise ResourceError(f"{file} cannot be written; name another --csv folder") from error
        write(f"{file}\n")


def drive(
    job: str,
    federation: FederationFile = HERE,
    lock: Annotated[int | None, typer.Option("--lock")] = None,
) -> None:
    """Drive a job to its end, in the background."""
    from coordinator.cli.terminal.console import note
    from coordinator.interrupt import run_interruptibly
    from coordinator.jobs.records.kept import kept
    from coordinator.jobs.runner import drive_job
    from link.errors import JobCancelled

    folder, identity, addresses = kept(federation, job)
    if lock is not None:
        folder.adopt(lock)
    elif not folder.lock():
        note("another process drives the job")
        return
    try:
        run_interruptibly(drive_job(folder.record(), identity, addresses, folder))
    except JobCancelled:
        note(f"stopped; the job goes on at its parties and is taken up again with: comine job watch {folder.id[:12]}")


def _take_up(folders: list[JobFolder], federation: Path) -> None:
    """Jobs whose driver has died go on, whichever command finds them."""
    from coordinator.cli.terminal.console import note
    from coordinator.jobs.background import take_up_all

    for folder in take_up_all(folders, federation):
        note(f"the job {folder.id[:12]} had no driver and is taken up again")


def _result(federation: Path, asked: str) -> tuple[Result, JobFolder]:
    from coordinator.jobs.records.store import Store
    from coordinator.jobs.released import kept_result
    from coordinator.member import read_federation

    known = read_federation(federation)
    folder = Store.of(known).find(asked)
    _take_up([folder], federation)
    return kept_result(folder, known), folder


def show(document: JobDocument) -> None:
    """Prints how a job stands."""
    from coordinator.cli.terminal.console import write, write_table
    from coordinator.cli.terminal.steps import Steps
    from link.files.printable import one_line

    ends = f", until {document.until}" if document.until is not None else ""
    write(
        f"job\t{document.job_id}\nname\t{one_line(document.name)}\ncreated\t{document.created}\nstate\t{document.state}{ends}\n"
    )
    for act in document.acts:
        write(f"{act.what}\tby {one_line(act.by)}, {act.at}\n")
    if document.attempt > 1:
        after = f", which the job began by itself after this: {one_line(document.lost)}" if document.lost else ""
        write(f"attempt\t{document.attempt}{after}\n")
    if document.error is not None:
        write(f"error\t{document.error.message} ({document.error.code})\n")
    steps = Steps()
    rows = [
        [
            party,
            each.state,
            steps.line(party, each.step, each.done, each.total) if each.step else "",
            _traffic(each),
            each.approved_by or "",
            each.problem or each.waits_for,
        ]
        for party, each in document.parties.items()
    ]
    write_table(["party", "state", "step", "sent, received", "approved by", "waits for"], rows)


def _traffic(each: PartyStatus) -> str:
    """What a party sent and received; of a party that was not asked nothing is known, which is not 0."""
    from link.files.quantities import size

    figures = (each.bytes_sent, each.bytes_received)
    return ", ".join(map(size, figures)) if each.asked or any(figures) else "–, –"


def _end(state: str) -> str:
    return {"succeeded": "succeeded before", "failed": "failed before"}.get(state, f"ended before: {state}")
