"""Serves a console from a command of its own, until somebody ends it."""

from __future__ import annotations

import asyncio
import signal

import typer

from console.server import running
from console.site import Site


def serve_site(site: Site, add: str) -> None:
    """Serves it until SIGTERM or Ctrl-C.

    Args:
        site: The console.
        add: The command that makes an account for it, where it has none.

    Raises:
        ComineError: It cannot run; the sentence says why.
    """
    asyncio.run(_serve(site, add))


async def _serve(site: Site, add: str) -> None:
    """Waits in an event loop, which no signal can miss; a lock does, where one comes just before it is waited for."""
    stop, loop = asyncio.Event(), asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop.set)
    with running(site) as address:
        typer.echo(f"the console of {site.name} is at {address}", err=True)
        if not site.lets_anybody_in():
            typer.echo(f"nobody can log in yet; make an account with: {add}", err=True)
        await stop.wait()
