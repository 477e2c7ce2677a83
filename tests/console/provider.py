"""A provider of OpenID Connect in the test's process, which lets in whoever comes, and can be made to lie."""

from __future__ import annotations

import base64
import hashlib
import json
import secrets
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Any
from urllib.parse import parse_qsl, urlencode, urlsplit

from joserfc import jwt
from joserfc.jwk import ECKey

CLIENT, SECRET = "comine", "the secret of the console"


class Provider(ThreadingHTTPServer):
    """The provider.

    Attributes:
        person: The claims about who logs in next.
        lies: Claims and members of its answers that are other than they must be.
        header: Of tokens.
        codes: What was asked for, by the code that was given for it.
    """

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Answers)
        self.key = ECKey.generate_key("P-256", {"kid": "one", "use": "sig"})
        self.person: dict[str, Any] = {}
        self.lies: dict[str, Any] = {}
        self.signs_with = self.key
        self.codes: dict[str, dict[str, str]] = {}

    @property
    def issuer(self) -> str:
        return f"http://127.0.0.1:{self.server_port}"

    def metadata(self) -> dict[str, Any]:
        places = {f"{name}_endpoint": f"{self.issuer}/{name}" for name in ("authorization", "token")}
        found = {"issuer": self.issuer, "jwks_uri": f"{self.issuer}/jwks", **places}
        return {**found, "id_token_signing_alg_values_supported": ["ES256", "none"], **self.lies.get("metadata", {})}

    def token(self, asked: dict[str, str]) -> dict[str, Any]:
        now = int(time.time())
        claims = {"iss": self.issuer, "aud": CLIENT, "sub": "1", "iat": now, "exp": now + 60, "nonce": asked["nonce"]}
        signed = jwt.encode(
            {"alg": "ES256", "kid": "one"}, {**claims, **self.person, **self.lies.get("claims", {})}, self.signs_with
        )
        return {"access_token": "a", "token_type": "Bearer", "id_token": signed, **self.lies.get("token", {})}


class _Answers(BaseHTTPRequestHandler):
    server: Provider

    def do_GET(self) -> None:
        place = urlsplit(self.path)
        if place.path == "/.well-known/openid-configuration":
            self._say(self.server.metadata())
        elif place.path == "/jwks":
            self._say({"keys": [self.server.key.as_dict(private=False)]})
        elif place.path == "/authorization":
            asked = dict(parse_qsl(place.query))
            assert asked["client_id"] == CLIENT
            assert asked["code_challenge_method"] == "S256"
            code = secrets.token_hex(8)
            self.server.codes[code] = asked
            self.send_response(303)
            self.send_header(
                "Location", f"{asked['redirect_uri']}?{urlencode({'code': code, 'state': asked['state']})}"
            )
            self.send_header("Content-Length", "0")
            self.end_headers()
        else:
            self.send_error(404)

    def do_POST(self) -> None:
        given = dict(parse_qsl(self.rfile.read(int(self.headers["Content-Length"])).decode()))
        asked = self.server.codes.pop(given["code"], None)
        challenge = (
            base64.urlsafe_b64encode(hashlib.sha256(given["code_verifier"].encode()).digest()).rstrip(b"=").decode()
        )
        basic = base64.b64encode(f"{CLIENT}:{SECRET}".encode()).decode()
        if asked is None or asked["code_challenge"] != challenge or self.headers["Authorization"] != f"Basic {basic}":
            self._say({"error": "invalid_grant"}, 400)
        else:
            self._say(self.server.token(asked))

    def _say(self, contents: dict[str, Any], status: int = 200) -> None:
        body = json.dumps(contents).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Nothing."""


@contextmanager
def provider() -> Iterator[Provider]:
    """Runs one."""
    with Provider() as found:
        thread = Thread(target=found.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        try:
            yield found
        finally:
            found.shutdown()
            thread.join()
