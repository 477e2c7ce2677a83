"""Which push services a console believes in: a browser alone says where its notifications go.

Only `https`, only these hosts and the owner's own, and nothing that could be read in two ways: no user, no fragment, no
other port than the service's. So who has an account can have the node call nothing else.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final, NamedTuple

from link.errors import UsageError

KNOWN: Final = (
    "fcm.googleapis.com",  # Chrome, Edge on Android, Opera, Samsung Internet
    "updates.push.services.mozilla.com",  # Firefox
    "web.push.apple.com",  # Safari
    "*.notify.windows.com",  # Edge
)
"""`*.` stands for any name in front."""

_PORT: Final = 443
_ENDPOINT: Final = re.compile(
    r"(https://([a-z0-9.-]{1,253})(?::([1-9][0-9]{0,4}))?)/[A-Za-z0-9._~%!$&'()*+,;=:@/?-]{1,1500}"
)


class Place(NamedTuple):
    """Where a subscription's notifications are handed over.

    Attributes:
        origin: As the service knows itself, `https://HOST` or `https://HOST:PORT`.
        host: For people, with the port where it is not that of https.
    """

    origin: str
    host: str


def place_of(endpoint: str, own: Sequence[str]) -> Place:
    """Where an endpoint is.

    Args:
        endpoint: As the browser has it from its push service.
        own: Hosts beside the known ones, `HOST` or `HOST:PORT`.

    Raises:
        UsageError: It is nowhere where notifications may go.
    """
    found = _ENDPOINT.fullmatch(endpoint)
    if found is not None:
        port = int(found[3] or _PORT)
        host = found[2] if port == _PORT else f"{found[2]}:{port}"
        if host in own or any(_is_of(host, each) for each in KNOWN):
            return Place(f"https://{host}", host)
    raise UsageError(
        "this browser's notifications would go through a push service that the console does not know; its owner can "
        "add the service's host to [console] push_services"
    )


def _is_of(host: str, known: str) -> bool:
    return host.endswith(known[1:]) if known.startswith("*") else host == known
