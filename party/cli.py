"""`comine party …`: commands of the organisation that runs a node."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from party.check import check
from party.console.cli import app as console_app
from party.inbox_cli import approve, budget, deny, inbox, revoke_approval, show, status
from party.operations_cli import monitoring, peers
from party.reload_cli import reload
from party.running_cli import cancel, release, results, withhold

app = typer.Typer(help="Run the node of one organisation.", no_args_is_help=True)


@app.callback()
def party() -> None:
    """Run the node of one organisation."""


@app.command()
def serve(
    party_toml: Annotated[Path, typer.Argument(metavar="PARTY_TOML", help="The node's file, e.g. north.toml.")],
) -> None:
    """Serve one party's data to joint jobs, within its policy, until SIGTERM or Ctrl-C."""
    import asyncio
    import os

    os.environ.setdefault("GRPC_VERBOSITY", "NONE")  # its own lines would wait for the reader
    from party.server import serve as serve_node

    asyncio.run(serve_node(party_toml))


app.command()(check)
app.command()(inbox)
app.command()(status)
app.command()(show)
app.command()(approve)
app.command()(deny)
app.command("revoke-approval")(revoke_approval)
app.command()(cancel)
app.command()(results)
app.command()(release)
app.command()(withhold)
app.command()(budget)
app.command()(reload)
app.command()(peers)
app.command()(monitoring)
app.add_typer(console_app, name="console")


@app.command()
def health(
    party_toml: Annotated[Path, typer.Argument(metavar="PARTY_TOML", help="The node's file, e.g. north.toml.")],
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Ask the running node beside which this is called whether it is ready; exits 0 only if it is."""
    import asyncio
    import json

    from party.node.health import check

    name, address = asyncio.run(check(party_toml))
    ready = {"schema": "comine.health/1", "party": name, "address": address, "ready": True}
    typer.echo(json.dumps(ready, indent=2) if as_json else f"{name} is ready at {address}")
