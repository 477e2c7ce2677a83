"""How often somebody may try to log in: a count for each name and each address, whether or not it is known."""

from __future__ import annotations

import hashlib
import ipaddress
import time
from collections import OrderedDict
from collections.abc import Callable
from typing import Final

PERIOD_S: Final = 900.0
TRIES_OF_A_NAME: Final = 10
TRIES_OF_AN_ADDRESS: Final = 50
MOST_KEPT: Final = 10_000  # counts; beyond them the oldest are forgotten
_NETWORK: Final = 64  # bits of an IPv6 address that name a network, whose hosts choose the others as they like


class Throttle:
    """Counts attempts before they are made, so that many at once are no way around it.

    Args:
        now: Seconds that never go back.

    Attributes:
        counts: Since when, and how many, by a digest of what is counted.
    """

    def __init__(self, now: Callable[[], float] = time.monotonic) -> None:
        self._now = now
        self.counts: OrderedDict[bytes, tuple[float, int]] = OrderedDict()

    def take(self, name: str, address: str) -> float:
        """Counts an attempt; seconds to wait before it may be made, 0 where it may be made now."""
        wait = max(
            self._take(_key("address", _network(address)), TRIES_OF_AN_ADDRESS),
            self._take(_key("name", name), TRIES_OF_A_NAME),
        )
        while len(self.counts) > MOST_KEPT:
            self.counts.popitem(last=False)
        return wait

    def succeeded(self, name: str) -> None:
        """Forgets the attempts of a name whose owner has come."""
        self.counts.pop(_key("name", name), None)

    def _take(self, key: bytes, most: int) -> float:
        now = self._now()
        since, number = self.counts.get(key, (now, 0))
        if now - since >= PERIOD_S:
            since, number = now, 0
        self.counts[key] = (since, number + 1)
        return since + PERIOD_S - now if number >= most else 0.0


def _key(kind: str, text: str) -> bytes:
    """As short whatever somebody types, and nothing that could be read in a dump: people type passwords as names."""
    return hashlib.sha256(f"{kind}\0{text}".encode("utf-8", "surrogatepass")).digest()


def _network(address: str) -> str:
    try:
        ip = ipaddress.ip_address(address)
    except ValueError:
        return address
    return address if ip.version == 4 else str(ipaddress.ip_network((ip, _NETWORK), strict=False))
