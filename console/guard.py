"""What every request must hold before anything else looks at it, and what every answer says to browsers.

Against other sites in the same browser: the host must be the console's own (DNS rebinding), and whatever changes
something must come from its own pages (`Origin`, `Sec-Fetch-Site`), beside the cookie's own `SameSite=Strict`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final
from urllib.parse import urlsplit

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

STATIC: Final = "/static/"
_READS: Final = frozenset({"GET", "HEAD"})
_OWN: Final = frozenset({"same-origin", "none"})
_HEADERS: Final = {
    "Content-Security-Policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; "
        "frame-src 'self'; form-action 'self'; frame-ancestors 'none'; base-uri 'none'"
    ),
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": "camera=(), geolocation=(), microphone=(), payment=(), usb=()",
    # `no-referrer` would have forms say that they come from nowhere.
    "Referrer-Policy": "same-origin",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
}
SANDBOXED: Final = {
    # Its scripts are in it, and its own policy names them. They run as if from another site, which may load nothing.
    "Content-Security-Policy": (
        "sandbox allow-scripts; default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; "
        "img-src data:; form-action 'none'; frame-ancestors 'self'; base-uri 'none'"
    ),
    "X-Frame-Options": "SAMEORIGIN",
}
"""What the answer says instead that is a document of its own, within a page of the console."""


class Guard:
    """Stands before an application.

    Args:
        app: The application.
        origins: The console's own, as browsers write them.

    Attributes:
        app: The application behind it.
    """

    def __init__(self, app: ASGIApp, origins: Sequence[str]) -> None:
        self.app, self._origins = app, frozenset(origins)
        self._hosts = frozenset(urlsplit(origin).netloc for origin in origins)
        self._secure = all(origin.startswith("https:") for origin in origins)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answers a request, or lets it through."""
        if scope["type"] == "lifespan":
            await self.app(scope, receive, send)
        if scope["type"] != "http":
            return

        async def told(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in _HEADERS.items():
                    headers.setdefault(name, value)
                # No copy of a page stays in the browser; what belongs to the console itself may, if it is asked for.
                headers["Cache-Control"] = "no-cache" if scope["path"].startswith(STATIC) else "no-store"
                if self._secure:
                    headers["Strict-Transport-Security"] = "max-age=31536000"
            await send(message)

        refusal = self._refusal(scope["method"], Headers(scope=scope))
        if refusal is None:
            await self.app(scope, receive, told)
        else:
            await refusal(scope, receive, told)

    def _refusal(self, method: str, headers: Headers) -> PlainTextResponse | None:
        if [host.lower() in self._hosts for host in headers.getlist("host")] != [True]:
            return PlainTextResponse("this is not the address of this console; use the one it was started with", 421)
        site = headers.get("sec-fetch-site", "same-origin")
        if method in _READS:
            # Links from elsewhere may lead to a page; nothing of it may be read into, or shown within, another one.
            if site not in _OWN and headers.get("sec-fetch-mode", "navigate") != "navigate":
                return PlainTextResponse("another site may not read this", 403)
            return None
        if method != "POST":
            return PlainTextResponse("this console answers GET and POST", 405)
        if [origin in self._origins for origin in headers.getlist("origin")] != [True] or site != "same-origin":
            return PlainTextResponse("this was not sent from a page of this console", 403)
        return None
