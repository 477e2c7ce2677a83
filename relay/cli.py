"""`comine relay …`: commands of who runs a relay."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

app = typer.Typer(help="Connect nodes that only dial out.", no_args_is_help=True)


@app.callback()
def relay() -> None:
    """Connect nodes that only dial out."""


@app.command()
def serve(
    relay_toml: Annotated[Path, typer.Argument(metavar="RELAY_TOML", help="The relay's file, e.g. relay.toml.")],
) -> None:
    """Connect the members of federations whose nodes nobody can call, until SIGTERM or Ctrl-C."""
    import asyncio

    from relay.server import serve_relay

    asyncio.run(serve_relay(relay_toml))
