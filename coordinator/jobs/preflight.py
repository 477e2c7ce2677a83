"""What a coordinator makes sure of before a job begins: who the parties are, and that no certificate ends too early.

Clocks come first, since by a wrong one a good certificate looks bad.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Final
from weakref import WeakKeyDictionary

from coordinator.jobs.client import HERE, Introduction, PartyClient, check_common_version, check_versions
from coordinator.jobs.party_calls import each, reaching
from coordinator.jobs.progress import Absence
from link.clocks import check_clocks
from link.pki.identity import Identity, check_own_span, check_span
from link.transports.grpc_errors import ConnectionClosed

AT_ONCE: Final = 16  # parties that are met in one process: each has little time to answer, which many handshakes take
CLOSED_S: Final = (0.25, 0.5, 1.0)  # after which a party is called again that has closed the connection

_INTRODUCING: Final[WeakKeyDictionary[asyncio.AbstractEventLoop, asyncio.Semaphore]] = WeakKeyDictionary()


async def preflight(
    clients: Mapping[str, PartyClient],
    identity: Identity,
    lasts_s: float,
    away: Absence | None = None,
) -> None:
    """Makes sure that all parties can be reached, are who they should be, and can go through with a job.

    Args:
        clients: The parties.
        identity: The coordinator.
        lasts_s: Seconds for which the job may run.
        away: Called with parties that cannot be reached, which are waited for; absent, they are an error.

    Raises:
        VersionMismatch: A party speaks no common version.
        ConfigurationError: A clock is wrong.
        IdentityError: A certificate is not good, or not for as long as the job may run.
        ComineError: A party cannot be reached.
    """
    met = await each(
        clients, lambda client: introduction_of(client) if away is None else reaching(client, away, client.describe)
    )
    for party, introduction in met.items():
        check_versions(party, introduction.description)
    if len(met) > 1:
        check_common_version({party: introduction.description for party, introduction in met.items()})
    check_clocks({party: introduction.ahead_s for party, introduction in met.items()}, HERE)
    check_own_span(identity, lasts_s)
    for party, introduction in met.items():
        check_span(introduction.certificate, party, lasts_s)


async def introduction_of(client: PartyClient) -> Introduction:
    """The party's introduction; it closes connections where very many come from one address at once."""
    async with _INTRODUCING.setdefault(asyncio.get_running_loop(), asyncio.Semaphore(AT_ONCE)):
        for wait in CLOSED_S:
            try:
                return await client.describe()
            except ConnectionClosed:
                await asyncio.sleep(wait)
        return await client.describe()
