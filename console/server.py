"""Runs a console: at the loopback, or over TLS; in a thread of its own, so that nothing else waits for its pages."""

from __future__ import annotations

import asyncio
import contextlib
import socket
import ssl
import threading
from collections.abc import Iterator
from typing import Final

import uvicorn

from console.app import application
from console.connections import Connection
from console.site import Site
from link.errors import ResourceError
from link.pki.tls_files import load_pair

AT_ONCE: Final = 200  # connections; whoever comes then is told to come later
MOST_HEAD: Final = 16_384  # bytes
KEEP_S: Final = 15
CLOSE_S: Final = 3


@contextlib.contextmanager
def running(site: Site) -> Iterator[str]:
    """Runs a console as long as the context lasts.

    Args:
        site: The console.

    Yields:
        Its address, for people.

    Raises:
        ConfigurationError: Its certificate or another file cannot be read.
        ResourceError: It cannot listen where it is to.
    """
    with contextlib.closing(_bound(site)) as bound:
        origins = site.settings.origins(bound.getsockname()[1])
        config = uvicorn.Config(
            application(site, origins),
            lifespan="on",
            http=Connection,
            ws="none",
            log_config=None,
            access_log=False,
            proxy_headers=False,
            server_header=False,
            limit_concurrency=AT_ONCE,
            h11_max_incomplete_event_size=MOST_HEAD,
            timeout_keep_alive=KEEP_S,
            timeout_graceful_shutdown=CLOSE_S,
            ssl_certfile=site.settings.certificate,
            ssl_keyfile=site.settings.key,
        )
        if (certificate := site.settings.certificate) is not None and (key := site.settings.key) is not None:
            load_pair(ssl.create_default_context(ssl.Purpose.CLIENT_AUTH), certificate, key, "[console]")
        config.load()
        server = uvicorn.Server(config)
        threads = [threading.Thread(target=lambda: asyncio.run(server.serve([bound])), name="console")]
        if site.prepare is not None:
            threads.append(threading.Thread(target=site.prepare, name="console-prepares"))
        for thread in threads:
            thread.start()
        try:
            yield origins[0]
        finally:
            server.should_exit = True
            for thread in threads:
                thread.join()


def _bound(site: Site) -> socket.socket:
    """A socket that listens where the console is to answer."""
    settings = site.settings
    try:
        family, kind, number, _, address = socket.getaddrinfo(
            settings.host.strip("[]"), settings.port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
        bound = socket.socket(family, kind, number)
        try:
            bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            bound.bind(address)
            bound.listen(AT_ONCE)
        except BaseException:
            bound.close()
            raise
    except OSError as error:
        raise ResourceError(
            f"the console cannot listen at {settings.listen} ({error.strerror}); stop what holds the port, or change "
            "[console] listen"
        ) from None
    return bound
