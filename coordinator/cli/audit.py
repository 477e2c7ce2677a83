"""`comine audit …`: what is in the audit log of a party, and whether it and those of others hold."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from coordinator.cli.options import AsJson

app = typer.Typer(help="Audit logs of parties.", no_args_is_help=True)


@app.callback()
def audit() -> None:
    """Audit logs of parties."""


@app.command()
def show(
    log: Annotated[Path, typer.Argument(metavar="LOG", help="An audit log, or the party.toml of its node.")],
    job: Annotated[
        str | None, typer.Option("--job", help="Only entries of this job: its id, or 4 digits of it.")
    ] = None,
    last: Annotated[int | None, typer.Option("--last", min=1, help="Only so many, the last ones.")] = None,
    as_json: AsJson = False,
) -> None:
    """List the entries of an audit log, as they stand there; `verify` says whether they hold."""
    from coordinator.cli.terminal.console import write_json, write_table
    from jobs.audit.place import find
    from jobs.audit.reading import job_of, shown
    from link.errors import UsageError

    places = find([log])
    if not places.logs:
        raise UsageError(f"{log} is a result folder or evidence; give an audit log or a party's file")
    document = shown(places.logs[0], job=job, last=last)
    if as_json:
        write_json(document.model_dump(mode="json", by_alias=True))
        return
    write_table(
        ["entry", "time", "event", "job", "what"],
        (
            ["?" if e.seq is None else str(e.seq), e.time or "", e.event or "", job_of(e)[:12], e.summary]
            for e in document.entries
        ),
    )


@app.command()
def verify(
    paths: Annotated[
        list[Path],
        typer.Argument(
            metavar="PATH...",
            help="Audit logs, or party.toml files of their nodes, result folders, and files of evidence.",
        ),
    ],
    ca: Annotated[
        Path | None, typer.Option("--ca", help="The authority's certificate; by default the one of a party's file.")
    ] = None,
    crl: Annotated[
        Path | None, typer.Option("--crl", help="Its list of revoked certificates; by default ca.crl beside it.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Check audit logs, results against them, and evidence against parties; exits 40 on a finding."""
    from coordinator.cli.terminal.console import note, write, write_json
    from jobs.audit.checks.verification import verification
    from jobs.audit.place import find, trust_in
    from link.errors import ProtocolViolation

    places = find(paths)
    trust = trust_in(ca or places.ca, crl or places.crl)
    document = verification(places.logs, places.results, trust, places.evidence)
    if as_json:
        write_json(document.model_dump(mode="json", by_alias=True))
    else:
        for found in document.findings:
            write(f"{found}\n")
        for judged in document.evidence:
            if judged.convicts:
                write(f"{judged}\n")
    for read in document.logs:
        note(f"{read.file}: {read.entries} entries of {read.party or 'nobody known'} that hold")
    if document.unheard:
        note(f"not compared, since their logs were not given: {', '.join(document.unheard)}")
    for sealed in document.sealed:
        note(str(sealed))
    for gap in document.gaps:
        note(gap)
    if not document.good:
        n_found = len(document.findings)
        note(f"{n_found} finding{'' if n_found == 1 else 's'}")
        raise typer.Exit(ProtocolViolation.exit_code)
    note("all that was compared agrees")
