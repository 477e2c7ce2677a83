"""A push service in the test's process, over TLS, as the allow-list of its own settings has it."""

from __future__ import annotations

import ssl
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

from link.pki.authority import Authority, write_identity


@dataclass
class PushService:
    """One.

    Attributes:
        host: As in `push_services`.
        ca: The authority of its certificate.
        answers: By path, what it answers; 201 elsewhere.
        got: Path, headers and body of each request.
        hangs: Paths that get no answer before the end.
    """

    host: str
    ca: Path
    answers: dict[str, int] = field(default_factory=dict)
    got: list[tuple[str, Mapping[str, str], bytes]] = field(default_factory=list)
    hangs: set[str] = field(default_factory=set)

    def endpoint(self, name: str, answer: int = 201) -> str:
        """The endpoint of a browser."""
        self.answers[f"/{name}"] = answer
        return f"https://{self.host}/{name}"


@contextmanager
def push_service(folder: Path) -> Iterator[PushService]:
    """Runs it."""
    authority = Authority.create()
    authority.write(folder / "push")
    write_identity(authority.issue("push", "party", ["localhost"]), folder / "push")

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            found.got.append((self.path, dict(self.headers), body))
            if self.path in found.hangs:
                over.wait()
            self.send_response(found.answers.get(self.path, 201))
            self.send_header("Location", f"https://{found.host}/elsewhere")
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, *_: object) -> None:
            """Silent."""

    over = threading.Event()
    server = ThreadingHTTPServer(("localhost", 0), Handler)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(folder / "push/push.crt", folder / "push/push.key")
    server.socket = context.wrap_socket(server.socket, server_side=True)
    found = PushService(f"localhost:{server.server_port}", folder / "push/ca.crt")
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield found
    finally:
        over.set()
        server.shutdown()
        thread.join()
        server.server_close()
