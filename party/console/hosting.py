"""The console that a node runs itself, where its file has a table `[console]`, and what it tells browsers."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable
from pathlib import Path

from console.extra import check_installed
from link.logs.structured import Log
from party.config import PartyConfig
from party.services.notices.pushes import Pushes


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


def pushes_of(config: PartyConfig, log: Log, count: Callable[[str, int], None]) -> Pushes | None:
    """What tells people's browsers; None where they may not ask for it.

    Args:
        config: The node's file.
        log: Where the node reports what it does.
        count: Counts by outcome what has become of notifications.

    Raises:
        ConfigurationError: The packages of the console are not installed.
    """
    if config.console is None or not config.console.push or config.console.push_contact is None:
        return None
    check_installed()
    from party.console.site import subscriptions_of

    return Pushes(subscriptions_of(config), config.console.push_contact, log, count)
