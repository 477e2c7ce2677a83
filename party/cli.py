"""`comine party …`: commands of the organisation that runs a node."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

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

    from party.server import serve as serve_node

    asyncio.run(serve_node(party_toml))
