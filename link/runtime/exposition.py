"""Shows metrics to Prometheus, in a thread of its own: a scrape never waits for a job, nor a job for it."""

from __future__ import annotations

from prometheus_client import CollectorRegistry, start_http_server

from link.errors import ResourceError


class Exposition:
    """Answers at `[metrics] listen`, until it is closed.

    Args:
        listen: HOST:PORT, as in `[metrics] listen`.
        registry: What is shown.

    Raises:
        ResourceError: The port is taken, or the address is not this machine's.

    Attributes:
        address: HOST:PORT, with the port that was taken where any was asked for.
    """

    def __init__(self, listen: str, registry: CollectorRegistry) -> None:
        host, _, port = listen.rpartition(":")
        host = host.strip("[]")
        try:
            self._server, self._thread = start_http_server(int(port), host, registry)
        except OSError as error:
            raise ResourceError(
                f"metrics cannot be shown at {listen} ({error.strerror}); stop the process that holds the "
                "port, or change [metrics] listen"
            ) from None
        self.address = f"{host}:{self._server.server_port}"

    def close(self) -> None:
        """Answers no more."""
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()
