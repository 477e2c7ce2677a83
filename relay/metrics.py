"""What a relay counts: connections, bytes and refusals of its members, never what they say to each other.

Labels are `peer` and `code` and no others. A peer is a federation and a member of it, or all its clients together, so
no metric grows with what strangers send.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Final

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, ProcessCollector

from link.pki.certificates import read_certificate
from relay.members import Caller

CLIENTS: Final = "clients"  # of a federation, who may be many
NOBODY: Final = ""  # who has not proved who it is
_STREAM_S: Final = (0.1, 0.5, 1, 5, 10, 30, 60, 300, 900, 3600, 14_400, 86_400)


class RelayMetrics:
    """The metrics of one relay; all methods may be called from any thread.

    Attributes:
        registry: Where they are read.
    """

    def __init__(self) -> None:
        self.registry = registry = CollectorRegistry()
        ProcessCollector(registry=registry)
        self._listening = Gauge(
            "comine_relay_party_connected", "1 for each party that waits for callers.", ("peer",), registry=registry
        )
        self._streams = Gauge(
            "comine_relay_streams", "Connections that are joined now, by who dialled.", ("peer",), registry=registry
        )
        self._durations = Histogram(
            "comine_relay_stream_duration_seconds",
            "Joined connections that have ended, by why.",
            ("code",),
            buckets=_STREAM_S,
            registry=registry,
        )
        self._sent = Counter(
            "comine_relay_sent_bytes", "Bytes that members have sent through the relay.", ("peer",), registry=registry
        )
        self._refused = Counter(
            "comine_relay_refused",
            "Connections that were refused, by why; of strangers without a peer.",
            ("peer", "code"),
            registry=registry,
        )

    def show(self, certificate: Callable[[], Path | None]) -> None:
        """Shows from now on when the relay's certificate for TLS ends, where it has one."""
        if certificate() is None:
            return

        def ends() -> float:
            path = certificate()
            try:
                return (
                    float("nan")
                    if path is None
                    else read_certificate(path.read_bytes()).not_valid_after_utc.timestamp()
                )
            except (OSError, ValueError):
                return float("nan")

        name = "comine_certificate_expiry_timestamp_seconds"
        Gauge(name, "End of the relay's certificate.", registry=self.registry).set_function(ends)

    def listens(self, party: Caller, *, connected: bool) -> None:
        """A party has begun to wait for callers, or has left."""
        self._listening.labels(_peer(party)).set(connected)

    def began(self, caller: Caller) -> None:
        """A caller and a party are joined."""
        self._streams.labels(_peer(caller)).inc()

    def ended(self, caller: Caller, why: str, seconds: float) -> None:
        """They are so no more.

        Args:
            caller: Who dialled.
            why: "ended", "idle", or why a member may send no more.
            seconds: How long it took.
        """
        self._streams.labels(_peer(caller)).dec()
        self._durations.labels(why).observe(seconds)

    def sent(self, member: Caller, size: int) -> None:
        """A member has sent bytes to another."""
        self._sent.labels(_peer(member)).inc(size)

    def refused(self, caller: Caller | None, why: str) -> None:
        """A member was refused something, or somebody who has not proved who it is."""
        self._refused.labels(NOBODY if caller is None else _peer(caller), why).inc()


def _peer(member: Caller) -> str:
    return f"{member.federation}/{CLIENTS if member.role == 'client' else member.shown}"
