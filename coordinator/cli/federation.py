"""`comine federation …`: the list of members that all of them share."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

app = typer.Typer(help="The members of a federation.", no_args_is_help=True)

_EVERYWHERE = "0.0.0.0"  # noqa: S104 - in a sentence for people


@app.callback()
def federation() -> None:
    """The members of a federation."""


@app.command()
def new(
    party: Annotated[
        list[str], typer.Argument(metavar="NAME=HOST:PORT…", help="The parties, and where their nodes are reached.")
    ],
    name: Annotated[str, typer.Option("--name", help="What the federation is called.")] = "federation",
    relay: Annotated[
        str | None,
        typer.Option("--relay", metavar="HOST:PORT", help="Relay of the parties that are given by NAME alone."),
    ] = None,
    coordinator: Annotated[str, typer.Option("--coordinator", help="Name of who starts jobs.")] = "analyst",
    out: Annotated[Path, typer.Option("--out", metavar="FILE", help="The file to write.")] = Path("federation.toml"),
    force: Annotated[bool, typer.Option("--force", help="Replace an existing file.")] = False,
) -> None:
    """Write federation.toml for machines of their own, and say what is to be done at each."""
    from coordinator.cli.new_files import write_new
    from coordinator.cli.terminal.console import note
    from jobs.federation import check_address
    from jobs.new_federation import render
    from link.errors import UsageError

    parties: dict[str, str | None] = {}
    for given in party:
        member, equals, place = given.partition("=")
        if not (equals or relay) or member in parties:
            raise UsageError(f"'{given}' is no party with an address of its own, such as north=north.example:7101")
        if equals:
            try:
                check_address(place)
            except ValueError as error:
                raise UsageError(f"{given}: {error}") from None
        parties[member] = place if equals else None
    if coordinator in parties:
        raise UsageError(f"--coordinator {coordinator} is the name of a party; every member has a name of its own")
    write_new(out, render(name, parties, coordinator, relay), force=force)
    note(f"created {out}; every member gets a copy of it")
    note("next, at the authority, on a machine that is no node:")
    note("    comine pki init")
    if relay is not None:
        note(f"at {relay.rpartition(':')[0]}, with the authority's ca.crt; comine docs relay shows its file:")
        note("    comine relay serve relay.toml")
    for member, address in parties.items():
        note(f"at {member}, beside its data:")
        if address is None:
            note(f"    comine pki request {member}")
            note(f"    comine init {member} --source FILE --relay {relay}")
            continue
        host, _, port = address.rpartition(":")
        note(f"    comine pki request {member} --host {host.strip('[]')}")
        note(f"    comine init {member} --source FILE --listen {_EVERYWHERE}:{port}")
    note(f"at {coordinator}, who starts jobs:")
    note(f"    comine pki request {coordinator} --role coordinator")
    note("at the authority, for each NAME.csr, once its fingerprint was compared by telephone:")
    note(f"    comine pki sign NAME.csr --federation {out.name}")
    note("at each party, with its NAME.crt and ca.crt in pki:")
    note("    comine party serve party.toml")
    note(f"at {coordinator}, with the same:")
    note("    comine doctor")
    note("    comine job new --task rules")
