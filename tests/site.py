"""A site on this machine, with files by path, one of them behind a password, and over TLS if that is wanted."""

from __future__ import annotations

import ssl
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread

import pytest

from link.pki.authority import Authority, write_identity

TOKEN = "hunter2"


class Site(ThreadingHTTPServer):
    """The site, and what it was asked.

    Attributes:
        files: By path.
        asked: The credentials of each request.
        scheme: http or https.
    """

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Answers)
        self.files: dict[str, bytes] = {"/a.txt": b"bread milk\ntea\n"}
        self.asked: list[str | None] = []
        self.scheme = "http"

    def url(self, path: str, user: str = "") -> str:
        return f"{self.scheme}://{user}127.0.0.1:{self.server_port}{path}"

    def handle_error(self, *_: object) -> None:
        """Nothing: clients that do not trust it break off."""


class _Answers(BaseHTTPRequestHandler):
    server: Site

    def do_HEAD(self) -> None:
        self.do_GET()

    def do_GET(self) -> None:
        self.server.asked.append(self.headers["Authorization"])
        if self.path == "/away":
            self.send_response(302)
            self.send_header("Location", "http://192.0.2.1/a.txt")
            self.end_headers()
            return
        if self.path == "/private" and self.headers["Authorization"] != f"Bearer {TOKEN}":
            self.send_error(401)
            return
        found = self.server.files.get("/a.txt" if self.path in ("/private", "/short") else self.path.partition("?")[0])
        if found is None:
            self.send_error(404)
            return
        self.send_response(200)
        self.send_header("ETag", f'"{hash(found)}"')
        self.send_header("Content-Length", str(len(found)))
        self.end_headers()
        if self.command == "GET":
            self.wfile.write(found[:3] if self.path == "/short" else found)

    def log_message(self, *_args: object) -> None:
        """Nothing."""


@contextmanager
def site(tls: ssl.SSLContext | None = None) -> Iterator[Site]:
    """Runs a site."""
    with Site() as found:
        if tls is not None:
            found.socket = tls.wrap_socket(found.socket, server_side=True, do_handshake_on_connect=False)
            found.scheme = "https"
        thread = Thread(target=found.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        try:
            yield found
        finally:
            found.shutdown()
            thread.join()


@contextmanager
def trusted_site(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Site]:
    """A site over TLS, whose authority this process trusts as long as `SSL_CERT_FILE` names it."""
    authority = Authority.create()
    authority.write(folder)
    write_identity(authority.issue("site", hosts=["127.0.0.1"]), folder)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(folder / "site.crt", folder / "site.key")
    monkeypatch.setenv("SSL_CERT_FILE", str(folder / "ca.crt"))
    with site(context) as found:
        yield found
