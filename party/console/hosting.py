"""The console that a node runs itself, where its file has a table `[console]`."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from pathlib import Path

from console.extra import check_installed
from link.logs.structured import Log
from party.config import PartyConfig


@contextlib.asynccontextmanager
async def hosted(config: PartyConfig, path: Path, log: Log) -> AsyncIterator[None]:
    """Runs it as long as the context lasts.

    Args:
        config: The node's file.
        path: Where that is.
        log: Where the node reports what it does.

    Raises:
        ComineError: It cannot run; the sentence says why.
    """
    if config.console is None:
        yield
        return
    check_installed()
    from console.server import running
    from party.console.site import site_of

    with contextlib.ExitStack() as stack:
        site = site_of(config, path, log)
        address = stack.enter_context(running(site))
        log.info("console ready", address=address)
        if not site.lets_anybody_in():
            log.warning("console without accounts")
        try:
            yield
        finally:
            await asyncio.to_thread(stack.close)
